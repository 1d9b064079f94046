"""What a statement is: passed on to the shadow, a setting, one with questions inside, or refused.

May refuse: KH100, KH106, KH108, KH402, KH403, KH404.
May import: `monitors` and below.
Read first: `classify.py`.
"""
