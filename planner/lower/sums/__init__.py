"""What a row adds to a sum of several terms, with each value computed once.

Refuses nothing but what `planner.lower` refuses of any row. May import the catalog and `planner.lower`'s rows, measures
and dialects. Read `row_sum.py`.
"""
