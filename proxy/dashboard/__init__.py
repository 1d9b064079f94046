"""A list of questions rehearsed against the budget: which fit, and a tolerance for each that makes all fit.

May refuse: KH430.
May import: `pipeline` and below.
Read first: `question_list.py`.
"""
