"""The ledger's verbs beside reserve, commit and release: what owners decide, requests that come twice,
verification, what tables are called in their source.

May refuse: `LedgerMisuse`, `LedgerUnavailable`, `OtherRequest`, `Repeated`, `TooManyKeys`.
May import: `store` and below.
Read first: `owner.py`.
"""
