"""The names in a row condition, and the constants in it."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from planner.parser.tree import write_short
from planner.predicates.where_refusals import refuse_function, refuse_several_tables, refuse_unlisted_expression
from planner.question.condition import join_all, join_any
from planner.question.three_valued import Truth
from planner.scope.name_resolution import Scope, find_column
from planner.values.constant import Constant, ConstantContext, NotConstant
from planner.values.expressions import fold_constant


@dataclass(frozen=True, slots=True)
class RowScope:
    """The context of a row condition: the question's table under its name, and the values of constants."""

    scope: Scope
    constants: ConstantContext

    def fold_constant(self, node: exp.Expr) -> Constant:
        """Return the value of a constant expression.

        Raise KH201 for an unknown column name, KH205 for any other expression.
        """
        try:
            return fold_constant(node, self.constants)
        except NotConstant as missing:
            if find_column(missing.node, self.scope) is None:
                raise refuse_unlisted_expression(
                    missing.node, f"{write_short(missing.node)} is not a constant"
                ) from None
            if self.scope.table.members:
                raise refuse_several_tables(missing.node) from None
            raise refuse_function(node) from None

    def is_constant(self, node: exp.Expr) -> bool:
        """Return True if the expression is a constant."""
        try:
            fold_constant(node, self.constants)
        except NotConstant:
            return False
        return True


def combine_truths(parts: Iterable[Truth], *, is_conjunction: bool) -> Truth:
    """Return the conjunction or disjunction of truths."""
    parts = tuple(parts)
    every, some = (join_all, join_any) if is_conjunction else (join_any, join_all)
    return Truth(
        every(part.true for part in parts),
        some(part.false for part in parts),
        some(part.not_true for part in parts),
        every(part.not_false for part in parts),
    )
