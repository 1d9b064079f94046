"""A list of questions rehearsed against the budget: which of them fit, and with which tolerances all would fit.

May refuse: KH430.
May import: `pipeline` and below.
Read first: `question_list.py`.
"""
