"""The interface of a mechanism: calibrated without data, run once on true aggregates, its worst case known before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.certified import Probability
from mechanisms.formula import Booleans, Cut, Formula, Integers, list_literals

Epsilons = npt.NDArray[np.float64]

Exposure: TypeAlias = tuple[Fraction, ...]
"""By functional, the part of its sensitivity, from 0 to 1, by which one privacy unit changes it."""


class Unachievable(Exception):
    """A contract that a mechanism cannot meet at any finite loss.

    Examples are alpha + beta >= 1, which is no promise, and tolerance zero with rates so small that epsilon overflows.
    It has the functional's index, or None. If the mechanism refuses this kind of question at any accuracy, `instead`
    names one that accepts it. If every mechanism does, `remedy` says what to change in the question.
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
    """Public knowledge of the keys that fail one functional's literal, in integer units from its threshold.

    `far_keys` keys are at least `far_distance` short of it, `near_keys` others at least `near_distance`, where
    `0 < near_distance <= far_distance`.
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
    """The value that a share of some numbers is up to: the largest for 1, the least for 0.

    It is one of them, as of `percentile_disc`, or `interpolated` between two, as of `percentile_cont`.
    """

    share: Fraction
    interpolated: bool = False


LARGEST, LEAST = Quantile(Fraction(1)), Quantile(Fraction(0))


@dataclass(frozen=True, slots=True)
class Deviation:
    """The standard deviation of some numbers, of a sample or of all.

    Where something is divided by it, `if_equal` is not None. A deviation of 0 then counts as so many half steps,
    without its factor, so that no comparison of a quotient without a value holds.
    """

    is_sample: bool
    if_equal: int | None = None


@dataclass(frozen=True, slots=True)
class UsedCells:
    """The cells of a key space whose sums a reading adds up, seen from one key.

    Of the axes `whole` they are all values, of the others the key's own. On `axis`, if there is one, a key at place p
    takes the places `taken[p]`. A key that takes none has no value of the reading, or reads the constant `otherwise` in
    place of the sum and its factor. With `most` each cell counts `most // len(taken[p])` times: a mean of fewer cells
    weighs each more. With a `statistic` the cells are not added up, but that of them is read. A literal is NULL for a
    key that has no value of its reading, or false if the reading `fails` there.
    """

    summed_axes: tuple[int, ...] = ()
    axis: int | None = None
    used_places: tuple[tuple[int, ...], ...] = ()
    most_places: int = 0
    empty_value: int | None = None
    statistic: Quantile | Deviation | None = None
    fails: bool = False

    def has_value(self, place: int) -> bool:
        """Return True if a key at a place of the axis has cells, or reads a constant."""
        return bool(self.used_places[place]) or self.empty_value is not None


OWN_CELL = UsedCells()


@dataclass(frozen=True, slots=True)
class MeanPair:
    """A comparison of two means: `sum / rows` is compared with `times * other sum / other rows + constant`.

    A reading of four sums, in this order: sum, rows, other sum, other rows. Means are in steps of the first sum for
    each row. The functional is the difference of both sides, in units of `step` such steps. No mean of the first
    sum is beyond `reach` from 0, none of the other beyond `other_reach`. The tolerance is meant for keys with at least
    `rows` and `other_rows` rows, which other literals demand.
    """

    times: Fraction
    constant: Fraction
    step: Fraction
    reach: int
    other_reach: int
    rows: int
    other_rows: int


@dataclass(frozen=True, slots=True)
class CommonSums:
    """Noisy sums that several functionals share. Each functional is a combination of them with whole-number factors.

    `readings[f]` has pairs of a sum and its factor in functional f, counted in steps. `scales[f]` steps are one unit of
    the functional. With scale 1, `((0, 1), (1, -5))` is the first sum minus five times the second, and `((1, 1),)` is
    the second. `sensitivities` and `exposures` are those of the sums, in the same form as in `DecisionTask`.

    With `cells` a functional of one key is read off the sums of several keys, in a key space of `shape`. For each pair
    of `readings[f]`, `cells[f]` says at which keys that sum counts. All scales are 1 then. Functional f compares two
    means if `means[f]` is a pair.
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
        """Return the most blocks of its tolerance that a functional's test may use, or None for all of them."""
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


@dataclass(frozen=True, slots=True)
class SecondNoise:
    """The second noise of a value that is read off two noisy sums.

    It is `times` an independent discrete Laplace value of parameter `exp(-rate)`. An early look has both noises at the
    same part of their rates. Noise, shift and the boundaries of looks are in steps. `scale` steps are one unit of the
    functional.
    """

    times: int
    rate: Fraction
    scale: int


@dataclass(frozen=True, slots=True)
class CellNoise:
    """The noise of one sum in a value that is read off several cells.

    It is `count` independent discrete Laplace values of parameter `exp(-rate)`, each `times` as large. Keys at
    different places may have different noise. Those of one `variant` have all noises of that variant.
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
    `beside` the value has that noise, too, and `epsilon` is that of the first noise alone. With `cell_noises` the
    value has these alone, and `rate` and `epsilon` are those of the first. With `pair` it compares two means: noises of
    even variants are in the first, those of odd ones in the other, which may err by `other_error` steps. `counted` are
    the sums of both means' rows. A value that reads a quantile errs if some cell has wide noise. `candidates` has
    the number of such cells, for errors that miss, and for those that return wrongly. The noise of a standard deviation
    has variant -1. It adds up to `deviation_errors` steps in both ways, save for a part of the shares.
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
    counted: tuple[int, int] = (0, 0)
    other_error: int = 0
    candidates: tuple[int, int] = (1, 1)
    deviation_errors: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of a mechanism, fixed before any data is touched.

    `worst_case_epsilon` bounds the loss of any single key for any database. `fnr` and `fpr` are the rates that this
    calibration guarantees for each key and each formula. None means no bound, as for NLM's false negatives. `tests` has
    one entry for each functional. A mechanism that re-runs every occurrence of a literal has the tests of these in
    `occurrences`, in order of appearance. With `whole_question` the loss is that of all keys' answers together, however
    many keys one privacy unit is in. With `deniable` the mechanism may look and then stop without an answer
    (`Outcome.denied`).
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
    was added. `fresh` is the loss of the values that this run revealed first, or None if that is all of `epsilon`.

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


class Mechanism(Protocol):
    """The interface of one-shot and progressive mechanisms, which decide a formula for each key."""

    name: str
    summary: str

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Choose noise and cut-offs for the contract, from public inputs alone.

        Raise `Unachievable` if none keep it.
        """

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key. `aggregates` has shape (functionals, keys). No key loses more than the worst case."""
