"""The ledger: append-only events, balances as their fold; reserve, commit and release.

May refuse: the exceptions of `errors.py`, which `proxy` turns into KH3xx and KH502.
May import: `mechanisms`, SQLAlchemy, Alembic, numpy.
Read first: `ledger.py`.
"""
