"""The plan of a question: minimal formula, calibrated mechanism, rewritten SQL, and the identity of equal questions.

May refuse: KH303.
May import: `bind`, `lower`, `explain` and below.
Read first: `build.py`.
"""
