"""Events of new kinds, tables of noise paths and their prunings, and a snapshot of the balances.

Revision ID: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KINDS = "kind IN ('Reserved', 'Committed', 'Released')"


def upgrade() -> None:
    """Allow events of any kind in the table, and create the new tables. Readers refuse kinds that they do not know."""
    if op.get_bind().dialect.name == "sqlite":
        _any_kind_in_sqlite()
    else:
        _any_kind_in_postgresql()
    op.create_table(
        "paths",
        sa.Column("reservation", sa.Text, primary_key=True),
        sa.Column("identity", sa.Text, primary_key=True),
        sa.Column("family_table", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("event", sa.BigInteger, sa.ForeignKey("events.id"), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "pruned",
        sa.Column("event", sa.BigInteger, sa.ForeignKey("events.id"), primary_key=True, autoincrement=False),
        sa.Column("family_table", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
    )
    op.create_index("pruned_by_version", "pruned", ["family_table", "version"])
    op.create_table(
        "snapshots",
        sa.Column("event", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        _keep_paths_in_sqlite()
    else:
        _keep_paths_in_postgresql()


def _any_kind_in_sqlite() -> None:
    """Copy the table, its answers and its triggers, as SQLite cannot drop a constraint."""
    connection = op.get_bind()
    restore = connection.scalars(
        sa.text(
            "SELECT sql FROM sqlite_master WHERE tbl_name IN ('events', 'answers') AND sql IS NOT NULL "
            "ORDER BY CASE type WHEN 'table' THEN 0 WHEN 'index' THEN 1 ELSE 2 END, name DESC"
        )
    ).all()
    for table in ("answers", "events"):
        op.execute(f"CREATE TABLE old_{table} AS SELECT * FROM {table}")
        op.execute(f"DROP TABLE {table}")
    for statement in restore:
        if not statement.startswith("CREATE TRIGGER"):
            connection.exec_driver_sql(statement.replace(f"CHECK ({KINDS})", "CHECK (kind <> '')"))
    op.execute("INSERT INTO events SELECT * FROM old_events ORDER BY id")
    op.execute("INSERT INTO answers SELECT * FROM old_answers ORDER BY event")
    for table in ("answers", "events"):
        op.execute(f"DROP TABLE old_{table}")
    for statement in restore:
        if statement.startswith("CREATE TRIGGER"):
            connection.exec_driver_sql(statement)


def _any_kind_in_postgresql() -> None:
    connection = op.get_bind()
    for name in connection.scalars(
        sa.text("SELECT conname FROM pg_constraint WHERE conrelid = 'events'::regclass AND contype = 'c'")
    ).all():
        op.drop_constraint(name, "events", type_="check")


def _keep_paths_in_sqlite() -> None:
    for table in ("paths", "pruned"):
        op.execute(
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} "
            f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )
    op.execute(
        "CREATE TRIGGER paths_no_delete BEFORE DELETE ON paths WHEN NOT EXISTS "
        "(SELECT 1 FROM pruned WHERE family_table = OLD.family_table AND version = OLD.version "
        "AND pruned.event > OLD.event) "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )
    op.execute(
        "CREATE TRIGGER pruned_no_delete BEFORE DELETE ON pruned "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )
    op.execute(
        "CREATE TRIGGER paths_no_replace BEFORE INSERT ON paths WHEN EXISTS "
        "(SELECT 1 FROM paths WHERE reservation = NEW.reservation AND identity = NEW.identity) "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )
    op.execute(
        "CREATE TRIGGER pruned_no_replace BEFORE INSERT ON pruned WHEN EXISTS "
        "(SELECT 1 FROM pruned WHERE event = NEW.event) "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    )


def _keep_paths_in_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION only_pruned_paths_go() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF EXISTS (SELECT 1 FROM pruned WHERE family_table = OLD.family_table AND version = OLD.version "
        "AND pruned.event > OLD.event) "
        "THEN RETURN OLD; END IF; "
        "RAISE EXCEPTION 'the ledger is append-only'; END $$"
    )
    op.execute(
        "CREATE TRIGGER paths_no_delete BEFORE DELETE ON paths FOR EACH ROW EXECUTE FUNCTION only_pruned_paths_go()"
    )
    for table, verbs in (("paths", "UPDATE OR TRUNCATE"), ("pruned", "UPDATE OR DELETE OR TRUNCATE")):
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE {verbs} ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_append_only()"
        )
