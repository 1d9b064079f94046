"""Formulas over aggregates in a select list or ORDER BY: their places in the text, and the value to rank by.

May refuse: KH106, KH201.
May import: `aggregates` and below.
Read first: `find.py`.
"""
