"""Cells of a calendar as subjects of an audit: answers of several months are read off one noisy cell.

A question about three months compares each with the month before, with its running total, or both. One unit more in the
second month changes the answers of the second and of the third. All answers are observed at once. The claim is the loss
of one cell, which is charged once. Further questions compare the means of neighbours, from noisy sums and rows.
Others compare a month's mean with the mean and standard deviation of all rows, with their median, or with the mean of
the months' means. Others compare months with the median or the standard deviation of all. Others are followed by a
later question, which reads their noisy cells or refines them. Then the answers to both are observed, and the claim is
the first one's loss with what the later one adds.

Proof: docs/proofs/cell_readings.md, docs/proofs/cell_means.md, docs/proofs/row_deviations.md,
docs/proofs/row_quantiles.md, docs/proofs/reuse.md, docs/proofs/audit.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np

from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject
from mechanisms.audit.events import Transcripts
from mechanisms.audit.worst_cases import Values, widen_tolerances
from mechanisms.formula import AllOf, Cut
from mechanisms.keyhole.noise_continuation import CONTINUABLE, decide_on_refined_paths, plan_on_paths
from mechanisms.protocol import (
    OWN_CELL,
    Calibration,
    CommonSums,
    DecisionTask,
    Deviation,
    MeanPair,
    Mechanism,
    Noise,
    Quantile,
    RowDeviation,
    RowQuantile,
    UsedCells,
)
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets

Sums: TypeAlias = tuple[Values, ...]
"""The months of each sum."""

MONTHS = 3
"""Groups of the question: the cell that differs is the second one, which two of them read."""
_DIFFERENCE, _RUNNING_TOTAL = 0, 1  # places of what is read off the cells
_MOVED = 4  # what one unit changes of a month's sum
_ROWS = 80  # of each month whose means are compared
_BINS = 8  # in which rows are counted for a median
_BEFORE = UsedCells(axis=1, used_places=tuple((month - 1,) if month else () for month in range(MONTHS)))
_DEPTHS = (0.0, 0.5, 1.0)  # of a value in its band, from just true to just false beyond the tolerance
_MOST_EPSILON_OF_A_CELL = 2.0  # a unit is then seen in answers that so few draws meet often enough


def audit_calendar_cells(
    mechanism: Mechanism,
    *,
    samples: int,
    noise: Noise,
    subject: str = "cells",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit the rows of one unit in one cell of a calendar, by the answers for all months that read the cell.

    Parameters:
        mechanism: one that decides comparisons with other groups.
        samples: as for `audit_subject`.
    """
    pairs = []
    for task in _list_tasks():
        calibration = mechanism.calibrate(widen_tolerances(mechanism, task, most_epsilon=_MOST_EPSILON_OF_A_CELL))
        compares_means = calibration.task.common is not None and calibration.task.common.means
        reads_all = calibration.task.common is not None and calibration.task.common.cells[0][-1].statistic is not None
        worlds = _list_worlds_of_means if compares_means else _list_worlds_of_all if reads_all else _list_worlds
        for months, moved in worlds(calibration.task):
            first, second = (_make_release_of_months(mechanism, calibration, one, noise) for one in (months, moved))
            pairs.append(Neighbours(description=f"months {months} and {moved}", first=first, second=second))
    pairs += [] if mechanism.name not in CONTINUABLE else list(_list_continued(mechanism, noise))
    return audit_subject(subject, pairs, samples=samples, progress=progress)


def _list_continued(mechanism: Mechanism, noise: Noise) -> Iterator[Neighbours]:
    """Yield neighbours for two questions on the same cells: the later one reads the noise as it is, or refines it."""
    first, running, *_ = _list_tasks()
    wide = mechanism.calibrate(widen_tolerances(mechanism, first, most_epsilon=_MOST_EPSILON_OF_A_CELL / 2))
    for least in (_MOST_EPSILON_OF_A_CELL / 2, _MOST_EPSILON_OF_A_CELL):
        later = mechanism.calibrate(widen_tolerances(mechanism, running, most_epsilon=least))
        for months, moved in _list_worlds(wide.task):
            one, other = (
                _make_release_of_months(mechanism, wide, sums, noise, later=later) for sums in (months, moved)
            )
            yield Neighbours(description=f"continued: months {months} and {moved}", first=one, second=other)


def _list_tasks() -> Iterator[DecisionTask]:
    """Yield questions on differences, running totals, both, on the means of neighbours, and on statistics of all."""
    difference = Cut(functional=_DIFFERENCE, cut=0, above=True, tolerance=8)
    running = Cut(functional=_RUNNING_TOTAL, cut=90, above=True, tolerance=8)
    either = AllOf((replace(running, above=False), difference))
    for formula, predicates in ((difference, ()), (running, ()), (running, (difference,)), (either, ())):
        yield DecisionTask(
            formula=formula,
            sensitivities=(1, 1),
            exposures=expose_all_functionals(2),
            fnr=0.05,
            fpr=0.1,
            predicates=predicates,
            common=_three_months(),
        )
    statistics: tuple[Quantile | Deviation, ...] = (Quantile(Fraction(1, 2)), Deviation(is_sample=False))
    means = (_three_means(), _compare_with_all_rows(), _compare_with_all_means(), _compare_with_median())
    for common in (*means, *map(_compare_with_all, statistics)):
        yield DecisionTask(
            formula=Cut(functional=_DIFFERENCE, cut=0, above=True, tolerance=40),
            sensitivities=(1,),
            exposures=expose_all_functionals(1),
            fnr=0.05,
            fpr=0.1,
            common=common,
        )


def _three_months() -> CommonSums:
    """Return how differences and running totals are read off three months, of calendars along the first axis."""
    up_to = UsedCells(axis=1, used_places=tuple(tuple(range(month + 1)) for month in range(MONTHS)))
    return CommonSums(
        sensitivities=(_MOVED,),
        exposures=expose_all_functionals(1),
        readings=(((0, 1), (0, -1)), ((0, 1),)),
        scales=(1, 1),
        cells=((OWN_CELL, _BEFORE), (up_to,)),
        shape=(1, MONTHS),
    )


def _three_means() -> CommonSums:
    """Return how a month's mean is compared with that of the month before. No row is beyond 4 from 0."""
    step = Fraction(1, 20)
    pair = MeanPair(Fraction(1), Fraction(0), step, _MOVED, _MOVED, rows=_ROWS, other_rows=_ROWS)
    return CommonSums(
        sensitivities=(_MOVED, 1),
        exposures=expose_all_functionals(2),
        readings=(((0, 1), (1, 1), (0, 1), (1, 1)),),
        scales=(1,),
        cells=((OWN_CELL, OWN_CELL, _BEFORE, _BEFORE),),
        shape=(1, MONTHS),
        means=(pair,),
    )


def _compare_with_all_rows() -> CommonSums:
    """Return how a month's mean is compared with the mean and half the standard deviation of all rows."""
    deviation = RowDeviation(Fraction(1, 2), Fraction(1), Fraction(1), is_sample=True)
    step, rows = Fraction(1, 20), _ROWS * MONTHS
    pair = MeanPair(Fraction(1), Fraction(0), step, _MOVED, _MOVED, rows=_ROWS, other_rows=rows, deviation=deviation)
    whole = UsedCells(summed_axes=(1,))
    return CommonSums(
        sensitivities=(_MOVED, 1, _MOVED**2),
        exposures=expose_all_functionals(3),
        readings=(((0, 1), (1, 1), (0, 1), (1, 1), (2, 1)),),
        scales=(1,),
        cells=((OWN_CELL, OWN_CELL, whole, whole, whole),),
        shape=(1, MONTHS),
        means=(pair,),
    )


def _compare_with_all_means() -> CommonSums:
    """Return how a month's mean is compared with the mean of the three months' means."""
    pair = MeanPair(
        Fraction(1), Fraction(0), Fraction(1, 20), _MOVED, _MOVED, rows=_ROWS, other_rows=_ROWS, averaged_groups=MONTHS
    )
    whole = UsedCells(summed_axes=(1,))
    return replace(_three_means(), cells=((OWN_CELL, OWN_CELL, whole, whole),), means=(pair,))


def _compare_with_median() -> CommonSums:
    """Return how a month's mean is compared with the median of all rows, of which each is in one of eight bins."""
    quantile = RowQuantile(
        Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(-7, 2), Fraction(1), Fraction(1, 2), _BINS
    )
    rows, places = _ROWS * MONTHS, range(2 + _BINS)
    pair = MeanPair(Fraction(0), Fraction(0), Fraction(1, 20), _MOVED, 1, _ROWS, rows, quantile=quantile)
    return CommonSums(
        sensitivities=(_MOVED, *(1,) * (1 + _BINS)),
        exposures=expose_functional_sets(([0, 1, 2 + one] for one in range(_BINS)), functionals=2 + _BINS),
        readings=(tuple((place, 1) for place in places),),
        scales=(1,),
        cells=((OWN_CELL, OWN_CELL, *(UsedCells(summed_axes=(1,)),) * _BINS),),
        shape=(1, MONTHS),
        means=(pair,),
    )


def _compare_with_all(statistic: Quantile | Deviation) -> CommonSums:
    """Return how a month less a statistic of all three is read, in half steps."""
    return CommonSums(
        sensitivities=(_MOVED,),
        exposures=expose_all_functionals(1),
        readings=(((0, 2), (0, -2)),),
        scales=(1,),
        cells=((OWN_CELL, UsedCells(summed_axes=(1,), statistic=statistic)),),
        shape=(1, MONTHS),
    )


def _list_worlds_of_all(task: DecisionTask) -> Iterator[tuple[Sums, Sums]]:
    """Yield months at all depths of a band below the first one, and the same with the second one moved by one unit."""
    tolerance = next(task.list_literals()).tolerance
    for depths in product(_DEPTHS, repeat=2):
        second, third = (-round(depth * tolerance / 2) for depth in depths)
        yield ((0, second, third),), ((0, second + _MOVED, third),)


def _list_worlds_of_means(task: DecisionTask) -> Iterator[tuple[Sums, Sums]]:
    """Yield sums and rows of the months, and the same with one row more in the second one.

    The differences of means are at all depths of their bands.
    """
    literal, common = next(task.list_literals()), task.common
    assert common is not None
    if len(common.sensitivities) == 2 + _BINS:
        yield from _list_worlds_of_bins()
        return
    if len(common.sensitivities) > 2:
        yield from _list_worlds_of_all_rows(literal)
        return
    if common.means[0] is not None and common.means[0].averaged_groups:
        yield from _list_worlds_of_all_means(literal)
        return
    width = float(common.means[0].step) if common.means[0] is not None else 0.0
    for first, second in product(_DEPTHS, repeat=2):
        means = [-0.7 * _MOVED]
        for depth in (first, second):
            means.append(means[-1] - depth * width * literal.tolerance)
        sums = tuple(round(max(-_MOVED, min(_MOVED, mean)) * _ROWS) for mean in means)
        yield (sums, (_ROWS,) * MONTHS), ((sums[0], sums[1] + _MOVED, sums[2]), (_ROWS, _ROWS + 1, _ROWS))


def _list_worlds_of_all_rows(literal: Cut) -> Iterator[tuple[Sums, Sums]]:
    """Yield sums, rows and squares of the months, and the same with one row more in the second one.

    All rows have the mean 0 and the deviation 2. The means of two months are at all depths of their bands.
    """
    squares = (4 * (MONTHS * _ROWS - 1), 0, 0)
    for depths in product(_DEPTHS, repeat=2):
        second, third = (round((1.0 - depth * literal.tolerance / 20) * _ROWS) for depth in depths)
        sums = (-second - third, second, third)
        yield (
            (sums, (_ROWS,) * MONTHS, squares),
            ((sums[0], second + _MOVED, third), (_ROWS, _ROWS + 1, _ROWS), (squares[0], _MOVED**2, 0)),
        )


def _list_worlds_of_all_means(literal: Cut) -> Iterator[tuple[Sums, Sums]]:
    """Yield sums and rows of the months, and the same with one row more in the second one.

    The mean of the months' means is 0. The means of two months are at all depths of their bands.
    """
    for depths in product(_DEPTHS, repeat=2):
        second, third = (round(-depth * literal.tolerance / 20 * _ROWS) for depth in depths)
        sums = (-second - third, second, third)
        yield (sums, (_ROWS,) * MONTHS), ((sums[0], second + _MOVED, third), (_ROWS, _ROWS + 1, _ROWS))


def _list_worlds_of_bins() -> Iterator[tuple[Sums, Sums]]:
    """Yield sums, rows and bins of the months, and the same with one row more in the second one.

    The median is at the edge between the outer bins, so that the row may move it. Means are near both and between them.
    """
    low = 3 * _ROWS * MONTHS // 8  # rows of the first bin: as few as the median may still be read from
    bins = ((low, 0, 0), *((0, 0, 0),) * (_BINS - 2), (_ROWS * MONTHS - low, 0, 0))
    for second, third in ((0, 0), (2 - _MOVED, -_MOVED), (-_MOVED, 0)):
        sums, rows = (0, second * _ROWS, third * _ROWS), (_ROWS,) * MONTHS
        more = (bins[-1][0], 1, 0)
        yield (
            (sums, rows, *bins),
            ((0, sums[1] + _MOVED, sums[2]), (_ROWS, _ROWS + 1, _ROWS), *bins[:-1], more),
        )


def _list_worlds(task: DecisionTask) -> Iterator[tuple[Sums, Sums]]:
    """Yield sums of the months, and the same with the second one moved by one unit.

    The readings of the second and the third month are at all depths of their bands. Where both kinds are compared these
    are the differences, and the running total of the third month is in the middle of its band.
    """
    literals = {literal.functional: literal for literal in task.list_literals()}
    for depths in product(_DEPTHS, repeat=2):
        if set(literals) == {_RUNNING_TOTAL}:
            second, third = (_at_depth(literals[_RUNNING_TOTAL], depth) for depth in depths)
            months = (0, second, third - second)
        else:
            second, third = (_at_depth(literals[_DIFFERENCE], depth) for depth in depths)
            whole = _at_depth(literals[_RUNNING_TOTAL], 0.5) if _RUNNING_TOTAL in literals else 0
            middle = (whole + second - third) // MONTHS
            months = (middle - second, middle, middle + third)
        yield (months,), ((months[0], months[1] + _MOVED, months[2]),)


def _at_depth(literal: Cut, depth: float) -> int:
    distance = 1 - round(depth * (literal.tolerance + 1))
    return literal.cut + distance if literal.above else literal.cut + 1 - distance


def _make_release_of_months(
    mechanism: Mechanism, calibration: Calibration, months: Sums, noise: Noise, *, later: Calibration | None = None
) -> Release:
    """Return the release of a question's answers, and of those to a later one on the noise that it leaves."""

    def release(samples: int) -> Transcripts:
        many = _repeat(calibration, samples)
        sums = np.tile(np.array(months, dtype=np.int64), samples)
        outcome = mechanism.decide(many, sums, noise=noise)
        answers, claimed = [outcome.passed, *outcome.predicates], outcome.epsilon
        if later is not None:
            question = plan_on_paths(_repeat(later, samples), outcome.paths)
            assert question is not None, "a later question is decided on the cells that an earlier one left"
            after = decide_on_refined_paths(question, sums, noise=noise)
            assert after.fresh is not None
            answers, claimed = [*answers, after.passed, *after.predicates], claimed + after.fresh
        seen = [one.astype(np.int64).reshape(samples, MONTHS) for one in answers]
        return Transcripts(revealed_values=np.hstack(seen), claimed_losses=claimed.reshape(samples, MONTHS).max(axis=1))

    return release


def _repeat(calibration: Calibration, samples: int) -> Calibration:
    """Return the calibration for so many calendars at once."""
    common = calibration.task.common
    assert common is not None
    return replace(calibration, task=replace(calibration.task, common=replace(common, shape=(samples, MONTHS))))
