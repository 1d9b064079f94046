"""How many questions fit into the budget of a group, as plain sums and by curve, for an owner who chooses a delta."""

from collections.abc import Iterator
from datetime import UTC, datetime

from accountant.cell_balance import NO_CELL_LOSSES
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, Table
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.parser.lexer import spell_name
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.statements.settings import read_accuracy
from proxy.open_policy.accounts import convert_to_nano
from proxy.pipeline.claim import find_worst_amounts, find_worst_cell_curve
from proxy.pipeline.messages import read_bare_question

_TOLERANCES = (100, 50, 25)  # where a delta of 1e-9 helps much, somewhat, and not at all; three numbers fit a line
_THRESHOLD = 1000  # any above the tolerances: it decides no price


def describe_fitting_questions(catalog: Catalog, *, dialect: Dialect) -> Iterator[str]:
    """Yield for each table how many questions fit into a group's cap, if the policy has a `delta_per_cell`.

    The questions count units, or rows if each row is a unit, by the table's first key. Their rates are the policy's.
    The source is not used.
    """
    budget = catalog.budget
    if budget.delta_per_cell is None:
        return
    for table in catalog.tables:
        key = next((column for column in table.columns if column.domain is not None), None)
        plans = [] if key is None else [_plan_count(table, key, one, catalog, dialect) for one in _TOLERANCES]
        made = [plan for plan in plans if plan is not None]
        if key is None or len(made) < len(_TOLERANCES):
            continue
        cap = convert_to_nano(budget.per_predicate)
        plain = [cap // max(1, find_worst_amounts(plan).epsilon_nano) for plan in made]
        by_curve = [count_fitting_in_cell(plan, cap, budget.delta_per_cell) for plan in made]
        counted = "rows" if table.is_row_unit else "units"
        yield (
            f"{table.name} by {key.name}: of counts with a tolerance of {_write_list(_TOLERANCES)} {counted}, a "
            f"group's cap of {budget.per_predicate:g} fits {_write_list(plain)} as a plain sum, and "
            f"{_write_list(by_curve)} with its delta of {budget.delta_per_cell:g}"
        )


def count_fitting_in_cell(plan: Plan, cap_nano: int, delta: float) -> int:
    """Return the number of questions like this that fit into an empty balance of a cell, in the form that fits more."""
    nano = find_worst_amounts(plan).epsilon_nano
    forms = (None, find_worst_cell_curve(plan))
    return max(NO_CELL_LOSSES.count_further_questions(nano, form, cap_nano=cap_nano, delta=delta) for form in forms)


def _plan_count(table: Table, key: Column, tolerance: int, catalog: Catalog, dialect: Dialect) -> Plan | None:
    """Return the plan of a count of the table's units by a key. Return None if the policy does not allow it."""
    unit = ", ".join(map(spell_name, table.unit))
    count = f"count(DISTINCT {f'({unit})' if len(table.unit) > 1 else unit})" if unit else "count(*)"
    name = spell_name(key.name)
    sql = f"SELECT {name} FROM {spell_name(table.name)} GROUP BY {name} HAVING {count} > {_THRESHOLD}"
    try:
        question = bind_question(
            read_bare_question(sql, catalog),
            catalog,
            accuracy=read_accuracy({"keyhole.tolerance": str(tolerance)}, catalog.defaults),
            parameters={},
            today=datetime.now(UTC).date(),
            is_utc=True,
        )
        return plan_question(question, dialect=dialect)
    except KeyholeError:
        return None


def _write_list(numbers: tuple[int, ...] | list[int]) -> str:
    *others, last = (f"{one:,}" for one in numbers)
    return f"{', '.join(others)} and {last}"
