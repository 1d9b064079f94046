"""Values of one unit's own rows, stored beside each of its rows.

Refuses nothing but what `planner.lower` refuses of any row. May import the catalog and `planner.lower`'s rows, joins
and dialects. Read `store_values.py`.
"""
