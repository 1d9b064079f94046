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
from planner.catalog.columns import MergedKeys as MergedKeys
from planner.catalog.columns import Product as Product
from planner.catalog.columns import ResultCache
from planner.catalog.columns import SqlType as SqlType
from planner.catalog.columns import Value as Value
from planner.catalog.columns import ValueGroups as ValueGroups
from planner.catalog.monitor import Monitor
from planner.catalog.pace import Pace, TableSize
from planner.catalog.row_terms import Computed as Computed
from planner.catalog.source_names import SourceName
from planner.errors import KeyholeError, UnknownColumn

RELEASED_BY = "(owner)"
"""Whom the ledger names for a release that is no question; no analyst may be called so."""


_FOLDED = re.compile(r"[a-z_][a-z0-9_]*")  # what an identifier without quotes comes to


def _suggest_known_name(name: str, known: list[str]) -> str | None:
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    if not close:
        return None
    plain = _FOLDED.fullmatch(close[0]) is not None
    return f"Perhaps you meant {close[0] if plain else _quote(close[0])}."


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class RowCap:
    """A bound by choosing rows: at most `rows` per unit and key, by md5 of seed and the declared `unique` column."""

    rows: int
    unique: str


@dataclass(frozen=True, slots=True)
class Grouping:
    """The owner's bounds of one unit in the groups of these key columns.

    If a bound is None or missing, the table's own bound applies.

    `groups` is the number of groups in which a unit counts, and `rows` the number of its rows that count in one group.
    `per_unit` maps a measure to the range of a unit's total in one group, in the user's units. `computed` are the
    expressions that the grouping has beside its key columns.
    """

    keys: tuple[str, ...]
    groups: int | None
    rows: int | None
    per_unit: tuple[tuple[str, tuple[Decimal, Decimal]], ...]
    computed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Total:
    """The range that the owner declares for one unit's total of an expression in one group, in the user's units.

    `products` is the expression multiplied out: for each product its columns, in order, and its factor.
    """

    products: tuple[tuple[tuple[str, ...], Fraction], ...]
    per_unit: tuple[Decimal, Decimal]

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the expression reads."""
        return frozenset(name for names, _ in self.products for name in names)

    @property
    def shape(self) -> tuple[tuple[tuple[str, ...], Fraction], ...]:
        """The expression, scaled so that its first product has the factor 1."""
        _, first = self.products[0]
        return tuple((names, times / first) for names, times in self.products)


@dataclass(frozen=True, slots=True)
class ExpressionRange:
    """The declared range of an expression of one row. Values beyond the range are clipped. A duration is in seconds."""

    expression: str
    ends: tuple[Decimal, Decimal]


@dataclass(frozen=True, slots=True)
class CutRows:
    """The share of a table's rows, such as "12 %", that the bounds leave out of the groups by these keys."""

    keys: tuple[str, ...]
    share: str


@dataclass(frozen=True, slots=True)
class FixedKey:
    """A key that has one of these declared values in every row that a question reads."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class UnitRoot:
    """The table and the unit columns under which the ledger keeps a group of tables with the same privacy units."""

    table: str
    unit: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One of several private tables that are joined on their unit.

    `columns` pairs the table's own name of each column with its name in the join. The join reads at most `rows` rows
    of one unit.
    """

    table: "Table"
    columns: tuple[tuple[str, str], ...]
    rows: int


@dataclass(frozen=True, slots=True)
class UnitPath:
    """The step from a row to its privacy unit: its columns `from_columns` equal the columns `to_columns` of `table`.

    The unit's columns are those of `table`, in their order. The row's own table has them as further columns. A row
    finds at most one row of `table`, whatever `table` holds; a row that finds none belongs to no unit. If a question
    joins `table` along the step, `added_columns` are the further columns that it gets, each with its name in the row's
    table.
    """

    table: "Table"
    from_columns: tuple[str, ...]
    to_columns: tuple[str, ...]
    added_columns: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The path in words: `orders by l_orderkey, then customers by o_custkey`."""
        onward = "" if self.table.path is None else f", then {self.table.path.text}"
        return f"{self.table.name} by {', '.join(self.from_columns)}{onward}"


@dataclass(frozen=True, slots=True)
class UnitList:
    """A list of privacy units: those with rows of `table` for which `rule` holds. A unit of NULL is on no list.

    `rule` is the condition that the planner reads from these rows, and `meaning` is the same as text. Lists are equal
    if their meanings and tables are equal. `description` is the list in the analyst's words. If the list `is_negated`,
    it selects the units that are not on it. With `key_columns`, a unit is listed together with a key, and each row of
    a question is checked for its unit and key. `key_columns` are pairs of a column of the list and one of the
    question's table. `comparison` is an operator, a column of the list and one of `table`: for some row of the list
    the comparison must hold.
    """

    table: "Table"
    meaning: str
    rule: Hashable = field(compare=False)
    is_negated: bool
    description: str = field(compare=False)
    key_columns: tuple[tuple[str, str], ...] = ()
    comparison: tuple[str, str, str] | None = None

    @property
    def is_about_rows(self) -> bool:
        """Return True if the list decides about each row of a unit, instead of about the whole unit."""
        return bool(self.key_columns) or self.comparison is not None


@dataclass(frozen=True, slots=True)
class UnitValues:
    """The values computed from one unit's own rows of `table`. Each row of the unit has them as columns.

    `rule` says how the planner computes the values from these rows, and `meaning` is the same as text. Two such values
    are equal if their meanings and tables are equal.
    """

    table: "Table"
    meaning: str
    rule: Hashable = field(compare=False)


@dataclass(frozen=True, slots=True)
class NamedStep:
    """Rows that a relation reads by name, as a WITH query.

    `build` is the SELECT that gives them; equal names mean equal builds. If the step `is_question_specific`, a
    question's own conditions decide about the rows, and no other question could reuse them.
    """

    name: str
    build: str
    is_question_specific: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One private table. An empty `unit` means the row is the privacy unit and needs no bounding.

    `rows_per_unit` clips a unit's COUNT per key (default bounding); `row_cap` chooses rows instead. The catalog's
    table has the bounds for keys that `groupings` do not mention. A question's table has the bounds for its own keys
    and no groupings. `relation` is the name of the data in the source (a table, or a file function of DuckDB), as the
    owner wrote it. `root` is set if the owner promises that the units are those of another table, in the same order of
    columns. With `members` the table is their join on the unit and has no relation of its own. With a `path` the
    unit's columns belong to another table, to which each row leads by that path.

    `lists` restrict the units of a question's table: a unit must be on at least one list of each clause. `own` are
    columns of a question's table that hold values of each unit. `fixed` restricts its rows to certain key values
    before they are bounded. `bands` are thresholds that the owner proposes for its counts. With `append_only` rows are
    added, never changed or deleted. `arrival_column` says when a row was added, and no later row has an earlier value.
    With `covers_cut_units` the promise per cell also covers units that the bounds cut, and is charged for them.
    `joined_rows` is the number of rows of one unit that a join with other private tables reads at most; None means an
    equal share of the common limit.

    `cut_rows` is the share of rows that bounds leave out, by keys, as the owner publishes it. `totals` are ranges of a
    unit's totals of expressions, as `per_unit` is of a column. `ranges` are ranges of expressions, as `bounds` are of
    a column. `groups_by` is the declaration from which a question's table by computed keys has its `groups_per_unit`,
    if that declares an expression. `steps` are the WITH queries that `relation` reads, each after those that it reads
    itself. `keys` are sets of columns that the source kept unique together when it was opened. A statement that relies
    on one checks it again as the rows are read.
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
    arrival_column: str | None = None
    covers_cut_units: bool = False
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
        """The columns of bands that clients see, each measure's bands after it, then those of rows and units."""
        of_measures = (
            BandColumn(f"{column.name}_{bands.aggregate}_band", column.name, bands)
            for column in self.columns
            for bands in column.bands
        )
        return (*of_measures, *(BandColumn(f"{bands.aggregate}_band", None, bands) for bands in self.bands))

    def get_column(self, name: str, *, position: int | None = None) -> Column:
        """Return the exposed or computed column of that name. Raise KH201 if there is none."""
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
            hint=_suggest_known_name(name, known),
            position=position,
        )

    def include_bases(self, names: Iterable[str]) -> frozenset[str]:
        """Return the names of columns together with the names of all columns that they are computed from."""
        found: set[tuple[bool, str]] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            seen = isinstance(name, ComputedName), name  # what a key computes may be called as the key is
            if seen not in found:
                found.add(seen)
                waiting += self.get_column(name).bases
        return frozenset(name for _, name in sorted(found))

    def has_key(self, names: Iterable[str]) -> bool:
        """Return True if a unique constraint of the source covers some of the named columns."""
        given = frozenset(names)
        return any(key <= given for key in self.keys)

    def determines(self, column: Column) -> bool:
        """Return True if one privacy unit has at most one value of the column: it is one of the unit's columns."""
        if column.name in self.unit or column.is_determined:
            return True
        if column.derivation is None:
            return False
        if isinstance(column.derivation, Lookup | ValueGroups):
            return self.determines(self.get_column(column.derivation.column))
        if isinstance(column.derivation, MergedKeys | Product):
            return all(self.determines(self.get_column(factor)) for factor in column.derivation.columns)
        if isinstance(column.derivation, Computed):
            return all(self.determines(self.get_column(name)) for name in column.derivation.term.columns)
        base = column.derivation.column
        units = [self.get_column(name) for name in self.unit]
        stored = [unit.name for unit in units if unit.derivation is None]
        stored += [one.name for one in self.columns if one.is_unit_value and one.is_determined]
        return base in stored or any(unit.derivation == column.derivation for unit in units)

    def is_fixed_by_unit(self, column: Column) -> bool:
        """Return True if the unit's columns include the column. Removing rows of a unit then never changes its value.

        A value computed from a unit's own rows does not qualify, since removing some of these rows changes it.
        """
        if not self.own:
            return self.determines(column)
        return self.determines(column) and not any(
            self.get_column(name).is_unit_value for name in self.include_bases([column.name])
        )

    @property
    def stored_tables(self) -> tuple["Table", ...]:
        """The source tables that this table's rows and conditions are read from, each once."""
        found: dict[str, Table] = {}
        for first in [member.table for member in self.members] or [self]:
            table: Table | None = first
            while table is not None:
                found.setdefault(table.name, table)
                table = None if table.path is None else table.path.table
        beside = [*(listed.table for listed in self.unit_lists), *(values.table for values in self.own)]
        for table in (stored for one in beside for stored in one.stored_tables):
            found.setdefault(table.name, table)
        return tuple(found.values())

    @property
    def unit_lists(self) -> tuple[UnitList, ...]:
        """The lists that restrict its units, each once, negated or not."""
        return tuple({replace(one, is_negated=False): one for clause in self.lists for one in clause}.values())

    @property
    def bare_table(self) -> "Table":
        """The stored table, without a question's conditions and computed columns."""
        if self.path is None and not self.lists and not self.own:
            return self
        return replace(self, path=None, lists=(), own=())

    @property
    def reads_several_tables(self) -> bool:
        """Return True if rows of several tables decide about one row of this table: a join, or a path to the unit."""
        return bool(self.members) or self.path is not None

    @property
    def is_joined_along_path(self) -> bool:
        """Return True if a question joins this table with the table at the end of its path, and has columns of both."""
        return self.path is not None and bool(self.path.added_columns)

    @property
    def ledger_root(self) -> UnitRoot:
        """The table and unit under which the ledger keeps the losses: one root for all tables with the same units."""
        return self.root or UnitRoot(self.name, self.unit)

    def get_policy_key(self, column: str) -> str:
        """Return the policy key under which a column is declared."""
        for member in self.members:
            for stored, named in member.columns:
                if named == column:
                    return member.table.get_policy_key(stored)
        for stored, named in () if self.path is None else self.path.added_columns:
            if named == column and self.path is not None:
                return self.path.table.get_policy_key(stored)
        return f"tables.{self.name}.columns.{column}"

    @property
    def equal_keys(self) -> frozenset[frozenset[str]]:
        """Pairs of columns that are equal in every row, because tables were joined on them."""
        found: set[frozenset[str]] = set()
        for member in self.members:
            names = dict(member.columns)
            found |= {frozenset(names[one] for one in pair) for pair in member.table.equal_keys}
        if self.path is not None and self.is_joined_along_path:
            reached = self.path.table
            names = {**dict(self.path.added_columns), **dict(zip(reached.unit, self.unit, strict=True))}
            found |= {
                frozenset((own, names[other]))
                for own, other in zip(self.path.from_columns, self.path.to_columns, strict=True)
            }
            found |= {frozenset(names[one] for one in pair) for pair in reached.equal_keys}
        return frozenset(found)

    @property
    def is_row_unit(self) -> bool:
        """Return True if each row is its own privacy unit."""
        return not self.unit

    @property
    def unit_text(self) -> str:
        """The privacy unit as the ledger and EXPLAIN print it."""
        return ", ".join(self.unit) if self.unit else "row"


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A public table, pinned: columns and rows are copied into the shadow.

    `not_null_columns` are its columns without NULL, and `unique` the columns whose values all differ. The source
    declares both and the pinned rows confirm them. `results` caches what questions computed from the rows.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value | None, ...], ...]
    digest: str
    comment: str | None = None
    not_null_columns: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    results: ResultCache = field(default_factory=ResultCache, init=False, compare=False, repr=False)


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
    """The accuracy that applies if the analyst set none.

    `tolerance` is text: '10%', '25', or 'count=25, age=2'. `min_rows` is the group size m for which an AVG's tolerance
    is meant. `mechanisms` are those that may be chosen instead of `mechanism`. `numbers` is one of `NUMBERS`: the form
    in which a column shows the size of a group. `guard` is "add" or "refuse": what happens to a comparison that needs
    a guard.
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
    """The owner's caps of one table, in place of the budget's `per_table` and `approval_above`. None means no cap.

    They are not part of `Table`: with other caps the questions are the same, and stored answers and noise stay valid.
    """

    table: str
    per_table: float | None
    approval_above: float | None


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps over all analysts, in epsilon. `per_unit` is None only when every table's unit is the row.

    A question whose worst case per group is above `approval_above` needs the owner's approval. `tables` have caps of
    their own. With a `delta`, the caps on a unit hold except with that probability, and more questions fit into them.
    `delta_per_cell` is the same for `per_predicate`, the cap on a group.
    """

    per_predicate: float
    per_unit: float | None
    per_query: float
    per_table: float | None = None
    approval_above: float | None = None
    tables: tuple[TableCaps, ...] = ()
    delta: float | None = None
    delta_per_cell: float | None = None

    def find_approval_limit(self, tables: Iterable[str]) -> float | None:
        """Return the smallest worst case per group above which a question about these tables needs approval.

        Return None if there is no limit.
        """
        own = {caps.table: caps.approval_above for caps in self.tables if caps.approval_above is not None}
        lines = (own.get(table, self.approval_above) for table in tables)
        return min((line for line in lines if line is not None), default=None)


@dataclass(frozen=True, slots=True)
class Analyst:
    """A person who may ask questions.

    `verifier` is a SCRAM-SHA-256 verifier as PostgreSQL stores it, `token_hash` a sha256 in hex. `certificate_name` is
    the common name of the client certificate that a login must show beside the password.
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

    Answers are sent at multiples of `release_every_ms` after reading began; 0 means at once. `pace` is the measured
    speed of the source, `sizes` are the table sizes that the owner declares, and `source_names` are further names that
    clients may use for tables. None of these three is part of the digest.
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

    def replace_numbers(self, numbers: str) -> "Catalog":
        """Return the same catalog with another of `NUMBERS`: the form in which number columns are shown."""
        return (
            self
            if numbers == self.defaults.numbers
            else replace(self, defaults=replace(self.defaults, numbers=numbers))
        )

    @property
    def answered_names(self) -> frozenset[str]:
        """The names in `public` about which Keyhole itself answers: private tables, stored questions and monitors."""
        tables, stored = (one.name for one in self.tables), (one.name for one in self.stored_questions)
        return frozenset((*tables, *stored, *(one.name for one in self.monitors)))

    @property
    def names(self) -> frozenset[str]:
        """All names in `public`: the answered names and the public tables."""
        return self.answered_names | {one.name for one in self.public_tables}

    def find_table(self, name: str) -> Table | None:
        """Return the private table of that name, if there is one."""
        return next((table for table in self.tables if table.name == name), None)

    def find_analyst(self, name: str) -> Analyst | None:
        """Return the analyst of that name, if there is one."""
        return next((analyst for analyst in self.analysts if analyst.name == name), None)

    def find_monitor(self, name: str) -> Monitor | None:
        """Return the monitor of that name, if there is one."""
        return next((monitor for monitor in self.monitors if monitor.name == name), None)
