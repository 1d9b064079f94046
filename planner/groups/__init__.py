"""Groups computed from columns: the finitely many values of an expression, from public facts alone.

May refuse: KH202.
May import: `predicates` and below.
Read first: `computed_keys.py`.
"""
