"""Binding of a question's text to a `Question`: tables, joins, restricted keys, and thresholds as integers.

May refuse: KH005, KH100, KH101, KH103, KH107, KH110, KH201, KH202, KH203, KH204, KH207, KH208, KH209, KH210, KH213,
KH900.
May import: `rankings` and below.
Read first: `bind_question.py`.
"""
