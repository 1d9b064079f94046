"""The SQL parser: text to tokens and a tree, with positions in the analyst's own text.

May refuse: KH100, KH103, KH106.
May import: `errors` and below.
Read first: `tree.py`.
"""
