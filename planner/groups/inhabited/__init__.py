"""Which groups a WHERE leaves room for a row in: key values at which all of its conditions may hold.

May refuse: nothing.
May import: `predicates` and below.
Read first: `key_values.py`.
"""
