"""Which relations of the source the ledger has charged, and under which names.

A balance is kept by a table's name. So that the same rows under another name do not begin from nothing unnoticed, the
ledger remembers what each name stood for. No event: it changes no balance.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from accountant.balances.fold import Balances
from accountant.store.journal import Journal
from accountant.store.transaction import Transaction


class Exposures:
    """The relations that the owner has exposed, by their names in their source."""

    def __init__(self, journal: Journal, *, clock: Callable[[], datetime]) -> None:
        self._journal = journal
        self._clock = clock

    def remember(self, tables: Mapping[str, Collection[str]]) -> None:
        """Write down the relations under which each of the ledger's tables is charged.

        A name under which such a relation has lost nothing is forgotten, so it is no way back later. Known relations
        are not written again.
        """
        wanted = {relation: table for table, relations in tables.items() for relation in relations}
        with self._journal.begin_read() as (transaction, balances):
            if _is_known(transaction, balances, wanted):
                return
        with self._journal.begin_write() as (transaction, balances):
            known = transaction.relations.find_tables(wanted)
            for relation, table in sorted(wanted.items()):
                for other in known.get(relation, set()) - {table}:
                    if not balances.worst_case.read_table_loss(other):
                        transaction.relations.remove(relation, other)
                if table not in known.get(relation, ()):
                    transaction.relations.add(relation, table, since=self._clock().isoformat())

    def knows_any(self, relations: Collection[str]) -> bool:
        """Return True if one of the relations was exposed as a table of this ledger."""
        with self._journal.begin_log_read() as transaction:
            return bool(transaction.relations.find_tables(relations))

    def find_charged_names(self, relations: Collection[str], *, names: Collection[str]) -> tuple[str, ...]:
        """Return the names under which a relation, called by any of its own, has lost something.

        Return none if it was exposed under one of `names` as well, since the owner has confirmed that then.
        """
        with self._journal.begin_read() as (transaction, balances):
            tables = set().union(*transaction.relations.find_tables(relations).values())
            charged = {table for table in tables if balances.worst_case.read_table_loss(table)}
            return () if tables & set(names) else tuple(sorted(charged))


def _is_known(transaction: Transaction, balances: Balances, wanted: Mapping[str, str]) -> bool:
    known = transaction.relations.find_tables(wanted)
    return all(
        table in known.get(relation, ())
        and all(balances.worst_case.read_table_loss(other) for other in known[relation] - {table})
        for relation, table in wanted.items()
    )
