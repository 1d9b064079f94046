"""The expressions that a question may show and sort by: its keys, constants, and harmless expressions of these."""

from collections.abc import Iterator

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate, list_group_parts
from planner.bind.bind_refusals import refuse_shown_expression
from planner.catalog.catalog import Column
from planner.parser.tree import contains_type, is_star, read_name, strip_parentheses, write_short
from planner.scope.key_classes import read_key_expression
from planner.scope.name_resolution import Scope, find_column

_HARMLESS = (
    exp.Literal,
    exp.National,
    exp.Boolean,
    exp.Null,
    exp.Parameter,
    exp.Paren,
    exp.Cast,
    exp.DataType,
    exp.DataTypeParam,
    exp.Var,
    exp.Neg,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.DPipe,
    exp.Collate,
    exp.Concat,
    exp.Upper,
    exp.Lower,
    exp.Length,
    exp.Coalesce,
    exp.Case,
    exp.If,
    exp.And,
    exp.Or,
    exp.Not,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Is,
    exp.In,
    exp.Between,
    exp.Like,
    exp.TimestampTrunc,
    exp.Extract,
    exp.ToChar,
    exp.TimeToStr,
    exp.Interval,
    exp.CurrentDate,
    exp.CurrentTimestamp,
)
# What is shown as well, as it depends on its arguments alone, but stays where it is written: it may fail for a value.
_SHOWN = (
    exp.Greatest,
    exp.Least,
    exp.Nullif,
    exp.Abs,
    exp.Sign,
    exp.Round,
    exp.Ceil,
    exp.Floor,
    exp.Trunc,
    exp.WidthBucket,
    exp.Mod,
    exp.Substring,
    exp.Left,
    exp.Right,
    exp.Trim,
    exp.Pad,
    exp.Repeat,
    exp.Replace,
    exp.Reverse,
    exp.Initcap,
    exp.SplitPart,
    exp.StrPosition,
    exp.ConcatWs,
    exp.Format,
    exp.ILike,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Array,
    exp.Tuple,
)
# What row conditions, computed keys and sums take besides, or refuse with a reason of their own.
_COMPUTED = (
    exp.AtTimeZone,
    exp.Date,
    exp.DateBin,
    exp.Any,
    exp.Distance,
    exp.Escape,
    exp.Exp,
    exp.Ln,
    exp.Log,
    exp.Localtimestamp,
    exp.Pow,
    exp.RegexpILike,
    exp.RegexpLike,
    exp.RegexpReplace,
    exp.SimilarTo,
    exp.Sqrt,
    exp.StartsWith,
    exp.Translate,
    exp.UnixToTime,
)
_COMPUTED_BY_NAME = frozenset(("age", "btrim", "make_date", "to_number"))
_ROWS_BY_NAME = frozenset(
    ("generate_subscripts", "regexp_matches", "regexp_split_to_table", "string_to_table", "jsonb_path_query")
)
_ROWS_BY_START = ("json_array_e", "jsonb_array_e", "json_each", "jsonb_each", "json_object_k", "jsonb_object_k")
_SHOWN_BY_NAME = frozenset(
    ("row", "to_json", "to_jsonb", "json_build_object", "jsonb_build_object", "json_build_array", "jsonb_build_array")
)


def find_shown_aggregate(select: exp.Select) -> exp.Expr | None:
    """Return the first expression of the select list or ORDER BY that asks for the size of a group."""
    for part in (*select.expressions, *_list_order_items(select)):
        if contains_aggregate(part):
            found: exp.Expr | None = part.find(exp.AggFunc, exp.Window)
            return found or part
    return None


def _list_order_items(select: exp.Select) -> Iterator[exp.Expr]:
    order = select.args.get("order")
    for item in order.expressions if order is not None else ():
        yield item.this
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        yield from distinct.args["on"].expressions


def is_harmless(node: exp.Expr) -> bool:
    """Return True if an expression has one value for each row, and PostgreSQL never fails on it."""
    return all(isinstance(part, (*_HARMLESS, exp.Column, exp.Identifier)) for part in node.walk()) and not any(
        isinstance(column.this, exp.Star) for column in node.find_all(exp.Column)
    )


def computes_each_row(node: exp.Expr) -> bool:
    """Return True if an expression has one value for each row, though PostgreSQL's own evaluation may fail on a row.

    The SQL that Keyhole writes for it does not.
    """
    return all(
        isinstance(part, (*_HARMLESS, *_SHOWN, *_COMPUTED, exp.Column, exp.Identifier))
        or (isinstance(part, exp.Anonymous) and str(part.this).lower() in _COMPUTED_BY_NAME)
        for part in node.walk()
    ) and not any(isinstance(column.this, exp.Star) for column in node.find_all(exp.Column))


def may_give_rows(node: exp.Expr) -> bool:
    """Return True if an expression calls a function of PostgreSQL that may give several rows for one, or none."""
    named = [str(part.this).lower() for part in node.find_all(exp.Anonymous)]
    by_name = any(one in _ROWS_BY_NAME or one.startswith(_ROWS_BY_START) for one in named)
    return by_name or contains_type(node, exp.GenerateSeries, exp.Explode)


def check_shown_expressions(
    select: exp.Select, scope: Scope, keys: tuple[Column, ...], expressions: frozenset[str] = frozenset()
) -> None:
    """Raise KH101 if the select list, DISTINCT ON or ORDER BY shows more than keys, `expressions` and constants."""
    if not select.expressions:
        raise refuse_shown_expression(select, "the select list is empty")
    for item in select.expressions:
        _check(item.this if isinstance(item, exp.Alias) else item, scope, keys, expressions)
    aliases = {read_name(item.args["alias"]) for item in select.expressions if isinstance(item, exp.Alias)}
    for item in _list_order_items(select):
        inner = strip_parentheses(item)
        bare_alias = (
            isinstance(inner, exp.Column) and inner.args.get("table") is None and read_name(inner.this) in aliases
        )
        if not bare_alias:
            _check(item, scope, keys, expressions)


def check_item(
    node: exp.Expr, scope: Scope, keys: tuple[Column, ...], expressions: frozenset[str] = frozenset()
) -> None:
    """Raise KH101 for anything but keys, grouped `expressions`, constants, and harmless expressions of these."""
    _check(node, scope, keys, expressions)


def _check(node: exp.Expr, scope: Scope, keys: tuple[Column, ...], expressions: frozenset[str]) -> None:
    if is_star(node):
        raise refuse_shown_expression(node, "* stands for columns that are not keys")
    column = find_column(node, scope)
    if column is not None and column in keys:
        return
    if expressions and (found := read_key_expression(node, scope)) is not None and found.text in expressions:
        return
    if column is not None and isinstance(node, exp.Column):
        raise refuse_shown_expression(node, f'"{column.name}" is not among the GROUP BY keys')
    if not isinstance(node, (*_HARMLESS, *_SHOWN)) and not _is_shown_by_name(node):
        raise refuse_shown_expression(node, f"{write_short(node)} is not a key or constant")
    for child in node.iter_expressions():
        if not isinstance(child, exp.Identifier):
            _check(child, scope, keys, expressions)


def check_beside_aggregates(
    node: exp.Expr, scope: Scope, keys: tuple[Column, ...], expressions: frozenset[str] = frozenset()
) -> None:
    """Raise KH101 for a column outside of all aggregates that is neither a key nor in a grouped expression.

    PostgreSQL refuses such a column as well.
    """
    column = find_column(node, scope)
    if column is not None and column in keys:
        return
    if expressions and (found := read_key_expression(node, scope)) is not None and found.text in expressions:
        return
    if isinstance(node, exp.Column) and column is not None:
        raise refuse_shown_expression(node, f'"{column.name}" is not among the GROUP BY keys')
    for child in list_group_parts(node):
        check_beside_aggregates(child, scope, keys, expressions)


def _is_shown_by_name(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in _SHOWN_BY_NAME
