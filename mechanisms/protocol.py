"""The interface of a mechanism: calibrated without data, run once on true aggregates, its worst case known before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.certified import Probability
from mechanisms.formula import Booleans, Cut, Formula, Integers, list_literals

Epsilons = npt.NDArray[np.float64]
Words: TypeAlias = npt.NDArray[np.uint64]

Exposure: TypeAlias = tuple[Fraction, ...]
"""By functional, the part of its sensitivity, from 0 to 1, by which one privacy unit changes it."""


class Unachievable(Exception):
    """The error for a contract that a mechanism cannot meet at any finite loss.

    Examples are alpha + beta >= 1, which is no promise, and tolerance zero with rates so small that epsilon overflows.
    `functional` is the index of the functional that is to blame, or None. If the mechanism refuses this kind of
    question at any accuracy, `instead` names one that accepts it. If every mechanism does, `remedy` says what to change
    in the question.
    """

    def __init__(
        self, reason: str, *, functional: int | None = None, instead: str | None = None, remedy: str | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.functional = functional
        self.instead = instead
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Public knowledge about the keys that fail one functional's literal, in integer units from its threshold.

    `far_keys` keys are at least `far_distance` short of the threshold. `near_keys` other keys are at least
    `near_distance` short of it, where `0 < near_distance <= far_distance`.
    """

    far_keys: int
    far_distance: int
    near_keys: int
    near_distance: int

    def __post_init__(self) -> None:
        """Raise ValueError for negative numbers of keys or distances out of order."""
        if min(self.far_keys, self.near_keys) < 0 or not 0 < self.near_distance <= self.far_distance:
            raise ValueError("public knowledge needs 0 < near distance <= far distance and numbers of keys >= 0")


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of some numbers: at least `share` of them are at or below it.

    It is the largest for 1, the least for 0.

    It is one of the numbers, as of `percentile_disc`, or `interpolated` between two, as of `percentile_cont`.
    """

    share: Fraction
    interpolated: bool = False


LARGEST, LEAST = Quantile(Fraction(1)), Quantile(Fraction(0))


@dataclass(frozen=True, slots=True)
class Deviation:
    """The standard deviation of some numbers, of a sample or of all.

    If it divides something, `if_equal` is not None. A deviation of 0 then counts as `if_equal` half steps, without its
    factor, so that no comparison holds whose quotient has no value.
    """

    is_sample: bool
    if_equal: int | None = None


@dataclass(frozen=True, slots=True)
class UsedCells:
    """The cells of a key space that one part of a reading uses, relative to the key that is decided.

    Cells vary over all values of the axes in `summed_axes`. On the other axes they have the key's own value, except on
    `axis`: a key at place p of it uses the places `used_places[p]`. A key without any place there has no value, or
    reads the constant `empty_value` instead of the sum and its factor. With `most_places` each cell counts
    `most_places // len(used_places[p])` times, so a mean of fewer cells gives each more weight. With a `statistic`
    that statistic of the cells is read instead of their sum. A literal of a key without a value is NULL, or false if
    `false_without_value` is set.
    """

    summed_axes: tuple[int, ...] = ()
    axis: int | None = None
    used_places: tuple[tuple[int, ...], ...] = ()
    most_places: int = 0
    empty_value: int | None = None
    statistic: Quantile | Deviation | None = None
    false_without_value: bool = False

    def has_value(self, place: int) -> bool:
        """Return True if a key at a place of the axis has a value: from cells, or the constant `empty_value`."""
        return bool(self.used_places[place]) or self.empty_value is not None


OWN_CELL = UsedCells()


@dataclass(frozen=True, slots=True)
class RowDeviation:
    """A multiple of the standard deviation of the rows of a mean, in steps of the sum with which it is compared.

    Squares of the rows' values are counted in `square` squared steps of the mean's own sum. A deviation below `least`
    steps of that sum counts as `least`, which is at least 0.
    """

    times: Fraction
    square: Fraction
    least: Fraction
    is_sample: bool


@dataclass(frozen=True, slots=True)
class RowQuantile:
    """`times` the quantile of rows at a `share`, in steps of the sum that it is compared with.

    Rows are counted in `bins`, whose middles are `first` and each `width` further. No value is farther than `reach`
    from the middle of its bin. All three are in the unit of the rows' values. The quantile's rank may err by `slack`, a
    share of the rows.
    """

    times: Fraction
    share: Fraction
    slack: Fraction
    first: Fraction
    width: Fraction
    reach: Fraction
    bins: int


@dataclass(frozen=True, slots=True)
class MeanPair:
    """A comparison of two means: `sum / rows` is compared with `other_factor * other sum / other rows + constant`.

    It reads four sums, in this order: sum, rows, other sum, other rows. A mean is in steps of the first sum, per row.
    The functional is the difference of both sides, in units of `step` such steps. The first mean is at most
    `largest_mean` in absolute value, the other one at most `largest_other_mean`. The tolerance is meant for keys with
    at least `rows` and `other_rows` rows, which other literals demand. With a `deviation`, that of the other rows is
    added to the other side, and the sum of their squares is read last. With `averaged_groups` the other mean is that of
    the means of so many groups, each of which has `other_rows` rows. With a `quantile` that is the other side: the
    other rows are read by bin.
    """

    other_factor: Fraction
    constant: Fraction
    step: Fraction
    largest_mean: int
    largest_other_mean: int
    rows: int
    other_rows: int
    deviation: RowDeviation | None = None
    averaged_groups: int = 0
    quantile: RowQuantile | None = None


@dataclass(frozen=True, slots=True)
class CommonSums:
    """Noisy sums that several functionals share. Each functional is a combination of them with whole-number factors.

    `readings[f]` has pairs of a sum and its factor in functional f, counted in steps. `scales[f]` steps are one unit of
    the functional. With scale 1, `((0, 1), (1, -5))` is the first sum minus five times the second, and `((1, 1),)` is
    the second. `sensitivities` and `exposures` are those of the sums, in the same form as in `DecisionTask`.

    With `cells` a functional of one key is computed from the sums of several keys, in a key space of `shape`. For each
    pair of `readings[f]`, `cells[f]` says which keys' sums are used. All scales are 1 then. Functional f compares two
    means if `means[f]` is not None.
    """

    sensitivities: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    readings: tuple[tuple[tuple[int, int], ...], ...]
    scales: tuple[int, ...]
    cells: tuple[tuple[UsedCells, ...], ...] = ()
    shape: tuple[int, ...] = ()
    means: tuple[MeanPair | None, ...] = ()

    def find_pair(self, functional: int) -> MeanPair | None:
        """Return the means that a functional compares, or None if it is a sum."""
        return self.means[functional] if self.means else None


SHORT_BLOCKS = 2
"""Blocks of a tolerance that a test uses at most where noise on the sum could be shared: from twice the sensitivity on
noise is on sums. With 1 a question may cost twice what it does without, with 3 sharing begins later."""


@dataclass(frozen=True, slots=True)
class DecisionTask:
    """One question as numbers. All of them are public.

    `formula` decides which keys are returned. A question may decide further formulas for each returned key, its
    `predicates`, on the same noisy values. Each of these formulas keeps the contract (`fnr`, `fpr`) by itself. For the
    predicates of a key that is not returned see docs/proofs/several_formulas.md.

    `sensitivities[f]` is the most one privacy unit changes functional f in one key (integer units, >= 1). `exposures`
    bound the changes by one unit in one key. For every unit, a mixture of the exposures, with weights that sum to one,
    covers the parts by which the unit changes the functionals. So the loss of a key is the joint loss: the maximum over
    exposures of the sum of epsilons times their parts. One exposure of ones gives the plain sum. Every functional has a
    positive part in at least one exposure.

    `blocks` are the functionals whose noise may be on block indices, None for all. A unit may change a functional by
    only a part of its sensitivity. A block index still moves by a whole step, which is more than the exposures say. So
    noise on block indices would break the joint loss, except for functionals whose part is 1 in every exposure.
    Functionals of `short_blocks` use at most `SHORT_BLOCKS` blocks of their tolerance. With wider tolerances their
    noise is on the sum, which other questions can read.

    `most_positives` is the most keys that a sparse vector may return, None for the mechanism's own limit. `knowledge`
    is public knowledge of each functional's values, for MiM, or empty. `keys` is the number of keys. With more keys,
    early looks return a key only if they are surer of it.

    With `common`, noise is added to these sums, and the aggregates of the run are the sums in their order.
    """

    formula: Formula
    sensitivities: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    fnr: float
    fpr: float
    blocks: frozenset[int] | None = None
    short_blocks: frozenset[int] = frozenset()
    most_positives: int | None = None
    knowledge: tuple[Knowledge | None, ...] = ()
    keys: int = 1
    predicates: tuple[Formula, ...] = ()
    common: CommonSums | None = None

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """All formulas that are decided: `formula`, then the predicates in their order."""
        return (self.formula, *self.predicates)

    def limit_blocks(self, functional: int) -> int | None:
        """Return the number of blocks per tolerance that a functional's test may use at most. None means no limit."""
        return SHORT_BLOCKS if functional in self.short_blocks else None

    def list_literals(self) -> Iterator[Cut]:
        """Return every literal of every formula, in order of appearance, with repetitions."""
        return (literal for formula in self.formulas for literal in list_literals(formula))


@dataclass(frozen=True, slots=True)
class Look:
    """One early look of a progressive test, in a literal's distance `z`: `y - c` for `S > c`, `d + 1 - y` for `S <= d`.

    The value is revealed at `rate`. The literal is decided false if `z <= rejecting` and true if `z >= accepting`. In
    between it stays undecided.
    """

    rate: Fraction
    rejecting: int
    accepting: int


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LookTable:
    """A look that is a table of integers: how many of the 2**64 random words accept a value, and how many reject it.

    Entry `i` is for place `first + i`, and places beyond the ends have the entry of the end. The place of a literal's
    distance `z`, `S - c` for `S > c` and `c + 1 - S` for `S <= c`, is `floor((z - 1) / block)`. One privacy unit moves
    a place by at most `moves`.
    """

    first: int
    accepted: Words
    rejected: Words
    block: int
    moves: int

    @property
    def is_last(self) -> bool:
        """Return True if every value is accepted or rejected."""
        return not np.any(self.accepted + self.rejected)

    @property
    def reach(self) -> int:
        """Return a distance from which on, and down from whose negative, all values have the entries of the ends."""
        return self.block * (abs(self.first) + self.accepted.size + 1)

    def compute_acceptance(self, distance: int) -> Fraction:
        """Return the exact probability that a value at a distance is accepted."""
        return Fraction(int(self.accepted[self._find_entry(distance)]), 1 << 64)

    def compute_rejection(self, distance: int) -> Fraction:
        """Return the exact probability that a value at a distance is rejected."""
        return Fraction(int(self.rejected[self._find_entry(distance)]), 1 << 64)

    def _find_entry(self, distance: int) -> int:
        return min(max((distance - 1) // self.block - self.first, 0), self.accepted.size - 1)


@dataclass(frozen=True, slots=True)
class SecondNoise:
    """The noise of the second sum, for a value that is computed from two noisy sums.

    It is `factor` times an independent discrete Laplace value of parameter `exp(-rate)`. At an early look both noises
    have the same fraction of their rates. Noise, shift and the boundaries of looks are in steps. `scale` steps are one
    unit of the functional.
    """

    factor: int
    rate: Fraction
    scale: int


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise of one sum in a value that is computed from several cells.

    It is the sum of `count` independent discrete Laplace values of parameter `exp(-rate)`, each times `times`. `place`
    is the index of the sum. Keys at different places of an axis may have different noise: keys of one `variant` have
    all noises of that variant.
    """

    variant: int
    place: int
    times: int
    count: int
    rate: Fraction


@dataclass(frozen=True, slots=True)
class FunctionalTest:
    """The calibrated test of one functional, the same for all its literals.

    Each key has one noisy value `y = S + K`, where K is discrete Laplace noise of parameter `exp(-rate)`. The rate is
    exact and `epsilon = rate * sensitivity`. If `block > 1`, the noise is on indices of blocks of so many units, and
    `epsilon = rate`. `S > c` is accepted if `y > c - shift`, rejected if `y < c - shift`, and accepted with probability
    `tie` on the boundary. `S <= d` mirrors this. `fnr` and `fpr` are the functional's shares, which the test keeps at
    `cut + 1` and at `cut - tolerance`. A progressive test first decides far values in `looks`, coarse to fine. With
    `beside` the value has that noise, too, and `epsilon` is that of the first noise alone. With `cell_noises` the value
    has only these noises, and `rate` and `epsilon` are those of the first. With `pair` it compares two means: noises of
    even variants are in the first mean, those of odd variants in the second, which may err by `other_error` steps.
    `counted` are the indices of the sums that count both means' rows, and of the sum of squares if there is one. Of the
    other side's error, the mean and the standard deviation have `side_errors`, in steps before their factors. A value
    that reads a quantile errs if the noise of some cell is large. `candidates` has the number of such cells: first for
    errors that miss a key, then for those that return one wrongly. The noise of a standard deviation has variant -1. It
    changes the value by at most `deviation_errors` steps, downward and upward, except with a probability that is part
    of the shares. With a `table` there is no noise. The literal is accepted by the table's probabilities, and `rate` is
    the epsilon of one unit of the functional, in all looks together. Each of the `early_tables` is tried before it.
    """

    epsilon: float
    rate: Fraction
    shift: int
    tie: Fraction
    fnr: float
    fpr: float
    tolerance: int
    block: int = 1
    looks: tuple[Look, ...] = ()
    beside: SecondNoise | None = None
    cell_noises: tuple[CellNoise, ...] = ()
    pair: MeanPair | None = None
    counted: tuple[int, ...] = (0, 0)
    other_error: int = 0
    side_errors: tuple[int, int] = field(default=(0, 0), repr=False)  # by the repr stored states are recognised
    candidates: tuple[int, int] = (1, 1)
    deviation_errors: tuple[int, int] = (0, 0)
    table: LookTable | None = field(default=None, repr=False)
    early_tables: tuple[LookTable, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class KeyLoss:
    """The loss of one key: a bound on its pure loss, and on its Rényi divergences at the public orders, in nats."""

    epsilon: float
    divergences: tuple[Decimal, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of a mechanism, fixed before any data is touched.

    `worst_case_epsilon` bounds the loss of any single key for any database. `fnr` and `fpr` are the rates that this
    calibration guarantees for each key and each formula. None means no bound, as for NLM's false negatives. `tests` has
    one entry for each functional. If a mechanism runs every occurrence of a literal by itself, `occurrences` has their
    tests, in order of appearance. With `whole_question` the loss is that of all keys' answers together, however many
    keys one privacy unit is in. If it is `deniable`, the mechanism may take looks and then stop without an answer
    (`Outcome.denied`). If its looks at a key draw their own noise, `after_looks` has the loss of a key after the first
    look, after the first two, and so on.
    """

    mechanism: str
    task: DecisionTask
    tests: tuple[FunctionalTest, ...]
    worst_case_epsilon: float
    fnr: float | None
    fpr: float | None
    notes: tuple[str, ...] = ()
    compared: Mapping[str, float] = field(default_factory=dict)
    occurrences: tuple[FunctionalTest, ...] = ()
    whole_question: bool = False
    deniable: bool = False
    divergences: tuple[Decimal, ...] = field(default=(), repr=False)
    after_looks: tuple[KeyLoss, ...] = field(default=(), repr=False)


Levels: TypeAlias = npt.NDArray[np.int8]
"""Per key, how many values of a path were revealed, or will be."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisePath:
    """The revealed noisy values of one functional at growing public rates.

    `rates` strictly increase and are per unit of the functional. `values` has shape (rates, keys). Key `k` has revealed
    its first `reached[k]` rows, and its other rows are zero. All rows are kept, not only the last. A later question
    reads a row that is fixed beforehand, because the number of rows depends on the noise. No true aggregate is in it.
    """

    rates: tuple[Fraction, ...]
    values: Integers
    reached: Levels

    def __post_init__(self) -> None:
        """Raise ValueError for rates out of order or arrays of other shapes."""
        if not self.rates or any(coarse >= fine for coarse, fine in pairwise((Fraction(0), *self.rates))):
            raise ValueError("the rates of a path are positive and strictly increase")
        if self.values.shape != (len(self.rates), *self.reached.shape) or self.reached.ndim != 1:
            raise ValueError("a path has one row of values per rate and one entry of reached per key")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run: for each key its decision, and the loss of the decision (ex post, at most the worst case).

    With `denied` the mechanism stopped without an answer. No key passes then. The loss is charged nevertheless, since
    the denial follows from noisy values.

    `paths` has for each functional the values revealed so far, by this run and by earlier ones on the same path. An
    entry is None if no formula mentions the functional or no other question can use its noise. Which paths exist, and
    their rates, is public: a path may have no value of any key. `paths` is empty if the caller wanted none or nothing
    was added. `fresh` is the loss of the values that this run was the first to reveal. None means all of `epsilon`.

    `predicates` has the value of each predicate for each key. All are false for a key that did not pass. `unknown` has
    for each predicate the keys that passed and for which it is NULL, or is empty if there are none.
    """

    passed: Booleans
    epsilon: Epsilons
    denied: bool = False
    paths: tuple[NoisePath | None, ...] = ()
    fresh: Epsilons | None = None
    predicates: tuple[Booleans, ...] = ()
    unknown: tuple[Booleans, ...] = ()


class Noise(Protocol):
    """The only source of randomness in the product. Tests pass a seeded one with the same arithmetic."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        """Draw `size` exact values with P(K = j) proportional to `exp(-rate * |j|)`."""

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        """Draw `size` exact values: with exactly `nonzero` a discrete Laplace draw that is not zero, else zero."""

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        """Draw `size` exact values of one-sided noise, with P(G = n) proportional to `exp(-rate * n)` for `n >= 0`."""

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        """Draw `size` exact values, each true with exactly `probability`."""

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        """Draw `size` exact values, each true with exactly `probability`.

        The probability is irrational and known to any number of digits.
        """

    def draw_words(self, *, size: int) -> Words:
        """Draw `size` uniform numbers from 0 to 2**64 - 1."""


class Mechanism(Protocol):
    """The interface of one-shot and progressive mechanisms, which decide a formula for each key."""

    name: str
    summary: str

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Choose noise and cut-offs that keep the contract, from public inputs alone. Raise `Unachievable` if none do.

        Raise `Unachievable` if none do.
        """

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key. `aggregates` has shape (functionals, keys). No key loses more than the worst case."""
