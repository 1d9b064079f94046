"""A plan in about ten lines, which EXPLAIN prints: the question, its error rates, its price, and what bounds cut.

Depends on public inputs alone. EXPLAIN VERBOSE has the details.
"""

from collections.abc import Iterator

from mechanisms.formula import TRUE
from planner.catalog.catalog import Table
from planner.explain.balance_lines import brief_balance_lines
from planner.explain.balances import QuestionBalance
from planner.explain.guarantee import DENIABLE, cut_rows_sentence, guarantee_sentence, predicate_texts, promised_rates
from planner.explain.literal_labels import letter_literals, spell_formula, words
from planner.explain.literal_table import describe_clipping, shorten_formula
from planner.explain.ranking import ranked_text, ranks_alone
from planner.explain.render import clipped_values, write_heading
from planner.explain.wrong_groups import rounded_up, wrong_groups
from planner.functionals.unit_rows import describe_unit_rows
from planner.question.plan import Plan

MOST_TOLERANCES = 4  # of one line that people read at once; the others are in EXPLAIN VERBOSE
MOST_WARNINGS = 4  # as many lines as the rest of the plan leaves room for; the others are in EXPLAIN VERBOSE
MORE = "  More: EXPLAIN VERBOSE, or keyhole explain --verbose"


def explain_briefly(plan: Plan, *, left: QuestionBalance | None, rules: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Write a plan as the lines of EXPLAIN.

    Guarantee: a function of plan and balances; nothing in it depends on data, and nothing is spent.

    Parameters:
        left: the balances of the question's keys, None where there is no ledger to ask.
        rules: that have rewritten the statement.
    """
    return tuple(_lines(plan, left, rules))


def _lines(plan: Plan, left: QuestionBalance | None, rules: tuple[str, ...]) -> Iterator[str]:
    yield write_heading(plan, left)
    yield from _asked_lines(plan)
    if plan.reads_data:
        yield from _accuracy_lines(plan)
    else:
        yield f"  Guarantee: {guarantee_sentence(plan)}"
    if left is not None:
        yield from brief_balance_lines(plan, left)
    if plan.reads_data and (bounds := "; ".join(_bounds(plan))):
        yield f"  Bounds: {bounds}"
    if rules:
        yield f"  Rewritten by: {', '.join(rules)}"
    yield from (f"  Warning: {warning}" for warning in plan.warnings[:MOST_WARNINGS])
    if len(plan.warnings) > MOST_WARNINGS:
        yield f"  ... {len(plan.warnings) - MOST_WARNINGS} more warnings: EXPLAIN VERBOSE"
    yield MORE


def _asked_lines(plan: Plan) -> Iterator[str]:
    """Write the question as Keyhole reads it: thresholds with the guards that were added, and the ranking."""
    asked = plan.asked
    if asked.formula != TRUE or not (asked.predicates or ranks_alone(plan)):
        formula = spell_formula(asked.formula, words(asked), both="AND", either="OR")
        yield f"  Asked: {shorten_formula(formula)}"
    for name, formula in zip(asked.predicate_names, predicate_texts(plan), strict=True):
        yield f"  Asked: {name} = {shorten_formula(formula)}"
    if (ranked := ranked_text(plan)) is not None:
        yield f"  Asked: ranked by {ranked}"


def _accuracy_lines(plan: Plan) -> Iterator[str]:
    promises = promised_rates(plan, beyond="the tolerance", subject=_subject(plan))
    if promises.missed:
        yield f"  Missed: {promises.missed}"
    if promises.wrong:
        yield f"  Wrong: {promises.wrong}{_count_wrong(plan)}"
    if promises.ranked:
        yield f"  Ranking: {promises.ranked}"
    if plan.calibration.deniable:
        yield f"  Denied: {DENIABLE}"
    bands = [f"{one.text}: {one.band}" for one in letter_literals(plan)]
    if bands:
        more = f"; ... {len(bands) - MOST_TOLERANCES} more" if len(bands) > MOST_TOLERANCES else ""
        yield f"  Tolerance: {'; '.join(bands[:MOST_TOLERANCES])}{more}"


def _subject(plan: Plan) -> str:
    if not plan.predicates:
        return "a group"
    return "a predicate" if plan.minimised.formula == TRUE else "a group or predicate"


def _count_wrong(plan: Plan) -> str:
    wrong = wrong_groups(plan)
    if wrong is None:
        return ""
    each = " for each predicate" if wrong.several else ""
    return f", on average at most {rounded_up(wrong.near)} of {wrong.keys:,} groups{each}"


def _bounds(plan: Plan) -> Iterator[str]:
    """Yield what bounds keep of a privacy unit's rows before anything is summed."""
    question = plan.question
    table = question.table if question.per_unit is None else question.per_unit.table
    if table.unit and not table.is_row_unit:
        yield f"of one ({table.unit_text}) at most {_groups(plan, table)} count"
        clipped = (describe_clipping(plan, one, unit="it", total="its total") for one in question.computed)
        inside = [text for text in dict.fromkeys(clipped) if text is not None]
        if table.row_cap:
            inside.insert(0, f"it counts at most {table.row_cap.rows} rows")
        if inside:
            yield f"in each, {' and '.join(inside)}"
    if question.per_unit is not None:
        yield from describe_unit_rows(question, question.per_unit)
    yield from clipped_values(plan)
    if not table.is_row_unit:
        yield f"rows without {' or '.join(table.unit)} do not count"
    if (told := cut_rows_sentence(plan)) is not None:
        yield told


def _groups(plan: Plan, table: Table) -> str:
    """Return in how many of the groups that it could have rows in a unit counts."""
    within_reach = plan.question.keys.count_reachable_groups(table)
    most = max(1, min(within_reach, table.groups_per_unit))
    if within_reach > table.groups_per_unit:
        return f"{most:,} of {within_reach:,} groups"
    return f"{most:,} group{'' if most == 1 else 's'}"
