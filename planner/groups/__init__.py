"""Computed groups: the finite values of an expression, from public facts.

May refuse: KH202.
May import: `predicates` and below.
Read first: `computed_keys.py`.
"""
