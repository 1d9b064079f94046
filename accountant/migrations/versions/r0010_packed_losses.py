"""Losses per key may be packed: a version from before would take those for damaged, and refuses the ledger by this.

Revision ID: 0010
"""

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Change nothing: events are never rewritten. Unpacked losses stay so, and are read."""
