"""Events and their records: canonical JSON whose meaning never changes, chained by hash.

May refuse: `LedgerMisuse`, `LedgerUnavailable`.
May import: `limits` and below.
Read first: `events.py`.
"""
