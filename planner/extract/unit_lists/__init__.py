"""Joins that only say whose rows count, and WITH queries that only lists read, brought to lists of privacy units.

May refuse: nothing.
May import: `bind`, `lower`, `explain` and below.
Read first: `list_joined_units.py`.
"""
