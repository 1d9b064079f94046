"""Cleared alerts: each can get, once, the number of the look that cleared it. Its key may then come again.

Revision ID: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

IN_ANSWER = "cleared_number IS NULL"
KEPT = ("run", "window_number", "key_place", "look_number", "at")


def upgrade() -> None:
    """Add the look to the alerts' primary key. Allow a clearing to be added to an alert once, and no other change."""
    if op.get_bind().dialect.name == "sqlite":
        _widen_in_sqlite()
    else:
        _widen_in_postgresql()
    op.create_index("monitor_alerts_by_look", "monitor_alerts", ["run", "look_number"])
    op.create_index("monitor_alerts_by_clearing", "monitor_alerts", ["run", "cleared_number"])
    still = sa.text(IN_ANSWER)
    op.create_index(
        "monitor_alerts_in_answer",
        "monitor_alerts",
        ["run", "window_number", "key_place"],
        unique=True,
        sqlite_where=still,
        postgresql_where=still,
    )
    if op.get_bind().dialect.name == "sqlite":
        _keep_alerts_in_sqlite()
    else:
        _keep_alerts_in_postgresql()


def _widen_in_sqlite() -> None:
    """Copy the table, its triggers and its indexes, as SQLite cannot change a primary key."""
    op.execute("CREATE TABLE old_alerts AS SELECT * FROM monitor_alerts")
    op.execute("DROP TABLE monitor_alerts")
    numbers = ("window_number", "key_place", "look_number")
    op.create_table(
        "monitor_alerts",
        sa.Column("run", sa.Text, primary_key=True),
        *(sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False) for name in numbers),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("cleared_number", sa.BigInteger),
        sa.Column("cleared_at", sa.Text),
    )
    names = ", ".join(KEPT)
    op.execute(f"INSERT INTO monitor_alerts ({names}) SELECT {names} FROM old_alerts")
    op.execute("DROP TABLE old_alerts")


def _widen_in_postgresql() -> None:
    op.execute("DROP TRIGGER monitor_alerts_append_only ON monitor_alerts")
    op.drop_index("monitor_alerts_by_look", "monitor_alerts")
    op.drop_constraint("monitor_alerts_pkey", "monitor_alerts", type_="primary")
    op.create_primary_key("monitor_alerts_pkey", "monitor_alerts", list(KEPT[:-1]))
    op.add_column("monitor_alerts", sa.Column("cleared_number", sa.BigInteger))
    op.add_column("monitor_alerts", sa.Column("cleared_at", sa.Text))


def _keep_alerts_in_sqlite() -> None:
    refused = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in KEPT)
    op.execute(
        f"CREATE TRIGGER monitor_alerts_no_update BEFORE UPDATE ON monitor_alerts WHEN {changed} "
        f"OR OLD.cleared_number IS NOT NULL OR NEW.cleared_number IS NULL OR NEW.cleared_at IS NULL {refused}"
    )
    op.execute(f"CREATE TRIGGER monitor_alerts_no_delete BEFORE DELETE ON monitor_alerts {refused}")
    op.execute(
        "CREATE TRIGGER monitor_alerts_no_replace BEFORE INSERT ON monitor_alerts WHEN EXISTS (SELECT 1 "
        "FROM monitor_alerts WHERE run = NEW.run AND window_number = NEW.window_number AND key_place = NEW.key_place "
        f"AND (look_number = NEW.look_number OR {IN_ANSWER})) {refused}"
    )


def _keep_alerts_in_postgresql() -> None:
    changed = " OR ".join(f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in KEPT)
    op.execute(
        "CREATE FUNCTION alerts_are_only_cleared() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF {changed} OR OLD.cleared_number IS NOT NULL OR NEW.cleared_number IS NULL OR NEW.cleared_at IS NULL "
        "THEN RAISE EXCEPTION 'the ledger is append-only'; END IF; "
        "RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER monitor_alerts_only_cleared BEFORE UPDATE ON monitor_alerts "
        "FOR EACH ROW EXECUTE FUNCTION alerts_are_only_cleared()"
    )
    op.execute(
        "CREATE TRIGGER monitor_alerts_append_only BEFORE DELETE OR TRUNCATE ON monitor_alerts "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_append_only()"
    )
