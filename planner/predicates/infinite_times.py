"""A derived column where a condition writes out what it is derived by: infinite times, which the column lacks, count.

A derived column is NULL for times outside the years 1 to 9999, infinities included. Of these PostgreSQL's own
date_trunc, `::date` and extract(year) are later or earlier than every constant that a condition may have.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, SqlType
from planner.predicates.column_comparison import compare_column
from planner.predicates.terms.term import ColumnTerm, plain_term
from planner.question.condition import NEVER, And, Compare, Condition, IsNull, Or, all_of, any_of
from planner.question.three_valued import Truth
from planner.scope.key_classes import stored_key
from planner.scope.name_resolution import Scope
from planner.values.constant import Constant


def written_base(column: Column, node: exp.Expr, scope: Scope) -> Column | None:
    """Return the date or timestamp whose infinities the expression keeps, if `node` writes a derived column out."""
    derived = column.derivation
    if isinstance(node, exp.Column) or not isinstance(derived, Derivation):
        return None
    if derived.function == "extract" and derived.part != "year":
        return None  # PostgreSQL itself gives NULL for this part of an infinite time
    return scope.table.get_column(derived.column)


def written_term(column: Column, node: exp.Expr, scope: Scope) -> ColumnTerm | None:
    """Return the term that a derived column is where the expression is written out; any other column's own term."""
    base, plain = written_base(column, node, scope), plain_term(column)
    if base is None or plain is None:
        return plain
    later, earlier, null = _later(base), _earlier(base), IsNull(base.name)

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        found = compare_column(column, operator, constant, at)
        if constant is None:
            return found
        ends: dict[str, tuple[list[Condition], list[Condition]]] = {
            "=": ([], [later, earlier]),
            "<>": ([later, earlier], []),
            ">": ([later], [earlier]),
            ">=": ([later], [earlier]),
            "<": ([earlier], [later]),
            "<=": ([earlier], [later]),
        }
        held, failed = ends[operator]
        true, false = any_of((found.true, *held)), any_of((found.false, *failed))
        return Truth(true, false, any_of((false, null)), any_of((true, null)))

    return replace(plain, compare=compare, plain=False)


def _later(base: Column) -> Compare:
    return Compare(base.name, ">", datetime.max if base.sql_type is SqlType.TIMESTAMP else date.max)


def _earlier(base: Column) -> Compare:
    return Compare(base.name, "<", datetime.min if base.sql_type is SqlType.TIMESTAMP else date.min)


def of_groups(condition: Condition, keys: Iterable[Column], columns: Iterable[Column]) -> Condition:
    """Return the meaning of a row condition for rows in a group: none lies beyond the calendar of a derived key."""
    columns = tuple(columns)
    told = {column.name: column for column in columns}
    derived = [key.derivation for key in (stored_key(one, columns) for one in keys)]
    bases = [told[one.column] for one in derived if isinstance(one, Derivation) and one.column in told]
    return _without(condition, frozenset(end for base in bases for end in (_later(base), _earlier(base))))


def _without(condition: Condition, never: frozenset[Condition]) -> Condition:
    match condition:
        case And(parts):
            return all_of(_without(part, never) for part in parts)
        case Or(parts):
            return any_of(kept for part in parts if (kept := _without(part, never)) != NEVER)
        case Compare() if condition in never:
            return NEVER
        case _:
            return condition
