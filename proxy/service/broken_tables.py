"""Tables whose relation cannot be read now, for `keyhole check`: it tells of the others, on what was pinned of these.

Nothing is answered on it: whoever serves opens the source itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.catalog.pins import PinnedTable, Pins
from planner.catalog.relations import RelationIdentity
from planner.catalog.sql_types import SourceColumn
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.service.pins import PinSource, pins_path, read_pins


@dataclass(frozen=True, slots=True)
class BrokenTable:
    """A table that the source does not have as it was pinned, and why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"tables.{self.name} cannot be read: {self.why}. What follows of it is as it was pinned."


class PinnedWhereBroken:
    """A source that gives what is pinned of relations that it cannot read, for pinning the others."""

    def __init__(self, source: PinSource, policy: Policy) -> None:
        self._source = source
        self._pins = read_pins(pins_path(policy))
        found: dict[str, BrokenTable] = {}
        self._names: dict[str, str] = {}
        for name in policy.tables:
            pinned = policy.relation(name, csv=self._pins.file(name))
            if not _is_pinned(self._pins, name):
                continue  # it has to be read, and is refused below
            if (refused := self._find_refusal(policy.relation(name), pinned)) is not None:
                found[name] = BrokenTable(name, refused.message)
                self._names |= {policy.relation(name): name, pinned: name}
        self.broken: tuple[BrokenTable, ...] = tuple(found.values())

    def _find_refusal(self, plain: str, pinned: str) -> KeyholeError | None:
        try:
            self._source.identify(plain)
            self._source.schema(pinned)
        except KeyholeError as refused:
            if refused.code != "KH006":
                raise
            return refused
        return None

    def schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """The columns of a relation, as they are or as they were pinned. Raises KH006."""
        name = self._names.get(relation)
        if name is None:
            return self._source.schema(relation)
        if (table := self._pins.table(name)) is not None:
            return table.columns
        return _columns(self._pins.types(name) or {})

    def table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> Sequence[Sequence[object]]:
        """All rows of a public table, as they are or as they were pinned. Raises KH006."""
        table = self._public(relation)
        if table is None:
            return self._source.table_rows(relation, columns, most=most)
        return list(zip(*map(table.values, columns), strict=True))

    def identify(self, relation: str) -> RelationIdentity:
        """What a relation is, or was when it was pinned. Raises KH006."""
        name = self._names.get(relation)
        if name is None:
            return self._source.identify(relation)
        names = self._pins.relation(name) or (relation,)
        table = self._public(relation)
        unique = frozenset(() if table is None else table.unique)
        return RelationIdentity(names=names, bases=frozenset(), is_view=False, joins=False, unique=unique)

    def read_for_owner(self, relation: str, sql: str) -> Sequence[Sequence[object]]:
        """What a statement over a relation gives. Raises KH006."""
        return self._source.read_for_owner(relation, sql)

    def state(self, relation: str) -> str:
        """Another text once a relation's data have moved. Raises KH006."""
        return self._source.state(relation)

    def _public(self, relation: str) -> PinnedTable | None:
        return self._pins.table(self._names.get(relation, ""))


def _is_pinned(pins: Pins, name: str) -> bool:
    return pins.table(name) is not None or (pins.relation(name) is not None and pins.types(name) is not None)


def _columns(types: Mapping[str, str]) -> tuple[SourceColumn, ...]:
    return tuple(SourceColumn(column, declared, nullable=True) for column, declared in types.items())
