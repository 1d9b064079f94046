"""A question after parsing: resolved against the policy, with integer thresholds and nothing illegal left."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from typing import Literal, TypeAlias

from mechanisms.formula import Formula
from mechanisms.protocol import CommonSums, MeanPair
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
    """The quantity that a functional sums over a group's rows, such as rows, values or units."""

    ROWS = "rows"  # rows are counted: one term that adds 1
    UNITS = "units"  # privacy units with at least one such row, for COUNT(DISTINCT unit): one term that adds 1
    UNIT_SUM = "sum of units"  # a unit adds the coefficients of the terms that it has rows for: any that add 1
    VALUES = "values"  # different values of a column, for COUNT(DISTINCT column): one term that adds 1
    TOTAL = "total"  # what rows add is summed: any terms
    LEAST = "least"  # the least amount of one privacy unit's rows: any terms of the same rows
    GREATEST = "greatest"  # the greatest of these amounts
    MEAN = "mean"  # the mean of these amounts, in parts of a step
    UNIT_PARTS = "parts of units"  # a unit, in parts alike in all of its groups with such a row: one term that adds 1


OF_ONE_UNIT = (Measure.LEAST, Measure.GREATEST, Measure.MEAN)
"""Measures that are defined for one privacy unit alone. Sums of them over units are sums of a column."""


@dataclass(frozen=True, slots=True)
class Term:
    """A row's part of a functional: `coefficient * value ** power`, the value clipped and in whole grid steps.

    A row adds the term if it satisfies `condition` and has a value in `column` (neither NULL nor NaN). With `power` 0
    the term adds its coefficient. Then `column` may be None, and every row that satisfies the condition counts.
    """

    coefficient: int
    column: str | None
    condition: Condition
    power: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """Public integers that are subtracted from a functional before it is compared, one for each value of `key`.

    The least of them is 0, so a cut is the least of all groups' thresholds. They are in the order of the question's key
    space. `text` describes them in the analyst's words and unit, rounded to whole steps.
    """

    key: str
    steps: tuple[int, ...]
    text: str

    @property
    def largest(self) -> int:
        """The largest number that is subtracted. The least one is 0. The least is 0."""
        return max(self.steps)


@dataclass(frozen=True, slots=True)
class CellRead:
    """A summand of a functional that reads other groups: `factor` times the total of `summed` over the groups `cells`.

    In a group for which there are no such groups, the summand is `empty_value` steps of the functional, or has no
    value.
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

    `unit_size` is the worth of one integer step in the analyst's unit. For a mean or ratio it is the worth of a step
    times `rows`, the group size for which its tolerance is meant. Otherwise `rows` is 1. `origin` is the value at 0 in
    the analyst's unit: the threshold of a mean, 0 for a sum.

    With `offsets`, a number that one key determines is subtracted before the sum is compared. `off_each_unit` is
    subtracted once for each privacy unit with a row that satisfies `off_condition`, before its total is clipped. If
    that is None, the condition is the one that all terms have in common. With `cell_reads` the functional is the total
    of these sums and has no terms of its own. `sensitivity` then bounds what one privacy unit changes of it
    through the group's own cell. With `pair` the sums are those of two means, and the functional is their difference.
    If units are divided over groups, `split_keys` are the keys of these groups that differ.
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
    split_keys: tuple[str, ...] = ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions that the functional tests on a row. Some may occur twice."""
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
        """The columns whose values the functional adds up."""
        own = (term.column for term in self.terms if term.column is not None and term.power)
        return tuple(dict.fromkeys((*own, *(column for one in self.cell_reads for column in one.summed.summed))))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which a row needs values to count for some term."""
        own = (term.column for term in self.terms if term.column is not None)
        return tuple(dict.fromkeys((*own, *(column for one in self.cell_reads for column in one.summed.columns))))


@dataclass(frozen=True, slots=True)
class Atom:
    """One comparison as the analyst wrote it, with the linear literals that were made from it.

    `text` is the written comparison. `lower`, `upper` is the band in which errors are allowed, in the analyst's unit.
    If `counted_unit` is set, the band is in rows beyond the threshold ("rows") or in percent of a group's rows ("% of
    rows"). `literals` are its cuts on the functional, each with True if it lies above. If a count beside a mean decides
    the group size for which its tolerance is meant, `guard` is that count as typed.
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
    (`is_min_rows_set`). `most_positives` is the limit of a sparse vector, and `public_knowledge` is the text for MiM.
    For other mechanisms both are None. `allows_reuse`: noise may be shared with other questions. If not, the cheapest
    noise for this question is chosen. `allowed_mechanisms` are those that hints may name. They are not part of the
    contract. If it `adds_guards`, a comparison that groups without values would pass gets a count beside it. Groups are
    compared only with others that reach `min_base`, if there is one.
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
        """The allowed mechanism that hints name instead: one that always answers and needs no setting of its own."""
        able = [name for name in self.allowed_mechanisms if name not in LIMITED | DENYING and name != self.mechanism]
        return DEFAULT if DEFAULT in able else next(iter(able), None)


@dataclass(frozen=True, slots=True)
class UnitTotal:
    """The bounded sum of one privacy unit in one key: a column of the table of a question per unit.

    It lies between `low` and `high`, in integer steps of the column's grid. It is NULL for a unit for which
    `presence_count` counts no row (None: never). `written_as` is its name and text as the analyst wrote them. For a
    mean, `functional` sums the distances of the unit's values from the least possible value, in grid steps. One step
    of the mean is then a grid step divided by `2 * parts`.
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
    """A relation with one row per privacy unit and key: the totals of the rows of `table` that satisfy `where`.

    A unit without such a row in a key has no row there. The keys of a unit that count, and under a row cap its rows
    that count, are chosen before `where` is tested.
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
        """The order as SQL, such as `started DESC NULLS LAST`."""
        falling = " DESC" if self.descending else ""
        nulls = "" if self.nulls_first is self.descending else " NULLS FIRST" if self.nulls_first else " NULLS LAST"
        return f"{self.column}{falling}{nulls}"


@dataclass(frozen=True, slots=True)
class OwnValue:
    """A value of one unit's own rows, as the column `name`: `kind` says how it is computed from rows with `where`.

    `column` is the column that is read, None if rows are counted. The value is NULL if no row has a value there. Kinds
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
    """The condition on totals that puts a privacy unit on a list. It `holds` for a group's totals in `rows`.

    A unit is on the list if that is so for some group, by the columns `groups`. `totals_table` is the table from which
    `holds` reads the totals.
    """

    rows: UnitRows
    groups: tuple[str, ...]
    totals_table: Table
    holds: Condition


@dataclass(frozen=True, slots=True)
class MeanScore:
    """The integer by which a mean is ranked, `floor(times * total / max(count, rows))`.

    One privacy unit changes it little.

    `total` sums the distance of each counted value from `worst_value`, the end of the range that ranks last. The
    distance is at most `largest_distance` steps, each worth `step`. A group with fewer than `least_rows` rows gets the
    score that it would have if the missing rows were at `worst_value`. `worst_value` and `step` are in the analyst's
    unit.
    """

    total: Functional
    count: Functional
    least_rows: int
    multiplier: int
    worst_value: Decimal
    largest_distance: int
    step: Decimal


@dataclass(frozen=True, slots=True)
class RankedCells:
    """Sums of several groups from which each group's ranked value is read, as `common` says, in `common.readings[0]`.

    One privacy unit in one cell changes the values of all groups together by at most `moved`. A group whose neighbour
    is missing has no value. Such groups stand first if `puts_missing_first`, else last.
    """

    sums: tuple[Functional, ...]
    common: CommonSums
    moved: int
    puts_missing_first: bool


@dataclass(frozen=True, slots=True)
class Ranked:
    """The ranking of a question that returns the first few of its keys, ordered by a functional of its own.

    Keys are ordered by `functional`, the greatest first if `descending`. At most `most_returned` are returned (None:
    all), for each combination of values of the keys in `partition`. The surrounding text skips the first `offset`.
    With `may_cut_anywhere` the surrounding text cuts the keys at unknown places. With `keeps_every_row` all keys that
    qualify are returned, and those beyond `most_returned` share the place after it.

    Keys whose values differ by at most `tolerance` integer steps may be in either order. `tolerance_value` is the
    tolerance in the analyst's unit. `percent_base` is the number to which a tolerance in percent refers, None for an
    amount. If it `is_priced`, the analyst set no tolerance, and a fixed price decides it. If it `has_both_signs`, one
    privacy unit may raise the values of some keys and lower those of others. If keys are ranked by a mean, `mean` says
    how its integers are computed from two sums, and `functional` has no terms of its own. If they are ranked by a
    difference from other groups, `cells` says how it is read.
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
    cells: RankedCells | None = None

    @property
    def computed_functionals(self) -> tuple[Functional, ...]:
        """The functionals that are computed: the ranked value, or the sums from which it is read."""
        if self.cells is not None:
            return self.cells.sums
        return (self.functional,) if self.mean is None else (self.mean.total, self.mean.count)

    def replace_computed_functionals(self, functionals: tuple[Functional, ...]) -> "Ranked":
        """Return the ranking with other functionals in the place of `computed_functionals`."""
        if self.cells is not None:
            return replace(self, cells=replace(self.cells, sums=functionals))
        if self.mean is None:
            (only,) = functionals
            return replace(self, functional=only)
        total, count = functionals
        return replace(self, mean=replace(self.mean, total=total, count=count))


@dataclass(frozen=True, slots=True)
class Question:
    """A decision query. `formula` is in negation normal form over `functionals`, as typed, with guards where needed.

    If the question `lists_domain`, it asks only for the public values of its keys, and its formula is true for all of
    them. With `per_unit` its rows are one per privacy unit and key: `table` has their columns, and its row cap is that
    one row.

    `predicates` are formulas whose truth it shows for each returned key. `predicate_names` are the analyst's names for
    them, which are not part of the question's meaning. `publicly_false_keys` has, for each predicate and by a key's
    name, the places of the key's values at which the predicate is false whatever the data, because its threshold is
    NULL there. `publicly_null_keys` has those at which it is NULL. `null_predicates` has True for each predicate that
    is NULL unless it is true.

    With `ranked` it returns the first few of the keys for which the formula holds, in order. With `as_of` it is a look
    at a standing question: rows that arrived later do not count. With `in_time`, a row does not count if it arrived
    after the first look at its time. `common` are the sums from which its functionals are computed, if these have no
    noise of their own. The mechanism chooses them when the question is planned. `priced_differences` are differences by
    name, each with the tolerance that a fixed price allows, because the analyst set none.
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
        """The formula and the predicates, formula first."""
        return (self.formula, *self.predicates)

    @property
    def computed_functionals(self) -> tuple[Functional, ...]:
        """Every functional that is computed: those of its formulas, or the sums from which these are computed.

        The functionals of its ranking come last.
        """
        decided = self.common or self.functionals
        return decided if self.ranked is None else (*decided, *self.ranked.computed_functionals)

    def replace_computed_functionals(self, functionals: tuple[Functional, ...]) -> "Question":
        """Return the question with other functionals in the place of `computed_functionals`, in the same order."""
        own = len(self.common or self.functionals)
        ranked = None if self.ranked is None else self.ranked.replace_computed_functionals(functionals[own:])
        if self.common:
            return replace(self, common=functionals[:own], ranked=ranked)
        return replace(self, functionals=functionals[:own], ranked=ranked)


def write_aggregate(functional: Functional) -> str:
    """Return the aggregate of a functional as the analyst wrote it, without the threshold in the name of an average."""
    return functional.name if functional.name.endswith(")") else functional.name.rpartition(" - ")[0]
