"""From a ranked value to a functional in integers, and the difference at which keys may be in either order."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import floor

from mechanisms.protocol import Unachievable
from mechanisms.ranking.calibration import find_ranking_tolerance
from mechanisms.ranking.ranking_task import RankingTask
from planner.aggregates.comparison import Comparison, Having
from planner.catalog.catalog import Table
from planner.catalog.key_space import KeySpace
from planner.catalog.tolerance import (
    BOUNDS_SUFFIX,
    Amount,
    StepSize,
    count_allowed_steps,
    parse_tolerances,
    quote_literal,
    set_amount,
)
from planner.errors import KeyholeError
from planner.functionals.cell_readings import read_functional
from planner.functionals.cells import find_cell_reach
from planner.functionals.functional import find_grid, make_functional
from planner.functionals.guard_remedy import find_next_round
from planner.functionals.row_range import find_bound, find_row_range
from planner.question.condition import Condition
from planner.question.question import Accuracy, Functional, Measure, Question, Ranked
from planner.question.unit_groups import count_unit_groups
from planner.rankings.group_differences import read_ranked_cells
from planner.rankings.mean_scores import describe_rows, fit_rows, rank_mean, score_mean
from planner.values.decimals import convert_to_decimal

_SUGGESTED = 100  # of a unit's greatest part, as a tolerance in a hint: it costs a key about a tenth of an epsilon
PRICE = 4
"""The divisor of `epsilon_per_query` that gives the price of a ranking without a set tolerance. The rest is left for
predicates beside it, and a few rankings do not end a budget."""


def make_ranking(
    comparison: Comparison,
    *,
    descending: bool,
    limit: int | None,
    table: Table,
    where: Condition,
    formula: Having,
    accuracy: Accuracy,
    scale: Decimal | None,
    keys: KeySpace,
    puts_nulls_first: bool,
) -> Ranked:
    """Return the ranking of a question's keys by the measure of a comparison with 0.

    The greatest values come first if `descending`.

    Parameters:
        formula: the question's HAVING, whose counts may demand larger groups for a mean.
        scale: the number of which a tolerance in percent is a part; None if the owner declared nothing.
        keys: the groups, from which a value of other groups is read.
        puts_nulls_first: a group without such a value stands first.

    Guarantee: one privacy unit changes the value of one key by at most the functional's sensitivity. A group without
    values counts as 0. If no tolerance is set for this value by an amount or its name, `settle_price` may widen it.
    Proof: docs/proofs/ranking.md.

    Raises KH203, KH204, KH208, and KH304 for a tolerance in percent by name if there is no scale.
    """
    greatest_first = descending is (comparison.operator == ">")
    score = cells = None
    if comparison.cell_sums:
        read, size = read_functional(comparison, table=table, where=where)
        made, cells = read_ranked_cells(read, comparison, keys, puts_missing_first=puts_nulls_first)
    elif comparison.per_row is None and not comparison.divides_by_units:
        made, size = make_functional(comparison, table=table, min_rows=accuracy.min_rows, where=where)
    else:
        made, score = score_mean(
            comparison, highest_first=greatest_first, formula=formula, table=table, where=where, accuracy=accuracy
        )
        size = Fraction(made.unit_size)
    said = parse_tolerances(accuracy.tolerance)
    amount = said.find_amount(comparison.names)
    priced = amount is None or (amount.is_percent and amount is said.default_tolerance)
    in_percent = amount is not None and amount.is_percent and scale is not None
    unsaid = amount is None or (priced and not scale)
    exact = (
        Fraction(0) if unsaid or amount is None else _find_tolerance(comparison, made, size, accuracy, amount, scale)
    )
    ranked = Ranked(
        functional=made,
        descending=greatest_first,
        most_returned=limit,
        tolerance=floor(exact),
        has_both_signs=score is not None or cells is not None or _has_both_signs(made, table, comparison.position),
        tolerance_value=convert_to_decimal(floor(exact) * size),
        percent_base=scale if in_percent else None,
        is_priced=priced,
        cells=cells,
    )
    return ranked if score is None else rank_mean(ranked, score, wanted=exact * size)


def make_ranking_task(question: Question, ranked: Ranked) -> RankingTask:
    """Return the ranking of a question's keys as numbers."""
    keys, parts = question.keys, question.keys.count_values(ranked.partition)
    size = keys.size // parts if parts else 0
    return RankingTask(
        keys=size,
        limit=size if ranked.most_returned is None else min(ranked.most_returned, size),
        descending=ranked.descending,
        sensitivity=ranked.functional.sensitivity,
        tolerance=ranked.tolerance + 1,  # keys that are further apart than the tolerance
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
        partitions=parts,
        offset=ranked.offset,
        allows_any_cut=ranked.may_cut_anywhere,
        moved=None if ranked.cells is None else ranked.cells.moved,
    )


def settle_price(question: Question, *, per_query: float) -> Question:
    """Return the question with the tolerance at which its ranking costs `1 / PRICE` of the limit `per_query`.

    A tolerance that the analyst set for the ranked value stays. A general tolerance in percent stays if it is wider.

    Guarantee: depends on the question and the policy alone, not on remaining balances. The same ranking asked again is
    the same question.
    """
    ranked = question.ranked
    if ranked is None or not (ranked.is_priced or ranked.mean):
        return _add_scale_warning(question)
    task = replace(make_ranking_task(question, ranked), tolerance=1)
    if task.is_known_in_public:
        return _add_scale_warning(replace(question, ranked=replace(ranked, is_priced=False)))
    epsilon = per_query / PRICE / find_cell_reach(question).count_losses(count_unit_groups(question))

    def find_tolerance(made: Functional) -> int:
        try:
            return find_ranking_tolerance(replace(task, sensitivity=made.sensitivity), epsilon=epsilon)
        except Unachievable as refusal:
            raise KeyholeError("KH303", f"the groups cannot be ranked: {refusal.reason}") from None

    if ranked.mean is not None and not question.accuracy.is_min_rows_set:
        ranked = fit_rows(ranked, ranked.mean, find_tolerance)
    if ranked.mean is not None:
        question = replace(question, ranked=ranked, warnings=(*question.warnings, describe_rows(ranked)))
    if not ranked.is_priced:
        return question
    within = find_tolerance(ranked.functional)
    if within <= ranked.tolerance:
        return _add_scale_warning(replace(question, ranked=replace(ranked, is_priced=False)))
    name, slack = ranked.functional.name, convert_to_decimal(within * Fraction(ranked.functional.unit_size))
    told = (
        f"groups within {slack:f} of each other in {name} may stand in either order, as no tolerance was set and "
        f"the price is fixed at a quarter of epsilon_per_query; SET keyhole.tolerance = '{name}=...' sets another"
    )
    settled = replace(ranked, tolerance=within - 1 if ranked.mean else within, tolerance_value=slack, percent_base=None)
    return replace(question, ranked=settled, warnings=(*question.warnings, told))


def _find_tolerance(
    comparison: Comparison,
    made: Functional,
    size: Fraction,
    accuracy: Accuracy,
    amount: Amount,
    scale: Decimal | None,
) -> Fraction:
    if amount.is_percent and not scale:
        raise KeyholeError(
            "KH304",
            f"ORDER BY {comparison.left_text}: a tolerance in percent refers to a threshold, and a ranking has none",
            detail="Its tolerance is how far two groups may be apart and still stand in either order.",
            hint="  or  ".join(_list_settings(comparison, made, size, accuracy)),
            position=comparison.position,
        )
    step = StepSize(unit_size=size, rows=1, bounds=find_bound(comparison, min_rows=accuracy.min_rows))
    return count_allowed_steps(amount, threshold=Fraction(scale or 0), step=step)


def _list_settings(comparison: Comparison, made: Functional, size: Fraction, accuracy: Accuracy) -> Iterator[str]:
    """Yield the settings to use instead: an amount, or a part of the declared bounds' range."""
    wanted = find_next_round(max(1, floor(_SUGGESTED * made.sensitivity * size)))
    for amount in (str(wanted), f"10{BOUNDS_SUFFIX}"):
        text = set_amount(accuracy.tolerance, comparison.left_text, amount)
        yield f"SET keyhole.tolerance = '{quote_literal(text)}';"


def _has_both_signs(made: Functional, table: Table, position: int | None) -> bool:
    """Return True if one unit may raise the values of some keys and lower those of others."""
    if made.measure not in (Measure.TOTAL, Measure.UNIT_SUM):
        return False
    if made.unit_range is not None:
        low, high = made.unit_range
    else:
        ranges = {name: find_grid(table.get_column(name), table, position=position)[1:] for name in made.summed}
        low, high = find_row_range(made.terms, ranges=ranges, table=table)
    return low < 0 < high


def _add_scale_warning(question: Question) -> Question:
    """Return the question with a warning that says to what number its tolerance in percent refers."""
    ranked = question.ranked
    if ranked is None or ranked.percent_base is None:
        return question
    told = f"the ranking's tolerance is a part of {ranked.percent_base:f}, the least band that the owner declared"
    return replace(question, warnings=(*question.warnings, told))
