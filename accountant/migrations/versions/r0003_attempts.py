"""The table of idempotent requests, by the key of their sender. They are no events, and expire.

Revision ID: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table of attempts."""
    op.create_table(
        "attempts",
        sa.Column("analyst", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("attempt", sa.Text, nullable=False, unique=True),
        sa.Column("begun_at", sa.Text, nullable=False),
        sa.Column("reservation", sa.Text),
        sa.Column("answer", sa.Text),
        sa.Column("response", sa.LargeBinary),
    )
    op.create_index("attempts_by_age", "attempts", ["begun_at"])
