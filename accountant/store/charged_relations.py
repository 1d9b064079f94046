"""The table of charged relations: the ledger's tables for each relation of the source, outside the chain of events."""

from collections.abc import Collection

import sqlalchemy as sa

from accountant.errors import LedgerUnavailable
from accountant.events.digests import digest_row

_relations = sa.Table(
    "relations",
    sa.MetaData(),
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("relation", "family_table")),
    sa.Column("since", sa.Text, nullable=False),
    sa.Column("digest", sa.Text),
)


class Relations:
    """Read and write access to the charged relations, inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def find_tables(self, relations: Collection[str]) -> dict[str, set[str]]:
        """Return the tables under which each relation was exposed, by relation."""
        chosen = sa.select(_relations.c.relation, _relations.c.family_table).where(_relations.c.relation.in_(relations))
        found: dict[str, set[str]] = {}
        for relation, table in self._connection.execute(chosen):
            found.setdefault(relation, set()).add(table)
        return found

    def remove_relation(self, relation: str, table: str) -> None:
        """Forget that a relation was exposed as a table."""
        here = (_relations.c.relation == relation) & (_relations.c.family_table == table)
        self._connection.execute(_relations.delete().where(here))

    def add(self, relation: str, table: str, *, since: str) -> None:
        """Remember that a relation is exposed as a table."""
        row = {"relation": relation, "family_table": table, "since": since}
        self._connection.execute(_relations.insert(), {**row, "digest": digest_row(row.values())})

    def check_rows(self) -> None:
        """Raise `LedgerUnavailable` unless every row is as it was written."""
        for *cells, written in self._connection.execute(sa.select(_relations)):
            if digest_row(cells) != written:
                raise LedgerUnavailable("the table that a relation is charged as is not what was written")
