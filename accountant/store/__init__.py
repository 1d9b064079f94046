"""The accountant's only I/O: the log in SQLite or PostgreSQL with one writer at a time, and snapshots of its fold.

May refuse: `AttemptTaken`, `LedgerBehind`, `LedgerMisuse`, `LedgerMoved`, `LedgerUnavailable`, `NoLedger`,
`StorageFailed`, `StorageFull`.
May import: `balances` and below.
Read first: `store.py`.
"""
