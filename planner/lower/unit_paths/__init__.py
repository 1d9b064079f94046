"""Rows that find their privacy unit in another table: the join adds its columns, and adds and drops nothing else.

Refuses nothing: the policy's rules and `planner.policy.unit_paths` have judged every path. May import the catalog and
`planner.lower`'s rows and dialects. Read `reach.py` first.
"""
