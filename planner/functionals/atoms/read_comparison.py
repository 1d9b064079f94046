"""Reader of one comparison: it returns the literals of its functional, and the values without which SQL gives NULL."""

from dataclasses import replace
from fractions import Fraction

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, list_literals
from planner.aggregates.comparison import Comparison
from planner.aggregates.key_numbers import KeyNumbers
from planner.errors import KeyholeError
from planner.functionals.atoms.collected import FormulaCollector
from planner.functionals.atoms.find_tolerance import find_tolerance
from planner.functionals.atoms.group_means import read_group_means
from planner.functionals.atoms.group_ratios import read_group_ratio
from planner.functionals.cell_readings import GROUPS_COUNTED, SUMS_COUNTED, list_steps, read_functional
from planner.functionals.functional import find_grid, make_functional, make_literals
from planner.functionals.functional_identity import identify_functional
from planner.functionals.guard_remedy import WORTH, Remedy, find_remedy
from planner.functionals.guards import Absence, ComparisonPlace, Guarded
from planner.functionals.mean_bands import MeanBands
from planner.functionals.per_key_offsets import LIMIT, make_offsets
from planner.functionals.row_range import find_row_range, find_row_range_without, is_never_null
from planner.functionals.settled import settle, settle_with_known_values, warn_of_settled_comparison
from planner.question.condition import ALWAYS
from planner.question.condition_text import write_canonical
from planner.question.question import Functional, Measure
from planner.values.decimals import convert_to_decimal


def read_comparison(comparison: Comparison, collected: FormulaCollector) -> Guarded:
    """Return a comparison as literals of its functional, with the values without which the comparison is NULL.

    Raise KH208 for a threshold that is not exact, KH304 without a tolerance.
    """
    source = ComparisonPlace.from_comparison(comparison)
    if comparison.cell_sums or comparison.other_mean is not None:
        return _read_cells(comparison, collected)
    made, size = make_functional(
        comparison, table=collected.table, min_rows=collected.find_group_rows(comparison), where=collected.where
    )
    at = comparison.right_value / size
    if comparison.key_thresholds is not None:
        if not comparison.key_thresholds.numbers:
            return Guarded(FALSE, (), comparison.text, comparison.position)
        taken, at = make_offsets(
            comparison.key_thresholds,
            comparison.operator,
            size=size,
            left=comparison.left_text,
            position=comparison.position,
        )
        made, comparison = replace(made, offsets=taken), _set_own_thresholds(comparison, comparison.key_thresholds)
    text = comparison.text
    values = _find_absences(comparison, made, at, collected)
    constant = _settle_count(made, make_literals(0, comparison.operator, at, tolerance=0))
    if constant is not None:
        collected.warnings[f"{text} is {'true' if constant == TRUE else 'false'} for every group"] = None
        remedied = _find_remedy(comparison, collected)
        return Guarded(constant, values, text, comparison.position, remedy=remedied, source=source)
    terms = sorted((t.coefficient, t.column or "", write_canonical(t.condition), t.power) for t in made.terms)
    taken_off = made.offsets and (made.offsets.key, made.offsets.steps)
    off = (made.off_each_unit, *(() if made.off_condition is None else (write_canonical(made.off_condition),)))
    meaning = (made.measure, made.unit_size * made.rows, made.origin, taken_off, off, *terms)
    settled = _settle(comparison, made, at, collected)
    try:
        tolerance = find_tolerance(comparison, made, size, collected)
    except KeyholeError:
        if settled is None:
            raise
        return Guarded(settled, values, text, comparison.position, known_truth=settled, source=source)
    index = collected.add_functional(made, meaning=meaning)
    formula = make_literals(index, comparison.operator, at, tolerance=tolerance)
    largest = made.offsets.largest if made.offsets else 0
    if any(abs(cut.cut) + largest + cut.tolerance >= LIMIT for cut in list_literals(formula)):
        raise KeyholeError(
            "KH208",
            f"the threshold of {text} is out of range",
            hint="Compare with a number nearer to 0, or set a smaller keyhole.tolerance.",
            position=comparison.position,
        )
    if isinstance(formula, AllOf | AnyOf) and not formula.children:
        step = f"whole steps of {made.unit_size}"
        collected.warnings[f"{text}: {comparison.left_text} comes in {step} and never equals the threshold"] = None
    else:
        collected.comparisons.setdefault(text, (comparison, index, size, formula))
    shown = comparison.whole_text or text
    # the tolerance grows with the rows that it is meant for
    wanted = Fraction(WORTH * made.sensitivity * made.rows, tolerance) if comparison.per_row and tolerance else None
    remedied = _find_remedy(comparison, collected, mean_rows=wanted or Fraction(0))
    return Guarded(formula, values, shown, comparison.position, remedy=remedied, known_truth=settled, source=source)


def _read_cells(comparison: Comparison, collected: FormulaCollector) -> Guarded:
    """Read a comparison with other groups as literals of its functional. Raise KH203 to KH208, KH304.

    It is NULL for groups that lack a neighbour alone, for which its literals are false.
    """
    if comparison.other_mean is not None:
        bands = MeanBands(collected.table, collected.where, collected.accuracy, collected.tolerances)
        read = read_group_ratio if comparison.compares_ratios else read_group_means
        made, size = read(comparison, bands)
        comparison = replace(comparison, right_value=Fraction(0), threshold=Fraction(0))
    else:
        made, size = read_functional(comparison, table=collected.table, where=collected.where)
    at = comparison.right_value / size
    tolerance = find_tolerance(comparison, made, size, collected)
    # for groups that lack a neighbour, literals of both directions are false at once, as of no single value
    direction = comparison.operator.rstrip("=") if comparison.may_lack_groups else ""
    meaning = (identify_functional(made), made.unit_size, direction)
    index = collected.add_functional(made, meaning=meaning)
    formula = make_literals(index, comparison.operator, at, tolerance=tolerance)
    least = min(step for step, _ in list_steps(made.cell_reads))
    if any((abs(cut.cut) + cut.tolerance) // least >= LIMIT for cut in list_literals(formula)):
        raise KeyholeError(
            "KH208",
            f"the threshold of {comparison.text} is out of range",
            hint="Compare with a number nearer to 0, or set a smaller keyhole.tolerance.",
            position=comparison.position,
        )
    collected.comparisons.setdefault(comparison.text, (comparison, index, size, formula))
    collected.warn(GROUPS_COUNTED)
    if any(one.measure is Measure.TOTAL for one in comparison.cell_sums):
        collected.warn(SUMS_COUNTED)
    return Guarded(
        formula, (), comparison.text, comparison.position, source=ComparisonPlace.from_comparison(comparison)
    )


def _settle(comparison: Comparison, made: Functional, at: Fraction, collected: FormulaCollector) -> Formula | None:
    """Return the truth of a comparison if declared bounds decide it, else None.

    Warn, as it may be part of a formula.
    """
    table, where = collected.table, collected.where
    ranges = {name: find_grid(table.get_column(name), table, position=comparison.position)[1:] for name in made.summed}
    typed = make_literals(0, comparison.operator, at, tolerance=0)
    if comparison.unit_deduction:
        return None
    if comparison.fixed_tolerance is not None or not any(True for _ in list_literals(typed)):
        return None  # the centres of a variance are settled where they are chosen, and hold up to their tolerance only
    settled = settle(comparison, made, typed, ranges=ranges, table=table, where=where)
    if settled is not None:
        collected.settled[comparison.whole_text or comparison.text] = (comparison, settled)
        collected.warn(warn_of_settled_comparison(comparison, settled))
    return settled


def _find_remedy(comparison: Comparison, collected: FormulaCollector, *, mean_rows: Fraction = Fraction(0)) -> Remedy:
    return find_remedy(
        comparison,
        table=collected.table,
        accuracy=collected.accuracy,
        tolerances=collected.tolerances,
        mean_rows=mean_rows,
    )


def _set_own_thresholds(comparison: Comparison, own: KeyNumbers) -> Comparison:
    """Return the comparison with a threshold for each group.

    A percentage tolerance is one of the least absolute threshold.
    """
    least, most = min(own.known_numbers), max(own.known_numbers)
    shown = (
        f"{convert_to_decimal(least)} to {convert_to_decimal(most)}" if least < most else f"{convert_to_decimal(least)}"
    )
    return replace(
        comparison,
        text=f"{comparison.text} ({shown})",
        right_value=least,
        threshold=min(map(abs, own.known_numbers)),
    )


def _find_absences(
    comparison: Comparison, made: Functional, at: Fraction, collected: FormulaCollector
) -> tuple[Absence, ...]:
    """Return the ranges of the sum in groups that lack a value which the comparison needs."""
    table, where = collected.table, collected.where
    ranges = {name: find_grid(table.get_column(name), table, position=comparison.position)[1:] for name in made.summed}
    found: list[Absence] = []
    for values in comparison.required_values:
        low, high = find_row_range_without(
            made.terms, column=values.column, condition=values.condition, ranges=ranges, table=table, among=where
        )
        if values.least_rows > 1:  # with fewer values than needed there may still be a row that counts
            least, most = find_row_range(made.terms, ranges=ranges, table=table, among=where)
            low, high = min(low, least), max(high, most)
        are_units = write_canonical(values.condition) == write_canonical(made.off_condition or ALWAYS)
        if values.column is not None or not are_units:  # a unit may have rows, and none of them a value
            low, high = min(low, -made.off_each_unit), max(high, -made.off_each_unit)
        always = values.column is not None and is_never_null(table.get_column(values.column), table)
        found.append(Absence(values, (low, high), is_in_all_rows=always))
    if len(found) != 2 or made.off_each_unit:
        return tuple(found)
    typed = make_literals(0, comparison.operator, at, tolerance=0)
    return tuple(
        replace(absence, fails_beside=(other.required_values,))
        if settle_with_known_values(
            made, typed, other.required_values, absence.required_values, ranges=ranges, table=table, where=where
        )
        == FALSE
        else absence
        for absence, other in (found, reversed(found))
    )


def _settle_count(made: Functional, formula: Formula) -> Formula | None:
    """Return TRUE or FALSE if a comparison of a count has the same truth for every count, else None."""
    largest = made.offsets.largest if made.offsets else 0
    counts = made.measure not in (Measure.TOTAL, Measure.UNIT_SUM)
    if not counts or not isinstance(formula, Cut) or formula.cut + largest >= 0:
        return None
    return TRUE if formula.above else FALSE
