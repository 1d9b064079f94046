"""The compiled policy: tables, columns, public key domains and budgets.

May refuse: KH002, KH003, KH006, KH010, KH201, KH304, KH402.
May import: `errors` and below.
Read first: `catalog.py`.
"""
