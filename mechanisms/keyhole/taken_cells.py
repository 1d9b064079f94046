"""Cells of a key space that a reading adds up, seen from each key, and the noises that it then has.

Proof: docs/proofs/cell_readings.md.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np

from mechanisms.formula import Booleans, Cut, Formula, Integers, evaluate_formula, list_literals
from mechanisms.keyhole.cell_statistics import compute_statistics, count_moving_cells, may_lie_between_cells
from mechanisms.keyhole.group_averages import AveragedGroups
from mechanisms.protocol import CommonSums, Deviation, Quantile, Unachievable, UsedCells

Parts: TypeAlias = tuple[tuple[tuple[int, int], UsedCells], ...]
"""The sums of a reading, each with its factor, and the cells of each."""
Weights: TypeAlias = tuple[tuple[int, int, int], ...]
"""The noises of one kind of key. Each is the place of a sum, a weight, and the number of cells with that weight."""

DeviationParts: TypeAlias = frozenset[tuple[int, int, int, bool]]
"""Standard deviations in a reading: the place of a sum, its factor, the number of cells, and if they are a sample."""

LARGEST_VALUE = 1 << 61
"""Readings stay below it: noisy cells are clipped to it, divided by the sum of a reading's weights."""
MOST_WEIGHT = 1 << 20
"""The largest sum of the factors of one reading. Cells are then clipped beyond 2**41 steps alone."""
_OWN = 0  # the key's own cell, among those whose noise moves a quantile
_MOST_PLACES = 4096  # of the calendars of one reading, together


@dataclass(frozen=True, slots=True)
class _KeyReading:
    """The reading of keys at places of calendars: `step * sum(factors * sums) + constant`, with the noises in it.

    The factors are whole numbers without a common divisor. So a mean over five days counts in fifths there, and one
    over seven days in sevenths elsewhere. Where quantiles of cells are read, `kinds` are the noises if they are the
    key's own cell, and if they are others. `candidates` has the number of choices of cells whose noise may raise the
    reading, and lower it. `deviations` are apart from `kinds`.
    """

    factors: tuple[int, ...]
    step: int
    constant: int
    kinds: tuple[Weights, ...]
    candidates: tuple[int, int] = (1, 1)
    deviations: DeviationParts = frozenset()


def read_cells(common: CommonSums, functional: int, sums: Mapping[int, Integers]) -> tuple[Integers, Booleans]:
    """Compute a functional for every key from the sums of all cells. Also return True for the keys that have a value.

    The values are in the steps of the key's place, and without the constant, as `compare_cells` expects them.
    """
    parts = _zip_parts(common, functional)
    calendars, seen = _make_key_readings(parts, common.shape)
    total = np.zeros(next(iter(sums.values())).size, dtype=np.int64)
    for number, (found, (_, where)) in enumerate(zip(look_up_parts(common, functional, sums), parts, strict=True)):
        if may_lie_between_cells(where.statistic):
            total += found[0]  # with its factor
        else:
            total += (
                _spread_over_keys(common, calendars, {at: one.factors[number] for at, one in seen.items()}) * found[0]
            )
    return total, _spread_over_keys(common, calendars, dict.fromkeys(seen, 1)) > 0


def compare_cells(common: CommonSums, cut: Cut, values: Integers, shift: int = 0) -> Booleans:
    """Return True for each key whose value from `read_cells` meets a literal with its threshold moved by a shift.

    A value without noise is compared with the unmoved threshold.
    """
    calendars, seen = _make_key_readings(_zip_parts(common, cut.functional), common.shape)
    bars: dict[tuple[int, ...], int] = {}
    for at, one in seen.items():
        moved = shift if any(one.kinds) or one.deviations else 0
        above = cut.cut - moved if cut.above else cut.cut + moved
        bars[at] = max(-LARGEST_VALUE - 1, min(LARGEST_VALUE, (above - one.constant) // one.step))
    bar = _spread_over_keys(common, calendars, bars)
    return np.asarray(values > bar if cut.above else values <= bar, dtype=np.bool_)


def find_unknown(
    common: CommonSums, formulas: Sequence[Formula], test_literal: Callable[[Cut], Booleans], *, keys: int
) -> tuple[Booleans, ...]:
    """Return for each formula the keys for which it is NULL.

    Return nothing if all keys have all cells of their readings.

    Guarantee: SQL's logic of three values, in which a literal is NULL if its reading lacks a cell. A formula without
    negation is true if it holds with the NULL literals taken as false. It is false if it fails with them taken as true.
    Otherwise it is NULL.

    Parameters:
        test_literal: the truth of a literal for each key, false where it is NULL.
    """
    mentioned = {cut.functional for one in formulas for cut in list_literals(one)}
    lacking = {one: _find_lacking(common, one) for one in mentioned}
    if not any(np.any(one) for one in lacking.values()):
        return ()

    def test_possible(cut: Cut) -> Booleans:
        return test_literal(cut) | lacking[cut.functional]

    return tuple(
        evaluate_formula(one, test_possible, keys=keys) & ~evaluate_formula(one, test_literal, keys=keys)
        for one in formulas
    )


def _find_lacking(common: CommonSums, functional: int) -> Booleans:
    """Return True for the keys for which literals of a functional are NULL. No sum is read."""
    parts = _zip_parts(common, functional)
    calendars, seen = _make_key_readings(parts, common.shape)
    if any(where.false_without_value for _, where in parts):
        return np.zeros(math.prod(common.shape), dtype=np.bool_)
    return np.asarray(_spread_over_keys(common, calendars, dict.fromkeys(seen, 1)) == 0, dtype=np.bool_)


def _spread_over_keys(common: CommonSums, calendars: Sequence[int], numbers: Mapping[tuple[int, ...], int]) -> Integers:
    """Return for every key the number of its places on the calendars, 0 for other places."""
    grid = np.zeros([common.shape[axis] for axis in calendars], dtype=np.int64)
    for at, number in numbers.items():
        grid[at] = number
    spread = grid.reshape([size if axis in calendars else 1 for axis, size in enumerate(common.shape)])
    return np.broadcast_to(spread, common.shape).reshape(-1)


def look_up_parts(common: CommonSums, functional: int, sums: Mapping[int, Integers]) -> list[tuple[Integers, Booleans]]:
    """Return each sum of a functional's reading for every key, and True for the keys that have cells of that sum.

    The sum is not yet multiplied by its factor, unless it is a statistic that may lie between cells. Squares of rows
    are added up without a limit.
    """
    parts, pair = _zip_parts(common, functional), common.find_pair(functional)
    seen = _make_key_readings(parts, common.shape)[1].values()
    weights = (
        sum(times // one.step * count for _, times, count in kind)
        + sum(2 * abs(factor) for _, factor, _, _ in one.deviations)  # of a sample of two it is at most 1.5 times that
        for one in seen
        for kind in (one.kinds or ((),))
    )
    most = LARGEST_VALUE // max(1, max(weights, default=1))
    clipped = {place: np.clip(sums[place], -most, most).reshape(common.shape) for (place, _), _ in parts}
    if pair is not None and pair.deviation is not None:
        squared = parts[-1][0][0]
        clipped[squared] = sums[squared].astype(object).reshape(common.shape)
    looked = [_combine_cells(clipped[place], where, times) for (place, times), where in parts]
    return [(found.reshape(-1), there.reshape(-1)) for found, there in looked]


def list_averaged_groups(common: CommonSums, functional: int, sums: Mapping[int, Integers]) -> AveragedGroups | None:
    """Return the cells of the groups whose means a functional averages. Return None if it averages none."""
    pair = common.find_pair(functional)
    if pair is None or not pair.averaged_groups:
        return None
    found: list[Integers] = []
    for (place, _), where in _zip_parts(common, functional)[2:]:
        values = sums[place].reshape(common.shape)
        own = [axis for axis in range(values.ndim) if axis not in where.summed_axes]
        order = values.transpose(*own, *where.summed_axes)
        listed = order.reshape([*(values.shape[axis] for axis in own), -1])
        found.append(np.expand_dims(listed, tuple(where.summed_axes)))
    return AveragedGroups(found[0], found[1], tuple(common.shape))


def _combine_cells(values: Integers, where: UsedCells, times: int) -> tuple[Integers, Booleans]:
    """Return the sum of each key's cells, or a statistic of them, and if it has any."""
    if where.statistic is not None:
        read = _find_statistics(values, where, times if may_lie_between_cells(where.statistic) else 1)
    elif where.summed_axes:
        read = np.broadcast_to(values.sum(axis=where.summed_axes, keepdims=True), values.shape)
    else:
        read = values
    if where.axis is None:
        return read, np.ones(values.shape, dtype=np.bool_)
    if where.statistic is None:
        moved = np.moveaxis(read, where.axis, 0)
        added = np.zeros(moved.shape, dtype=np.int64)
        for place, taken in enumerate(where.used_places):
            if taken:
                added[place] = moved[list(taken)].sum(axis=0)
        read = np.moveaxis(added, 0, where.axis)
    there = np.array([bool(taken) for taken in where.used_places], dtype=np.bool_)
    shaped = there.reshape([-1 if axis == where.axis else 1 for axis in range(values.ndim)])
    return read, np.broadcast_to(shaped, values.shape)


def _find_statistics(values: Integers, where: UsedCells, times: int) -> Integers:
    """Return `times` the statistic of each key's cells, and 0 for keys that have none."""
    assert where.statistic is not None
    along = () if where.axis is None else (where.axis,)
    own = tuple(axis for axis in range(values.ndim) if axis not in (*along, *where.summed_axes))
    order = (*along, *own, *where.summed_axes)
    sizes = [values.shape[axis] for axis in order]
    number = math.prod(values.shape[axis] for axis in own)
    cells = values.transpose(order).reshape(sizes[0] if along else 1, number, -1)
    found = np.zeros((cells.shape[0], number), dtype=np.int64)
    known: dict[tuple[int, ...], Integers] = {}
    for place, taken in enumerate(where.used_places if along else ((0,),)):
        if taken and taken not in known:
            read = cells[list(taken)].transpose(1, 0, 2).reshape(number, -1)
            known[taken] = compute_statistics(read, where.statistic, times)
        if taken:
            found[place] = known[taken]
    shaped = found.reshape([*sizes[: len(along) + len(own)], *(1 for _ in where.summed_axes)])
    return np.broadcast_to(shaped.transpose(np.argsort(order)), values.shape)


def _count_uses_of_cell(where: UsedCells, place: int) -> int:
    """Return how often each cell counts for a key at a place."""
    return where.most_places // len(where.used_places[place]) if where.most_places and where.used_places[place] else 1


def weigh_noises(common: CommonSums, functional: int) -> tuple[Weights, ...]:
    """Return the noises in a functional's reading, for each kind of key that has a value of it.

    Raise `Unachievable` if its noise cannot be bounded. If all noises have the same size, kinds with fewer noises than
    another are left out.
    """
    return _drop_narrower(weigh_parts(_zip_parts(common, functional), common.shape))


def weigh_parts(parts: Parts, shape: tuple[int, ...]) -> tuple[Weights, ...]:
    """Return the noises in the sum of a reading's parts, for each kind of key that has a value of it.

    Each has the sum whose noise it is, the factor of that noise, and the number of cells with that factor. The factors
    of several parts add up in a cell that they have in common. The result is empty if the reading has no noise in any
    key.

    Raises:
        Unachievable: a calendar is too long.
    """
    found = dict.fromkeys(kind for one in _make_key_readings(parts, shape)[1].values() for kind in one.kinds)
    found.pop((), None)  # of keys in which everything cancels out: their value is known
    return tuple(found)


def count_candidates(common: CommonSums, functional: int) -> tuple[int, int]:
    """Return how many cells could each, by their own noise, raise a reading, and lower it.

    Both are 1 without a quantile.
    """
    seen = _make_key_readings(_zip_parts(common, functional), common.shape)[1].values()
    raised, lowered = zip((1, 1), *(one.candidates for one in seen), strict=True)
    return max(raised), max(lowered)


def list_deviations(common: CommonSums, functional: int) -> DeviationParts:
    """Return the standard deviations in a functional's reading, at all places of its axis."""
    seen = _make_key_readings(_zip_parts(common, functional), common.shape)[1].values()
    return frozenset().union(*(one.deviations for one in seen))


def _zip_parts(common: CommonSums, functional: int) -> Parts:
    return tuple(zip(common.readings[functional], common.cells[functional], strict=True))


@lru_cache(maxsize=256)
def _make_key_readings(parts: Parts, shape: tuple[int, ...]) -> tuple[list[int], Mapping[tuple[int, ...], _KeyReading]]:
    """Return the axes with calendars, and the readings of keys by their places on these, if they have a value."""
    calendars = sorted({where.axis for _, where in parts if where.axis is not None})
    others = sorted({axis for _, where in parts for axis in where.summed_axes} - set(calendars))
    if math.prod(shape[axis] for axis in calendars) > _MOST_PLACES:
        raise Unachievable(
            "a calendar of so many values is too long for windows over it",
            remedy=f"Ask about fewer values of the key: at most {_MOST_PLACES:,}, of all calendars together.",
        )
    found: dict[tuple[int, ...], _KeyReading] = {}
    if not math.prod(shape):
        return calendars, found
    for places in product(*(range(shape[axis]) for axis in calendars)):
        at = dict(zip(calendars, places, strict=True))
        if all(where.axis is None or where.has_value(at[where.axis]) for _, where in parts):
            found[places] = _weigh_at(parts, at, others, shape)
    return calendars, found


def _weigh_at(parts: Parts, at: Mapping[int, int], others: Sequence[int], shape: tuple[int, ...]) -> _KeyReading:
    """Return the reading of a key at places of calendars. On each of the `others` a cell is in its own value or not."""
    lacking = [where.axis is not None and not where.used_places[at[where.axis]] for _, where in parts]
    constant = sum(where.empty_value or 0 for (_, where), one in zip(parts, lacking, strict=True) if one)
    weighed = [
        0 if one else times * (1 if where.axis is None else _count_uses_of_cell(where, at[where.axis]))
        for ((_, times), where), one in zip(parts, lacking, strict=True)
    ]
    read = [where for factor, (_, where) in zip(weighed, parts, strict=True) if factor and where.statistic is not None]
    _check_statistics(read)
    step = 1 if any(may_lie_between_cells(where.statistic) for where in read) else math.gcd(*weighed) or 1
    factors = tuple(one // step for one in weighed)
    if any(isinstance(where.statistic, Quantile) for where in read):
        return _KeyReading(factors, step, constant, *_weigh_quantiles(parts, factors, step, at, shape))
    counts: dict[tuple[int, int], int] = {}
    for away in product((False, True), repeat=len(others)):
        cells = math.prod(shape[axis] - 1 for axis, one in zip(others, away, strict=True) if one)
        far = {axis for axis, one in zip(others, away, strict=True) if one}
        weights: dict[int, Integers] = {}
        for factor, ((place, _), where) in zip(factors, parts, strict=True):
            if not factor or where.statistic is not None or not far <= set(where.summed_axes):
                continue
            grid = weights.setdefault(place, np.zeros([shape[axis] for axis in at] or [1], dtype=np.int64))
            taken = (
                np.ix_(*(_list_places_on_axis(where, axis, own, shape) for axis, own in at.items()))
                if at
                else (slice(None),)
            )
            grid[taken] += factor
        for place, grid in weights.items():
            for weight, number in zip(*np.unique(np.abs(grid), return_counts=True), strict=True):
                if weight and cells:
                    named = place, step * int(weight)
                    counts[named] = counts.get(named, 0) + cells * int(number)
    noises = tuple((place, weight, count) for (place, weight), count in sorted(counts.items()))
    deviations = frozenset(
        (place, factor, _count_cells(where, at, shape), where.statistic.is_sample)
        for factor, ((place, _), where) in zip(factors, parts, strict=True)
        if factor and isinstance(where.statistic, Deviation)
    )
    return _KeyReading(factors, step, constant, (noises,), deviations=deviations)


def _check_statistics(read: Sequence[UsedCells]) -> None:
    """Raise `Unachievable` if a reading has a statistic beside a standard deviation, or more than two quantiles."""
    if len(read) > 1 and (len(read) > 2 or any(isinstance(one.statistic, Deviation) for one in read)):
        raise Unachievable(
            "the largest, a quantile or a standard deviation of groups is compared with other groups' one",
            remedy="Compare each with the group's own counts and sums.",
        )


def _count_cells(where: UsedCells, at: Mapping[int, int], shape: tuple[int, ...]) -> int:
    taken = 1 if where.axis is None else len(where.used_places[at[where.axis]])
    return taken * math.prod(shape[axis] for axis in where.summed_axes)


def _weigh_quantiles(
    parts: Parts, factors: Sequence[int], step: int, at: Mapping[int, int], shape: tuple[int, ...]
) -> tuple[tuple[Weights, ...], tuple[int, int]]:
    """Return the noises that may move the quantiles of a reading, by the cells that have them, and how many choices.

    The numbers of choices are of those cells whose noise may raise the reading, and lower it.
    """
    own: dict[int, int] = {}
    read: list[tuple[int, int, UsedCells]] = []
    for factor, ((place, _), where) in zip(factors, parts, strict=True):
        if factor and isinstance(where.statistic, Quantile):
            read.append((place, factor, where))
        elif factor and (where.summed_axes or where.axis is not None):
            raise Unachievable(
                "the largest, least or a quantile of groups is compared with other groups",
                remedy="Compare it with the group's own counts and sums alone.",
            )
        else:
            own[place] = own.get(place, 0) + factor
    kinds: dict[Weights, None] = {}
    sides = [_list_moving_cells(where, at, shape, number) for number, (_, _, where) in enumerate(read)]
    for reached in product(*(cells for cells, _ in sides)):
        noises = Counter({(_OWN, sum_): times for sum_, times in own.items()})
        for cell, (place, factor, _) in zip(reached, read, strict=True):
            noises[cell, place] += factor
        counts = Counter((sum_, step * abs(times)) for (_, sum_), times in noises.items() if times)
        kinds[tuple((sum_, times, count) for (sum_, times), count in sorted(counts.items()))] = None
    moved = [pair if factor > 0 else pair[::-1] for (_, pair), (_, factor, _) in zip(sides, read, strict=True)]
    return tuple(kinds), (math.prod(up for up, _ in moved), math.prod(down for _, down in moved))


def _list_moving_cells(
    where: UsedCells, at: Mapping[int, int], shape: tuple[int, ...], number: int
) -> tuple[list[int], tuple[int, int]]:
    """Return the cells whose noise may move a quantile, up to likeness, and how many may raise it, and lower it.

    One is the key's own. Another may be one that moves an earlier quantile of the reading, or a further one.
    """
    assert isinstance(where.statistic, Quantile)
    cells = _count_cells(where, at, shape)
    has_own = where.axis is None or at[where.axis] in where.used_places[at[where.axis]]
    others = range(1, number + 2) if cells > has_own else ()
    return [*([_OWN] if has_own else []), *others], count_moving_cells(where.statistic, cells)


def _list_places_on_axis(where: UsedCells, axis: int, own: int, shape: tuple[int, ...]) -> list[int]:
    if axis in where.summed_axes:
        return list(range(shape[axis]))
    return list(where.used_places[own]) if where.axis == axis else [own]


def _drop_narrower(found: tuple[Weights, ...]) -> tuple[Weights, ...]:
    """Return the kinds without those that have fewer noises than another, where all noises are alike.

    Then the noise of fewer is reached less often: each further noise is symmetric, and the sum unimodal.
    """
    alike = {weights[0][:2] if len(weights) == 1 else None for weights in found}
    if len(alike) == 1 and None not in alike:
        return (max(found, key=lambda weights: weights[0][2]),)
    return found
