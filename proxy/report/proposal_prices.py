"""Warnings about a policy's bands and stored questions that would be refused, or cost too much, at its own accuracy."""

from collections.abc import Iterator
from datetime import UTC, datetime

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import BandColumn, Budget, Catalog, Table
from planner.errors import KeyholeError
from planner.explain.rounded_numbers import write_floor
from planner.extract.extract import extract_questions
from planner.lower.dialects.dialect import Dialect
from planner.parser.lexer import read_tokens, spell_name
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.scope.owner_bands import write_aggregate, write_band
from planner.scope.owner_bands import write_at_least as reaches
from planner.statements.settings import read_accuracy
from planner.statements.stored_parameters import read_parameters


def describe_expensive_proposals(catalog: Catalog, *, dialect: Dialect) -> Iterator[str]:
    """Yield a sentence for each set of bands, and for each stored question, that cannot be asked.

    Bands are tried by their table's first key. The result follows from the policy alone; the source is not used.
    """
    for table in catalog.tables:
        key = next((spell_name(column.name) for column in table.columns if column.domain is not None), None)
        for shown in table.band_columns if key is not None else ():
            place = f"tables.{table.name}" + ("" if shown.measure is None else f".columns.{shown.measure}")
            band = write_band(write_aggregate(shown, table), shown.bands)
            grouped = f"FROM {spell_name(table.name)} GROUP BY {key}"
            problem = _find_problem(f"SELECT {key}, {band} {grouped}", catalog, dialect)
            if problem is None:
                problem = _explain_settled_threshold(shown, table, f"SELECT {key} {grouped}", catalog, dialect)
            if problem is not None:
                yield f"{place}.bands: asking for those of {shown.bands.aggregate} by {key} {problem}."
    for stored in catalog.stored_questions:
        problem = _find_problem(f"SELECT * FROM {spell_name(stored.name)}", catalog, dialect)
        if problem is not None:
            yield f"views.{stored.name}: reading it {problem}."


def _explain_settled_threshold(
    shown: BandColumn, table: Table, question: str, catalog: Catalog, dialect: Dialect
) -> str | None:
    """Return why one of the bands' thresholds reveals nothing, because declared bounds already decide it, or None."""
    aggregate = write_aggregate(shown, table)
    for number in range(1, len(shown.bands.thresholds) + 1):
        problem = _find_problem(f"{question} HAVING {reaches(aggregate, shown.bands, number)}", catalog, dialect)
        if problem is not None and "KH220" in problem:
            return problem
    return None


def _find_problem(sql: str, catalog: Catalog, dialect: Dialect) -> str | None:
    """Return why one of the policy's statements would be refused under its defaults, or None."""
    wanted, today = read_accuracy({}, catalog.defaults), datetime.now(UTC).date()
    try:
        asking = extract_questions(sql, read_tokens(sql), catalog)
        made = [
            plan_question(
                bind_question(one, catalog, accuracy=wanted, parameters=read_parameters(one, {}), today=today),
                dialect=dialect,
            )
            for one in (() if asking is None else asking.questions)
        ]
    except KeyholeError as error:
        return f"is refused ({error.code}: {error.message})"
    return next((price for one in made if (price := _describe_price(one, catalog.budget)) is not None), None)


def _describe_price(made: Plan, budget: Budget) -> str | None:
    """Return in words by how much a question exceeds the caps. Return None if it fits."""
    group = made.calibration.worst_case_epsilon
    caps = {"epsilon_per_query": budget.per_query, "epsilon_per_predicate": budget.per_predicate}
    cap, least = min(caps.items(), key=lambda one: one[1])
    if group > least:
        return f"costs a group {write_floor(group)} epsilon, above budget.{cap} ({least:g}): choose larger thresholds"
    table = made.question.table
    units = 0.0 if table.is_row_unit or budget.delta is not None else group * table.groups_per_unit
    if budget.per_unit is not None and units > budget.per_unit:
        return f"costs a unit {write_floor(units)} epsilon, above budget.epsilon_per_unit ({budget.per_unit:g})"
    return None
