"""The relations of the source that the ledger has charged, with the table names used for them.

A balance belongs to a table's name. If a relation were renamed, its rows would start with a new balance. To notice
that, the ledger stores the relations of each name. This is no event, as it changes no balance.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from accountant.balances.fold import Balances
from accountant.store.journal import Journal
from accountant.store.transaction import Transaction


class Exposures:
    """The relations that the owner has exposed, by the source's names for them."""

    def __init__(self, journal: Journal, *, clock: Callable[[], datetime]) -> None:
        self._journal = journal
        self._clock = clock

    def store_relations(self, tables: Mapping[str, Collection[str]]) -> None:
        """Store the relations of each of the ledger's tables.

        An earlier name under which a relation has lost nothing is deleted, so a later return to it is noticed. Known
        relations are not written again.
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
                        transaction.relations.remove_relation(relation, other)
                if table not in known.get(relation, ()):
                    transaction.relations.add(relation, table, since=self._clock().isoformat())

    def knows_any_relation(self, relations: Collection[str]) -> bool:
        """Return True if one of the relations was exposed as a table of this ledger."""
        with self._journal.begin_log_read() as transaction:
            return bool(transaction.relations.find_tables(relations))

    def find_charged_names(self, relations: Collection[str], *, names: Collection[str]) -> tuple[str, ...]:
        """Return the table names under which a relation has lost something. `relations` are its own possible names.

        Return none if it was exposed under one of `names` too: the owner has then confirmed the name.
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
