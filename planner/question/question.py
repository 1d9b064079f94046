"""A question after parsing: resolved against the policy, every threshold an integer, nothing illegal left."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Literal, TypeAlias

from mechanisms.formula import Formula
from mechanisms.registry import BOUNDED, DEFAULT, DENYING, LIMITED
from planner.catalog.catalog import Table
from planner.catalog.key_space import KeySpace
from planner.question.as_of import AsOf, InTime
from planner.question.condition import Condition
from planner.question.key_cells import KeyCells

BANDED = "bands of public thresholds"
"""What a warning says of a comparison of means over different rows, beside its tolerance, which no setting says."""

NEAR_EMPTY = "groups without rows lie within the tolerance"
"""How the warning of groups begins that come by chance alone; a plan adds how likely that is."""


class Measure(StrEnum):
    """A measure: how a group's rows make a functional."""

    ROWS = "rows"  # rows are counted: one term that adds 1
    UNITS = "units"  # privacy units with at least one such row, for COUNT(DISTINCT unit): one term that adds 1
    UNIT_SUM = "sum of units"  # a unit adds the coefficients of the terms that it has rows for: any that add 1
    VALUES = "values"  # different values of a column, for COUNT(DISTINCT column): one term that adds 1
    TOTAL = "total"  # what rows add is summed: any terms
    LEAST = "least"  # the least of what one privacy unit's rows add: any terms of the same rows
    GREATEST = "greatest"  # the greatest of these
    MEAN = "mean"  # their mean, in parts of a step


OF_ONE_UNIT = (Measure.LEAST, Measure.GREATEST, Measure.MEAN)
"""What has a meaning for one privacy unit alone: sums of it over units are sums of a column."""


@dataclass(frozen=True, slots=True)
class Term:
    """A row's part of a functional: `coefficient * value ** power`, the value clipped and in whole grid steps.

    Only rows that satisfy `condition` and have a value in `column` (neither NULL nor NaN) add it. With `power` 0 the
    term adds its coefficient, and `column` may be None: then every row that satisfies the condition counts.
    """

    coefficient: int
    column: str | None
    condition: Condition
    power: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """The numbers taken off a functional before it is compared: one public integer for each value of the key `key`.

    The least of them is 0, so that a cut is the least of all groups' thresholds. They are in the order of the
    question's key space; `text` is what they are in the analyst's words and unit, as far as whole steps go.
    """

    key: str
    steps: tuple[int, ...]
    text: str

    @property
    def largest(self) -> int:
        """The most that is taken off; the least is 0."""
        return max(self.steps)


@dataclass(frozen=True, slots=True)
class CellRead:
    """A part of a functional that is read off other groups: `times` the steps of `summed` in `cells`."""

    summed: "Functional"
    cells: KeyCells
    times: int


@dataclass(frozen=True, slots=True)
class Functional:
    """A bounded linear sum over the rows of a key that atoms compare, in integers: each row adds up its terms.

    COUNT has one term of power 0, SUM one of power 1, AVG against t the terms x and -t over the rows with an x.
    `unit_range` clips a unit's total per key (default bounding); None for row units and under a row cap.
    `sensitivity` is the most one privacy unit changes the functional in one key. `unit_size` is how much one integer
    step is worth in the analyst's unit, of a mean or ratio times `rows`: the group size for which its tolerance is
    meant (1 otherwise). `origin` is where 0 stands in the analyst's unit: the threshold of a mean, 0 for a sum.
    With `offsets` cuts are on the sum less a number that one key determines. `off_each_unit` is taken off once for each
    privacy unit with a row that satisfies `off_condition`, before its total is clipped. Where that is None, all terms
    have one condition in common, which it is. With `cell_reads` it is read off these sums and has no terms of its own;
    `sensitivity` is then what one privacy unit changes of it in the group's own cell.
    """

    name: str  # as the analyst would write it: "count(*)", "sum(amount) FILTER (WHERE ...)", "avg(amount) - 20"
    measure: Measure
    terms: tuple[Term, ...]
    sensitivity: int
    unit_range: tuple[int, int] | None
    unit_size: Decimal
    rows: int
    origin: Decimal = Decimal(0)
    offsets: Offsets | None = None
    off_each_unit: int = 0
    off_condition: Condition | None = None
    cell_reads: tuple[CellRead, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that are asked of a row, some perhaps twice."""
        beside = () if self.off_condition is None else (self.off_condition,)
        read = (condition for one in self.cell_reads for condition in one.summed.conditions)
        return (*(term.condition for term in self.terms), *beside, *read)

    def map_conditions(self, change: Callable[[Condition], Condition]) -> "Functional":
        """Return the functional with every condition on a row changed."""
        terms = tuple(replace(term, condition=change(term.condition)) for term in self.terms)
        off = None if self.off_condition is None else change(self.off_condition)
        reads = tuple(replace(one, summed=one.summed.map_conditions(change)) for one in self.cell_reads)
        return replace(self, terms=terms, off_condition=off, cell_reads=reads)

    @property
    def summed(self) -> tuple[str, ...]:
        """The columns whose values are added up."""
        own = (term.column for term in self.terms if term.column is not None and term.power)
        return tuple(dict.fromkeys((*own, *(column for one in self.cell_reads for column in one.summed.summed))))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row needs values of to count for some term."""
        own = (term.column for term in self.terms if term.column is not None)
        return tuple(dict.fromkeys((*own, *(column for one in self.cell_reads for column in one.summed.columns))))


@dataclass(frozen=True, slots=True)
class Atom:
    """One comparison as the analyst wrote it, with the linear literals it became.

    `text` is what was written; `lower`, `upper` is the band in which errors are allowed, in the analyst's unit or,
    where `counted` says so, in rows beyond the threshold ("rows") or percent of a group's rows ("% of rows").
    `literals` are the cuts on the functional that it became, each with whether it lies above. Where a count beside a
    mean says for groups of how many rows its tolerance is meant, `guard` is that count as typed.
    """

    label: str  # "A", "B", ...
    text: str
    functional: int
    lower: Decimal
    upper: Decimal
    literals: tuple[tuple[int, bool], ...]
    counted: str = ""
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The contract asked for: rates per key, tolerance text as set, group size for AVG, mechanism by name.

    `min_rows` is the group size at least: counts beside a mean may say that its groups are larger, unless the analyst
    set it (`min_rows_set`).
    `most_positives` is the limit of a sparse vector, `public_knowledge` the text for MiM; other mechanisms have none.
    `reuse` says whether noise may be shared with other questions; without, the cheapest noise for this one is chosen.
    `allowed` are the mechanisms that hints may name: no part of what is asked. If it `adds_guards`, a comparison that
    groups without values would pass gets a count beside it.
    """

    fnr: float
    fpr: float
    tolerance: str
    min_rows: int
    mechanism: str
    most_positives: int | None = None
    public_knowledge: str = ""
    reuse: bool = True
    allowed: tuple[str, ...] = BOUNDED
    min_rows_set: bool = False
    adds_guards: bool = False

    @property
    def other_mechanism(self) -> str | None:
        """The allowed mechanism to ask with instead: one that always answers and needs no setting of its own."""
        able = [name for name in self.allowed if name not in LIMITED | DENYING and name != self.mechanism]
        return DEFAULT if DEFAULT in able else next(iter(able), None)


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """The bounded sum of one privacy unit in one key: a column of the table of a question per unit.

    It lies between `low` and `high`, which are in integer steps of that column's grid, and is NULL for a unit for which
    `present` counts no row (None: never). `written` is how the analyst wrote it, with its own name before it. Of a mean
    `functional` sums how far each value is above the least, and a step is half of one of the `parts` of theirs.
    """

    name: str
    written: str
    functional: Functional
    present: Functional | None
    low: int
    high: int
    parts: int = 0


@dataclass(frozen=True, slots=True)
class UnitRows:
    """One row per privacy unit and key: the totals of those rows of `table` that satisfy `where`.

    A unit without such a row in a key has no row there. Which keys of a unit count (and, under a row cap, which rows)
    is decided before `where`, as everywhere.
    """

    table: Table
    where: Condition
    totals: tuple[UnitTotal, ...]


@dataclass(frozen=True, slots=True)
class ListedRows:
    """The rows that put their privacy unit on a list: those that satisfy `where`."""

    where: Condition


ValueKind: TypeAlias = Literal[
    "least", "greatest", "rows", "values", "total", "mean", "place", "rank", "first", "earlier", "later"
]
"""What is read of one unit's rows: the least or greatest value, how many rows, how many different values, the sum or
mean of a measure's values within its bounds; of a row
its place among them, and its place where rows with equal values share one; the value of the first row; that of the row
`steps` before or behind."""


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """A column by which one unit's rows are put in order."""

    column: str
    descending: bool
    nulls_first: bool

    @property
    def text(self) -> str:
        """The order in words."""
        falling = " DESC" if self.descending else ""
        nulls = "" if self.nulls_first is self.descending else " NULLS FIRST" if self.nulls_first else " NULLS LAST"
        return f"{self.column}{falling}{nulls}"


@dataclass(frozen=True, slots=True)
class OwnValue:
    """A value of one unit's own rows: what `kind` says of those that satisfy `where`, as the column `name`.

    `column` is the one that is read, None where rows are counted. It is NULL where a unit has no value of it. Of kinds
    that need an order, `order` is that.
    """

    name: str
    kind: ValueKind
    column: str | None
    where: Condition
    order: tuple[OwnOrder, ...] = ()
    steps: int = 1


@dataclass(frozen=True, slots=True)
class ValuesOfRows:
    """The values of those rows of one unit that satisfy `where`; of a unit without such a row all are NULL."""

    where: Condition
    values: tuple[OwnValue, ...]


@dataclass(frozen=True, slots=True)
class ListedTotals:
    """The totals that put their privacy unit on a list: those of `rows` in some group, by `groups`, for which `holds`.

    `shown` is the table of which `holds` reads the totals.
    """

    rows: UnitRows
    groups: tuple[str, ...]
    shown: Table
    holds: Condition


@dataclass(frozen=True, slots=True)
class MeanScore:
    """A mean as one integer that a privacy unit moves by little: `floor(times * total / max(count, rows))`.

    `total` sums over the rows that `count` counts how far each lies from the end `worst` of the values: `reach` steps
    at most, each worth `step`. A group with fewer than `rows` rows has the score of one that has so many, the missing
    ones at `worst`. `worst` and `step` are in the analyst's unit.
    """

    total: Functional
    count: Functional
    rows: int
    times: int
    worst: Decimal
    reach: int
    step: Decimal


@dataclass(frozen=True, slots=True)
class Ranked:
    """That a question returns the first few of its keys, in their order by a functional of its own.

    Keys are in the order of `functional`, the greatest first if `descending`; at most `limit` are returned (None: all),
    where `partition` names keys for each of their values. The first `offset` are passed over by the text around. With
    `any_cut` that text cuts all of them at places that are not known here. With `every_row` all keys that qualify are
    returned, those beyond `limit` at one place behind it.
    Keys whose values are at most `tolerance` integer steps apart may stand in either order; `slack` is that in the
    analyst's unit, and `scale` what it was a percentage of, None for an amount. If it is `priced`, nobody said one, and
    it is what a fixed price allows. If it is `signed`, one privacy unit may
    raise the values of some keys and lower those of others. Where keys are ranked by a mean, `mean` says how its
    integers come of two sums, and `functional` has no terms of its own.
    """

    functional: Functional
    descending: bool
    limit: int | None
    tolerance: int
    signed: bool
    slack: Decimal
    scale: Decimal | None = None
    priced: bool = False
    partition: tuple[str, ...] = ()
    offset: int = 0
    any_cut: bool = False
    every_row: bool = False
    mean: MeanScore | None = None

    @property
    def computed(self) -> tuple[Functional, ...]:
        """The functionals that are computed: the value that is ranked by, or the two sums of a mean's score."""
        return (self.functional,) if self.mean is None else (self.mean.total, self.mean.count)

    def with_computed(self, functionals: tuple[Functional, ...]) -> "Ranked":
        """Return the same with others in the place of `computed`."""
        if self.mean is None:
            (only,) = functionals
            return replace(self, functional=only)
        total, count = functionals
        return replace(self, mean=replace(self.mean, total=total, count=count))


@dataclass(frozen=True, slots=True)
class Question:
    """A decision query; `formula` is in negation normal form over `functionals`, as typed, with guards where needed.

    If it `lists_domain`, it asks for the public values of its keys alone, and its formula is true for all of them.
    With `per_unit` its rows are one per privacy unit and key: `table` has their columns, whose row cap is that one row.
    `predicates` are formulas whose truth it shows of each key that it returns, and `predicate_names` what its analyst
    calls them, which is no part of what the question is. `false_at` are, for each, by a key's name the places of those
    values of it at which the predicate is false whatever the data, as its threshold is NULL there. With `ranked` it
    returns the first few of the keys for which the formula holds, in their order. With `as_of` it is a look at a
    standing question: rows that came later do not count. With `in_time` rows do not that came after the look at which
    the time in them was first seen. `common` are the sums off which its functionals are read, where these have
    no noise of their own: a mechanism's choice, made when the question is planned. `priced` are differences by name
    with the amount by which they may err at a fixed price, as nobody said one.
    """

    table: Table
    keys: KeySpace
    where: Condition
    functionals: tuple[Functional, ...]
    atoms: tuple[Atom, ...]
    formula: Formula
    accuracy: Accuracy
    warnings: tuple[str, ...]
    per_unit: UnitRows | None = None
    lists_domain: bool = False
    predicates: tuple[Formula, ...] = ()
    predicate_names: tuple[str, ...] = ()
    false_at: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = ()
    ranked: Ranked | None = None
    as_of: AsOf | None = None
    in_time: InTime | None = None
    common: tuple[Functional, ...] = ()
    priced: tuple[tuple[str, Decimal], ...] = ()

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """Its formula and its predicates."""
        return (self.formula, *self.predicates)

    @property
    def computed(self) -> tuple[Functional, ...]:
        """Every functional that is computed: those of its formulas, or the sums off which these are read.

        Its ranking's comes last.
        """
        if self.common:
            return self.common
        return self.functionals if self.ranked is None else (*self.functionals, *self.ranked.computed)

    def with_computed(self, functionals: tuple[Functional, ...]) -> "Question":
        """Return the question with others in the place of `computed`, in the same order."""
        if self.common:
            return replace(self, common=functionals)
        if self.ranked is None:
            return replace(self, functionals=functionals)
        own = len(self.functionals)
        return replace(self, functionals=functionals[:own], ranked=self.ranked.with_computed(functionals[own:]))


def aggregate_text(functional: Functional) -> str:
    """Return the aggregate as the analyst wrote it: an average's functional is named with its threshold behind."""
    return functional.name if functional.name.endswith(")") else functional.name.rpartition(" - ")[0]
