"""The question that a refused statement could have been: for hints."""

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.model import Column
from planner.errors import KeyholeError
from planner.extract.question_parts import QuestionReading
from planner.extract.reword import own_threshold
from planner.parser.lexer import readable
from planner.scope.group_by import grouping


def each_grouping(place: QuestionReading, sets: tuple[tuple[Column, ...], ...]) -> str:
    """One question per grouping, joined by UNION ALL, with NULL for keys that a grouping leaves open."""
    everything = tuple({column.name: column for columns in sets for column in columns}.values())
    source = place.text[place.tokens[place.clauses.source].start : _source_end(place)]
    where = place.clauses.part("where", place.text, place.tokens)
    having = place.clauses.part("having", place.text, place.tokens)
    questions: list[str] = []
    for columns in sets:
        shown = ", ".join(
            place.scope.spelled(column) if column in columns else f"NULL::{column.declared} AS {readable(column.name)}"
            for column in everything
        )
        names = ", ".join(place.scope.spelled(column) for column in columns)
        parts = (f"SELECT {shown}", source, where, f"GROUP BY {names}", having)
        questions.append(" ".join(part for part in parts if part))
    return f"{place.before} {' UNION ALL '.join(questions)};".strip()


def corrected(place: QuestionReading) -> str | None:
    """The question that this statement could have been: its keys, its WHERE, and a HAVING."""
    keys: tuple[Column, ...] = ()
    if place.select.args.get("group") is not None:
        try:
            keys = grouping(place.select, place.scope)
        except KeyholeError:
            keys = ()
    columns = place.scope.table.columns
    if place.scope.listed is not None:
        columns = tuple(place.scope.table.column(column) for _, column in place.scope.listed)
    shown = keys or tuple(column for column in columns if column.domain is not None)[:1]
    if not shown:
        return None
    names = ", ".join(place.scope.spelled(column) for column in shown)
    source = place.text[place.tokens[place.clauses.source].start : _source_end(place)]
    where = place.clauses.part("where", place.text, place.tokens)
    having = place.clauses.part("having", place.text, place.tokens)
    if not having or not contains_aggregate(place.select.args["having"]):
        having = f"HAVING {own_threshold(place.select) or 'count(*) > 1000'}"
    parts = (place.before, f"SELECT {names}", source, where, f"GROUP BY {names}", having)
    return " ".join(part for part in parts if part) + ";"


def _source_end(place: QuestionReading) -> int:
    past = min((index for _, index in place.clauses.marks), default=place.clauses.end)
    return place.tokens[past - 1].end
