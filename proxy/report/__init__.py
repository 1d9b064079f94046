"""Balances, the log and refusals as people and programs read them: tables, heat maps, problem documents.

May refuse: KH303, KH900.
May import: `service` and below.
Read first: `budget.py`.
"""
