"""REST: questions, refusals and the ledger as JSON.

May refuse: KH401, KH406, KH408, KH430, KH431, KH432.
May import: `owner` and below.
Read first: `app.py`.
"""
