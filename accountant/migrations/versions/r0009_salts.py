"""A salt for the states of monitors, so that a state cannot be guessed from its SHA-256 in the events.

Revision ID: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column `salt` to the states of windows.

    A state has no salt until its next look, and its event's digest has none.
    """
    nothing = "x''" if op.get_bind().dialect.name == "sqlite" else "''::bytea"
    op.add_column("monitor_state", sa.Column("salt", sa.LargeBinary, nullable=False, server_default=sa.text(nothing)))
