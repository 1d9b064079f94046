"""Computed groups: the finite values of an expression over columns, from public facts alone.

May refuse: KH202.
May import: `predicates` and below.
Read first: `computed_keys.py`.
"""
