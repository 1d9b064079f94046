"""Whole published tables: a contingency table with noise, and published methods that protect less.

May refuse: `Unachievable`.
May import: `noise`, `apportionment`, `three_valued` and below.
Read first: `contingency_table.py`.
"""
