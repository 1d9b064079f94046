"""The ledger's verbs beside reserve, commit and release: what owners decide, requests that come twice,
verification, what tables are called in their source, monitors.

May refuse: `LedgerMisuse`, `LedgerUnavailable`, `LookTaken`, `OtherRequest`, `Repeated`, `TooManyKeys`, `WindowLost`.
May import: `store` and below.
Read first: `owner.py`.
"""
