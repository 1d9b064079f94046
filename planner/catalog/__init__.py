"""What may be asked about, compiled and frozen: tables, columns, public key domains, budgets.

May refuse: KH002, KH003, KH006, KH010, KH201, KH304, KH402.
May import: `errors` and below.
Read first: `model.py`.
"""
