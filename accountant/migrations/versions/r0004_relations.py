"""The table of charged relations: which table of the ledger stands for each, so that a renaming is noticed. No event.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table of exposed relations."""
    op.create_table(
        "relations",
        sa.Column("relation", sa.Text, primary_key=True),
        sa.Column("family_table", sa.Text, primary_key=True),
        sa.Column("since", sa.Text, nullable=False),
    )
