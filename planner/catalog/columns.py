"""The columns that the policy exposes, and what questions make of them: types, derivations, bands.

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
    """A computed column: `date_trunc('part', column)`, `extract(part from column)` or `column::date`."""

    function: str  # "date_trunc" | "extract" | "date"
    part: str  # "" for "date"
    column: str


class Remembered:
    """Results computed from pinned data when they are first asked for, and kept: the same for everybody."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}

    def get(self, name: Hashable, make: Callable[[], _Result]) -> _Result:
        """Return the result of that name, made if it is new. Two threads may both make it."""
        try:
            found: _Result = self._known[name]
        except KeyError:
            found = self._known[name] = make()
        return found


class LookupValues:
    """The pinned values of a column by which something is looked up, each once, and what stands there, in their order.

    There may be a million: questions of one catalog share one object, and with it what was computed of it. `known_from`
    and `found_from` say in which pinned data each side stands, if it is a column of that: equal texts, equal values.
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
        self.remembered = Remembered()

    @classmethod
    def of(cls, pairs: Iterable[tuple[Value, Value | None]]) -> "LookupValues":
        """Return lookup values from pairs."""
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

    def then(self, other: "LookupValues") -> "LookupValues":
        """Return what is looked up by what is found here: the same values, each with what `other` has for it."""

        def join() -> LookupValues:
            through = other.by_key
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
        """The length of the longest text among the known values; 0 of none."""

        def find_longest() -> int:
            texts = str in set(map(type, self.known))
            return max((len(value) for value in self.known if isinstance(value, str)), default=0) if texts else 0

        return self.remembered.get("longest known", find_longest)

    @property
    def by_key(self) -> Mapping[Value, Value | None]:
        """The value found for each of the known values."""
        return self.remembered.get("by key", lambda: dict(self))


@dataclass(frozen=True, slots=True)
class Lookup:
    """A column of a pinned public table, looked up for each row by a column of the private table.

    `pairs` are the pinned values of that column that are found, each with what stands there; every other value, and
    NULL, gives NULL. `source` says in which pinned data and by which columns it was looked up: another pin is another
    column. With `classes` it is no table's: it puts the values of a key column into classes, each called by its first
    value, as an expression of the question does that is equal within each class.
    """

    column: str
    source: str
    pairs: LookupValues = field(hash=False)  # not hashed: there may be many
    classes: bool = False

    @property
    def is_listed(self) -> bool:
        """Return True if conditions on the column become lists of the values by which it is looked up."""
        return len(self.pairs) <= MOST_LISTED


@dataclass(frozen=True, slots=True)
class Parts:
    """A column's values in groups that a question makes of them, numbered: which group a row is in.

    Of a column with an order, `cuts` rise, and `groups` has one number more: a value is in the group that stands where
    as many cuts are not above it. Of another column, a row is in the first group of `groups` whose condition in `tests`
    holds. `nulls` is the group of NULL. A group that is None is none: its rows do not count. `shown` has for each group
    a value that lies in it, of the column's type `kind`. With `distinct` the expression that groups is known to be
    another value in each group. Cuts that are `Steps` number the groups in their order. With `pinned` the values shown
    are all that there are.
    """

    column: str
    kind: SqlType
    cuts: Sequence[Value] = field(hash=False)  # not hashed: there may be many
    groups: tuple[int | None, ...] = field(hash=False)
    nulls: int | None
    shown: Sequence[Value | None] = field(hash=False, compare=False)
    tests: tuple[Hashable, ...] = ()
    distinct: bool = field(default=False, compare=False)
    pinned: bool = field(default=False, compare=False)

    @property
    def meaning(self) -> str:
        """Return the rule that puts a row into a group, as text: equal texts mean equal groups."""
        if isinstance(self.cuts, Steps) and len(self.cuts) > MOST_WRITTEN:
            return f"{self.cuts.meaning}\n{self.groups[0]} to {self.groups[-1]}, {self.nulls}"
        return "\n".join(map(repr, (tuple(self.cuts), self.tests, self.groups, self.nulls)))


@dataclass(frozen=True, slots=True)
class Merged:
    """Combinations of values of several keys in groups that a question makes of them, numbered.

    `known` are each key's values, and `groups` has the group of each combination, the last key's value changing first.
    A row with another value, or NULL, in one of them is in no group. `shown` has for each group the values of one of
    its combinations.
    """

    columns: tuple[str, ...]
    known: tuple[tuple[Value, ...], ...] = field(hash=False)  # not hashed: there may be many
    groups: tuple[int, ...] = field(hash=False)
    shown: tuple[tuple[Value, ...], ...] = field(hash=False, compare=False)

    @property
    def meaning(self) -> str:
        """Return the rule that puts a row into a group, as text: equal texts mean equal groups."""
        return "\n".join(map(repr, (self.known, self.groups)))


@dataclass(frozen=True, slots=True)
class Product:
    """A product in a question: each row's values of these measures, clipped and rounded.

    They are in the order of their names; one that stands there twice is squared.
    """

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bands:
    """Thresholds that the owner proposes for an aggregate of a group, rising, in the user's units.

    `aggregate` is `sum` or `avg` of a measure; of a table `rows` or `units`, the counts of these. They are public, and
    are what is shown to analysts and written into hints; the least is what a ranking's tolerance in percent is one of.
    """

    aggregate: str
    thresholds: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True)
class BandColumn:
    """A column that clients see beside a table's own: the owner's band in which a group's aggregate lies."""

    DECLARED: ClassVar[str] = "integer"

    name: str
    measure: str | None  # None where it counts the table's rows or units
    bands: Bands


@dataclass(frozen=True, slots=True)
class Column:
    """One exposed column of a private or public table.

    `declared` is the PostgreSQL type with its modifier, as the shadow declares it. `domain` makes it a key.
    `bounds`, `grid`, `per_unit` make it a measure (user's units). `immutable`: values never change between versions.
    `prunable`: a range of it spares the source reading other rows; it decides how SQL is written, never what it means.
    `ledger`: what the ledger calls it, where that is not its name (of a looked-up column: what it is looked up by).
    `determined`: its privacy unit determines it, where SQL has it stored and no longer says how it is derived.
    `max_length`: of a text, how many of its characters conditions and counts of different values see.
    `stored`: of a stored column, its type as the source called it when the catalog was made; what is read is held
    against it. `required`: the source's schema lets no row be NULL in it. `bands`: of a measure, what the owner
    proposes to ask of it. `enumerated`: a text that the source stores as an enum, which is cast before it
    is grouped by. `computed`: a key that a question makes, of which the policy says nothing. `groupable`: questions may
    make keys of its values. `canonical`: of a computed key, what puts rows into groups, however it is spelled.
    `filter_only`: the owner says that it is for filters, so that no clip of Keyhole's makes it a measure. `own`: a
    question computes it of all rows of the unit that a row belongs to (`UnitValues`).
    """

    name: str
    sql_type: SqlType
    declared: str
    domain: tuple[Value, ...] | None = field(default=None, hash=False)  # not hashed: there may be millions
    bounds: tuple[Decimal, Decimal] | None = None
    grid: Decimal | None = None
    per_unit: tuple[Decimal, Decimal] | None = None
    derivation: Derivation | Lookup | Merged | Parts | Product | Computed | None = None
    immutable: bool = False
    prunable: bool = True
    comment: str | None = None
    ledger: str = ""
    determined: bool = False
    max_length: int | None = None
    stored: str | None = None
    required: bool = False
    bands: tuple[Bands, ...] = ()
    enumerated: bool = False
    computed: bool = False
    groupable: bool = True
    canonical: str = ""
    filter_only: bool = False
    own: bool = False

    @property
    def identity(self) -> str:
        """The name that tells it apart from other columns of its table: one for all spellings of a computed key."""
        return self.canonical or self.name

    @property
    def bases(self) -> tuple[str, ...]:
        """The names of the columns that it is computed from; none of a stored one."""
        match self.derivation:
            case Derivation(column=base) | Lookup(column=base) | Parts(column=base):
                return (base,)
            case Merged(columns=several) | Product(columns=several):
                return several
            case Computed(term):
                return tuple(term.columns)
            case None:
                return ()

    @property
    def longest_text(self) -> int:
        """Return the number of characters of a text that conditions and distinct counts see: longer texts are cut."""
        return LONGEST_TEXT if self.max_length is None else self.max_length

    @property
    def label(self) -> str:
        """Return the column's name in the ledger.

        It has the derivation or the pinned data that it is looked up from, so another derivation or pin under the same
        name is another column. Classes of a key's values have the label of that key.
        """
        match self.derivation:
            case Lookup(classes=True):
                return self.ledger
            case Lookup(column=base, source=pinned):
                return f"{self.ledger or base}.{pinned.partition(' ')[0]}={pinned}"
            case Derivation(function=function, part=part, column=base):
                return self.ledger or f"{self.name}={function}({part} {base})"
            case Merged() | Parts() | Product() | Computed() | None:
                return self.ledger or self.name


class ComputedName(str):
    """The name of a column that a question computes, which is the text of its expression, with the column itself.

    Conditions and terms name their columns; no table has these, and every table knows them by such a name.
    """

    __slots__ = ("column",)
    column: Column

    @classmethod
    def of(cls, column: Column) -> "ComputedName":
        """Return the name of a computed column."""
        made = cls(column.name)
        made.column = replace(column, name=made)
        return made
