"""What asking for the bands that a policy declares costs, by its own accuracy: thresholds that no budget pays for."""

from collections.abc import Iterator
from datetime import UTC, datetime

from planner.bind.question import ask
from planner.catalog.model import BandColumn, Budget, Catalog, Table
from planner.errors import KeyholeError
from planner.explain.numbers import at_least
from planner.extract.extract import embed
from planner.lower.dialects.postgres import POSTGRES
from planner.parser.lexer import readable, tokens
from planner.plan.build import plan
from planner.question.plan import Plan
from planner.scope.bands import aggregate_sql, band_sql
from planner.statements.settings import accuracy


def describe_dear_bands(catalog: Catalog) -> Iterator[str]:
    """One sentence for each band of which a question by the table's first key is refused, or costs more than a cap.

    Nothing but the policy decides it: no source is asked.
    """
    for table in catalog.tables:
        key = next((column.name for column in table.columns if column.domain is not None), None)
        for shown in table.band_columns if key is not None else ():
            place = f"tables.{table.name}" + ("" if shown.measure is None else f".columns.{shown.measure}")
            problem = _find_problem(shown, table, str(key), catalog)
            if problem is not None:
                yield f"{place}.bands: asking for those of {shown.bands.aggregate} by {key} {problem}."


def _find_problem(shown: BandColumn, table: Table, key: str, catalog: Catalog) -> str | None:
    band = band_sql(aggregate_sql(shown, table), shown.bands)
    sql = f"SELECT {readable(key)}, {band} FROM {readable(table.name)} GROUP BY {readable(key)}"
    wanted, today = accuracy({}, catalog.defaults), datetime.now(UTC).date()
    try:
        asking = embed(sql, tokens(sql), catalog)
        assert asking is not None
        (question,) = asking.questions
        made = plan(ask(question, catalog, accuracy=wanted, parameters={}, today=today), dialect=POSTGRES)
    except KeyholeError as error:
        return f"is refused ({error.code}: {error.message}); another tolerance or thresholds further from 0 may do"
    return _describe_price(made, catalog.budget)


def _describe_price(made: Plan, budget: Budget) -> str | None:
    """How a question costs more than the caps allow; None where it fits."""
    group = made.calibration.worst_case_epsilon
    caps = {"epsilon_per_query": budget.per_query, "epsilon_per_predicate": budget.per_predicate}
    cap, least = min(caps.items(), key=lambda one: one[1])
    if group > least:
        return f"costs a group {at_least(group)} epsilon, above budget.{cap} ({least:g}): choose larger thresholds"
    table = made.question.table
    units = 0.0 if table.row_unit or budget.delta is not None else group * table.groups_per_unit
    if budget.per_unit is not None and units > budget.per_unit:
        return f"costs a unit {at_least(units)} epsilon, above budget.epsilon_per_unit ({budget.per_unit:g})"
    return None
