"""Comparisons with other groups as functionals that are read off sums of several cells, and their price."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product
from math import gcd, lcm, prod

from mechanisms.keyhole.cell_statistics import may_lie_between_cells
from mechanisms.keyhole.taken_cells import MOST_WEIGHT
from mechanisms.protocol import CommonSums, MeanPair, Quantile, UsedCells
from planner.aggregates.comparison import CellSum, Comparison
from planner.catalog.catalog import Table
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.functionals.functional import find_common_step, make_functional
from planner.functionals.functional_identity import identify_functional
from planner.functionals.per_key_offsets import LIMIT
from planner.functionals.sensitivity import find_exposures_of_bins, find_sensitivity_of_sums
from planner.question.condition import Condition
from planner.question.key_cells import OWN_GROUP_ALONE
from planner.question.question import CellRead, Functional, Measure, Question
from planner.question.unit_groups import count_split_groups
from planner.values.decimals import convert_to_decimal

_MOST_KINDS = 1 << 12  # of groups that are looked through: of more, the mechanism refuses the calendars

GROUPS_COUNTED = "windows run over every listed group: one without rows counts as 0, where PostgreSQL leaves it out"
"""The warning of a comparison with other groups."""
SUMS_COUNTED = "a sum over no values counts as 0, where PostgreSQL has NULL"
"""The warning of a comparison with a sum of other groups."""


def read_functional(comparison: Comparison, *, table: Table, where: Condition) -> tuple[Functional, Fraction]:
    """Return the functional of a comparison with `cell_sums`, and the size of one of its integer steps.

    Guarantee: in exact integers the functional is the comparison's sum, in every group for which all other groups
    exist. A statistic may lie between two integers. The functional is then counted in half steps, and the comparison's
    number is a whole step. Several such quantiles are whole numbers of steps. Proof: docs/proofs/cell_readings.md.

    Raise KH203 to KH208.
    """
    made = [sum_cells(one, comparison, table=table, where=where) for one in comparison.cell_sums]
    if comparison.reads_no_sum:
        return _read_missing(comparison, [summed for summed, _ in made]), Fraction(1)
    worth = [size * one.factor for (_, size), one in zip(made, comparison.cell_sums, strict=True)]
    constants = [one.factor * (one.cells.empty_value or 0) for one in comparison.cell_sums]
    between = any(may_lie_between_cells(one.cells.statistic) for one in comparison.cell_sums)
    whole = (*worth, *constants, *((comparison.right_value,) if between else ()))
    step = find_common_step(abs(one) for one in whole if one) / (2 * _find_parts(comparison) if between else 1)
    reads = tuple(
        CellRead(summed, one.cells, int(each / step), None if one.cells.empty_value is None else int(constant / step))
        for (summed, _), one, each, constant in zip(made, comparison.cell_sums, worth, constants, strict=True)
    )
    own = bound_own_change(reads)
    largest = sum(abs(one.empty_value or 0) for one in reads)
    if max(weight for _, weight in list_steps(reads)) > MOST_WEIGHT or largest >= LIMIT:
        raise KeyholeError(
            "KH208",
            f"{comparison.left_text} has coefficients or grids with too many digits",
            hint="Round the number that it is multiplied by, and the grids of its columns, to a few digits.",
            position=comparison.position,
        )
    read = Functional(
        name=comparison.left_text,
        measure=Measure.TOTAL,
        terms=(),
        sensitivity=max(1, own),
        unit_range=None,
        unit_size=convert_to_decimal(step),
        rows=1,
        cell_reads=reads,
    )
    return read, step


def _find_parts(comparison: Comparison) -> int:
    """Return in how many parts values between two cells lie, if a comparison has several, whose sum must be exact."""
    shares = [
        one.cells.statistic.share
        for one in comparison.cell_sums
        if isinstance(one.cells.statistic, Quantile) and one.cells.statistic.interpolated
    ]
    return lcm(*(share.denominator for share in shares)) if len(shares) > 1 else 1


def _read_missing(comparison: Comparison, made: Sequence[Functional]) -> Functional:
    """Return the functional that is 1 for groups without the cells that it names, and else 0. It reads no sum."""
    return Functional(
        name=comparison.left_text,
        measure=Measure.TOTAL,
        terms=(),
        sensitivity=1,
        unit_range=None,
        unit_size=convert_to_decimal(Fraction(1)),
        rows=1,
        cell_reads=tuple(
            CellRead(summed, one.cells, 0, 1) for summed, one in zip(made, comparison.cell_sums, strict=True)
        ),
    )


def list_steps(reads: Sequence[CellRead]) -> list[tuple[int, int]]:
    """Return the step in which each kind of group counts a reading, and the sum of the reading's factors in that step.

    A mean over five days counts in fifths where five days exist, and in sevenths where seven do.
    """
    calendars = {one.cells.key: len(one.cells.used_places) for one in reads if one.cells.key is not None}
    kinds = [
        set(zip(*(one.cells.list_weights() if one.cells.key == key else (1,) * size for one in reads), strict=True))
        for key, size in calendars.items()
    ]
    found: set[tuple[int, int]] = set()
    for weights in islice(product(*kinds), _MOST_KINDS):
        factors = [one.factor * prod(by_key) for one, *by_key in zip(reads, *weights, strict=True)]
        between = any(may_lie_between_cells(one.cells.statistic) for one in reads)
        step = 1 if between else gcd(*factors) or 1
        found.add((step, sum(abs(one) for one in factors) // step))
    return sorted(found)


def bound_own_change(reads: Sequence[CellRead]) -> int:
    """Return a bound on how much one privacy unit's rows in a group can change that group's own value.

    Factors of the same sum are added first, with their signs. For a group minus a tenth of a total, the factor is nine
    tenths. The bound is attained if a single sum is read, and no statistic. A statistic changes by as much as one
    group does, or not at all.
    """
    names = [identify_functional(one.summed) for one in reads]
    sizes = {name: one.summed.sensitivity for name, one in zip(names, reads, strict=True)}
    calendars = {one.cells.key: len(one.cells.used_places) for one in reads if one.cells.key is not None}
    kinds = [
        {
            tuple(one.cells.count_own_uses(place) if one.cells.key == key else 1 for one in reads)
            for place in range(size)
            if all(one.cells.key != key or one.cells.used_places[place] or one.empty_value is not None for one in reads)
        }
        for key, size in calendars.items()
    ]
    largest = 0
    for uses in islice(product(*kinds), _MOST_KINDS):
        counts = [prod(by_key) for _, *by_key in zip(reads, *uses, strict=True)]
        ways = ((0, each) if one.cells.statistic else (each,) for one, each in zip(reads, counts, strict=True))
        for chosen in product(*ways):
            moved = dict.fromkeys(names, 0)
            for name, one, times in zip(names, reads, chosen, strict=True):
                moved[name] += one.factor * times
            largest = max(largest, sum(abs(times) * sizes[name] for name, times in moved.items()))
    return largest


def sum_cells(one: CellSum, comparison: Comparison, *, table: Table, where: Condition) -> tuple[Functional, Fraction]:
    """Return the functional of a sum that is read from other groups, and the worth of one of its steps.

    It is bounded as a sum of one group. Raise KH203 to KH208.
    """
    plain = Comparison(
        text=one.text,
        left_text=one.text,
        names=(one.text,),
        measure=Measure.UNITS if one.measure is Measure.UNIT_PARTS else one.measure,
        summands=one.summands,
        operator=">",
        right_value=Fraction(0),
        threshold=Fraction(0),
        origin=Fraction(0),
        per_row=None,
        required_values=(),
        slack=comparison.slack,
        position=comparison.position,
    )
    made, worth = make_functional(plain, table=table, min_rows=1, where=where)
    if one.measure is not Measure.UNIT_PARTS:
        return made, worth
    parts = lcm(*range(1, count_split_groups(table, one.cells.summed_keys) + 1))
    divided = replace(
        made,
        measure=Measure.UNIT_PARTS,
        sensitivity=parts,
        unit_range=None,
        unit_size=convert_to_decimal(Fraction(1, parts)),
        split_keys=one.cells.summed_keys,
    )
    return divided, Fraction(1, parts)


def reads_cells(question: Question) -> bool:
    """Return True if a functional of the question is computed from sums of several groups."""
    return any(one.cell_reads for one in question.functionals)


def list_cell_sums(question: Question) -> tuple[tuple[Functional, ...], CommonSums]:
    """Return the sums from which a question's functionals are computed, and the way each functional reads them.

    Each group has one noisy value of each sum.

    Guarantee: every functional is the combination of sums that its reading says, in exact integers. The sums'
    sensitivities and exposures are those of one privacy unit in one group.

    Parameters:
        question: minimised, as in a plan; one functional at least `reads_cells`.
    """
    known, common = read_sums(question.functionals, question.keys)
    pairs = tuple(one.pair for one in question.functionals)
    bins = {tuple(place for place, _ in reading[2:]) for reading, pair in _zip_quantiles(common, pairs)}
    if len(bins) > 1:
        raise KeyholeError(
            "KH204",
            "quantiles of different rows are compared in one question",
            detail="Each counts rows in bins of its own.",
            hint="Ask about one of them at a time.",
        )
    exposures = (
        find_exposures_of_bins(question, known, next(iter(bins)))
        if bins
        else find_sensitivity_of_sums(question, known).find_exposures()
    )
    return known, replace(common, exposures=exposures, means=pairs if any(pairs) else ())


def _zip_quantiles(
    common: CommonSums, pairs: Sequence[MeanPair | None]
) -> list[tuple[tuple[tuple[int, int], ...], MeanPair]]:
    """Return the readings with a quantile of rows."""
    return [
        (reading, pair)
        for reading, pair in zip(common.readings, pairs, strict=True)
        if pair is not None and pair.quantile is not None
    ]


def read_sums(functionals: Sequence[Functional], keys: KeySpace) -> tuple[tuple[Functional, ...], CommonSums]:
    """Return the sums from which functionals are computed, with the readings of each.

    A unit is assumed to change all sums at once.
    """
    sums, places = dict[str, Functional](), dict[str, int]()
    readings, cells = list[tuple[tuple[int, int], ...]](), list[tuple[UsedCells, ...]]()
    for one in functionals:
        reads = one.cell_reads or (CellRead(one, OWN_GROUP_ALONE, 1),)
        readings.append(tuple((_find_or_add_sum(sums, places, read.summed), read.factor) for read in reads))
        cells.append(tuple(_axes(read, keys) for read in reads))
    known = tuple(sums.values())
    common = CommonSums(
        sensitivities=tuple(one.sensitivity for one in known),
        exposures=((Fraction(1),) * len(known),),
        readings=tuple(readings),
        scales=(1,) * len(readings),
        cells=tuple(cells),
        shape=keys.shape or (1,),
    )
    return known, common


def _find_or_add_sum(sums: dict[str, Functional], places: dict[str, int], wanted: Functional) -> int:
    """Return the place of a sum: the next one if it is new."""
    identity = identify_functional(wanted)
    sums.setdefault(identity, wanted)
    return places.setdefault(identity, len(sums) - 1)


def _axes(read: CellRead, keys: KeySpace) -> UsedCells:
    names: Sequence[str] = keys.names
    cells = read.cells
    axis = None if cells.key is None else names.index(cells.key)
    whole = tuple(sorted(map(names.index, cells.summed_keys)))
    return UsedCells(
        summed_axes=whole,
        axis=axis,
        used_places=cells.used_places,
        most_places=cells.most_places,
        empty_value=read.empty_value,
        statistic=cells.statistic,
        false_without_value=cells.false_without_value,
    )
