"""Conditions on columns that are looked up in public tables.

Read `public_conditions.py`. May import the catalog and `planner.lower`'s rows and conditions, and refuses what they do.
"""
