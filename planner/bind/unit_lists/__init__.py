"""Conditions on whole privacy units: which subqueries in WHERE are lists of units, and what they ask of a unit's rows.

May refuse: KH107, KH201, KH203-KH205, KH212.
May import: `rankings` and below.
Read first: `find_lists.py`.
"""
