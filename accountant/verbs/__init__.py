"""Further verbs of the ledger: owners' decisions, repeated requests, verification, renamed tables, monitors.

May refuse: `LedgerMisuse`, `LedgerUnavailable`, `LookAlreadyRecorded`, `OtherRequest`, `Repeated`, `TooManyKeys`,
`WindowLost`.
May import: `store` and below.
Read first: `owner.py`.
"""
