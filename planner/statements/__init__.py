"""Kinds of statements: passed on to the shadow, settings, statements with questions inside, and refused ones.

May refuse: KH100, KH106, KH108, KH402, KH403, KH404.
May import: `monitors` and below.
Read first: `classify.py`.
"""
