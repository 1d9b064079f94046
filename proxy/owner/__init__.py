"""Decisions and reports of the data owner.

May refuse: KH009.
May import: `dashboard`, `release`, `monitors` and below.
Read first: `decisions.py`.
"""
