"""Whether a query's result is empty, or the same, whatever its questions answer: the probes of BI tools."""

from datetime import date

from sqlglot import exp

from planner.constant import Given, uses_clock
from planner.constant_comparison import constant_truth
from planner.embedded import EmbeddedVirtual
from planner.errors import KeyholeError
from planner.outer import Asking
from planner.syntax import bare, parse

_NOTHING_GIVEN = Given(parameters={}, today=date.min)


def constantly_empty(tree: exp.Expr, asking: Asking) -> bool:
    """Whether no answer to the embedded questions can change the result; if in doubt, False."""
    while isinstance(tree, exp.Subquery) and not tree.args.get("limit"):
        tree = tree.this
    if _limit_zero(tree):
        return True
    if isinstance(tree, exp.Select) and _never(tree.args.get("where")):
        shown = (*tree.expressions, tree.args.get("having"), tree.args.get("order"), tree.args.get("limit"))
        if not any(part is not None and part.find(exp.Query) for part in shown):
            return True
    if any(isinstance(part, EmbeddedVirtual) for part in asking.embedded):
        return False
    return all(_never(parse(question.text).args.get("where")) for question in asking.questions)


def _limit_zero(tree: exp.Expr) -> bool:
    limit = tree.args.get("limit")
    if limit is None:
        return False
    count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
    return isinstance(count, exp.Literal) and not count.is_string and str(count.this) == "0"


def _never(where: exp.Expr | None) -> bool:
    """Whether some conjunct of the clause is false for every row."""
    if where is None:
        return False
    waiting = [where.this]
    while waiting:
        node = bare(waiting.pop())
        if isinstance(node, exp.And):
            waiting.extend((node.this, node.expression))
        elif node.find(exp.Column, exp.Query) is None and not uses_clock(node) and _false(node):
            return True
    return False


def _false(node: exp.Expr) -> bool:
    try:
        return constant_truth(node, _NOTHING_GIVEN) is False
    except KeyholeError:
        return False
