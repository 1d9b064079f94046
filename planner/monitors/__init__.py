"""Monitors: plans of standing questions, their windows, looks, price and SQL.

May refuse: KH303, KH601, KH602, KH603.
May import: `extract`, `plan` and below.
Read first: `build.py`.
"""
