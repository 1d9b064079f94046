"""A list of questions held against the budget before any is asked: what fits, how much wider all would, a split.

May refuse: KH430.
May import: `pipeline` and below.
Read first: `question_list.py`.
"""
