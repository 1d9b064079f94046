"""Rules for subqueries whose values of one privacy unit a question reads.

May import `planner.bind.unit_values` and the parser. Read `move_out_of_values.py`.
"""
