"""Balances as a fold over events, and the check that a question fits.

May refuse: `LedgerMisuse`, `LedgerUnavailable`, `LookAlreadyRecorded`, `MonitorNotEnded`, `MonitorStopped`,
`NotApproved`, `OverBudget`, `WindowClosed`.
May import: `events` and below.
Read first: `fold.py`.
"""
