"""Balances as a pure fold over the events, and whether a question fits into them.

May refuse: `LedgerMisuse`, `LedgerUnavailable`, `NotApproved`, `OverBudget`.
May import: `events` and below.
Read first: `fold.py`.
"""
