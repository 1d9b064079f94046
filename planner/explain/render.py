"""EXPLAIN VERBOSE: a plan with every detail as lines of text. Depends on public inputs alone."""

from collections.abc import Iterator

from planner.catalog.catalog import Column, Computed, Product, Table
from planner.errors import cut_at_word
from planner.explain.balance_lines import write_balance_lines
from planner.explain.balances import QuestionBalance
from planner.explain.guarantee import write_cell_promise, write_cut_rows, write_guarantee
from planner.explain.literal_table import write_cost_lines, write_formula_lines, write_noise_lines
from planner.explain.ranking import is_ranking_only, write_ranking_lines
from planner.explain.rounded_numbers import spell_number
from planner.explain.wrong_groups import count_wrong_groups
from planner.functionals.unit_rows import describe_unit_rows
from planner.question.plan import Plan
from planner.question.question import Question

SQL_LINES = 14  # of EXPLAIN's one screen; the rest is in JSON


def explain_text(plan: Plan, *, left: QuestionBalance | None, rules: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a plan as lines for EXPLAIN VERBOSE: formula, noise, prices, mechanisms compared, and SQL.

    Guarantee: a function of plan and balances; nothing in it depends on data, and nothing is spent.

    Parameters:
        left: the balances of the question's keys, None if there is no ledger.
        rules: the names of the rules that have rewritten the statement.
    """
    return tuple(_write_lines(plan, left, rules))


def _count_decimals(column: Column) -> int:
    """Return the number of decimal places of the user's unit in which a computed column counts."""
    return column.derivation.term.scale if isinstance(column.derivation, Computed) else 0


def write_bounding_notes(plan: Plan) -> Iterator[str]:
    """Yield sentences on how bounding changes a privacy unit's rows before sums are computed."""
    per_unit = plan.question.per_unit
    table = plan.question.table if per_unit is None else per_unit.table
    if per_unit is not None:
        yield from describe_unit_rows(plan.question, per_unit)
    yield from write_clipped_values(plan)
    if table.is_row_unit:
        return
    within_reach = plan.question.keys.count_reachable_groups(table)
    most = max(1, min(within_reach, table.groups_per_unit))
    groups = f"{most:,} group{'' if most == 1 else 's'}"
    if within_reach > table.groups_per_unit:
        groups = f"{table.groups_per_unit:,} of {within_reach:,} groups, and its rows in others do not count"
    yield f"one ({table.unit_text}) is in at most {groups}; rows without {' or '.join(table.unit)} are left out"
    yield from _write_unit_paths(table)
    yield from _write_unit_lists(table)
    yield from _write_unit_values(table)
    if (bound := find_computed_bound(plan.question)) is not None:
        yield bound
    if (told := write_cut_rows(plan)) is not None:
        yield told
    if table.row_cap:
        yield f"one ({table.unit_text}) counts at most {table.row_cap.rows} rows per group, chosen by a hash"
    for key in table.fixed:
        values = "1 value" if len(key.values) == 1 else f"{len(key.values):,} values"
        yield f"WHERE leaves {values} of {key.name}: the bounds are those of groups by {key.name} as well"


def write_clipped_values(plan: Plan) -> Iterator[str]:
    """Yield sentences with the range to which each summed value is clipped."""
    per_unit = plan.question.per_unit
    table = plan.question.table if per_unit is None else per_unit.table
    functionals = plan.question.computed_functionals
    if per_unit is not None:
        functionals = tuple(total.functional for total in per_unit.totals)
    summed = [table.get_column(name) for name in dict.fromkeys(name for made in functionals for name in made.summed)]
    products = {column.name: column.derivation.columns for column in summed if isinstance(column.derivation, Product)}
    for name in dict.fromkeys(factor for one in summed for factor in products.get(one.name, (one.name,))):
        column = table.get_column(name)
        if column.bounds:
            low, high = (spell_number(one.scaleb(-_count_decimals(column))) for one in column.bounds)
            written = column.comment if isinstance(column.derivation, Computed) and column.comment else name
            yield f"values of {written} are clipped to {low} .. {high}"
    for name in products:
        bounds = table.get_column(name).bounds
        if bounds:
            yield f"{name} is multiplied of these, and lies in {spell_number(bounds[0])} .. {spell_number(bounds[1])}"


def find_computed_bound(question: Question) -> str | None:
    """Return a clause on the owner's bound on the groups of a unit, if it applies to computed keys.

    Return None without computed keys.
    """
    table = question.table
    computed = [cut_at_word(key.name) for key in question.keys.columns if key.computed and not table.determines(key)]
    if not computed:
        return None
    if table.groups_by:
        return f"that bound is from the policy's {table.groups_by}"
    names = " and ".join(computed)
    return f"that is the owner's bound for declared keys, times the values of {names} or the rows that count"


def _write_unit_paths(table: Table) -> Iterator[str]:
    """Yield, for each table that is read by itself, a sentence with the keys by which its rows find their unit."""
    for one in [member.table for member in table.members] or [table]:
        if one.path is not None:
            yield f"a row of {one.name} belongs to the privacy unit that it leads to, in {one.path.text}"


def _write_unit_lists(table: Table) -> Iterator[str]:
    """Yield sentences on the units whose rows count, and on the cost of that to the cells that decide it."""
    for clause in table.lists:
        told = (f"{'without' if one.is_negated else 'with'} {one.description} in {one.table.name}" for one in clause)
        yield f"only rows of those ({table.unit_text}) count that are {', or '.join(told)}"


def _write_unit_values(table: Table) -> Iterator[str]:
    """Yield sentences on values computed from each unit's own rows, and on the cost to the cells that decide them."""
    for own in table.own:
        yield f"each row has its unit's own {own.meaning} in {own.table.name}, which any cell of the unit may change"


def _write_lines(plan: Plan, left: QuestionBalance | None, rules: tuple[str, ...]) -> Iterator[str]:
    yield write_heading(plan, left)
    if not is_ranking_only(plan) or plan.predicates:
        yield from write_formula_lines(plan)
    yield from write_ranking_lines(plan)
    yield from write_cost_lines(plan)
    if left is not None:
        yield from write_balance_lines(plan, left)
    yield from write_noise_lines(plan)
    if rules:
        yield f"  Rewritten by: {', '.join(rules)}"
    for note in write_bounding_notes(plan):
        yield f"  Bounding: {note}"
    yield f"  Guarantee: {write_guarantee(plan)}"
    if (cells := write_cell_promise(plan)) is not None:
        yield f"  Cells: {cells}"
    wrong = count_wrong_groups(plan)
    if wrong is not None:
        yield f"  Wrong groups: {wrong.sentence}"
    for warning in plan.warnings:
        yield f"  Warning: {warning}"
    if plan.rewritten.rollup is not None:
        rows = plan.question.per_unit or plan.question
        keys, fixed = plan.question.keys.description, ", ".join(key.name for key in rows.table.fixed)
        among = f"({keys}) whose WHERE fixes {fixed}" if fixed else f"({keys})"
        yield ("  Rollup, where one can be kept: bounding is done once per data version for all questions by " + among)
    if plan.rewritten.sql:
        yield f"  SQL sent to the source ({plan.rewritten.dialect}):"
        lines = plan.rewritten.sql.splitlines()
        shown = lines if len(lines) <= SQL_LINES else lines[: SQL_LINES - 1]
        yield from (f"    {line}" for line in shown)
        if len(lines) > len(shown):
            yield f"    ... {len(lines) - len(shown)} more lines: EXPLAIN (FORMAT JSON)"
    else:
        yield "  Nothing is sent to the source."


def write_heading(plan: Plan, left: QuestionBalance | None) -> str:
    """Return EXPLAIN's first line: the groups of the question, and the data version that it would read."""
    keys = plan.question.keys
    version = f", data version {left.version}" if left else ""
    groups = f"{keys.size} group{'' if keys.size == 1 else 's'} of {plan.question.table.name}"
    return f"Question over {groups} ({keys.description}){version}, nothing is spent by EXPLAIN"
