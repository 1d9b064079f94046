"""A function of one column, defined by its comparisons with constants."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType
from planner.predicates.column_comparison import compare_column
from planner.question.condition import Like, Not
from planner.question.three_valued import Truth, make_known_unless_null
from planner.values.constant import Constant

CompareConstant = Callable[[str, Constant, exp.Expr], Truth]
LikePattern = Callable[[str, exp.Expr], Truth]


@dataclass(frozen=True, slots=True)
class ColumnTerm:
    """A function of `column`, described by what its comparisons mean for the column.

    `compare` gives the truth of `term operator constant` and, for a text, `like` that of `term LIKE pattern`. If it
    `is_exact`, its values are integers or numerics. If it `is_plain`, they are the column's own.
    """

    column: Column
    compare: CompareConstant
    like: LikePattern | None = None
    is_exact: bool = False
    is_plain: bool = False


def make_plain_term(column: Column) -> ColumnTerm | None:
    """Return the column itself as a term. Return None for a type that conditions cannot use."""
    if column.sql_type is SqlType.OTHER:
        return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        return compare_column(column, operator, constant, at)

    def like(pattern: str, _: exp.Expr) -> Truth:
        found = Like(column.name, pattern)
        return make_known_unless_null(column.name, true=found, false=Not(found))

    text = column.sql_type is SqlType.TEXT
    exact = column.sql_type in (SqlType.INTEGER, SqlType.NUMERIC)
    return ColumnTerm(column, compare, like=like if text else None, is_exact=exact, is_plain=True)
