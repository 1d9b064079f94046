"""From a question to its plan: the minimal formula, the calibrated mechanism, the rewritten SQL, and what makes two
questions the same.

May refuse: KH303.
May import: `bind`, `lower`, `explain` and below.
Read first: `build.py`.
"""
