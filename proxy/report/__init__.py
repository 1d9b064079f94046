"""Balances, the log, formulas and refusals as people read them: tables, trees, heat maps.

May refuse: KH900.
May import: `service` and below.
Read first: `budget.py`.
"""
