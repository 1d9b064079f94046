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
    """The refusal of a contract that no mechanism of this kind meets at any finite loss.

    Examples are alpha + beta >= 1, which is no promise, and tolerance zero with rates so small that epsilon overflows.
    It carries the functional's index, or None, and the name of a mechanism that takes such questions if this one takes
    none of them at any accuracy.
    """

    def __init__(self, reason: str, *, functional: int | None = None, instead: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.functional = functional
        self.instead = instead


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
class CommonSums:
    """Sums of which several functionals are read: each functional is a whole-number combination of them.

    `readings[f]` are the pairs of a sum and how many times it counts in functional f, in steps of which `scales[f]`
    make one of the functional's: with scale 1 `((0, 1), (1, -5))` is the first sum less five times the second,
    `((1, 1),)` the second itself. `sensitivities` and `exposures` are the sums', as `DecisionTask` has them of
    functionals.
    """

    sensitivities: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    readings: tuple[tuple[tuple[int, int], ...], ...]
    scales: tuple[int, ...]


SHORT_BLOCKS = 2
"""Blocks of a tolerance that a test uses at most where noise on the sum could be shared: from twice the sensitivity on
noise is on sums. With 1 a question may cost twice what it does without, with 3 sharing begins later."""


@dataclass(frozen=True, slots=True)
class DecisionTask:
    """One question as numbers; everything in it is public.

    `formula` says which keys are returned. A question may decide further formulas for each of them, its `predicates`,
    on the same noisy values. Every one of these formulas keeps the contract (`fnr`, `fpr`) by itself; what that means
    for the predicates of a key that is not returned says docs/proofs/several_formulas.md.

    `sensitivities[f]` is the most one privacy unit changes functional f in one key (integer units, >= 1).
    `exposures` bound what one unit can change at once in one key: whatever the unit, a mixture of them (weights summing
    to one) covers the parts by which it changes the functionals. So the loss of a key is the maximum over exposures of
    the sum of epsilons times their parts (joint loss). One exposure of ones is the plain sum. Every functional has a
    positive part in at least one.

    `blocks` are the functionals whose noise may live on block indices; None for all. A unit that changes some of the
    others by a part alone would move their block indices by more than the exposures say: an index moves by a whole step
    however little the sum does. Noise on block indices would break the maximum there, but for functionals whose part is
    1 in every exposure. Those of `short_blocks` use at most `SHORT_BLOCKS` blocks of their tolerance, so that wider
    tolerances put noise on the sum, which other questions can read.

    `most_positives` limits how many keys a sparse vector may return; None leaves it to the mechanism. `knowledge` is
    what is publicly known of each functional's values, for MiM; empty when nothing is. `keys` is how many the question
    has: the more, the surer early looks are of those that they return.

    With `common` the noise is that of these sums, and the aggregates that are decided are the sums', in their order.
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
        """All that is decided: the formula, and then the predicates in their order."""
        return (self.formula, *self.predicates)

    def limit_blocks(self, functional: int) -> int | None:
        """Return how many blocks of its tolerance a functional's test may use; None for all of them."""
        return SHORT_BLOCKS if functional in self.short_blocks else None

    def list_literals(self) -> Iterator[Cut]:
        """Return every literal of every formula, in order of appearance, with repetitions."""
        return (literal for formula in self.formulas for literal in list_literals(formula))


@dataclass(frozen=True, slots=True)
class Look:
    """One early look of a progressive test, in a literal's distance `z`: `y - c` for `S > c`, `d + 1 - y` for `S <= d`.

    The value is revealed at `rate`; the literal is decided false when `z <= rejecting`, true when `z >= accepting`, and
    stays undecided in between.
    """

    rate: Fraction
    rejecting: int
    accepting: int


@dataclass(frozen=True, slots=True)
class Beside:
    """Further noise in a value: `times` a discrete Laplace value of parameter `exp(-rate)`, independent of the other.

    It is there where the value is read off two noisy sums. Early looks have it at the same part of its rate as they
    have the other. Noise, shift and boundaries of looks are in steps of which `scale` make one of the functional's.
    """

    times: int
    rate: Fraction
    scale: int


@dataclass(frozen=True, slots=True)
class FunctionalTest:
    """The calibrated test of one functional, the same for all its literals.

    One noisy value `y = S + K` per key, K discrete Laplace of parameter `exp(-rate)` where `rate` is exact and
    `epsilon = rate * sensitivity` (or `rate` itself when `block` > 1: noise on block indices, see `block`).
    `S > c` is accepted when `y > c - shift`, rejected when `y < c - shift`, and accepted with probability `tie` on the
    boundary; `S <= d` mirrors it. `fnr`, `fpr` are this functional's shares, which the test meets at `cut + 1` and at
    `cut - tolerance`. A progressive test decides far values in `looks`, coarse to fine, before this last one. With
    `beside` the value has that noise, too, and `epsilon` is that of the other alone.
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
    beside: Beside | None = None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The calibration of a mechanism, fixed before any data is touched.

    `worst_case_epsilon` bounds the loss of any single key for any database. `fnr`, `fpr` are what this calibration
    really guarantees per key (None: no bound, as for NLM's false negatives), for each of several formulas. `tests` has
    one entry per functional; a mechanism that re-runs every occurrence of a literal keeps those tests in `occurrences`,
    in order of appearance. `whole_question`: that loss is the one of all keys' answers together, however many keys one
    privacy unit is in. `deniable`: the mechanism may look and then stop without an answer (`Outcome.denied`).
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
    """The revealed values of one functional: noisy values at growing public rates, by key as far as each went.

    `rates` strictly increase and are per unit of the functional. `values` has shape (rates, keys); key `k` has revealed
    its first `reached[k]` rows and is zero in the others. All of them are kept, not the last alone: a later question
    reads a row fixed beforehand, for which row is the last depends on the noise. No true aggregate is in it.
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
    """Per key: whether it passed, and the loss its decision cost (ex post, at most the worst case).

    A mechanism that may stop without an answer says so by `denied`: no key passes then, and the loss is paid all the
    same, for the denial follows from noisy values.

    `paths` has, by functional, all that was revealed of it so far, this run and earlier ones on the same path, or None
    where no formula mentions it or its noise serves no other question. Which paths there are and their rates are
    public: a path may be one that no key has set out on. It is empty where the caller wanted none or nothing was added.
    `fresh` is the loss of what was revealed by this run first, None where that is all of `epsilon`.

    `predicates` has the value of each of the task's predicates per key; all are false for a key that did not pass.
    """

    passed: Booleans
    epsilon: Epsilons
    denied: bool = False
    paths: tuple[NoisePath | None, ...] = ()
    fresh: Epsilons | None = None
    predicates: tuple[Booleans, ...] = ()


class Noise(Protocol):
    """The only source of randomness in the product; tests pass a seeded one with the same arithmetic."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        """Draw `size` exact values with P(K = j) proportional to `exp(-rate * |j|)`."""

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        """Draw `size` exact values: with exactly `nonzero` a discrete Laplace draw that is not zero, else zero."""

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        """Draw `size` exact values with P(G = n) proportional to `exp(-rate * n)` for `n >= 0`; one-sided noise."""

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        """Draw `size` exact values, each true with exactly `probability`."""

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        """Draw `size` exact values, each true with exactly `probability`.

        It is irrational and known to any number of digits.
        """


class Mechanism(Protocol):
    """A way of deciding a formula per key. One-shot and progressive mechanisms share this face."""

    name: str
    summary: str

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Choose noise and cut-offs for the contract.

        Public inputs alone are read. Raise `Unachievable` if there are none.
        """

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key; `aggregates` has shape (functionals, keys). Loss per key never above the worst case."""
