"""Scorecards: which formulas over aggregates stand in a select list or ORDER BY, and where in the text each one is.

May refuse: KH106.
May import: `aggregates` and below.
Read first: `find.py`.
"""
