"""A sliding window with noise drawn once for each tick, or for ticks and blocks of ticks.

Alerts clear at the next look.

A look compares the window's value with the noise of the window's parts: its blocks, and the ticks at either end that
are added or subtracted. This equals a sum of noisy counts. One event is in one tick and one block, so it loses what
these two lose, however many looks there are. The error rates are promised for each look by itself.

| here | the proof |
|---|---|
| window, block | W, B |
| tick_rate, block_rate | r_1, r_2 |

Proof: docs/proofs/standing.md.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from mechanisms.alarm.laplace_sums import add_quantiles
from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from mechanisms.keyhole.contract import OneShotKind, list_task_tolerances, meet_contract
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, FunctionalTest, Noise, Unachievable
from mechanisms.standing.sealed import compute_digest, seal_state, unseal_state, write_number
from mechanisms.standing.standing_protocol import LookResult
from mechanisms.standing.window_noise import STORED, NoiseShape, find_edges, find_tails, shape_window

_RATE_BITS = 40  # a rate is a whole number of these parts of a power of two: 1e-12 above the least one
_HALVINGS = 30  # of what is between two rates: the least one to a billionth
_STEP = 0.99  # of a share, by which the slope of a loss is found


def _calibrate_test(shape: NoiseShape, *, tolerance: int, fnr: float, fpr: float, sensitivity: int) -> FunctionalTest:
    """Calibrate the test of least rate at which a threshold on a window's noisy value keeps both error rates."""

    def meets_rates(rate: Fraction) -> bool:
        tails = find_tails(shape, rate)
        return tails.find_upper_quantile(fnr) + tails.find_upper_quantile(fpr) <= tolerance + 2

    scale = add_quantiles(fnr=fnr, fpr=fpr, fine=shape.window_looks) / (tolerance + 1)
    low, high = Fraction(0), Fraction(max(1e-6, scale)).limit_denominator(1 << _RATE_BITS)
    while not meets_rates(high):
        low, high = high, 2 * high
        if high > GREATEST_RATE:
            raise Unachievable("a tolerance this small needs noise that is smaller than is allowed")
    for _ in range(_HALVINGS):
        middle = Fraction(math.ceil((low + high) / 2 * (1 << _RATE_BITS)), 1 << _RATE_BITS)
        if middle * min(shape.loss_share_of_ticks, 1 - shape.loss_share_of_ticks or 1) < LEAST_RATE or not meets_rates(
            middle
        ):
            low = middle
        else:
            high = middle
    shift = find_tails(shape, high).find_upper_quantile(fnr) - 1
    return FunctionalTest(
        epsilon=float(high * sensitivity),
        rate=high,
        shift=shift,
        tie=Fraction(0),
        fnr=fnr,
        fpr=fpr,
        tolerance=tolerance,
    )


@dataclass(frozen=True, slots=True)
class SlidingNoise:
    """A calibrated question about sliding windows. It is a `Standing` whose state lasts for `looks` looks.

    Guarantee: at each look, a key for which the formula is true is missing with probability `fnr` at most. A key for
    which the relaxed formula is false is in the answer with probability `fpr` at most. Through all looks of a state,
    one event loses `worst_case_epsilon` at most, whatever they show (docs/proofs/standing.md). Each new state adds that
    loss again.
    """

    calibration: Calibration
    shape: NoiseShape
    looks: int
    digest: bytes = field(repr=False)

    @property
    def worst_case_epsilon(self) -> float:
        """The loss bound of one event, through all windows that see it."""
        return self.calibration.worst_case_epsilon

    @property
    def fnr(self) -> float | None:
        """A bound on the probability that a key is missing at a look, as in `Standing.fnr`."""
        return self.calibration.fnr

    @property
    def fpr(self) -> float | None:
        """The false-positive rate as in `Standing.fpr`. It holds at each look by itself."""
        return self.calibration.fpr

    def draw_state(self, *, keys: int, noise: Noise) -> bytes:
        """Draw the noise of the first look's window, and return the state as bytes."""
        return self._write(
            self._extend_noise(_DrawnNoise(0, 0, 0, self._make_empty(keys), self._make_empty(keys)), 1, noise)
        )

    def take_look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> LookResult:
        """Return the state after one look, and the keys in the answer at this look.

        They may be absent at the next look.
        """
        before = self._read(state)
        keys = before.ticks.shape[2]
        if values.shape != (len(self.calibration.task.sensitivities), keys):
            raise ValueError("a look has a value of each functional for each key")
        if not before.last_look < look <= self.looks:
            raise ValueError("a window's looks are made in order, and no more than it was calibrated for")
        drawn = self._extend_noise(before, look, noise)
        noisy = values + self._sum_window_noise(drawn, look)
        tests = self.calibration.tests

        def test_literal(literal: Cut) -> Booleans:
            shift, own = tests[literal.functional].shift, noisy[literal.functional]
            found: Booleans = own > literal.cut - shift if literal.above else own <= literal.cut + shift
            return found

        held = evaluate_formula(self.calibration.task.formula, test_literal, keys=keys)
        return LookResult(state=self._write(replace(drawn, last_look=look)), alerted=held)

    def compute_spent_losses(self, state: bytes) -> Epsilons:
        """Return each key's loss so far: zero before the first look, then the whole worst case."""
        drawn = self._read(state)
        return np.full(drawn.ticks.shape[2], self.worst_case_epsilon if drawn.last_look else 0.0)

    def _find_span(self, look: int) -> tuple[int, int, int, int]:
        """Return the ranges of ticks and of blocks whose noise a look may need, each as first and end."""
        block = self.shape.block_ticks
        edges, half = find_edges(self.shape, look - 1), block // 2
        return look - self.shape.window_looks - half, look + half, edges.first, edges.last

    def _extend_noise(self, drawn: "_DrawnNoise", look: int, noise: Noise) -> "_DrawnNoise":
        """Return the noise that a look needs: the noise drawn before, and new noise for new ticks and blocks."""
        first_tick, end_tick, first_block, end_block = self._find_span(look)
        kept = [drawn.ticks[:, max(0, first_tick - drawn.first_tick) :]]
        blocks = [drawn.blocks[:, max(0, first_block - drawn.first_block) :]]
        begun = first_tick if not drawn.ticks.shape[1] else drawn.first_tick + drawn.ticks.shape[1]
        kept.append(self._draw_noise(drawn, end_tick - max(begun, first_tick), self.shape.loss_share_of_ticks, noise))
        begun = first_block if not drawn.ticks.shape[1] else drawn.first_block + drawn.blocks.shape[1]
        blocks.append(
            self._draw_noise(drawn, end_block - max(begun, first_block), 1 - self.shape.loss_share_of_ticks, noise)
        )
        ticks, coarse = (np.concatenate(parts, axis=1) for parts in (kept, blocks))
        return _DrawnNoise(drawn.last_look, first_tick, first_block, ticks, coarse)

    def _draw_noise(self, drawn: "_DrawnNoise", size: int, part: Fraction, noise: Noise) -> Integers:
        """Draw noise for each functional, each of `size` ticks or blocks, and each key."""
        keys, functionals = drawn.ticks.shape[2], len(self.calibration.tests)
        found = np.zeros((functionals, size, keys), dtype=np.int64)
        for functional, test in enumerate(self.calibration.tests):
            if test.rate and part:
                flat = noise.draw_discrete_laplace(rate=test.rate * part, size=size * keys)
                found[functional] = flat.reshape(size, keys)
        return found

    def _sum_window_noise(self, drawn: "_DrawnNoise", look: int) -> Integers:
        """Return the noise of a look's window. Noise of ticks outside of the window is subtracted from its blocks."""
        edges = find_edges(self.shape, look - 1)
        signs = np.zeros(drawn.ticks.shape[1], dtype=np.int64)
        for tick in edges.ticks:
            signs[tick - drawn.first_tick] = 1 if look - self.shape.window_looks <= tick < look else -1
        total: Integers = np.einsum("ftk,t->fk", drawn.ticks, signs)
        total += drawn.blocks[:, edges.first - drawn.first_block : edges.last - drawn.first_block].sum(axis=1)
        return total

    def _write(self, drawn: "_DrawnNoise") -> bytes:
        parts = [write_number(number) for number in (drawn.ticks.shape[2], drawn.last_look)]
        parts += [noise.astype(STORED).tobytes() for noise in (drawn.ticks, drawn.blocks)]
        return seal_state(b"".join(parts), digest=self.digest)

    def _read(self, state: bytes) -> "_DrawnNoise":
        reader = unseal_state(state, digest=self.digest)
        keys, last_look = reader.read_number(), reader.read_number()
        first_tick, end_tick, first_block, end_block = self._find_span(max(1, last_look))
        functionals, found = len(self.calibration.tests), []
        for size in (end_tick - first_tick, end_block - first_block):
            flat = reader.read_array(functionals * size * keys, STORED)
            found.append(flat.reshape(functionals, size, keys))
        reader.check_end()
        return _DrawnNoise(last_look, first_tick, first_block, *found)

    def _make_empty(self, keys: int) -> Integers:
        return np.zeros((len(self.calibration.tests), 0, keys), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _DrawnNoise:
    """The noise of ticks from `first_tick` and of blocks from `first_block` on, shape (functionals, places, keys)."""

    last_look: int
    first_tick: int
    first_block: int
    ticks: Integers = field(repr=False)
    blocks: Integers = field(repr=False)


def calibrate_sliding(task: DecisionTask, *, window: int, looks: int) -> SlidingNoise:
    """Calibrate the noise of least loss that keeps a contract at each look of a sliding window.

    Parameters:
        task: any formula over one window's values. Its `exposures` are those of one event.
        window: its length in looks, which is the number of looks that see an event.
        looks: the number of looks of a state, which may last for many windows.

    Raises:
        Unachievable: rates or tolerances beyond what the noise can keep; predicates.

    >>> from mechanisms.threshold.joint_loss import expose_all_functionals
    >>> many = DecisionTask(Cut(0, 900, above=True, tolerance=199), (1,), expose_all_functionals(1), fnr=0.05, fpr=0.1)
    >>> round(calibrate_sliding(many, window=24, looks=1000).worst_case_epsilon * 200, 1)
    20.2
    """
    if window < 1 or looks < 1:
        raise ValueError("a sliding window has looks, and is looked at")
    shape = shape_window(window, fnr=task.fnr, fpr=task.fpr)
    near = list_task_tolerances(task)

    def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        scale = task.sensitivities[functional] / (near[functional] + 1)
        width = scale * add_quantiles(fnr=fnr, fpr=fpr, fine=window)
        fewer_missed = scale * add_quantiles(fnr=fnr * _STEP, fpr=fpr, fine=window)
        fewer_wrong = scale * add_quantiles(fnr=fnr, fpr=fpr * _STEP, fine=window)
        return width, (fewer_missed - width) / math.log(_STEP), (fewer_wrong - width) / math.log(_STEP)

    def calibrate(functional: int, fnr: float, fpr: float) -> FunctionalTest:
        try:
            return _calibrate_test(
                shape, tolerance=near[functional], fnr=fnr, fpr=fpr, sensitivity=task.sensitivities[functional]
            )
        except Unachievable as refusal:
            raise Unachievable(refusal.reason, functional=functional) from refusal

    kind = OneShotKind(
        loss=find_loss,
        calibrate=calibrate,
        is_tied=False,
        bound_false_reject=lambda test, distance: find_tails(shape, test.rate).bound_reach_chance(
            test.shift + distance
        ),
        bound_false_accept=lambda test, distance: find_tails(shape, test.rate).bound_reach_chance(
            1 - test.shift - distance
        ),
    )
    calibration = meet_contract("sliding_noise", task, kind)
    return SlidingNoise(
        calibration=calibration, shape=shape, looks=looks, digest=compute_digest((calibration, shape, looks))
    )
