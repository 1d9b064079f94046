"""Sums of several terms, to which each row adds one expression that computes each value once.

Refuses nothing but what `planner.lower` refuses of any row. May import the catalog and `planner.lower`'s rows, measures
and dialects. Read `row_sum.py`.
"""
