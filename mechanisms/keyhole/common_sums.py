"""Several thresholds on one mean, read off one noisy sum and one noisy count, so that shared noise costs its loss once.

`avg(x) > t` holds if `sum(x) - t * count(x)` is positive. Two thresholds on one mean are two functionals of this form,
and noise on each would cost twice. Here the sum has noise K and the count noise L, each drawn once for all thresholds.
Every functional is read off both, so its noise is `K - t * L`, whose law is known exactly. A threshold on the count
itself has noise L alone. The sum may be that of `x - m` for any public m. Then t is counted from m, and little of L
enters.

| here | in the proof |
|---|---|
| sum, first of a reading | S, noise K of rate r |
| further sum of a reading, its times | C, noise L of rate s, b |

References: docs/proofs/common_sums.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechanisms.apportionment.keyhole import Shares
from mechanisms.formula import Booleans, Cut, Formula, Integers, list_literals
from mechanisms.keyhole.cell_readings import calibrate_on_cells
from mechanisms.keyhole.contract import OneShotKind, list_mentioned_functionals, list_task_tolerances, meet_contract
from mechanisms.keyhole.key_parts import decide_in_parts
from mechanisms.keyhole.noisy_cells import decide_on_cells
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.noise.gradual_release import draw_chain
from mechanisms.protocol import (
    Calibration,
    CommonSums,
    DecisionTask,
    Exposure,
    FunctionalTest,
    Noise,
    Outcome,
    SecondNoise,
    Unachievable,
)
from mechanisms.three_valued import Verdicts, settle_formula
from mechanisms.threshold.boundary_crossing import MARGIN
from mechanisms.threshold.joint_loss import compute_joint_loss, list_sum_rates
from mechanisms.threshold.one_shot import (
    calibrate_at_rate,
    calibrate_test,
    compute_tail_of_two_sums,
    find_least_epsilon,
    round_rate_up,
    round_up_to_float,
)
from mechanisms.threshold.three_zone import (
    EmptyGroups,
    Schedule,
    add_union_looks,
    bound_false_accept,
    bound_false_reject,
)

ONE_LOOK = Schedule(rates=(), shares=())

_RATIOS = tuple(2.0 ** (power / 2) for power in range(-14, 7))
"""By how much wider the count's noise is in a functional than the sum's: tried by halves of a doubling, which leaves
the loss within a hundredth of the least."""
_HALVINGS = 16  # of the interval in which a rate is looked for: leave 2**-16 of it
_DOUBLINGS = 40  # of a rate, until a test is met
_MOST_ALTERNATIVES = 12  # functionals on one sum: of more, shares are apportioned by a sum of losses
_STEPS = 40  # of a reach, by halving: it only says where to look for rates


def calibrate_on_sums(
    mechanism: str, task: DecisionTask, *, schedule: Schedule, empty: Callable[[int], EmptyGroups | None]
) -> Calibration:
    """Calibrate one rate for every sum and one test for every functional. Together they keep the contract.

    Guarantee: `fnr` and `fpr` are those of `meet_contract`, from the exact laws of the tests' noise, with early looks
    under the union bound; `worst_case_epsilon` is the largest sum, over the sums' exposures, of rate times sensitivity
    times part: the loss of seeing all noisy sums, of which every answer is a function.
    Proof: docs/proofs/common_sums.md.

    Parameters:
        task: with `common`. Every reading is `((s, 1),)` of scale 1, or `((s, 1), (c, times))`. A functional that is
            read off two sums has one threshold, and its c is not the s of another reading of two sums.
            Readings of several cells go to `calibrate_on_cells`, which takes no early looks.
        schedule: the early looks; `ONE_LOOK` for none.
        empty: by functional, what is known of groups without rows. Early looks seldom accept these groups.

    Raises:
        Unachievable: no finite loss meets the contract.
    """
    common = task.common
    assert common is not None
    if common.cells:
        return calibrate_on_cells(mechanism, task)
    _check_readings(task, common)
    rates = _Rates(task, common, schedule, empty)
    near = list_task_tolerances(task)
    own = tuple(common.sensitivities[reading[0][0]] for reading in common.readings)

    def find_loss(functional: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        fine = scale_tolerance(near[functional], common.scales[functional])
        return find_least_epsilon(sensitivity=own[functional], tolerance=fine, fnr=fnr, fpr=fpr, allow_block=False)

    kind = OneShotKind(
        loss=find_loss,
        calibrate=_refuse_calibration,
        is_tied=False,
        bound_false_reject=bound_false_reject,
        bound_false_accept=bound_false_accept,
        decides_several=True,
        calibrate_together=rates.calibrate_tests,
        has_closed_form=any(_reads_one_sum_often(formula, common) for formula in task.formulas),
    )
    apportioned = replace(task, sensitivities=own, exposures=_list_alternatives(common), blocks=frozenset())
    found = meet_contract(mechanism, apportioned, kind)
    worst = compute_joint_loss(_list_losses(list_sum_rates(found), common), common.exposures)
    return replace(found, task=task, worst_case_epsilon=round_up_to_float(worst))


def decide_on_sums(calibration: Calibration, sums: Integers, *, noise: Noise, keeps_paths: bool = True) -> Outcome:
    """Decide every key, look by look, on noisy sums.

    Each look reveals all sums for the keys that are still open. Readings of several cells are decided by
    `decide_on_cells`, at one look.

    Guarantee: a key's loss is the worst case times the fraction of the last rate at which it stopped, since all sums
    take the looks together. Proof: docs/proofs/common_sums.md.

    Parameters:
        sums: exact values, int64, shape (sums, keys), within +-2**62 with all readings.
        keeps_paths: True to return the noise of several cells for other questions. That of single cells is never
            returned.
    """
    task, common = calibration.task, calibration.task.common
    assert common is not None
    if common.cells:
        return decide_on_cells(calibration, sums, noise=noise, keeps_paths=keeps_paths)
    keys = sums.shape[1]
    passed = np.zeros(keys, dtype=np.bool_)
    predicates = tuple(np.zeros(keys, dtype=np.bool_) for _ in task.predicates)
    lost = np.zeros(keys)

    def decide(part: slice) -> _SumsRun:
        run = _SumsRun(calibration, common, sums[:, part])
        run.take_looks(noise)
        return run

    for part, run in decide_in_parts(decide, keys, noise=noise):
        passed[part], lost[part] = run.answer == 1, run.lost
        for all_, own in zip(predicates, run.predicates, strict=True):
            all_[part] = (run.answer == 1) & (own == 1)
    return Outcome(passed=passed, epsilon=lost, predicates=predicates)


def read_functionals(common: CommonSums, sums: Integers) -> Integers:
    """Compute the functionals from exact sums. Only owners and tests may see them."""
    read = [
        sum(times * sums[place] for place, times in reading) // scale
        for reading, scale in zip(common.readings, common.scales, strict=True)
    ]
    return np.array(read, dtype=np.int64)


class _SumsRun:
    """The state of some keys between looks: the verdicts of all literals and each key's loss so far."""

    def __init__(self, calibration: Calibration, common: CommonSums, sums: Integers) -> None:
        self._calibration, self._common, self._sums = calibration, common, sums
        self._task = calibration.task
        self._keys = sums.shape[1]
        self._literals = tuple(dict.fromkeys(self._task.list_literals()))
        self._verdicts: dict[Cut, Verdicts] = {cut: np.zeros(self._keys, dtype=np.int8) for cut in self._literals}
        self.answer: Verdicts = np.zeros(self._keys, dtype=np.int8)
        self.predicates: tuple[Verdicts, ...] = ()
        self.lost = np.zeros(self._keys)

    def take_looks(self, noise: Noise) -> None:
        """Take looks until the formulas of every key are settled."""
        parts = list_look_parts(self._calibration)
        rates = list_sum_rates(self._calibration)
        worst = compute_joint_loss(_list_losses(rates, self._common), self._common.exposures)
        chains = {
            place: draw_chain([rate * part for part in parts], size=self._keys, noise=noise)
            for place, rate in enumerate(rates)
            if rate
        }
        open_ = np.arange(self._keys)
        for look, part in enumerate(parts):
            noisy = {place: self._sums[place, open_] + chain[look, open_] for place, chain in chains.items()}
            coins = self._draw_ties(open_.size, noise) if look == len(parts) - 1 else {}
            for cut in self._literals:
                self._decide_literal(cut, look, open_, noisy, coins)
            self.lost[open_] = min(round_up_to_float(worst * part), self._calibration.worst_case_epsilon)
            self.answer, *others = (
                settle_formula(formula, self._verdicts, keys=self._keys) for formula in self._task.formulas
            )
            self.predicates = tuple(others)
            settled = self.answer != 0
            for one in others:
                settled = settled & ((self.answer < 0) | (one != 0))
            open_ = np.flatnonzero(~settled)
            if not open_.size:
                return
        raise AssertionError("a key is still open after every look")

    def _draw_ties(self, keys: int, noise: Noise) -> dict[int, Booleans]:
        """Toss one coin for each key and functional, for values exactly on the boundary.

        Literals on one value share its coin, so their cut-offs keep their order.
        """
        tests = enumerate(self._calibration.tests)
        return {f: noise.draw_bernoulli(probability=test.tie, size=keys) for f, test in tests if test.tie}

    def _decide_literal(
        self,
        cut: Cut,
        look: int,
        where: Integers,
        noisy: Mapping[int, Integers],
        coins: Mapping[int, Booleans],
    ) -> None:
        """Decide one literal of some keys at a look, unless it was decided before."""
        test = self._calibration.tests[cut.functional]
        value: Integers = np.zeros(where.size, dtype=np.int64)
        for place, times in self._common.readings[cut.functional]:
            value = value + times * noisy[place]
        scale = self._common.scales[cut.functional]
        distance = value - scale * cut.cut if cut.above else scale * (cut.cut + 1) - value
        if look < len(test.looks):
            high, low = distance >= test.looks[look].accepting, distance <= test.looks[look].rejecting
        else:
            high = distance > -test.shift
            if test.tie:
                high |= (distance == -test.shift) & coins[cut.functional]
            low = ~high
        before = self._verdicts[cut][where]
        self._verdicts[cut][where] = np.where(before == 0, np.subtract(high, low, dtype=np.int8), before)


def scale_tolerance(tolerance: int, scale: int) -> int:
    """Convert a tolerance in units into steps, with `scale` steps to the unit.

    A value that just holds and one that just fails beyond the tolerance differ by this number plus one.

    >>> scale_tolerance(3, 1), scale_tolerance(3, 10)
    (3, 39)
    """
    return scale * (tolerance + 1) - 1


def list_look_parts(calibration: Calibration) -> tuple[Fraction, ...]:
    """Return the rates of all looks as fractions of the last rate, coarse to fine. They are the same for all sums."""
    test = next(test for test in calibration.tests if test.rate)
    return (*(look.rate / test.rate for look in test.looks), Fraction(1))


@dataclass(frozen=True, slots=True)
class _Pair:
    """A sum, a further sum, and the functionals that are read off both."""

    first_sum: int
    second_sum: int
    functionals: tuple[int, ...]


class _Rates:
    """The choice of the sums' rates, and of the tests, for given shares of all functionals."""

    def __init__(
        self,
        task: DecisionTask,
        common: CommonSums,
        schedule: Schedule,
        empty: Callable[[int], EmptyGroups | None],
    ) -> None:
        self._common, self._schedule, self._empty = common, schedule, empty
        self._near = list_task_tolerances(task)
        used = list_mentioned_functionals(task)
        self._plain = [one for one in used if len(common.readings[one]) == 1]
        pairs: dict[tuple[int, int], list[int]] = {}
        for one in used:
            if len(common.readings[one]) == 2:
                (first, _), (further, _) = common.readings[one]
                pairs.setdefault((first, further), []).append(one)
        self._pairs = [_Pair(first, further, tuple(found)) for (first, further), found in pairs.items()]
        self._kept = schedule.last * (1.0 - MARGIN)

    def calibrate_tests(self, shares: Shares) -> Mapping[int, FunctionalTest]:
        """Calibrate the tests of all functionals. Raise `Unachievable` if none keep the shares."""
        rates = [Fraction(0)] * len(self._common.sensitivities)
        for functional in self._plain:
            ((place, _),) = self._common.readings[functional]
            test = calibrate_test(
                sensitivity=1,
                tolerance=self._near[functional],
                fnr=self._kept * shares.fnr[functional],
                fpr=self._kept * shares.fpr[functional],
                allow_block=False,
            )
            rates[place] = max(rates[place], test.rate)
        for pair in self._pairs:
            wanted = self._choose_further_rate(pair, shares)
            rates[pair.second_sum] = max(rates[pair.second_sum], wanted)
        for pair in self._pairs:
            rates[pair.first_sum] = max(
                rates[pair.first_sum], self._find_first_rate(pair, shares, rates[pair.second_sum])
            )
        if any(rate and rate * self._least_part < LEAST_RATE for rate in rates):
            raise Unachievable("noise this wide cannot be drawn")
        return {
            functional: self._add_looks(self._make_test(functional, shares, rates), functional, shares)
            for functional in (*self._plain, *(one for pair in self._pairs for one in pair.functionals))
        }

    @property
    def _least_part(self) -> Fraction:
        return min(self._schedule.rates, default=Fraction(1))

    def _choose_further_rate(self, pair: _Pair, shares: Shares) -> Fraction:
        """Return roughly the rate of the further sum at which both sums together cost least.

        It is estimated with continuous Laplace noise and a sum of losses. Any rate is sound.
        """
        prices = self._price_rate(pair.first_sum), self._price_rate(pair.second_sum)
        widest = max(1, *(abs(self._read_factor(one)) for one in pair.functionals))
        best, chosen = math.inf, 0.0
        for ratio in _RATIOS:
            first = max(
                (
                    _find_quantile_of_sum(ratio * abs(self._read_factor(one)) / widest, self._kept * shares.fnr[one])
                    + _find_quantile_of_sum(ratio * abs(self._read_factor(one)) / widest, self._kept * shares.fpr[one])
                )
                / (self._scale_tolerance(one) + 1)
                for one in pair.functionals
            )
            further = first * widest / ratio
            price = first * prices[0] + further * prices[1]
            if price < best:
                best, chosen = price, further
        return round_rate_up(min(max(chosen, float(LEAST_RATE)), float(GREATEST_RATE)))

    def _find_first_rate(self, pair: _Pair, shares: Shares, further: Fraction) -> Fraction:
        """Return the least rate of the sum at which every functional of a pair keeps its shares, found by bisection."""

        def meets_shares(rate: Fraction) -> bool:
            return all(self._find_shift(one, shares, rate, further) is not None for one in pair.functionals)

        guesses = [
            find_least_epsilon(
                sensitivity=1,
                tolerance=self._scale_tolerance(one),
                fnr=self._kept * shares.fnr[one],
                fpr=self._kept * shares.fpr[one],
                allow_block=False,
            )[0]
            for one in pair.functionals
        ]
        low = max(*guesses, float(LEAST_RATE))
        high = low
        for _ in range(_DOUBLINGS):
            high *= 2.0
            if round_rate_up(high) > GREATEST_RATE:
                break
            if meets_shares(round_rate_up(high)):
                for _ in range(_HALVINGS):
                    middle = 0.5 * (low + high)
                    low, high = (low, middle) if meets_shares(round_rate_up(middle)) else (middle, high)
                return round_rate_up(high)
            low = high
        raise Unachievable("the tolerances are too narrow for thresholds that share a noisy count")

    def _find_shift(self, functional: int, shares: Shares, rate: Fraction, further: Fraction) -> int | None:
        """Return the least shift that keeps the false-negative share, or None if false positives exceed theirs at it.

        A value that just holds is `scale` steps beyond the threshold. It is missed if the noise is at most `-shift -
        scale`.
        """
        test = self._make_unshifted_test(functional, shares, rate, further)
        limit, scale = self._kept * shares.fnr[functional], self._common.scales[functional]
        most = self._scale_tolerance(functional) + 1
        low, high = 0, most
        if compute_tail_of_two_sums(test, rate, high) > limit:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if compute_tail_of_two_sums(test, rate, middle) <= limit else (middle, high)
        accepted = compute_tail_of_two_sums(test, rate, most + 1 - high)
        return high - scale if accepted <= self._kept * shares.fpr[functional] else None

    def _make_unshifted_test(
        self, functional: int, shares: Shares, rate: Fraction, further: Fraction
    ) -> FunctionalTest:
        """Return the test of a functional that is read off two sums, before its shift and looks are found."""
        scale = self._common.scales[functional]
        return FunctionalTest(
            epsilon=0.0,
            rate=rate,
            shift=0,
            tie=Fraction(0),
            fnr=shares.fnr[functional],
            fpr=shares.fpr[functional],
            tolerance=self._near[functional],
            beside=SecondNoise(factor=self._read_factor(functional), rate=further, scale=scale),
        )

    def _make_test(self, functional: int, shares: Shares, rates: Sequence[Fraction]) -> FunctionalTest:
        """Return the test with one look, at the sums' rates."""
        (place, _), *others = self._common.readings[functional]
        rate, near = rates[place], self._near[functional]
        if not others:
            test = calibrate_at_rate(
                rate=rate,
                tolerance=near,
                fnr=self._kept * shares.fnr[functional],
                fpr=self._kept * shares.fpr[functional],
            )
            if test is None:
                raise Unachievable("no cut-off meets both rates at the noise that a sum shares")
            return replace(test, fnr=shares.fnr[functional], fpr=shares.fpr[functional])
        further = rates[others[0][0]]
        shift = self._find_shift(functional, shares, rate, further)
        if shift is None:
            raise Unachievable("no cut-off meets both rates at the noise that a sum shares")
        return replace(self._make_unshifted_test(functional, shares, rate, further), shift=shift)

    def _add_looks(self, test: FunctionalTest, functional: int, shares: Shares) -> FunctionalTest:
        if not self._schedule.rates:
            return test
        scale, empty = self._common.scales[functional], self._empty(functional)
        if empty is not None:
            empty = replace(empty, steps_from_passing=scale * empty.steps_from_passing)
        schedule = replace(self._schedule, empty=empty)
        near = scale * self._near[functional]
        return add_union_looks(test, near, shares.fnr[functional], shares.fpr[functional], schedule)

    def _scale_tolerance(self, functional: int) -> int:
        return scale_tolerance(self._near[functional], self._common.scales[functional])

    def _read_factor(self, functional: int) -> int:
        return self._common.readings[functional][1][1]

    def _price_rate(self, place: int) -> float:
        """Return the largest loss, over exposures, of one unit of a sum's rate."""
        return float(max(one[place] for one in self._common.exposures)) * self._common.sensitivities[place]


def _find_quantile_of_sum(ratio: float, share: float) -> float:
    """Return the value that `X + ratio * Y` exceeds with a probability, for Laplace noises X and Y of scale one."""
    if share >= 0.5:
        return 0.0
    wide = max(ratio, 1e-6) if abs(ratio - 1.0) > 1e-3 else 1.001  # the quotient below is 0 / 0 at one

    def tail(value: float) -> float:
        return (math.exp(-value) - wide * wide * math.exp(-value / wide)) / (2.0 * (1.0 - wide * wide))

    low, high = 0.0, -math.log(share) * (1.0 + wide) + 1.0
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tail(middle) > share else (low, middle)
    return high


def _reads_one_sum_often(formula: Formula, common: CommonSums) -> bool:
    read = Counter(
        common.readings[functional][0][0] for functional in {cut.functional for cut in list_literals(formula)}
    )
    return max(read.values(), default=0) > _MOST_ALTERNATIVES


def _list_alternatives(common: CommonSums) -> tuple[Exposure, ...]:
    """Return exposures of the functionals in which each sum's part is given to one of its functionals, each in turn.

    Apportionment uses them, since a sum costs as much as the most expensive of its functionals needs.
    """
    on: dict[int, list[int]] = {}
    for functional, reading in enumerate(common.readings):
        on.setdefault(reading[0][0], []).append(functional)
    most = max(map(len, on.values()))
    found: list[Exposure] = []
    for exposure in common.exposures:
        for turn in range(most):
            parts = [Fraction(0)] * len(common.readings)
            for place, functionals in on.items():
                parts[functionals[turn % len(functionals)]] = exposure[place]
            found.append(tuple(parts))
    return tuple(found)


def _list_losses(rates: Sequence[Fraction], common: CommonSums) -> list[Fraction]:
    return [rate * sensitivity for rate, sensitivity in zip(rates, common.sensitivities, strict=True)]


def _refuse_calibration(functional: int, fnr: float, fpr: float) -> FunctionalTest:
    raise AssertionError(f"functional {functional} has no noise of its own for {fnr} and {fpr}")


def _check_readings(task: DecisionTask, common: CommonSums) -> None:
    """Raise ValueError for readings that `calibrate_on_sums` does not take.

    Raise `Unachievable` for several thresholds on a functional that is read off two sums. Its tails are not convex, so
    nothing bounds them on an interval.
    """
    further = {reading[1][0] for reading in common.readings if len(reading) == 2}
    for reading, scale in zip(common.readings, common.scales, strict=True):
        alone = len(reading) == 1 and scale == 1
        if not (alone or (len(reading) == 2 and reading[0][0] not in further)) or reading[0][1] != 1:
            raise ValueError("a functional is read off one sum, or off one and any times another one")
    thresholds: dict[int, int] = {}
    for cut in task.list_literals():
        known = thresholds.setdefault(cut.functional, cut.cut)
        if known != cut.cut and len(common.readings[cut.functional]) == 2:
            raise Unachievable("a mean with several thresholds of one kind is tested on noise of its own")
