"""Losses per key may be packed: a version from before would take those for damaged, and refuses the ledger by this.

Revision ID: 0010
"""

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Events are never written again: what lies there unpacked stays so, and is read."""
