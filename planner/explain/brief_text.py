"""A plan in about ten lines, which EXPLAIN prints: the question, its error rates, its price, and its bounding.

Depends on public inputs alone. EXPLAIN VERBOSE has the details.
"""

from collections.abc import Iterator

from mechanisms.formula import TRUE
from planner.catalog.catalog import Table
from planner.explain.balance_lines import write_brief_balance_lines
from planner.explain.balances import QuestionBalance
from planner.explain.guarantee import (
    DENIABLE,
    list_predicate_texts,
    write_cut_rows,
    write_guarantee,
    write_promised_rates,
)
from planner.explain.literal_labels import letter_literals, spell_formula, spell_literals
from planner.explain.literal_table import describe_clipping, shorten_formula
from planner.explain.ranking import is_ranking_only, write_ranking
from planner.explain.render import write_clipped_values, write_heading
from planner.explain.wrong_groups import count_wrong_groups, round_up
from planner.functionals.unit_rows import describe_unit_rows
from planner.question.plan import Plan

MOST_TOLERANCES = 4  # of one line that people read at once; the others are in EXPLAIN VERBOSE
MOST_WARNINGS = 4  # as many lines as the rest of the plan leaves room for; the others are in EXPLAIN VERBOSE
VERBOSE_HINT = "  More: EXPLAIN VERBOSE, or keyhole explain --verbose"


def explain_briefly(plan: Plan, *, left: QuestionBalance | None, rules: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a plan as the ten or so lines of EXPLAIN, without VERBOSE.

    Guarantee: a function of plan and balances; nothing in it depends on data, and nothing is spent.

    Parameters:
        left: the balances of the question's keys, None if there is no ledger.
        rules: the names of the rules that have rewritten the statement.
    """
    return tuple(_write_lines(plan, left, rules))


def _write_lines(plan: Plan, left: QuestionBalance | None, rules: tuple[str, ...]) -> Iterator[str]:
    yield write_heading(plan, left)
    yield from _write_question_lines(plan)
    if plan.reads_data:
        yield from _write_accuracy_lines(plan)
    else:
        yield f"  Guarantee: {write_guarantee(plan)}"
    if left is not None:
        yield from write_brief_balance_lines(plan, left)
    if plan.reads_data and (bounds := "; ".join(_describe_bounds(plan))):
        yield f"  Bounds: {bounds}"
    if rules:
        yield f"  Rewritten by: {', '.join(rules)}"
    yield from (f"  Warning: {warning}" for warning in plan.warnings[:MOST_WARNINGS])
    if len(plan.warnings) > MOST_WARNINGS:
        yield f"  ... {len(plan.warnings) - MOST_WARNINGS} more warnings: EXPLAIN VERBOSE"
    yield VERBOSE_HINT


def _write_question_lines(plan: Plan) -> Iterator[str]:
    """Yield the question as Keyhole reads it: thresholds with the guards that were added, and the ranking."""
    asked = plan.asked_question
    if asked.formula != TRUE or not (asked.predicates or is_ranking_only(plan)):
        formula = spell_formula(asked.formula, spell_literals(asked), both="AND", either="OR")
        yield f"  Asked: {shorten_formula(formula)}"
    for name, formula in zip(asked.predicate_names, list_predicate_texts(plan), strict=True):
        yield f"  Asked: {name} = {shorten_formula(formula)}"
    if (ranked := write_ranking(plan)) is not None:
        yield f"  Asked: ranked by {ranked}"


def _write_accuracy_lines(plan: Plan) -> Iterator[str]:
    promises = write_promised_rates(plan, beyond="the tolerance", subject=_name_subject(plan))
    if promises.missed:
        yield f"  Missed: {promises.missed}"
    if promises.wrong:
        yield f"  Wrong: {promises.wrong}{_write_wrong_groups(plan)}"
    if promises.ranked:
        yield f"  Ranking: {promises.ranked}"
    if plan.calibration.deniable:
        yield f"  Denied: {DENIABLE}"
    bands = [f"{one.text}: {one.band}" for one in letter_literals(plan)]
    if bands:
        more = f"; ... {len(bands) - MOST_TOLERANCES} more" if len(bands) > MOST_TOLERANCES else ""
        yield f"  Tolerance: {'; '.join(bands[:MOST_TOLERANCES])}{more}"


def _name_subject(plan: Plan) -> str:
    if not plan.predicates:
        return "a group"
    return "a predicate" if plan.minimised.formula == TRUE else "a group or predicate"


def _write_wrong_groups(plan: Plan) -> str:
    wrong = count_wrong_groups(plan)
    if wrong is None:
        return ""
    each = " for each predicate" if wrong.has_several_predicates else ""
    return f", on average at most {round_up(wrong.near)} of {wrong.keys:,} groups{each}"


def _describe_bounds(plan: Plan) -> Iterator[str]:
    """Yield the rows of a privacy unit that bounding keeps before anything is summed."""
    question = plan.question
    table = question.table if question.per_unit is None else question.per_unit.table
    if table.unit and not table.is_row_unit:
        yield f"of one ({table.unit_text}) at most {_describe_group_bound(plan, table)} count"
        clipped = (describe_clipping(plan, one, unit="it", total="its total") for one in question.computed_functionals)
        inside = [text for text in dict.fromkeys(clipped) if text is not None]
        if table.row_cap:
            inside.insert(0, f"it counts at most {table.row_cap.rows} rows")
        if inside:
            yield f"in each, {' and '.join(inside)}"
    if question.per_unit is not None:
        yield from describe_unit_rows(question, question.per_unit)
    yield from write_clipped_values(plan)
    if not table.is_row_unit:
        yield f"rows without {' or '.join(table.unit)} do not count"
    if (told := write_cut_rows(plan)) is not None:
        yield told


def _describe_group_bound(plan: Plan, table: Table) -> str:
    """Return the number of groups in which a unit counts, of those in which it could have rows."""
    within_reach = plan.question.keys.count_reachable_groups(table)
    most = max(1, min(within_reach, table.groups_per_unit))
    if within_reach > table.groups_per_unit:
        return f"{most:,} of {within_reach:,} groups"
    return f"{most:,} group{'' if most == 1 else 's'}"
