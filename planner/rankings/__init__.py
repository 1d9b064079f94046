"""Rankings: an integer for each group, and the tolerance for a price.

May refuse: KH204, KH208, KH303, KH304.
May import: `functionals` and below.
Read first: `ranked.py`.
"""
