"""States of monitors have a salt, so that what events tell of them, a SHA-256, cannot be guessed.

Revision ID: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the salts. Earlier states have none until their next look: their events describe them without."""
    nothing = "x''" if op.get_bind().dialect.name == "sqlite" else "''::bytea"
    op.add_column("monitor_state", sa.Column("salt", sa.LargeBinary, nullable=False, server_default=sa.text(nothing)))
