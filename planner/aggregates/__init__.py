"""HAVING as comparisons of sums with constants, in negation normal form.

May refuse: KH203, KH204, KH207, KH208, KH209, KH211, KH212.
May import: `groups` and below.
Read first: `having.py`.
"""
