"""Whole published tables: a contingency table with noise, and published methods that protect less.

May refuse: nothing.
May import: `published` and below.
Read first: `contingency_table.py`.
"""
