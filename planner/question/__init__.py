"""The frozen values that the stages hand on: conditions, a question, its plan.

May refuse: KH402, KH900.
May import: `values`, `policy` and below.
Read first: `model.py`.
"""
