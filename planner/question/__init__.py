"""The frozen values between stages: conditions, a question, its plan.

May refuse: KH214, KH402, KH900.
May import: `values`, `policy` and below.
Read first: `question.py`.
"""
