"""Expressions on a row that an outer join makes up, in which all columns of some tables are NULL."""

from collections.abc import Callable, Iterator

from sqlglot import exp

from planner.parser.tree import strip_parentheses

IsMissing = Callable[[exp.Column], bool]
_STRICT_OF_ONE = (
    exp.Paren,
    exp.Not,
    exp.Neg,
    exp.Cast,
    exp.Round,
    exp.Floor,
    exp.Ceil,
    exp.Abs,
    exp.Lower,
    exp.Upper,
    exp.Trim,
    exp.TimestampTrunc,
)
_STRICT_OF_ANY = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
)


def is_null(node: exp.Expr, is_missing: IsMissing) -> bool:
    """Return True if an expression is certainly NULL for a row that the outer join adds.

    Parameters:
        is_missing: returns True for a column that is certainly NULL in that row.
    """
    match node:
        case exp.Column():
            return not isinstance(node.this, exp.Star) and is_missing(node)
        case exp.Null():
            return True
        case exp.Extract():
            return is_null(node.expression, is_missing)
        case exp.Between() | exp.In() if not node.args.get("query"):
            return is_null(node.this, is_missing)
        case exp.Case() if node.this is None:
            results = [one.args["true"] for one in node.args["ifs"]]
            default = node.args.get("default")
            if default is not None and not is_null(default, is_missing):
                return False
            return all(
                is_never_true(one.this, is_missing) or is_null(result, is_missing)
                for one, result in zip(node.args["ifs"], results, strict=True)
            )
        case _ if isinstance(node, _STRICT_OF_ONE):
            return is_null(node.this, is_missing)
        case _ if isinstance(node, _STRICT_OF_ANY):
            return is_null(node.this, is_missing) or is_null(node.expression, is_missing)
        case _:
            return False


def is_never_true(node: exp.Expr, is_missing: IsMissing) -> bool:
    """Return True if a condition is certainly NULL or false when all missing columns are NULL."""
    node = strip_parentheses(node)
    if isinstance(node, exp.And | exp.Or) and not node.args.get("negate"):
        sides = [is_never_true(side, is_missing) for side in (node.this, node.expression)]
        return any(sides) if isinstance(node, exp.And) else all(sides)
    if isinstance(node, exp.Is):
        asked, negated = strip_parentheses(node.expression), bool(node.args.get("negate"))
        wants_value = isinstance(asked, exp.Null) if negated else isinstance(asked, exp.Boolean)
        return wants_value and is_null(strip_parentheses(node.this), is_missing)
    if (
        isinstance(node, exp.Not)
        and isinstance(inner := strip_parentheses(node.this), exp.Is)
        and not inner.args.get("negate")
    ):
        return isinstance(strip_parentheses(inner.expression), exp.Null) and is_null(
            strip_parentheses(inner.this), is_missing
        )
    return is_null(node, is_missing)


def counts_nothing(node: exp.Expr, is_missing: IsMissing) -> bool:
    """Return True if an aggregate, with WITHIN GROUP and FILTER, ignores a row whose missing columns are all NULL."""
    if isinstance(node, exp.Filter):
        if is_never_true(node.expression.this, is_missing):
            return True
        node = node.this
    if isinstance(node, exp.WithinGroup):
        return all(is_null(one.this, is_missing) for one in node.expression.expressions)
    read = node.this
    several = read.expressions if isinstance(read, exp.Distinct) else [read]
    return not node.expressions and all(isinstance(one, exp.Expr) and is_null(one, is_missing) for one in several)


def list_aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the aggregates of a SELECT, each with its WITHIN GROUP and FILTER."""
    for node in select.find_all(exp.AggFunc):
        whole: exp.Expr = node
        while isinstance(whole.parent, exp.WithinGroup | exp.Filter):
            whole = whole.parent
        yield whole
