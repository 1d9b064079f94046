"""From what keys are ranked by to a functional in integers, and how near keys may be to stand in either order."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from math import floor

from planner.aggregates.comparison import Comparison
from planner.catalog.model import Table
from planner.catalog.tolerance import OF_BOUNDS, Amount, Step, allowed_steps, quote_literal, tolerances, with_amount
from planner.errors import KeyholeError
from planner.functionals.functional import functional, grid
from planner.functionals.guard_remedy import next_round
from planner.functionals.reach import within_bounds
from planner.functionals.row_range import row_range
from planner.question.condition import Condition
from planner.question.model import Accuracy, Functional, Measure, Ranked
from planner.values.decimals import decimal

_SUGGESTED = 100  # of a unit's greatest part, as a tolerance in a hint: it costs a key about a tenth of an epsilon


def rank_by(
    comparison: Comparison,
    *,
    descending: bool,
    limit: int | None,
    table: Table,
    where: Condition,
    accuracy: Accuracy,
    scale: Decimal | None,
) -> Ranked:
    """How a question ranks its keys by what a comparison with 0 is of, the greatest first if `descending`.

    Parameters:
        scale: what a tolerance in percent is one of; None where the owner declared nothing.

    Guarantee: one privacy unit changes the value of one key by at most the functional's sensitivity. A group without
    values counts as 0. Proof: docs/proofs/ranking.md.

    Raises KH203, KH204, KH208, and KH304 for a tolerance in percent where there is no scale.
    """
    made, size = functional(comparison, table=table, min_rows=accuracy.min_rows, where=where)
    amount = tolerances(accuracy.tolerance).amount(comparison.names)
    in_percent = amount is not None and amount.percent and scale is not None
    steps = floor(_tolerance(comparison, made, size, accuracy, amount, scale))
    return Ranked(
        functional=made,
        descending=descending is (comparison.operator == ">"),
        limit=limit,
        tolerance=steps,
        signed=_moves_both_ways(made, table, comparison.position),
        slack=decimal(steps * size),
        scale=scale if in_percent else None,
    )


def _tolerance(
    comparison: Comparison,
    made: Functional,
    size: Fraction,
    accuracy: Accuracy,
    amount: Amount | None,
    scale: Decimal | None,
) -> Fraction:
    if amount is None or (amount.percent and not scale):
        percent = "a tolerance in percent is one of a threshold, and a ranking has none"
        raise KeyholeError(
            "KH304",
            f"ORDER BY {comparison.left}: {'keyhole.tolerance says nothing about it' if amount is None else percent}",
            detail="Its tolerance is how far two groups may be apart and still stand in either order.",
            hint="  or  ".join(_settings(comparison, made, size, accuracy)),
            position=comparison.position,
        )
    step = Step(unit_size=size, rows=1, bounds=within_bounds(comparison, min_rows=accuracy.min_rows))
    return allowed_steps(amount, threshold=Fraction(scale or 0), step=step)


def _settings(comparison: Comparison, made: Functional, size: Fraction, accuracy: Accuracy) -> Iterator[str]:
    """What to set instead: an amount, or a part of what the declared bounds allow."""
    wanted = next_round(max(1, floor(_SUGGESTED * made.sensitivity * size)))
    for amount in (str(wanted), f"10{OF_BOUNDS}"):
        text = with_amount(accuracy.tolerance, comparison.left, amount)
        yield f"SET keyhole.tolerance = '{quote_literal(text)}';"


def _moves_both_ways(made: Functional, table: Table, position: int | None) -> bool:
    """Whether one unit may raise the values of some keys and lower those of others."""
    if made.measure is not Measure.TOTAL:
        return False
    if made.unit_range is not None:
        low, high = made.unit_range
    else:
        ranges = {name: grid(table.column(name), table, position=position)[1:] for name in made.summed}
        low, high = row_range(made.terms, ranges=ranges, table=table)
    return low < 0 < high
