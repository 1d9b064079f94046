"""Decisions and reports of the data owner, shared by the command and the console.

May refuse: KH009.
May import: `dashboard`, `release`, `monitors` and below.
Read first: `decisions.py`.
"""
