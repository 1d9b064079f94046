"""The ledger's tables by revision; a released revision is never edited.

May refuse: nothing.
May import: nothing else of accountant.
Read first: `env.py`.
"""
