"""A digest of each row outside the log, so that a change by another program is noticed.

Revision ID: 0005
"""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

COLUMNS = {
    "attempts": ("analyst", "key", "request", "attempt", "begun_at", "reservation", "answer", "response"),
    "relations": ("relation", "family_table", "since"),
}
"""By table what is digested, its key of two columns first."""


def upgrade() -> None:
    """Add the column `digest` to the tables `attempts` and `relations`, and fill it in for existing rows."""
    for name, columns in COLUMNS.items():
        op.add_column(name, sa.Column("digest", sa.Text))
        table = sa.table(name, *map(sa.column, (*columns, "digest")))
        connection = op.get_bind()
        for row in connection.execute(sa.select(*(table.c[column] for column in columns))).all():
            here = (table.c[columns[0]] == row[0]) & (table.c[columns[1]] == row[1])
            connection.execute(table.update().where(here).values(digest=_digest(row)))


def _digest(row: sa.Row[tuple[str | bytes | None, ...]]) -> str:
    """Return the digest of a row as `accountant.events.digests.digest_row` computed it at this revision."""
    cells = [hashlib.sha256(cell).hexdigest() if isinstance(cell, bytes) else cell for cell in row]
    written = json.dumps(cells, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(written.encode()).hexdigest()
