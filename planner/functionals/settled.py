"""Comparisons that declared bounds settle: `avg(cost) > 60` is false whatever the data if cost is at most 40.

A sum of bounded values is compared. If no row can raise the sum, no group passes a threshold of 0 or more. If every row
with a value lowers it, every group with values lies below 0.

Proof: docs/proofs/joint_loss.md, "Thresholds that bounds settle".
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from math import inf

from mechanisms.formula import FALSE, TRUE, Cut, Formula
from planner.aggregates.comparison import Comparison
from planner.aggregates.row_expression import RequiredValues
from planner.catalog.catalog import Column, Table
from planner.errors import KeyholeError
from planner.functionals.guards import Guarded, GuardedFormula, implies
from planner.functionals.row_range import Range, find_row_range, find_sum_range
from planner.question.condition import Condition
from planner.question.condition_text import write_canonical
from planner.question.question import Functional, Measure, Term
from planner.question.range_inference import narrow_range


def settle(
    comparison: Comparison,
    made: Functional,
    formula: Formula,
    *,
    ranges: Mapping[str, Range],
    table: Table,
    where: Condition,
) -> Formula | None:
    """Return TRUE or FALSE if the declared bounds alone decide a comparison's literals, else None.

    Guarantee: the truth holds in every group, whatever values its rows have. If the comparison is NULL without values,
    the truth may be limited to groups with values. It depends on the question and the policy alone.

    Parameters:
        made: the functional of the comparison, and `formula` its literals.
        ranges: in grid steps, of every column that the functional sums.
        where: the condition of the question's rows.
    """
    if made.measure is not Measure.TOTAL:
        return None
    low, high = find_row_range(made.terms, ranges=ranges, table=table, among=where)
    if made.unit_range is not None:
        low, high = max(low, made.unit_range[0]), min(high, made.unit_range[1])
    least, most = 0 if low == 0 else -inf, 0 if high == 0 else inf
    counted = (
        _find_range_with_value(made, comparison.required_values, ranges, table, where)
        if comparison.required_values
        else None
    )
    if counted is not None:
        low, high = counted
        if made.unit_range is not None:  # a unit's total is clipped: the nearer end is what is left of a row
            low, high = min(low, made.unit_range[1]), max(high, made.unit_range[0])
        least, most = low if low > 0 else least, high if high < 0 else most
    return _evaluate_between(formula, (least, most), furthest=0 if made.offsets is None else made.offsets.largest)


def settle_with_known_values(
    made: Functional,
    formula: Formula,
    known: RequiredValues,
    missing: RequiredValues,
    *,
    ranges: Mapping[str, Range],
    table: Table,
    where: Condition,
) -> Formula | None:
    """Return the truth of a comparison's literals in groups that have `known` values but no `missing` ones, or None.

    For example, `sum(a) / sum(b) >= 2` is false if there is a b above 0 and no a.

    Parameters: as for `settle`.
    """
    sides = {_identify_side(known), _identify_side(missing)}
    column = known.column
    if made.measure is not Measure.TOTAL or column is None or column not in ranges or known.least_rows > 1:
        return None
    if {(term.column, write_canonical(term.condition)) for term in made.terms} - sides:
        return None
    alone = [term for term in made.terms if (term.column, write_canonical(term.condition)) == _identify_side(known)]
    if not alone:
        return None
    box = {column: narrow_range(column, ranges[column], among=(where, known.condition), table=table)}
    low, high = find_sum_range(alone, box, frozenset({column}))
    if made.unit_range is not None:
        low, high = min(low, made.unit_range[1]), max(high, made.unit_range[0])
    group = (low if low >= 0 else -inf, high if high <= 0 else inf)
    return _evaluate_between(formula, group, furthest=0 if made.offsets is None else made.offsets.largest)


def _identify_side(values: RequiredValues) -> tuple[str | None, str]:
    return values.column, write_canonical(values.condition)


def _find_range_with_value(
    made: Functional, values: Sequence[RequiredValues], ranges: Mapping[str, Range], table: Table, where: Condition
) -> Range | None:
    """Return the range that one row with a value adds, if all terms are of one column and condition. Else return None.

    Only their rows may have values: the zeros of an ELSE are values that no term counts.
    """
    alike = {(term.column, write_canonical(term.condition)) for term in made.terms}
    column, condition = made.terms[0].column, made.terms[0].condition
    if len(alike) > 1 or column is None or column not in ranges:
        return None
    if not any(implies(Term(1, one.column, one.condition, 0), RequiredValues(column, condition)) for one in values):
        return None
    among = (where, condition)
    box = {column: narrow_range(column, ranges[column], among=among, table=table)}
    return find_sum_range(made.terms, box, frozenset({column}))


def _evaluate_between(formula: Formula, group: tuple[float, float], *, furthest: int) -> Formula | None:
    """Return the truth of literals on a sum that lies in `group`. A threshold may be `furthest` above its cut."""
    least, most = group

    def decide_literal(cut: Cut) -> bool | None:
        above = True if least > cut.cut + furthest else False if most <= cut.cut else None
        return above if cut.above or above is None else not above

    def every(found: Sequence[bool | None]) -> bool | None:
        return False if False in found else None if None in found else True

    def some(found: Sequence[bool | None]) -> bool | None:
        return True if True in found else None if None in found else False

    truth = formula.fold(decide_literal, every=every, some=some)
    return None if truth is None else TRUE if truth else FALSE


def replace_settled_comparisons(formula: GuardedFormula, *, only_unguarded: bool) -> GuardedFormula:
    """Return the formula with settled comparisons replaced by their truths.

    If `only_unguarded`, a comparison stays if its truth would need a guard in groups without values.
    """

    def replace_by_truth(leaf: Guarded) -> GuardedFormula:
        if leaf.known_truth is None or (
            only_unguarded and leaf.required_values and (leaf.known_truth == TRUE) != leaf.is_complement
        ):
            return leaf
        return replace(leaf, formula=leaf.known_truth)

    return formula.map_leaves(replace_by_truth)


def refuse_undecidable(comparison: Comparison, settled: Formula) -> KeyholeError:
    """Return KH220 for a question whose answer follows from declared bounds."""
    truth = "true" if settled == TRUE else "false"
    groups = "every group with values" if comparison.required_values and settled == TRUE else "every group"
    return KeyholeError(
        "KH220",
        f"{comparison.whole_text or comparison.text} is {truth} for {groups}, whatever the data",
        detail=_explain_bounds(comparison),
        hint=_suggest_middle(comparison),
        position=comparison.position,
    )


def warn_of_settled_comparison(comparison: Comparison, settled: Formula) -> str:
    """Return the warning for a comparison whose truth declared bounds settle inside a longer formula."""
    truth = "true" if settled == TRUE else "false"
    groups = "every group with values" if comparison.required_values and settled == TRUE else "every group"
    return (
        f"{comparison.whole_text or comparison.text} is {truth} for {groups}: declared bounds decide it, not the data"
    )


def _explain_bounds(comparison: Comparison) -> str:
    columns = {part.column.name: part.column for part in comparison.summands if part.column is not None and part.power}
    bounded = [one for one in columns.values() if one.bounds is not None]
    if not bounded:
        return "Every row moves the two sides apart in one direction only. Nothing is read or spent."
    said = " and ".join(f"{one.name} from {_find_bounds(one)[0]:f} to {_find_bounds(one)[1]:f}" for one in bounded)
    return f"The owner declared bounds: {said}. A value outside counts as the bound. Nothing is read or spent."


def _suggest_middle(comparison: Comparison) -> str:
    """Return a hint that compares a mean of one column with a number in the middle of its bounds."""
    column = next((part.column for part in comparison.summands if part.column is not None and part.power), None)
    if column is None or column.bounds is None or not comparison.left_text.startswith(f"avg({column.name})"):
        return "Correct the threshold, or leave the comparison out."
    low, high = _find_bounds(column)
    middle = (low + high) / 2
    whole = middle.to_integral_value()
    return f"Instead you can ask: {comparison.left_text} > {whole if low < whole < high else middle:f}"


def _find_bounds(column: Column) -> tuple[Decimal, Decimal]:
    assert column.bounds is not None
    return Decimal(column.bounds[0]).normalize(), Decimal(column.bounds[1]).normalize()
