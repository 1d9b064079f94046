"""Append-only events, the key values and answers they refer to, and the row that writers queue on.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

APPEND_ONLY = ("events", "domains", "answers")


def upgrade() -> None:
    """Create the tables, and triggers that refuse to change or remove a row."""
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reservation", sa.Text, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("spent_keys", sa.LargeBinary),
        sa.Column("previous_hash", sa.Text, nullable=False, unique=True),
        sa.Column("hash", sa.Text, nullable=False, unique=True),
        sa.UniqueConstraint("reservation", "kind"),
        sa.CheckConstraint("kind IN ('Reserved', 'Committed', 'Released')"),
    )
    op.create_table(
        "domains",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "answers",
        sa.Column("reservation", sa.Text, primary_key=True),
        sa.Column("event", sa.BigInteger, sa.ForeignKey("events.id"), nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("analyst", sa.Text, nullable=False),
        sa.Column("answer", sa.LargeBinary, nullable=False),
    )
    op.create_index("answers_by_question", "answers", ["fingerprint", "version", "event"])
    writer = op.create_table("writer", sa.Column("id", sa.Integer, primary_key=True, autoincrement=False))
    op.bulk_insert(writer, [{"id": 1}])
    if op.get_bind().dialect.name == "sqlite":
        _refuse_changes_in_sqlite()
    else:
        _refuse_changes_in_postgresql()


def _refuse_changes_in_sqlite() -> None:
    for table in APPEND_ONLY:
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )
    # INSERT OR REPLACE removes the row it replaces without firing a DELETE trigger
    for table, key in (("events", "id"), ("domains", "digest"), ("answers", "reservation")):
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key} = NEW.{key}) "
            f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        )
    op.execute(
        "CREATE TRIGGER events_in_order BEFORE INSERT ON events "
        "WHEN NEW.id <> (SELECT coalesce(max(id), 0) + 1 FROM events) "
        "BEGIN SELECT RAISE(ABORT, 'events are numbered without gaps'); END"
    )


def _refuse_changes_in_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$"
    )
    for table in APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_append_only()"
        )
