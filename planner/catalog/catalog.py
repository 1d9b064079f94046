"""The policy's exposed objects, compiled and frozen: tables, columns, key domains, defaults, budgets.

`planner.policy` makes a `Catalog` from `keyhole.toml`, the source's schema and the pinned public data.
Everything here is public.
"""

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction

from mechanisms.registry import BOUNDED
from planner.catalog.columns import LONGEST_TEXT as LONGEST_TEXT
from planner.catalog.columns import MOST_BANDS as MOST_BANDS
from planner.catalog.columns import MOST_LISTED as MOST_LISTED
from planner.catalog.columns import BandColumn as BandColumn
from planner.catalog.columns import Bands as Bands
from planner.catalog.columns import Column as Column
from planner.catalog.columns import ComputedName as ComputedName
from planner.catalog.columns import Derivation as Derivation
from planner.catalog.columns import Lookup as Lookup
from planner.catalog.columns import LookupValues as LookupValues
from planner.catalog.columns import Merged as Merged
from planner.catalog.columns import Parts as Parts
from planner.catalog.columns import Product as Product
from planner.catalog.columns import Remembered
from planner.catalog.columns import SqlType as SqlType
from planner.catalog.columns import Value as Value
from planner.catalog.monitor import Monitor
from planner.catalog.pace import Pace, TableSize
from planner.catalog.row_terms import Computed as Computed
from planner.catalog.source_names import SourceName
from planner.errors import KeyholeError, UnknownColumn

RELEASED_BY = "(owner)"
"""Whom the ledger names for a release that is no question; no analyst may be called so."""


_FOLDED = re.compile(r"[a-z_][a-z0-9_]*")  # what an identifier without quotes comes to


def _perhaps(name: str, known: list[str]) -> str | None:
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    if not close:
        return None
    plain = _FOLDED.fullmatch(close[0]) is not None
    return f"Perhaps you meant {close[0] if plain else _quote(close[0])}."


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class RowCap:
    """Bounding by choosing rows: at most `rows` per (unit, key), by md5 of seed and the declared `unique` column."""

    rows: int
    unique: str


@dataclass(frozen=True, slots=True)
class Grouping:
    """The owner's bounds of one unit in the groups of these key columns; None, or no entry: the table's own.

    `groups` is in how many of them a unit counts, `rows` how many of its rows count in one, `per_unit` by measure the
    range of its total in one, in the user's units. `computed` are expressions that stand beside the key columns.
    """

    keys: tuple[str, ...]
    groups: int | None
    rows: int | None
    per_unit: tuple[tuple[str, tuple[Decimal, Decimal]], ...]
    computed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Total:
    """The range of one unit's total of an expression in one group, as the owner declares it, in the users' units.

    `products` are the expression multiplied out: the columns of each product, in order, and what it is multiplied with.
    """

    products: tuple[tuple[tuple[str, ...], Fraction], ...]
    per_unit: tuple[Decimal, Decimal]

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset(name for names, _ in self.products for name in names)

    @property
    def shape(self) -> tuple[tuple[tuple[str, ...], Fraction], ...]:
        """The expression, scaled so that its first product has the factor 1."""
        _, first = self.products[0]
        return tuple((names, times / first) for names, times in self.products)


@dataclass(frozen=True, slots=True)
class ExpressionRange:
    """Between which values an expression of a row counts, as the owner declares it; of a length of time its seconds."""

    expression: str
    ends: tuple[Decimal, Decimal]


@dataclass(frozen=True, slots=True)
class CutRows:
    """The share of a table's rows, such as "12 %", that bounds leave out of the groups by these keys together."""

    keys: tuple[str, ...]
    share: str


@dataclass(frozen=True, slots=True)
class FixedKey:
    """A key of which every row that a question reads has one of these declared values."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class UnitRoot:
    """The table that gives a group of tables with the same privacy units their name in the ledger, and its unit."""

    table: str
    unit: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One of several private tables joined on their unit; `columns` are its columns as the joined table calls them.

    `rows` is how many rows of one unit the join reads at most.
    """

    table: "Table"
    columns: tuple[tuple[str, str], ...]
    rows: int


@dataclass(frozen=True, slots=True)
class UnitPath:
    """The step by which a row finds its unit: its columns `by` have the values of the columns `through` of `table`.

    The unit's columns are that table's, in their order; the row's own table has them beside its columns. One row of
    `table` is found at most, whatever it holds, and a row that finds none belongs to nobody. Of a question that joins
    `table` along the step, `brought` are its further columns, each with its name in the row's own table.
    """

    table: "Table"
    by: tuple[str, ...]
    through: tuple[str, ...]
    brought: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The way in words: `orders by l_orderkey, then customers by o_custkey`."""
        onward = "" if self.table.path is None else f", then {self.table.path.text}"
        return f"{self.table.name} by {', '.join(self.by)}{onward}"


@dataclass(frozen=True, slots=True)
class UnitList:
    """The privacy units for whose rows of `table` the `rule` holds. Units of NULL are on no list.

    `rule` is what the planner reads of those rows, and `meaning` the same as text: lists with equal meanings over equal
    tables are equal. `written` says it in the analyst's words. If the list is `absent`, the units are meant that are
    not on it. With `by` the list is of units with a key, and says of each row of a question whether its unit has the
    row's key: pairs of a column there and one of `table`. `compared` are an operator, a column there, and one of
    `table` of which some value stands so to it.
    """

    table: "Table"
    meaning: str
    rule: Hashable = field(compare=False)
    absent: bool
    written: str = field(compare=False)
    by: tuple[tuple[str, str], ...] = ()
    compared: tuple[str, str, str] | None = None

    @property
    def of_rows(self) -> bool:
        """Return True if it says something about each row of a unit, instead of about the unit."""
        return bool(self.by) or self.compared is not None


@dataclass(frozen=True, slots=True)
class UnitValues:
    """The values of one unit's own rows of `table`. They stand beside each row of the unit, as columns.

    `rule` is what the planner computes of those rows, and `meaning` the same as text: values with equal meanings over
    equal tables are equal.
    """

    table: "Table"
    meaning: str
    rule: Hashable = field(compare=False)


@dataclass(frozen=True, slots=True)
class NamedStep:
    """Rows that a relation reads by a name.

    `build` is the SELECT that gives them; equal names mean equal builds. `asked`: a question's own conditions decide
    about them, so that no other question would find them kept.
    """

    name: str
    build: str
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One private table. An empty `unit` means the row is the privacy unit and needs no bounding.

    `rows_per_unit` clips a unit's COUNT per key (default bounding); `row_cap` is the other way. The catalog's table has
    the bounds for keys of which `groupings` say nothing; a question's table has those for its keys, and no groupings.
    `relation` is how the source names the data (a table name there, or a file function of DuckDB), written by the
    owner. `root` is set where the owner promises that the units are those of another table, in the same order of
    columns. With `members` the table is their join on the unit, and has no relation of its own. With a `path`
    the unit's columns are another table's, which rows reach by it. A question's table has the rows of those units alone
    that are on one list at least of each of its `lists`, and the columns that `own` has for each unit. `bands` are
    what the owner proposes to ask of its counts. `append_only`: rows are added, never changed or taken away. `arrived`
    is the column that says when a row was: none has an earlier value than a row that was there before it. With
    `cells_of_cut_units` the promise per cell is for units that the bounds cut as well, and charged so. `joined_rows` is
    how many rows of one unit a join with other private tables reads at most; None: its share of what all may make. Of
    a question's table only rows with the values of `fixed` are there to be bounded. `cut_rows` is what the owner tells
    everybody of the share of rows that bounds leave out, by keys. `totals` are the ranges of a unit's totals of
    expressions, as `per_unit` of a column is that of its own, and `ranges` are what its `bounds` are. `groups_by` is,
    of a question's table by computed keys, which declaration `groups_per_unit` comes from, if it is one of an
    expression. `steps` are what `relation` reads by name, each behind those that its own build reads: a statement over
    it defines them first. `keys` are columns that the source itself kept unique together when it was opened: who counts
    on one asks for it again as the rows are read.
    """

    name: str
    relation: str
    columns: tuple[Column, ...]
    unit: tuple[str, ...]
    groups_per_unit: int
    rows_per_unit: int | None
    row_cap: RowCap | None
    refresh: str
    seed: str
    comment: str | None = None
    root: UnitRoot | None = None
    path: UnitPath | None = None
    members: tuple[Member, ...] = ()
    lists: tuple[tuple[UnitList, ...], ...] = ()
    own: tuple[UnitValues, ...] = ()
    groupings: tuple[Grouping, ...] = ()
    bands: tuple[Bands, ...] = ()
    append_only: bool = False
    arrived: str | None = None
    cells_of_cut_units: bool = False
    joined_rows: int | None = None
    fixed: tuple[FixedKey, ...] = ()
    cut_rows: tuple[CutRows, ...] = ()
    totals: tuple[Total, ...] = ()
    ranges: tuple[ExpressionRange, ...] = ()
    groups_by: str = field(default="", compare=False)
    steps: tuple[NamedStep, ...] = ()
    keys: frozenset[frozenset[str]] = frozenset()

    @property
    def band_columns(self) -> tuple[BandColumn, ...]:
        """Return the columns of bands that clients see: a measure's bands after it, then those of rows and units."""
        of_measures = (
            BandColumn(f"{column.name}_{bands.aggregate}_band", column.name, bands)
            for column in self.columns
            for bands in column.bands
        )
        return (*of_measures, *(BandColumn(f"{bands.aggregate}_band", None, bands) for bands in self.bands))

    def column(self, name: str, *, position: int | None = None) -> Column:
        """Return the exposed column of that name, or the computed one. Raise KH201 if there is none."""
        if isinstance(name, ComputedName):
            return name.column
        for column in self.columns:
            if column.name == name:
                return column
        if any(shown.name == name for shown in self.band_columns):
            plain = name if _FOLDED.fullmatch(name) else _quote(name)
            raise KeyholeError(
                "KH201",
                f'column "{name}" is the band of a whole group, and no value of its rows',
                hint=f"Show max({plain}) of each group, or compare it in HAVING: max({plain}) >= 1.",
                position=position,
            )
        known = [column.name for column in self.columns if not column.computed]
        raise UnknownColumn(
            name,
            f'column "{name}" is not exposed by table "{self.name}"',
            detail=f"Exposed columns: {', '.join(known)}.",
            hint=_perhaps(name, known),
            position=position,
        )

    def with_bases(self, names: Iterable[str]) -> frozenset[str]:
        """Return names of columns, with those of all columns that these are computed from."""
        found: set[tuple[bool, str]] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            seen = isinstance(name, ComputedName), name  # what a key computes may be called as the key is
            if seen not in found:
                found.add(seen)
                waiting += self.column(name).bases
        return frozenset(name for _, name in sorted(found))

    def has_key(self, names: Iterable[str]) -> bool:
        """Return True if the source keeps some of these columns unique together."""
        given = frozenset(names)
        return any(key <= given for key in self.keys)

    def determines(self, column: Column) -> bool:
        """Return True if one privacy unit has at most one value of the column, because the unit contains it."""
        if column.name in self.unit or column.determined:
            return True
        if column.derivation is None:
            return False
        if isinstance(column.derivation, Lookup | Parts):
            return self.determines(self.column(column.derivation.column))
        if isinstance(column.derivation, Merged | Product):
            return all(self.determines(self.column(factor)) for factor in column.derivation.columns)
        if isinstance(column.derivation, Computed):
            return all(self.determines(self.column(name)) for name in column.derivation.term.columns)
        base = column.derivation.column
        units = [self.column(name) for name in self.unit]
        stored = [unit.name for unit in units if unit.derivation is None]
        stored += [one.name for one in self.columns if one.own and one.determined]
        return base in stored or any(unit.derivation == column.derivation for unit in units)

    def is_fixed_by_unit(self, column: Column) -> bool:
        """Return True if a unit has at most one value of the column, whichever of its rows are there: it contains it.

        A computed value of a unit's own rows is another value once some of them are taken away.
        """
        if not self.own:
            return self.determines(column)
        return self.determines(column) and not any(self.column(name).own for name in self.with_bases([column.name]))

    @property
    def stored_tables(self) -> tuple["Table", ...]:
        """The tables of the source whose rows decide what this one shows and whose rows they are, each once."""
        found: dict[str, Table] = {}
        for first in [member.table for member in self.members] or [self]:
            table: Table | None = first
            while table is not None:
                found.setdefault(table.name, table)
                table = None if table.path is None else table.path.table
        beside = [*(listed.table for listed in self.listed), *(values.table for values in self.own)]
        for table in (stored for one in beside for stored in one.stored_tables):
            found.setdefault(table.name, table)
        return tuple(found.values())

    @property
    def listed(self) -> tuple[UnitList, ...]:
        """The lists that say whose rows it has, each once, whether it is meant or absent."""
        return tuple({replace(one, absent=False): one for clause in self.lists for one in clause}.values())

    @property
    def alone(self) -> "Table":
        """The table as it is stored, no matter who its rows belong to, and whatever is asked of them."""
        if self.path is None and not self.lists and not self.own:
            return self
        return replace(self, path=None, lists=(), own=())

    @property
    def reads_several(self) -> bool:
        """Return True if rows of several tables decide about one of its rows: a join, or units found by a path."""
        return bool(self.members) or self.path is not None

    @property
    def is_joined_along_path(self) -> bool:
        """Return True if it is joined with the table to which its path leads, and so has columns of it."""
        return self.path is not None and bool(self.path.brought)

    @property
    def ledger(self) -> UnitRoot:
        """Under which table and unit the ledger keeps what questions cost: one for all tables with the same units."""
        return self.root or UnitRoot(self.name, self.unit)

    def place_of(self, column: str) -> str:
        """Return the place of a column in the policy."""
        for member in self.members:
            for stored, named in member.columns:
                if named == column:
                    return member.table.place_of(stored)
        for stored, named in () if self.path is None else self.path.brought:
            if named == column and self.path is not None:
                return self.path.table.place_of(stored)
        return f"tables.{self.name}.columns.{column}"

    @property
    def equal_keys(self) -> frozenset[frozenset[str]]:
        """Pairs of columns that are equal in every row, since tables were joined along these keys."""
        found: set[frozenset[str]] = set()
        for member in self.members:
            names = dict(member.columns)
            found |= {frozenset(names[one] for one in pair) for pair in member.table.equal_keys}
        if self.path is not None and self.is_joined_along_path:
            reached = self.path.table
            names = {**dict(self.path.brought), **dict(zip(reached.unit, self.unit, strict=True))}
            found |= {
                frozenset((own, names[other])) for own, other in zip(self.path.by, self.path.through, strict=True)
            }
            found |= {frozenset(names[one] for one in pair) for pair in reached.equal_keys}
        return frozenset(found)

    @property
    def row_unit(self) -> bool:
        """Return True if each row is its own privacy unit."""
        return not self.unit

    @property
    def unit_text(self) -> str:
        """The privacy unit as the ledger and EXPLAIN print it."""
        return ", ".join(self.unit) if self.unit else "row"


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public table, pinned: columns and rows are copied into the shadow.

    `required` are its columns without NULL, and `unique` those whose values differ, as the source insists and the
    pinned rows have it. `remembered` is what questions computed of the rows.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    digest: str
    comment: str | None = None
    required: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    remembered: Remembered = field(default_factory=Remembered, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StoredParameter:
    """A constant of a stored question that a session may set; its value has the type of its default."""

    name: str
    default: Value


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """An owner's question that clients see as a relation; `$1`, `$2`, ... in `sql` are its parameters."""

    name: str
    sql: str
    comment: str | None = None
    parameters: tuple[StoredParameter, ...] = ()


NUMBERS = ("null", "threshold", "bands", "refuse")
"""The content of a column that says how large a group is: nothing, a bound, its band's lower edge; or a refusal."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Accuracy where the analyst set none. `tolerance` is text: '10%', '25', or 'count=25, age=2'.

    `min_rows` is the group size m for which an AVG's tolerance is meant. `mechanisms` may be chosen in the place of
    `mechanism`. `numbers` says what stands in a column that asks how large a group is, one of `NUMBERS`. `guard` says
    whether a comparison that needs a guard gets one ("add") or is refused ("refuse").
    """

    fnr: float
    fpr: float
    tolerance: str
    min_rows: int
    mechanism: str
    mechanisms: tuple[str, ...] = BOUNDED
    numbers: str = "refuse"
    guard: str = "add"


@dataclass(frozen=True, slots=True)
class TableCaps:
    """The owner's caps of one table in the place of the budget's `per_table` and `approval_above`; None: nothing.

    It is no part of `Table`: other caps make no other question, and answers and noise in store stay.
    """

    table: str
    per_table: float | None
    approval_above: float | None


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps over all analysts, in epsilon. `per_unit` is None only when every table's unit is the row.

    A question whose worst case per group is above `approval_above` needs the owner's approval. `tables` have caps of
    their own. With a `delta` caps on a unit hold except for that probability, and more questions fit into them.
    """

    per_predicate: float
    per_unit: float | None
    per_query: float
    per_table: float | None = None
    approval_above: float | None = None
    tables: tuple[TableCaps, ...] = ()
    delta: float | None = None

    def approval_above_for(self, tables: Iterable[str]) -> float | None:
        """Return the least worst case per group above which a question about these tables waits.

        None: it never does.
        """
        own = {caps.table: caps.approval_above for caps in self.tables if caps.approval_above is not None}
        lines = (own.get(table, self.approval_above) for table in tables)
        return min((line for line in lines if line is not None), default=None)


@dataclass(frozen=True, slots=True)
class Analyst:
    """A person who may ask.

    `verifier` is a SCRAM-SHA-256 verifier as PostgreSQL stores it, `token_hash` a sha256 in hex.

    `certificate_name` is the common name of the client certificate that a login must show beside the password.
    """

    name: str
    verifier: str
    token_hash: str | None
    per_predicate: float | None
    per_unit: float | None
    certificate_name: str | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything public that answering needs. `digest` identifies the policy and the pinned data.

    What was read is told at multiples of `release_every_ms` after reading began; at 0 at once. `pace` is what was
    measured of this source, `sizes` what the owner declares of tables, `source_names` what clients may call tables
    beside the policy's names; none is part of the digest.
    """

    tables: tuple[Table, ...]
    public_tables: tuple[PublicTable, ...]
    stored_questions: tuple[StoredQuestion, ...]
    analysts: tuple[Analyst, ...]
    defaults: Defaults
    budget: Budget
    database: str
    max_keys: int
    statement_timeout_ms: int
    digest: str
    release_every_ms: int = 0
    monitors: tuple[Monitor, ...] = ()
    pace: Pace | None = None
    sizes: tuple[tuple[str, TableSize], ...] = ()
    source_names: tuple[SourceName, ...] = ()

    def with_numbers(self, numbers: str) -> "Catalog":
        """Return the same catalog, with another choice of what stands in columns of numbers."""
        return (
            self
            if numbers == self.defaults.numbers
            else replace(self, defaults=replace(self.defaults, numbers=numbers))
        )

    @property
    def answered_names(self) -> frozenset[str]:
        """The names in `public` of what Keyhole answers: private tables, stored questions and monitors."""
        tables, stored = (one.name for one in self.tables), (one.name for one in self.stored_questions)
        return frozenset((*tables, *stored, *(one.name for one in self.monitors)))

    @property
    def names(self) -> frozenset[str]:
        """The names in `public`: those of public tables, too."""
        return self.answered_names | {one.name for one in self.public_tables}

    def table(self, name: str) -> Table | None:
        """Return the private table of that name, if there is one."""
        return next((table for table in self.tables if table.name == name), None)

    def analyst(self, name: str) -> Analyst | None:
        """Return the analyst of that name, if there is one."""
        return next((analyst for analyst in self.analysts if analyst.name == name), None)

    def monitor(self, name: str) -> Monitor | None:
        """Return the monitor of that name, if there is one."""
        return next((monitor for monitor in self.monitors if monitor.name == name), None)
