"""Comparisons with other groups as functionals that are read off sums of several cells, and their price."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice, product
from math import gcd, prod

from mechanisms.keyhole.cell_statistics import may_lie_between_cells
from mechanisms.keyhole.taken_cells import MOST_WEIGHT
from mechanisms.protocol import CommonSums, UsedCells
from planner.aggregates.comparison import CellSum, Comparison
from planner.catalog.catalog import Table
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.functionals.functional import find_common_step, make_functional
from planner.functionals.functional_identity import identify_functional
from planner.functionals.per_key_offsets import LIMIT
from planner.functionals.sensitivity import find_sensitivity_of_sums
from planner.question.condition import Condition
from planner.question.key_cells import OWN_GROUP_ALONE
from planner.question.question import CellRead, Functional, Measure, Question
from planner.values.decimals import convert_to_decimal

_MOST_KINDS = 1 << 12  # of groups that are looked through: of more, the mechanism refuses the calendars

GROUPS_COUNTED = "windows run over every listed group: one without rows counts as 0, where PostgreSQL leaves it out"
"""The warning of a comparison with other groups."""
SUMS_COUNTED = "a sum of other groups over no values counts as 0, where PostgreSQL has NULL"
"""The warning of a comparison with a sum of other groups."""


def read_functional(comparison: Comparison, *, table: Table, where: Condition) -> tuple[Functional, Fraction]:
    """Return the functional of a comparison with `cell_sums`, and the worth of one of its integer steps.

    Guarantee: in exact integers it is the comparison's sum, in every group that has all cells. With a statistic that
    may lie between them, it is counted in half steps, and the comparison's number is a whole step.
    Proof: docs/proofs/cell_readings.md.

    Raise KH203 to KH208.
    """
    made = [sum_cells(one, comparison, table=table, where=where) for one in comparison.cell_sums]
    worth = [size * one.times for (_, size), one in zip(made, comparison.cell_sums, strict=True)]
    constants = [one.times * (one.cells.default or 0) for one in comparison.cell_sums]
    between = any(may_lie_between_cells(one.cells.statistic) for one in comparison.cell_sums)
    whole = (*worth, *constants, *((comparison.right_value,) if between else ()))
    step = find_common_step(abs(one) for one in whole if one) / (2 if between else 1)
    reads = tuple(
        CellRead(summed, one.cells, int(each / step), None if one.cells.default is None else int(constant / step))
        for (summed, _), one, each, constant in zip(made, comparison.cell_sums, worth, constants, strict=True)
    )
    own = sum(abs(one.factor) * one.summed.sensitivity for one in reads if one.cells == OWN_GROUP_ALONE)
    largest = sum(abs(one.empty_value or 0) for one in reads)
    if max(weight for _, weight in list_steps(reads)) > MOST_WEIGHT or largest >= LIMIT:
        raise KeyholeError(
            "KH208",
            f"{comparison.left} has coefficients or grids with too many digits",
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


def list_steps(reads: Sequence[CellRead]) -> list[tuple[int, int]]:
    """Return the step in which each kind of group counts a reading, and the sum of the reading's factors in it.

    A mean over five days counts in fifths where it has five days, and in sevenths elsewhere.
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


def sum_cells(one: CellSum, comparison: Comparison, *, table: Table, where: Condition) -> tuple[Functional, Fraction]:
    """Return the functional of a sum of one group, and the worth of one of its steps. Raise KH203 to KH208."""
    plain = Comparison(
        text=one.text,
        left_text=one.text,
        names=(one.text,),
        measure=one.measure,
        parts=one.parts,
        operator=">",
        right_value=Fraction(0),
        threshold=Fraction(0),
        origin=Fraction(0),
        per_row=None,
        values=(),
        slack=comparison.slack,
        position=comparison.position,
    )
    return make_functional(plain, table=table, min_rows=1, where=where)


def reads_cells(question: Question) -> bool:
    """Return True if a functional of the question is read off other groups."""
    return any(one.cell_reads for one in question.functionals)


def list_cell_sums(question: Question) -> tuple[tuple[Functional, ...], CommonSums]:
    """Return the sums that a question's functionals are read off, each group having one noisy value of each, and how.

    Guarantee: every functional is the combination of sums that its reading says, in exact integers. The sums'
    sensitivities and exposures are those of one privacy unit in one group.

    Parameters:
        question: minimised, as in a plan; one functional at least `reads_cells`.
    """
    sums: list[Functional] = []
    readings, cells = list[tuple[tuple[int, int], ...]](), list[tuple[UsedCells, ...]]()
    for one in question.functionals:
        reads = one.cell_reads or (CellRead(one, OWN_GROUP_ALONE, 1),)
        readings.append(tuple((_place(sums, read.summed), read.factor) for read in reads))
        cells.append(tuple(_axes(read, question.keys) for read in reads))
    known = tuple(sums)
    common = CommonSums(
        sensitivities=tuple(one.sensitivity for one in known),
        exposures=find_sensitivity_of_sums(question, known).find_exposures(),
        readings=tuple(readings),
        scales=(1,) * len(readings),
        cells=tuple(cells),
        shape=question.keys.shape or (1,),
        means=tuple(one.pair for one in question.functionals) if any(one.pair for one in question.functionals) else (),
    )
    return known, common


def _place(sums: list[Functional], wanted: Functional) -> int:
    """Return the place of a sum: the next one if it is new."""
    identity = identify_functional(wanted)
    for place, one in enumerate(sums):
        if identify_functional(one) == identity:
            return place
    sums.append(wanted)
    return len(sums) - 1


def _axes(read: CellRead, keys: KeySpace) -> UsedCells:
    names: Sequence[str] = keys.names
    cells = read.cells
    axis = None if cells.key is None else names.index(cells.key)
    whole = tuple(sorted(map(names.index, cells.summed_keys)))
    return UsedCells(
        whole=whole,
        axis=axis,
        used_places=cells.used_places,
        most_places=cells.most_places,
        empty_value=read.empty_value,
        statistic=cells.statistic,
        fails=cells.fails,
    )
