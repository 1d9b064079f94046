"""The table of questions that wait for the owner's approval, with texts as the policy keeps them. No event.

Revision ID: 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table of questions that wait for approval."""
    op.create_table(
        "waiting",
        sa.Column("question", sa.Text, primary_key=True),
        sa.Column("analyst", sa.Text, primary_key=True),
        sa.Column("asked_at", sa.Text, nullable=False),
        sa.Column("family_table", sa.Text, nullable=False),
        sa.Column("needed_nano", sa.Text, nullable=False),
        sa.Column("text", sa.Text),
        sa.Column("guarantee", sa.Text),
        sa.Column("digest", sa.Text, nullable=False),
    )
