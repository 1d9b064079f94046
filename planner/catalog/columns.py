"""The columns that the policy exposes, and the columns and groups that questions derive from them.

A value of the catalog (`planner.catalog.catalog`), public and frozen.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias, TypeVar

from planner.catalog.row_terms import Computed
from planner.catalog.steps import MOST_WRITTEN, Steps

Value: TypeAlias = str | int | bool | Decimal | date | datetime
_Result = TypeVar("_Result")

LONGEST_TEXT = 500
"""Characters of a text that conditions see where the owner and the type say nothing: a comment, not a document. Longer
ones leave room for fewer patterns in a question."""

MOST_LISTED = 1_000
"""Rows of a public table up to which what is said of its columns becomes a list of the private column's values, which
is sharper: of more rows it is asked of the column as it is looked up, so that a question costs what one over few does.
"""

MOST_BANDS = 32
"""Thresholds of one aggregate in bands: half of what a question may have."""


class SqlType(StrEnum):
    """The types that conditions, keys and measures may have."""

    TEXT = "text"
    INTEGER = "integer"
    NUMERIC = "numeric"
    DOUBLE = "double precision"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    UUID = "uuid"
    OTHER = "other"  # visible in the catalog, usable in nothing


@dataclass(frozen=True, slots=True)
class Derivation:
    """The formula of a computed column: `date_trunc('part', column)`, `extract(part from column)` or `column::date`."""

    function: str  # "date_trunc" | "extract" | "date"
    part: str  # "" for "date"
    column: str


class ResultCache:
    """A cache of results that questions compute from pinned data. Each is computed when it is first needed."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def get(self, name: Hashable, make: Callable[[], _Result]) -> _Result:
        """Return the cached result with this name, or compute it with `make` and cache it.

        Two threads may both compute it.
        """
        try:
            found: _Result = self._known[name]
        except KeyError:
            found = self._known[name] = make()
        return found


class LookupValues:
    """The pinned values of a lookup column, each once, and the value that is looked up for each, in the same order.

    There may be a million. All questions of one catalog share one object, together with the results computed from it.
    `known_from` and `found_from` name the pinned columns of both sides. They are None if a side is no such column.
    Equal names mean equal values.
    """

    __slots__ = ("found", "found_from", "known", "known_from", "remembered")

    def __init__(
        self,
        known: tuple[Value, ...],
        found: tuple[Value | None, ...],
        *,
        known_from: str | None = None,
        found_from: str | None = None,
    ) -> None:
        self.known, self.found = known, found
        self.known_from, self.found_from = known_from, found_from
        self.remembered = ResultCache()

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[Value, Value | None]]) -> "LookupValues":
        """Return lookup values from pairs of a known value and the value that is looked up by it."""
        listed = tuple(pairs)
        return cls(tuple(first for first, _ in listed), tuple(value for _, value in listed))

    def __len__(self) -> int:
        return len(self.known)

    def __iter__(self) -> Iterator[tuple[Value, Value | None]]:
        return zip(self.known, self.found, strict=True)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, LookupValues) and (self.known, self.found) == (other.known, other.found)

    def __hash__(self) -> int:
        return len(self.known)

    def compose(self, other: "LookupValues") -> "LookupValues":
        """Return the lookup that applies this one and then `other` to its result, for the same known values."""

        def join() -> LookupValues:
            through = other.value_map
            steps = [one for one in (self.found_from, other.known_from, other.found_from) if one is not None]
            return LookupValues(
                self.known,
                tuple(None if one is None else through.get(one) for one in self.found),
                known_from=self.known_from,
                found_from=f"({') ('.join(steps)})" if len(steps) == 3 else None,
            )

        return self.remembered.get(("through", other), join)

    @property
    def longest_known(self) -> int:
        """The length of the longest text among the known values; 0 if none is a text."""

        def find_longest() -> int:
            texts = str in set(map(type, self.known))
            return max((len(value) for value in self.known if isinstance(value, str)), default=0) if texts else 0

        return self.remembered.get("longest known", find_longest)

    @property
    def value_map(self) -> Mapping[Value, Value | None]:
        """The looked-up value for each known value."""
        return self.remembered.get("by key", lambda: dict(self))


@dataclass(frozen=True, slots=True)
class Lookup:
    """A column of a pinned public table, looked up for each row by a column of the private table.

    `pairs` are the pinned values of the private table's column, each with the value looked up for it. Every other
    value, and NULL, gives NULL. `source` names the pinned data and the columns of the lookup: another pin is another
    column. If it `has_classes`, there is no public table. The lookup then maps the values of a key column to classes,
    each named by its first value. It stands for an expression of the question that is constant within each class.
    """

    column: str
    source: str
    pairs: LookupValues = field(hash=False)  # not hashed: there may be many
    has_classes: bool = False

    @property
    def is_listed(self) -> bool:
        """Return True if a condition on the column can be written as a list of base values.

        The list has the values by which the wanted values are looked up.
        """
        return len(self.pairs) <= MOST_LISTED


@dataclass(frozen=True, slots=True)
class ValueGroups:
    """Numbered groups into which a question divides the values of one column.

    For a column with an order, `cut_points` rise and `groups` has one entry more than there are cut points. A value's
    place in `groups` is the number of cut points that are at or below it. For another column, a row is in the first
    group of `groups` whose condition in `tests` holds. `null_group` is the group of NULL. Rows whose group is None do
    not count. `shown_values` has for each group one value that lies in it, of the column's type `kind`. With
    `distinct` the expression that forms the groups is known to differ between groups. If the cut points are `Steps`,
    groups are numbered in their order. If the groups are `is_exhaustive`, the shown values are all that the column
    has.
    """

    column: str
    kind: SqlType
    cut_points: Sequence[Value] = field(hash=False)  # not hashed: there may be many
    groups: tuple[int | None, ...] = field(hash=False)
    null_group: int | None
    shown_values: Sequence[Value | None] = field(hash=False, compare=False)
    tests: tuple[Hashable, ...] = ()
    distinct: bool = field(default=False, compare=False)
    is_exhaustive: bool = field(default=False, compare=False)

    @property
    def meaning(self) -> str:
        """The rule that assigns rows to groups, as text. Equal texts mean equal groups."""
        if isinstance(self.cut_points, Steps) and len(self.cut_points) > MOST_WRITTEN:
            return f"{self.cut_points.meaning}\n{self.groups[0]} to {self.groups[-1]}, {self.null_group}"
        return "\n".join(map(repr, (tuple(self.cut_points), self.tests, self.groups, self.null_group)))


@dataclass(frozen=True, slots=True)
class MergedKeys:
    """Numbered groups into which a question divides the combinations of values of several keys.

    `known` are each key's values, and `groups` has the number of the group of each combination; the last key's value
    changes first. A row is in no group if one of its keys is NULL or has a value that is not in `known`.
    `shown_values` has one combination of each group.
    """

    columns: tuple[str, ...]
    known: tuple[tuple[Value, ...], ...] = field(hash=False)  # not hashed: there may be many
    groups: tuple[int, ...] = field(hash=False)
    shown_values: tuple[tuple[Value, ...], ...] = field(hash=False, compare=False)

    @property
    def meaning(self) -> str:
        """The rule that assigns rows to groups, as text. Equal texts mean equal groups."""
        return "\n".join(map(repr, (self.known, self.groups)))


@dataclass(frozen=True, slots=True)
class Product:
    """A product of measures in a question: each row's values, clipped and rounded, are multiplied.

    The columns are sorted by name. A column that occurs twice is squared.
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bands:
    """Thresholds that the owner proposes for an aggregate of a group, rising, in the user's units.

    `aggregate` is `sum` or `avg` for a measure, and `rows` or `units`, the two counts, for a table. The thresholds are
    public; analysts see them, and hints use them. A ranking's tolerance in percent refers to the smallest.
    """

    aggregate: str
    thresholds: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True)
class BandColumn:
    """A column that clients see beside a table's own columns: the owner's band that contains a group's aggregate."""

    DECLARED: ClassVar[str] = "integer"

    name: str
    measure: str | None  # None where it counts the table's rows or units
    bands: Bands


@dataclass(frozen=True, slots=True)
class Column:
    """One exposed column of a private or public table.

    `declared` is the PostgreSQL type with its modifier, as the shadow declares it. `domain` makes it a key. `bounds`,
    `grid`, `per_unit` make it a measure (user's units). `immutable`: values never change between versions. `prunable`:
    a range of it spares the source reading other rows. It affects how SQL is written, never its meaning. `ledger` is
    the column's name in the ledger if that differs from `name`; for a looked-up column it names the column that it is
    looked up by. `is_determined`: its privacy unit determines it, for SQL that has it stored and no longer shows its
    derivation. `max_length` is the number of characters of a text that conditions and distinct counts see.

    `stored` is the source's type of a stored column when the catalog was made; every read is checked against it.
    `required`: the source's schema allows no NULL in it. `bands` are what the owner proposes to ask about a measure.
    `enumerated`: the source stores the text as an enum, so the SQL casts it before grouping. `computed`: a key that a
    question makes and the policy does not declare. `groupable`: questions may make keys of its values. `canonical` is
    the rule that assigns rows to the groups of a computed key, independent of its spelling. `filter_only`: the owner
    allows it in filters alone, so no automatic clip makes it a measure. `is_unit_value`: a question computes it from
    all rows of the unit that a row belongs to (`UnitValues`).
    """

    name: str
    sql_type: SqlType
    declared: str
    domain: tuple[Value, ...] | None = field(default=None, hash=False)  # not hashed: there may be millions
    bounds: tuple[Decimal, Decimal] | None = None
    grid: Decimal | None = None
    per_unit: tuple[Decimal, Decimal] | None = None
    derivation: Derivation | Lookup | MergedKeys | ValueGroups | Product | Computed | None = None
    immutable: bool = False
    prunable: bool = True
    comment: str | None = None
    ledger: str = ""
    is_determined: bool = False
    max_length: int | None = None
    stored: str | None = None
    required: bool = False
    bands: tuple[Bands, ...] = ()
    enumerated: bool = False
    computed: bool = False
    groupable: bool = True
    canonical: str = ""
    filter_only: bool = False
    is_unit_value: bool = False

    @property
    def identity(self) -> str:
        """The name that identifies the column within its table: one name for all spellings of a computed key."""
        return self.canonical or self.name

    @property
    def bases(self) -> tuple[str, ...]:
        """The names of the columns from which the column is computed. Empty for a stored column."""
        match self.derivation:
            case Derivation(column=base) | Lookup(column=base) | ValueGroups(column=base):
                return (base,)
            case MergedKeys(columns=several) | Product(columns=several):
                return several
            case Computed(term):
                return tuple(term.columns)
            case None:
                return ()

    @property
    def longest_text(self) -> int:
        """The number of characters of a text that conditions and distinct counts read. Longer texts are cut."""
        return LONGEST_TEXT if self.max_length is None else self.max_length

    @property
    def label(self) -> str:
        """The column's name in the ledger.

        The label contains the derivation, or the pinned data of a lookup. Another derivation or pin under the same
        name is therefore another column. Classes of a key's values have the label of that key.
        """
        match self.derivation:
            case Lookup(has_classes=True):
                return self.ledger
            case Lookup(column=base, source=pinned):
                return f"{self.ledger or base}.{pinned.partition(' ')[0]}={pinned}"
            case Derivation(function=function, part=part, column=base):
                return self.ledger or f"{self.name}={function}({part} {base})"
            case MergedKeys() | ValueGroups() | Product() | Computed() | None:
                return self.ledger or self.name


class ComputedName(str):
    """The name of a column that a question computes: the text of its expression, together with the column.

    Conditions and terms refer to columns by name. No table lists a computed column, but every table finds it by this
    name.
    """

    __slots__ = ("column",)
    column: Column

    @classmethod
    def from_column(cls, column: Column) -> "ComputedName":
        """Return the computed column's name, which carries the column itself as its attribute `column`."""
        made = cls(column.name)
        made.column = replace(column, name=made)
        return made
