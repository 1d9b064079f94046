"""The ledger's tables, one revision after the other; a released revision is never edited.

May refuse: nothing.
May import: nothing else of accountant.
Read first: `env.py`.
"""
