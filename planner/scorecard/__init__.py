"""Scorecards and rankings: which formulas over aggregates stand in a select list or ORDER BY, where in the text each
one is, and by which value ORDER BY ranks or sorts.

May refuse: KH106, KH201.
May import: `aggregates` and below.
Read first: `find.py`.
"""
