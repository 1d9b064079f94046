"""The tolerance of one comparison, in integer steps of its functional."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from planner.aggregates.comparison import Comparison, Slack
from planner.catalog.tolerance import BOUNDS_SUFFIX, Amount, StepSize, count_allowed_steps, quote_literal, set_amount
from planner.errors import KeyholeError
from planner.functionals.atoms.collected import FormulaCollector
from planner.functionals.guard_remedy import WORTH, find_next_round
from planner.functionals.row_range import find_bound, find_row_effect
from planner.question.question import Functional, Measure
from planner.values.decimals import convert_to_decimal


def find_tolerance(comparison: Comparison, made: Functional, size: Fraction, collected: FormulaCollector) -> int:
    """Return the tolerance in integer steps. Raise KH304 if none is set."""
    if comparison.fixed_tolerance is not None:
        return floor(comparison.fixed_tolerance / size)
    found = collected.tolerances
    if comparison.slack is Slack.RECORD:
        amount = replace(found, default_tolerance=None).find_amount(comparison.names)
        parts = amount is None or amount.is_percent or amount.refers_to_bounds
        return 0 if amount is None or parts else floor(Fraction(amount.number) / size)
    amount = found.find_amount(comparison.names)
    if amount is None:
        raise KeyholeError(
            "KH304",
            f"keyhole.tolerance says nothing about {comparison.left_text}",
            hint=f"SET keyhole.tolerance = '10%, {collected.accuracy.tolerance}';",
            position=comparison.position,
        )
    exact = _find_allowed_steps(comparison, amount, made, size, collected)
    if amount.is_percent and made.offsets is not None:
        least = f"{amount.number}% of {convert_to_decimal(comparison.threshold)}, the least of the groups' thresholds"
        collected.warnings[f"{comparison.text}: the tolerance is {least}, in every group"] = None
    if 0 < exact < 1:
        what = "one row" if made.measure is not Measure.TOTAL else f"one step of {made.unit_size}"
        collected.warnings[f"{comparison.text}: the tolerance is below {what} and counts as zero"] = None
    return floor(exact)


def _find_allowed_steps(
    comparison: Comparison, amount: Amount, made: Functional, size: Fraction, collected: FormulaCollector
) -> Fraction:
    if comparison.slack is Slack.ROWS and not amount.is_percent and not amount.refers_to_bounds:
        return Fraction(amount.number) / size
    bounds = find_bound(comparison, min_rows=collected.accuracy.min_rows)
    step = StepSize(unit_size=size / (comparison.per_row or 1), rows=made.rows, bounds=bounds)
    hint = _suggest_tolerance(comparison, made, size, bounds, collected)
    try:
        return count_allowed_steps(amount, threshold=comparison.threshold, step=step, hint=hint)
    except KeyholeError as error:
        message = f"{comparison.text}: {error.message}"
        raise KeyholeError(
            error.code, message, detail=error.detail, hint=error.hint, position=comparison.position
        ) from None


def _suggest_tolerance(
    comparison: Comparison, made: Functional, size: Fraction, bounds: Fraction, collected: FormulaCollector
) -> str:
    """Return a hint with the tolerance to set if the threshold is 0.

    A difference gets a tenth of its declared bounds, in groups so large that this is worth a few units' rows. An
    aggregate that is never below 0 gets nearly none, since groups without rows have 0.
    """
    setting, named = collected.accuracy.tolerance, comparison.left_text

    def write_setting(amount: Decimal | str) -> str:
        return f"SET keyhole.tolerance = '{quote_literal(set_amount(setting, named, amount))}';"

    down, up = (
        max((find_row_effect(part)[side] for part in comparison.every_part), default=Fraction(0)) for side in (0, 1)
    )
    if not (down and up and bounds):
        return (
            f"Set an absolute tolerance for it: {write_setting(Decimal('0.5'))}  For what is never below 0, a wider "
            "tolerance would let groups without rows pass; a larger threshold costs less."
        )
    rows = 1 if comparison.per_row is None else made.rows
    wanted = WORTH * made.sensitivity * size / (comparison.per_row or 1)
    larger = ceil(wanted / (bounds * rows / 10) * collected.accuracy.min_rows)
    first = ""
    if larger > collected.accuracy.min_rows:
        first = f"SET keyhole.min_rows = {find_next_round(larger)}; "
    return f"Set the tolerance as a part of the bounds of its sides: {first}{write_setting(f'10{BOUNDS_SUFFIX}')}"
