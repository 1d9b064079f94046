"""The ledger's tables as they came to be, a file for each revision.

May import: Alembic and SQLAlchemy.
Read first: `r0001_events.py`.
"""
