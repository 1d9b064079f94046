"""The tables of monitors: the secret states of their open windows, their alerts, and their leases.

Revision ID: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the tables. States are overwritten at each look and deleted at the close. Alerts stay for good."""
    op.create_table(
        "monitor_state",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("window_number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("look", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "monitor_alerts",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("window_number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("key_place", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("look_number", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
    )
    op.create_index("monitor_alerts_by_look", "monitor_alerts", ["run", "look_number"])
    op.create_table(
        "monitor_leases",
        sa.Column("monitor", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("until", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        _keep_alerts_in_sqlite()
    else:
        op.execute(
            "CREATE TRIGGER monitor_alerts_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON monitor_alerts "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_append_only()"
        )


def _keep_alerts_in_sqlite() -> None:
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER monitor_alerts_no_{verb.lower()} BEFORE {verb} ON monitor_alerts "
            f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )
    op.execute(
        "CREATE TRIGGER monitor_alerts_no_replace BEFORE INSERT ON monitor_alerts WHEN EXISTS (SELECT 1 "
        "FROM monitor_alerts WHERE run = NEW.run AND window_number = NEW.window_number AND key_place = NEW.key_place) "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )
