"""The check of a policy while some tables' relations cannot be read, for `keyhole check`.

A broken table is checked in its pinned state, or left out if it was never pinned. No question is answered this way,
since a service opens the source itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from planner.catalog.catalog import Catalog
from planner.catalog.fault import Fault
from planner.catalog.pins import PinnedTable, Pins
from planner.catalog.relation_names import RelationIdentity
from planner.catalog.sql_types import SourceColumn
from planner.errors import KeyholeError
from planner.policy.compile_column import list_exposed_names
from planner.policy.file import Policy
from planner.policy.source_faults import refuse_absent_column
from proxy.open_policy.csv_files import find_form
from proxy.open_policy.pins import PinSource, find_pins_path, make_catalog_from_pins, read_pins


@dataclass(frozen=True, slots=True)
class BrokenTable:
    """A table whose relation cannot be read, with the reason."""

    name: str
    why: str
    was_pinned: bool

    def __str__(self) -> str:
        known = "What follows of it is as it was pinned" if self.was_pinned else "It was never pinned and is left out"
        return f"tables.{self.name} cannot be read: {self.why}. {known}."


class PartlyPinnedSource:
    """A source that returns pinned data for relations that cannot be read, so that other tables can be pinned."""

    def __init__(self, source: PinSource, policy: Policy) -> None:
        self._source = source
        self._pins = read_pins(find_pins_path(policy))
        found: dict[str, BrokenTable] = {}
        self._names: dict[str, str] = {}
        # most of what a check asks of the source, each once
        self._identities: dict[str, RelationIdentity] = {}
        self._schemas: dict[str, tuple[SourceColumn, ...]] = {}
        for name in policy.tables:
            if (why := self._find_fault(policy, name)) is not None:
                found[name] = BrokenTable(name, why, was_pinned=_is_pinned(self._pins, name))
                if found[name].was_pinned:
                    pinned = policy.write_relation(name, csv=self._pins.get_csv_file(name))
                    self._names |= {policy.write_relation(name): name, pinned: name}
        self.broken: tuple[BrokenTable, ...] = tuple(found.values())

    def leave_out(self, policy: Policy) -> Policy:
        """Return the policy without the broken tables that were never pinned.

        Raise KH006, with the name of a broken table, if no private table is left, or if a remaining table refers to
        one that was left out.
        """
        unknown = [one.name for one in self.broken if not one.was_pinned]
        rest = policy.drop_tables(unknown)
        if rest is None or (unknown and not rest.private_tables):
            raise self._refuse(policy)
        return rest

    @contextmanager
    def check_others(self, policy: Policy) -> Iterator[None]:
        """Name the left-out tables in any error that the block raises while it checks the other tables."""
        try:
            yield
            return
        except KeyholeError:
            if all(one.was_pinned for one in self.broken):
                raise
        raise self._refuse(policy)

    def _refuse(self, policy: Policy) -> KeyholeError:
        one = next(one for one in self.broken if not one.was_pinned)
        hint = "Compare `relation` with the source, and the grants of the reader's role."
        return policy.refuse(("tables", one.name), Fault("KH006", f"cannot be read: {one.why}", hint=hint))

    def _find_fault(self, policy: Policy, name: str) -> str | None:
        try:
            self._identities[policy.write_relation(name)] = self._source.identify(policy.write_relation(name))
            known = self._pins.get_csv_file(name)
            form = None if known is None else find_form(policy, name, self, known)
            columns = self.read_schema(policy.write_relation(name, csv=form))
        except KeyholeError as refused:
            if refused.code != "KH006":
                raise
            return refused.message
        gone = list_exposed_names(policy, name).intersection(self._pinned_columns(name)) - {one.name for one in columns}
        return refuse_absent_column(min(gone), columns).problem if gone else None

    def _pinned_columns(self, name: str) -> Iterable[str]:
        table = self._pins.get_table(name)
        return self._pins.get_types(name) or {} if table is None else [column.name for column in table.columns]

    def hold_open(self) -> AbstractContextManager[None]:
        """Keep the database file open during the block, if the source opens it only while reading.

        Raise KH008 if the source does not answer.
        """
        return self._source.hold_open()

    def read_schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return the columns of a relation, now or when it was pinned. Raise KH006 if the relation cannot be read."""
        name = self._names.get(relation)
        if name is None:
            if relation not in self._schemas:
                self._schemas[relation] = self._source.read_schema(relation)
            return self._schemas[relation]
        if (table := self._pins.get_table(name)) is not None:
            return table.columns
        return _make_columns(self._pins.get_types(name) or {})

    def read_table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> Sequence[Sequence[object]]:
        """Return all rows of a public table, now or when it was pinned. Raise KH006 if the relation cannot be read."""
        table = self._find_public_pin(relation)
        if table is None:
            return self._source.read_table_rows(relation, columns, most=most)
        return list(zip(*map(table.get_values, columns), strict=True))

    def identify(self, relation: str) -> RelationIdentity:
        """Return the identity of a relation, now or when it was pinned. Raise KH006 if the relation cannot be read."""
        name = self._names.get(relation)
        if name is None:
            found = self._identities.get(relation)
            return self._source.identify(relation) if found is None else found
        names = self._pins.get_relation(name) or (relation,)
        table = self._find_public_pin(relation)
        unique = frozenset(() if table is None else table.unique)
        return RelationIdentity(names=names, bases=frozenset(), is_view=False, is_join=False, unique=unique)

    def read_for_owner(self, relation: str, sql: str) -> Sequence[Sequence[object]]:
        """Return the result of a statement over a relation. Raise KH006 if the relation cannot be read."""
        return self._source.read_for_owner(relation, sql)

    def read_state(self, relation: str) -> str:
        """Return a text that changes whenever the relation's data changes.

        Raise KH006 if the relation cannot be read.
        """
        return self._source.read_state(relation)

    def _find_public_pin(self, relation: str) -> PinnedTable | None:
        return self._pins.get_table(self._names.get(relation, ""))


def make_catalog_of_pinned_tables(policy: Policy) -> Catalog:
    """Return a catalog of the pinned tables only, which suffices for reading the ledger.

    Tables that were never pinned are left out. Raise KH003 to KH007 and KH010.
    """
    pins = read_pins(find_pins_path(policy))
    rest = policy.drop_tables([name for name in policy.tables if not _is_pinned(pins, name)])
    if rest is not None and rest.private_tables:
        with suppress(KeyholeError):  # a view or a monitor may read what is left out
            return make_catalog_from_pins(rest)
    return make_catalog_from_pins(policy)


def _is_pinned(pins: Pins, name: str) -> bool:
    return pins.get_table(name) is not None or (
        pins.get_relation(name) is not None and pins.get_types(name) is not None
    )


def _make_columns(types: Mapping[str, str]) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(column, declared, nullable=True) for column, declared in types.items())
