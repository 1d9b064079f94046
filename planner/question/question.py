"""A question after parsing: resolved against the policy, with integer thresholds and nothing illegal left."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Literal, TypeAlias

from mechanisms.formula import Formula
from mechanisms.protocol import MeanPair
from mechanisms.registry import BOUNDED, DEFAULT, DENYING, LIMITED
from planner.catalog.catalog import Table
from planner.catalog.key_space import KeySpace
from planner.question.as_of import AsOf, InTime
from planner.question.condition import Condition
from planner.question.key_cells import KeyCells

BANDED = "bands of public thresholds"
"""The words by which warnings name comparisons of means over different rows."""

NEAR_EMPTY = "groups without rows lie within the tolerance"
"""The beginning of a warning about groups that may be returned by chance. A plan adds the probability."""


class Measure(StrEnum):
    """How a group's rows make a functional."""

    ROWS = "rows"  # rows are counted: one term that adds 1
    UNITS = "units"  # privacy units with at least one such row, for COUNT(DISTINCT unit): one term that adds 1
    UNIT_SUM = "sum of units"  # a unit adds the coefficients of the terms that it has rows for: any that add 1
    VALUES = "values"  # different values of a column, for COUNT(DISTINCT column): one term that adds 1
    TOTAL = "total"  # what rows add is summed: any terms
    LEAST = "least"  # the least amount of one privacy unit's rows: any terms of the same rows
    GREATEST = "greatest"  # the greatest of these amounts
    MEAN = "mean"  # the mean of these amounts, in parts of a step


OF_ONE_UNIT = (Measure.LEAST, Measure.GREATEST, Measure.MEAN)
"""Measures that are defined for one privacy unit alone. Sums of them over units are sums of a column."""


@dataclass(frozen=True, slots=True)
class Term:
    """A row's part of a functional: `coefficient * value ** power`, the value clipped and in whole grid steps.

    Only rows that satisfy `condition` and have a value in `column` (neither NULL nor NaN) add it. With `power` 0 the
    term adds its coefficient. Then `column` may be None, and every row that satisfies the condition counts.
    """

    coefficient: int
    column: str | None
    condition: Condition
    power: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """The numbers subtracted from a functional before it is compared: a public integer for each value of `key`.

    The least of them is 0, so a cut is the least of all groups' thresholds. They are in the order of the question's key
    space. `text` describes them in the analyst's words and unit, rounded to whole steps.
    """

    key: str
    steps: tuple[int, ...]
    text: str

    @property
    def largest(self) -> int:
        """The largest number that is subtracted. The least is 0."""
        return max(self.steps)


@dataclass(frozen=True, slots=True)
class CellRead:
    """A summand of a functional that is read off other groups: `factor` the total of `summed` over the groups `cells`.

    In a group that reads no such groups it is `otherwise` steps of the functional, or has no value.
    """

    summed: "Functional"
    cells: KeyCells
    factor: int
    empty_value: int | None = None


@dataclass(frozen=True, slots=True)
class Functional:
    """A bounded linear sum over the rows of a key that atoms compare, in integers: each row adds its terms.

    COUNT has one term of power 0, SUM one of power 1, AVG against t the terms x and -t over the rows with an x.
    `unit_range` clips a unit's total per key (default bounding). It is None for row units and under a row cap.
    `sensitivity` is the most by which one privacy unit changes the functional in one key.

    `unit_size` is the worth of one integer step in the analyst's unit. For a mean or ratio it is that times `rows`, the
    group size for which its tolerance is meant (1 otherwise). `origin` is the value at 0 in the analyst's unit: the
    threshold of a mean, 0 for a sum.

    With `offsets` cuts are on the sum minus a number that one key determines. `off_each_unit` is subtracted once for
    each privacy unit with a row that satisfies `off_condition`, before its total is clipped. If that is None, it is the
    condition that all terms have in common. With `cell_reads` it is read off these sums and has no terms of its own;
    `sensitivity` is then what one privacy unit changes of it in the group's own cell. With `pair` these sums are two
    means, and it is their difference.
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
    pair: MeanPair | None = None

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that are tested on a row. Some may occur twice."""
        beside = () if self.off_condition is None else (self.off_condition,)
        read = (condition for one in self.cell_reads for condition in one.summed.conditions)
        return (*(term.condition for term in self.terms), *beside, *read)

    def map_conditions(self, change: Callable[[Condition], Condition]) -> "Functional":
        """Return the functional with `change` applied to every condition on a row."""
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
        """The columns whose values a row needs to count for some term."""
        own = (term.column for term in self.terms if term.column is not None)
        return tuple(dict.fromkeys((*own, *(column for one in self.cell_reads for column in one.summed.columns))))


@dataclass(frozen=True, slots=True)
class Atom:
    """One comparison as the analyst wrote it, with the linear literals that were made from it.

    `text` is the written comparison. `lower`, `upper` is the band in which errors are allowed, in the analyst's unit.
    If `counted` is set, it is in rows beyond the threshold ("rows") or in percent of a group's rows ("% of rows").
    `literals` are its cuts on the functional, each with True if it lies above. If a count beside a mean decides the
    group size for which its tolerance is meant, `guard` is that count as typed.
    """

    label: str  # "A", "B", ...
    text: str
    functional: int
    lower: Decimal
    upper: Decimal
    literals: tuple[tuple[int, bool], ...]
    counted_unit: str = ""
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The contract asked for: rates per key, tolerance text as set, group size for AVG, mechanism by name.

    `min_rows` is the least group size. Counts beside a mean may demand larger groups, unless the analyst set it
    (`is_min_rows_set`). `most_positives` is the limit of a sparse vector, `public_knowledge` the text for MiM. Other
    mechanisms have neither. `allows_reuse`: noise may be shared with other questions. Otherwise the cheapest noise for
    this question is chosen. `allowed_mechanisms` are those that hints may name, and no part of the contract. If it
    `adds_guards`, a comparison that groups without values would pass gets a count beside it. Groups are compared only
    with others that reach `min_base`, if there is one.
    """

    fnr: float
    fpr: float
    tolerance: str
    min_rows: int
    mechanism: str
    most_positives: int | None = None
    public_knowledge: str = ""
    allows_reuse: bool = True
    allowed_mechanisms: tuple[str, ...] = BOUNDED
    is_min_rows_set: bool = False
    adds_guards: bool = False
    min_base: Decimal | None = None

    @property
    def other_mechanism(self) -> str | None:
        """The allowed mechanism to use instead: one that always answers and needs no setting of its own."""
        able = [name for name in self.allowed_mechanisms if name not in LIMITED | DENYING and name != self.mechanism]
        return DEFAULT if DEFAULT in able else next(iter(able), None)


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """The bounded sum of one privacy unit in one key: a column of the table of a question per unit.

    It lies between `low` and `high`, in integer steps of the column's grid. It is NULL for a unit for which `present`
    counts no row (None: never). `written` is its name and text as the analyst wrote them. For a mean, `functional` sums
    the distances of values from the least possible one, and a step is half of one of the `parts` of a step of theirs.
    """

    name: str
    written_as: str
    functional: Functional
    presence_count: Functional | None
    low: int
    high: int
    parts: int = 0


@dataclass(frozen=True, slots=True)
class UnitRows:
    """One row per privacy unit and key: the totals of the rows of `table` that satisfy `where`.

    A unit without such a row in a key has no row there. The keys of a unit that count, and under a row cap its rows
    that count, are chosen before `where`, as everywhere.
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
"""The value of one unit's rows. Aggregates: the least or greatest value, the number of rows, the number of different
values, and the sum or mean of a measure's values within its bounds. Windows: a row's place, that if rows with equal
values share one, the value of the first row, and the value of the row `steps` before or behind."""


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """A column by which one unit's rows are ordered."""

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
    """A value of one unit's own rows: the `kind` of value of those that satisfy `where`, as the column `name`.

    `column` is the column that is read, None if rows are counted. The value is NULL if a unit has no value of it. Kinds
    that need an order have it in `order`.
    """

    name: str
    kind: ValueKind
    column: str | None
    where: Condition
    order: tuple[OwnOrder, ...] = ()
    steps: int = 1


@dataclass(frozen=True, slots=True)
class ValuesOfRows:
    """The values of one unit's rows that satisfy `where`. For a unit without such a row all are NULL."""

    where: Condition
    values: tuple[OwnValue, ...]


@dataclass(frozen=True, slots=True)
class ListedTotals:
    """The totals that put their privacy unit on a list: those of `rows` in some group, by `groups`, for which `holds`.

    `totals_table` is the table from which `holds` reads the totals.
    """

    rows: UnitRows
    groups: tuple[str, ...]
    totals_table: Table
    holds: Condition


@dataclass(frozen=True, slots=True)
class MeanScore:
    """A mean as one integer that a privacy unit changes by little: `floor(times * total / max(count, rows))`.

    `total` sums, over the rows that `count` counts, the distance of each from the end `worst_value` of the values. The
    distance is at most `reach` steps, each worth `step`. A group with fewer than `rows` rows has the score that it
    would have if the missing rows were at `worst_value`. `worst_value` and `step` are in the analyst's unit.
    """

    total: Functional
    count: Functional
    rows: int
    multiplier: int
    worst_value: Decimal
    largest_distance: int
    step: Decimal


@dataclass(frozen=True, slots=True)
class Ranked:
    """The ranking of a question that returns the first few of its keys, ordered by a functional of its own.

    Keys are ordered by `functional`, the greatest first if `descending`. At most `limit` are returned (None: all), for
    each combination of values of the keys in `partition`. The surrounding text skips the first `offset`. With
    `may_cut_anywhere` it cuts the keys at places that are not known here. With `keeps_every_row` all keys that qualify
    are returned, and those beyond `limit` share one place behind it.

    Keys whose values differ by at most `tolerance` integer steps may be in either order. `slack` is the tolerance in
    the analyst's unit. `scale` is the number of which it was a percentage, None for an amount. If it `is_priced`, the
    analyst set none, and it is the one that a fixed price allows. If it is `signed`, one privacy unit may raise the
    values of some keys and lower those of others. If keys are ranked by a mean, `mean` says how its integers are
    computed from two sums, and `functional` has no terms of its own.
    """

    functional: Functional
    descending: bool
    most_returned: int | None
    tolerance: int
    has_both_signs: bool
    tolerance_value: Decimal
    percent_base: Decimal | None = None
    is_priced: bool = False
    partition: tuple[str, ...] = ()
    offset: int = 0
    may_cut_anywhere: bool = False
    keeps_every_row: bool = False
    mean: MeanScore | None = None

    @property
    def computed_functionals(self) -> tuple[Functional, ...]:
        """The functionals that are computed: the ranked value, or the two sums of a mean's score."""
        return (self.functional,) if self.mean is None else (self.mean.total, self.mean.count)

    def replace_computed_functionals(self, functionals: tuple[Functional, ...]) -> "Ranked":
        """Return the ranking with other functionals in the place of `computed`."""
        if self.mean is None:
            (only,) = functionals
            return replace(self, functional=only)
        total, count = functionals
        return replace(self, mean=replace(self.mean, total=total, count=count))


@dataclass(frozen=True, slots=True)
class Question:
    """A decision query. `formula` is in negation normal form over `functionals`, as typed, with guards where needed.

    If it `lists_domain`, it asks for the public values of its keys alone, and its formula is true for all of them. With
    `per_unit` its rows are one per privacy unit and key: `table` has their columns, and its row cap is that one row.

    `predicates` are formulas whose truth it shows for each returned key. `predicate_names` are the analyst's names for
    them, and not part of the question's meaning. `publicly_false_keys` has, for each predicate and by a key's name, the
    places of the key's values at which the predicate is false whatever the data, because its threshold is NULL there.
    `publicly_null_keys` has those at which it is NULL. `null_predicates` says of each if it is NULL for every group.

    With `ranked` it returns the first few of the keys for which the formula holds, in order. With `as_of` it is a look
    at a standing question: rows that came later do not count. With `in_time`, rows do not count that came after the
    look at which their time was first seen. `common` are the sums from which its functionals are computed, if these
    have no noise of their own. The mechanism chooses that when the question is planned. `priced_differences` are
    differences by name, each with the tolerance that a fixed price allows, because the analyst set none.
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
    publicly_false_keys: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = ()
    publicly_null_keys: tuple[tuple[tuple[str, tuple[int, ...]], ...], ...] = ()
    null_predicates: tuple[bool, ...] = ()
    ranked: Ranked | None = None
    as_of: AsOf | None = None
    in_time: InTime | None = None
    common: tuple[Functional, ...] = ()
    priced_differences: tuple[tuple[str, Decimal], ...] = ()

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formula and the predicates."""
        return (self.formula, *self.predicates)

    @property
    def computed_functionals(self) -> tuple[Functional, ...]:
        """Every functional that is computed: those of its formulas, or the sums from which these are computed.

        The functionals of its ranking come last.
        """
        if self.common:
            return self.common
        return self.functionals if self.ranked is None else (*self.functionals, *self.ranked.computed_functionals)

    def replace_computed_functionals(self, functionals: tuple[Functional, ...]) -> "Question":
        """Return the question with other functionals in the place of `computed`, in the same order."""
        if self.common:
            return replace(self, common=functionals)
        if self.ranked is None:
            return replace(self, functionals=functionals)
        own = len(self.functionals)
        return replace(self, functionals=functionals[:own], ranked=self.ranked.replace_computed_functionals(functionals[own:]))


def write_aggregate(functional: Functional) -> str:
    """Return the aggregate as the analyst wrote it. The name of an average's functional ends with its threshold."""
    return functional.name if functional.name.endswith(")") else functional.name.rpartition(" - ")[0]
