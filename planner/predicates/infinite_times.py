"""Conditions that write out the derivation of a derived column: infinite times count, although the column lacks them.

A derived column is NULL for times outside the years 1 to 9999, infinities included. PostgreSQL's own date_trunc,
`::date` and extract(year) of these are later or earlier than every constant that a condition may have.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, SqlType
from planner.predicates.column_comparison import compare_column
from planner.predicates.terms.term import ColumnTerm, make_plain_term
from planner.question.condition import NEVER, And, Compare, Condition, IsNull, Or, join_all, join_any
from planner.question.three_valued import Truth
from planner.scope.key_classes import find_stored_key
from planner.scope.name_resolution import Scope
from planner.values.constant import Constant


def find_written_base(column: Column, node: exp.Expr, scope: Scope) -> Column | None:
    """Return the time column of a derived column, if `node` spells out the derivation instead of naming it. Else None.

    The spelled-out expression is infinite for infinite times, where the derived column is NULL.
    """
    derived = column.derivation
    if isinstance(node, exp.Column) or not isinstance(derived, Derivation):
        return None
    if derived.function == "extract" and derived.part != "year":
        return None  # PostgreSQL itself gives NULL for this part of an infinite time
    return scope.table.get_column(derived.column)


def read_written_term(column: Column, node: exp.Expr, scope: Scope) -> ColumnTerm | None:
    """Return the term of a derived column's spelled-out expression. For any other column return its own term."""
    base, plain = find_written_base(column, node, scope), make_plain_term(column)
    if base is None or plain is None:
        return plain
    later, earlier, null = _make_later(base), _make_earlier(base), IsNull(base.name)

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
        true, false = join_any((found.true, *held)), join_any((found.false, *failed))
        return Truth(true, false, join_any((false, null)), join_any((true, null)))

    return replace(plain, compare=compare, is_plain=False)


def _make_later(base: Column) -> Compare:
    return Compare(base.name, ">", datetime.max if base.sql_type is SqlType.TIMESTAMP else date.max)


def _make_earlier(base: Column) -> Compare:
    return Compare(base.name, "<", datetime.min if base.sql_type is SqlType.TIMESTAMP else date.min)


def restrict_to_groups(condition: Condition, keys: Iterable[Column], columns: Iterable[Column]) -> Condition:
    """Return the condition as it holds for rows in a group. No such row lies beyond the calendar of a derived key."""
    columns = tuple(columns)
    told = {column.name: column for column in columns}
    derived = [key.derivation for key in (find_stored_key(one, columns) for one in keys)]
    bases = [told[one.column] for one in derived if isinstance(one, Derivation) and one.column in told]
    return _drop_conditions(
        condition, frozenset(end for base in bases for end in (_make_later(base), _make_earlier(base)))
    )


def _drop_conditions(condition: Condition, never: frozenset[Condition]) -> Condition:
    match condition:
        case And(parts):
            return join_all(_drop_conditions(part, never) for part in parts)
        case Or(parts):
            return join_any(kept for part in parts if (kept := _drop_conditions(part, never)) != NEVER)
        case Compare() if condition in never:
            return NEVER
        case _:
            return condition
