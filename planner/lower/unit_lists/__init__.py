"""Conditions on whole privacy units: the join that leaves a question the rows of those that are on a list, or on none.

Refuses nothing but expensive conditions: the binder has judged every list. May import the catalog, questions and
`planner.lower`'s joins, rows and dialects. Read `keep_listed.py` first.
"""
