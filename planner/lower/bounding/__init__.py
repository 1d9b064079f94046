"""Which groups of a privacy unit count, as steps of a statement.

Read first: `choose_groups.py`. May import the catalog and `planner.lower`'s rows, orders and named steps.
"""
