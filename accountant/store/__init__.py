"""The accountant's only I/O: the log in SQLite or PostgreSQL, one writer at a time, and snapshots of its fold.

May refuse: `AttemptTaken`, `LedgerUnavailable`.
May import: `balances` and below.
Read first: `store.py`.
"""
