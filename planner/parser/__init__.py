"""SQL text to tokens and a tree, and every position back to the text as the analyst wrote it.

May refuse: KH100, KH103, KH106.
May import: `errors` and below.
Read first: `tree.py`.
"""
