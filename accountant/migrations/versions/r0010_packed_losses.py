"""Packed losses per key. An earlier version would take them for damaged; by this revision it refuses the ledger.

Revision ID: 0010
"""

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Change nothing, as events are never rewritten. Unpacked losses can still be read."""
