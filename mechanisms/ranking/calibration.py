"""The least noise that keeps a ranking's contract, by public inputs alone.

Each key's value gets discrete Laplace noise. The `limit` keys with the greatest noisy values (ascending: the least) are
returned in their order, ties in the order of the public key domain. Early looks at coarser noise settle the order of
keys whose noisy values differ by more than a gap.

| here | the proof |
|---|---|
| keys, limit, tolerance | n, k, t |
| fnr, fpr | beta, alpha |
| rate; a look's rate, gap | r; r_j, g_j |

Proof: docs/proofs/ranking.md.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import Unachievable
from mechanisms.ranking.overtaking import MARGIN, bound_overtaken, compute_swap_probability
from mechanisms.ranking.ranking_task import RankingTask
from mechanisms.threshold.one_shot import round_rate_up, round_up_to_float

_MOST_STEPS = 200  # an end to a search; half a dozen do
_SOLVED = 1e-7  # of a rate: what it is solved to, far less than blocks of the law add
_MOST_WIDENINGS = 40  # each doubles what is added to a rate that falls short
_FINE = 8  # a gap is found to one part in 2**8: next to nothing beside the noise, for a few chances less
_KEPT = 1.0 - MARGIN  # of each chance that is promised
_STATED = 1.0 + 0.5 * MARGIN  # times what was computed of a chance is above it, and not above what is promised
_TINIEST = 1e-300  # keeps a logarithm finite
_MOST_TOLERANCE = 1 << 61  # values lie within +-2**62
_TRIED_FIRST = 256  # as a tolerance: its law is short, and noise hardly depends on more than rate times tolerance
_SURCHARGED = Fraction(21, 20)  # of the rate of one look: what early looks may cost where the contract is loose


@dataclass(frozen=True, slots=True)
class RankingLook:
    """One early look of a ranking: its noise rate, and the gap beyond which the order of two keys is settled.

    If all keys are returned the gap may be -1. Then the look settles every order.
    """

    rate: Fraction
    settled_gap: int


@dataclass(frozen=True, slots=True)
class RankingCalibration:
    """The calibration of a ranking, fixed before any data is touched.

    `fnr` and `fpr` are guaranteed for each key, and `swap_rate` for each pair of keys `task.tolerance` apart. Any
    single key loses at most `worst_case_epsilon`, which is `noise_rate * sensitivity` rounded up, for any data. If
    values are read off several cells, that is what a cell loses, by `noise_rate * task.moved`. The rate is zero if the
    answer is known in public.
    """

    task: RankingTask
    noise_rate: Fraction
    looks: tuple[RankingLook, ...]
    worst_case_epsilon: float
    fnr: float
    fpr: float
    swap_rate: float

    @property
    def revealed_rates(self) -> tuple[Fraction, ...]:
        """The rates at which values are revealed, coarse to fine, including the rate of the last look."""
        return (*(look.rate for look in self.looks), self.noise_rate)


@dataclass(frozen=True, slots=True)
class RankingSchedule:
    """The early looks of a ranking.

    Each has a rate, as a fraction of the last look's rate, and a share of the smaller error rate. Rates rise from look
    to look.
    """

    rates: tuple[Fraction, ...]
    shares: tuple[float, ...]


# parts of the last rate: more looks save little and draw more noise
_RATES = tuple(Fraction(part, 32) for part in (1, 2, 4, 6, 8, 12, 16, 24))
_SHARE = Fraction(1, 30)  # of the smaller error rate, by the look's part: 7.6 % in all, for 1 or 2 % more noise
SCHEDULE = RankingSchedule(rates=_RATES, shares=tuple(float(rate * _SHARE) for rate in _RATES))
"""Found by search over counts as they are in practice (docs/proofs/ranking.md says what it saves)."""

ONE_LOOK = RankingSchedule(rates=(), shares=())
"""No early looks: the least worst case, and less for a unit in many groups (`bound_unit_loss`)."""


def calibrate_ranking(task: RankingTask, *, schedule: RankingSchedule = SCHEDULE) -> RankingCalibration:
    """Calibrate the least noise rate with which a ranking keeps its contract, and the gaps of its early looks.

    Guarantee: the rates of `RankingTask`, for every database, and for every mask that does not depend on the ranking's
    noise. The rate is an exact fraction, rounded up, and at most slightly above the least rate. Early looks are left
    out if they would require a much sharper last look, or if a cell counts in several keys.

    Raises:
        Unachievable: a tolerance of zero, or error rates that no rate within the sampler's range meets.

    References: docs/proofs/ranking.md.

    >>> task = RankingTask(keys=30, limit=5, descending=True, sensitivity=1, tolerance=100, fnr=0.05, fpr=0.1)
    >>> [round(calibrate_ranking(task, schedule=one).worst_case_epsilon, 4) for one in (ONE_LOOK, SCHEDULE)]
    [0.0643, 0.0653]
    """
    if task.is_known_in_public:
        return RankingCalibration(
            task=task, noise_rate=Fraction(0), looks=(), worst_case_epsilon=0.0, fnr=0.0, fpr=0.0, swap_rate=0.0
        )
    if task.tolerance == 0:
        raise Unachievable(
            "a ranking needs a tolerance above zero: the keys on either side of its end may differ by nothing"
        )
    least = min(task.fnr, task.fpr)
    rate = _round_rate(task, early=0.0, near=-math.log(least) / task.tolerance)
    looks: tuple[RankingLook, ...] = ()
    if schedule.rates and task.has_one_edge and task.moved is None:
        chances = [share * least for share in schedule.shares]
        raised = _round_rate(task, early=sum(chances), near=float(rate))
        if raised <= rate * _SURCHARGED and schedule.rates[0] * raised >= LEAST_RATE:
            parts = zip(schedule.rates, chances, strict=True)
            rate, looks = raised, tuple(_calibrate_look(task, part * raised, chance=chance) for part, chance in parts)
    return _state_rates(task, rate, looks)


@lru_cache(maxsize=128)
def find_ranking_tolerance(task: RankingTask, *, epsilon: float) -> int:
    """Return about the least tolerance, to two digits, at which a key of the ranking loses at most `epsilon`.

    `task.tolerance` is ignored. The result depends only on the arguments.

    Raises:
        Unachievable: no tolerance within the range of integers costs so little.

    >>> task = RankingTask(keys=30, limit=5, descending=True, sensitivity=1, tolerance=1, fnr=0.05, fpr=0.1)
    >>> find_ranking_tolerance(task, epsilon=0.25), find_ranking_tolerance(task, epsilon=0.0025)
    (28, 2700)
    """
    if task.is_known_in_public:
        return 1
    target, tolerance = epsilon / (task.charged_sensitivity * float(_SURCHARGED)), _TRIED_FIRST
    too_expensive, affordable = 0, _MOST_TOLERANCE + 1  # the greatest that was too dear, and the least that was not
    for _ in range(_MOST_STEPS):
        if tolerance > _MOST_TOLERANCE:
            break
        tried = replace(task, tolerance=tolerance)
        rate = float(_round_rate(tried, early=0.0, near=-math.log(min(task.fnr, task.fpr)) / tolerance))
        wanted = _round_to_two_digits(tolerance * rate / target)
        if rate <= target and (wanted >= tolerance or tolerance == 1):
            return tolerance
        too_expensive, affordable = (too_expensive, tolerance) if rate <= target else (tolerance, affordable)
        tolerance = wanted if wanted != tolerance else _round_to_two_digits(tolerance + 1)
        if affordable <= _MOST_TOLERANCE and not too_expensive < tolerance < affordable:
            tolerance = _round_to_two_digits((too_expensive + affordable) / 2)
            if tolerance >= affordable:
                break
    if affordable <= _MOST_TOLERANCE:
        return affordable
    raise Unachievable("no tolerance makes the ranking so cheap")


def _round_to_two_digits(number: float) -> int:
    """Round a number up to a whole number whose digits after the first two are 0."""
    whole = max(1, math.ceil(number))
    unit = int("1".ljust(len(str(whole)) - 1, "0"))
    return -(-whole // unit) * unit


def bound_unit_loss(calibration: RankingCalibration, *, groups: int, signed: bool) -> float:
    """Return an upper bound on the loss of a privacy unit in `groups` keys, through the whole answer, rounded up.

    Guarantee: `groups` times the worst case of a key. If there are no early looks, and no noisy values are kept for
    later questions, it is at most `limit` times the worst case for each partition. It is twice that if a unit may raise
    some keys' values and lower others' (`signed`). Proof: docs/proofs/ranking.md.

    >>> task = RankingTask(keys=52, limit=1, descending=True, sensitivity=1, tolerance=100, fnr=0.05, fpr=0.1)
    >>> add_union_looks, one_look = calibrate_ranking(task), calibrate_ranking(task, schedule=ONE_LOOK)
    >>> [round(bound_unit_loss(one, groups=52, signed=False), 3) for one in (add_union_looks, one_look)]
    [3.769, 0.071]
    """
    counted = groups if calibration.looks else count_charged_groups(calibration.task, groups=groups, signed=signed)
    return round_up_to_float(calibration.noise_rate * calibration.task.charged_sensitivity * counted)


def count_charged_groups(task: RankingTask, *, groups: int, signed: bool) -> int:
    """Return the number of keys whose losses are charged to a privacy unit in `groups` keys.

    This holds for a ranking without early looks that keeps only its answer. See `bound_unit_loss`. If values are read
    off several cells, all groups of the unit are charged.
    """
    if task.moved is not None:
        return groups
    return min(groups, (1 + signed) * task.limit * task.partitions)


def _list_chances(task: RankingTask, rate: float) -> Iterator[tuple[float, float]]:
    """Yield for each condition its worst-case probability with one look, and the allowed probability.

    If only orders are promised, it is the probability that two keys are swapped.
    """
    for behind, ahead, allowed in task.overtaking_events:
        yield bound_overtaken(rate=rate, behind=behind, ahead=ahead, distance=task.tolerance), allowed
    if not task.overtaking_events:
        yield compute_swap_probability(rate=rate, distance=task.tolerance), min(task.fnr, task.fpr)


def _compute_excess(task: RankingTask, rate: float, early: float) -> float:
    """Return the logarithm of the worst ratio of a condition's probability to the allowed one.

    The allowed probability is reduced by the part that early looks use.
    """
    worst = max(chance / ((allowed - early) * _KEPT) for chance, allowed in _list_chances(task, rate))
    return math.log(max(_TINIEST, worst))


def _round_rate(task: RankingTask, *, early: float, near: float) -> Fraction:
    """Return a noise rate near the least one that keeps the contract.

    It is rounded up so far that the contract certainly holds.
    """
    floor = _solve_rate(task, early, near=near)
    for widening in range(_MOST_WIDENINGS):
        rate = round_rate_up(floor * (1.0 + _SOLVED * 2.0**widening))
        if rate > GREATEST_RATE:
            break
        if _compute_excess(task, float(rate), early) <= 0.0:
            return rate
    raise Unachievable("error rates this small at this tolerance need more noise levels than can be drawn exactly")


def _solve_rate(task: RankingTask, early: float, *, near: float) -> float:
    """Return the rate at which the contract is just kept, by the secant method.

    The excess falls by about the tolerance for each unit of the rate.
    """
    least, most = float(LEAST_RATE), float(GREATEST_RATE)
    low, high, slope = least, most, -float(task.tolerance)
    rate = min(most, max(least, near))
    excess = _compute_excess(task, rate, early)
    for _ in range(_MOST_STEPS):
        if excess > 0.0:
            low = rate
        else:
            high = rate
        if abs(excess) <= _SOLVED or high - low <= _SOLVED * high:
            break
        tried = rate - excess / slope
        if not low < tried < high:
            # nothing that was tried is below an end of the range until that has been tried itself
            tried = low if low == least else high if high == most else math.sqrt(low * high)
        found = _compute_excess(task, tried, early)
        if found != excess and tried != rate:
            slope = min((found - excess) / (tried - rate), 0.0) or slope
        if tried in (least, most) and (found > 0.0) == (tried == most):
            return tried
        rate, excess = tried, found
    return rate


def _calibrate_look(task: RankingTask, rate: Fraction, *, chance: float) -> RankingLook:
    """Return an early look that wrongly separates two keys with at most the given probability.

    This is the probability that any key within the limit falls behind any key beyond it. If all keys are returned, it
    is for two keys whose order is promised.
    """
    noise, everything = float(rate), task.keys <= task.limit

    def wrongly_part(gap: int) -> float:
        if everything:
            return compute_swap_probability(rate=noise, distance=gap + 1 + task.tolerance)
        return bound_overtaken(rate=noise, behind=task.keys - task.limit, ahead=task.limit, distance=gap + 1)

    return RankingLook(
        rate=rate, settled_gap=_find_least_gap(wrongly_part, chance, least=-1 if everything else 0, rate=noise)
    )


def _find_least_gap(chance_beyond: Callable[[int], float], chance: float, *, least: int, rate: float) -> int:
    """Return about the least gap that is exceeded with at most the given probability.

    The probability falls roughly as `exp(-rate * gap)`.
    """
    limit = chance * _KEPT
    low, high = least - 1, None
    gap = max(least, round(-2.0 * math.log(limit) / rate))
    while True:
        found, step = chance_beyond(gap), 1 + (gap >> _FINE if gap > 0 else 0)
        if found <= limit:
            high = gap
            gap = max(low + 1, gap - max(step, math.floor(math.log(limit / max(_TINIEST, found)) / rate)))
        else:
            low = gap
            gap += max(step, math.ceil(math.log(found / limit) / rate))
            if high is not None:
                gap = min(gap, high - 1)
        if high is not None and high - low <= step:
            return high


def _state_rates(task: RankingTask, rate: Fraction, looks: tuple[RankingLook, ...]) -> RankingCalibration:
    swapped = compute_swap_probability(rate=float(rate), distance=task.tolerance) + sum(
        compute_swap_probability(rate=float(look.rate), distance=look.settled_gap + 1 + task.tolerance)
        for look in looks
    )
    missed = returned = 0.0
    if task.overtaking_events:
        early = sum(
            bound_overtaken(
                rate=float(look.rate), behind=task.keys - task.limit, ahead=task.limit, distance=look.settled_gap + 1
            )
            for look in looks
        )
        chances = [chance + early for chance, _ in _list_chances(task, float(rate))]
        missed, returned = _combine_error_chances(task, chances)
    return RankingCalibration(
        task=task,
        noise_rate=rate,
        looks=looks,
        worst_case_epsilon=round_up_to_float(rate * task.charged_sensitivity),
        fnr=missed * _STATED,
        fpr=returned * _STATED,
        swap_rate=swapped * _STATED,
    )


def _combine_error_chances(task: RankingTask, chances: list[float]) -> tuple[float, float]:
    """Return the probabilities that a key is missed and that it is wrongly returned, from those of the conditions."""
    match chances:
        case [above, below] if task.allows_any_cut:
            return above + below, above + below
        case [missed, returned]:
            return missed, returned
        case [behind, ahead, *others]:
            return behind + ahead, max(others)
    raise ValueError("conditions come by two or four")
