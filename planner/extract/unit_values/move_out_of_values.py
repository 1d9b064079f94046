"""An expression of a unit's values, computed in the query that reads them and not in the subquery.

    (SELECT person, date_trunc('month', min(bought)) AS cohort FROM buys GROUP BY person) f ... GROUP BY f.cohort
    (SELECT person, min(bought) AS "min(bought)" FROM buys GROUP BY person) f
    ... GROUP BY (date_trunc('month', f."min(bought)"))

Guarantee: PostgreSQL gives the same rows for both, since a value of the subquery is read wherever its name stood. From
behind a LEFT JOIN no expression is moved but one that is NULL where its values are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.unit_values.find_sources import find_sources, list_columns, reads_values
from planner.bind.unit_values.read_rows import reads_totals
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.unit_values.value_names import name_values
from planner.parser.clauses import find_clauses, find_token, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier, spell_name
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import find_unaliased_end, list_readers, list_references
from planner.parser.tree import find_offset, read_name, strip_parentheses

_AGGREGATES = (exp.Filter, exp.AggFunc, exp.Window)
_NULL_OF_NULLS = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Paren, exp.Abs, exp.Floor, exp.Ceil, exp.Round),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.And, exp.Or, exp.Not),
    *(exp.Cast, exp.DataType, exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.Interval, exp.Var, exp.Literal),
)
"""Expressions that are NULL if all values in them are."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A subquery over one table, and the outer SELECT that reads it by an alias.

    It `is_padded` if the outer SELECT joins it with LEFT JOIN.
    """

    inner: exp.Select
    table: exp.Table
    outer: exp.Select
    alias: str
    is_padded: bool


def move_out_of_values(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that leave only plain values in the subqueries of units that a question reads.

    Return none if all values are plain.
    """
    try:
        for one in _list_reads(read):
            changes = _move_out(one, read)
            if changes:
                return changes
    except KeyholeError:
        return ()
    return ()


def _list_reads(read: PrivateRead) -> Iterator[_Read]:
    for source in find_sources(read.select):
        alone = source.cte is None or sum(1 for _ in list_references(source.cte)) == 1
        if (
            alone
            and reads_values(read.select, source)
            and read.catalog.find_table(read_name(source.table.this)) is not None
        ):
            is_padded = source.join is not None and bool(source.join.side)
            yield _Read(source.inner, source.table, read.select, source.alias, is_padded)
    if isinstance(read.select.parent, exp.Subquery | exp.CTE):
        found = list_readers(read.select, find_clauses(read.node, read.tokens).select, read.tokens) or ()
        if len(found) == 1 and found[0].is_only_source and _has_values(read, found[0].select):
            yield _Read(read.select, read.node, found[0].select, found[0].alias, is_padded=False)


def _has_values(read: PrivateRead, outer: exp.Select) -> bool:
    """Return True if a subquery that is read alone has windows over units, or totals that are grouped by around it."""
    inner = read.select
    if outer.args.get("group") is None and outer.args.get("having") is None:
        return False
    if inner.args.get("group") is not None:
        return reads_totals(outer, inner, read.table, read.node)
    distinct = inner.args.get("distinct")
    if distinct is not None:
        return distinct.args.get("on") is not None
    over = [window for item in inner.expressions for window in item.find_all(exp.Window)]
    return any(one.args.get("partition_by") for one in over)


def _move_out(read: _Read, where: PrivateRead) -> tuple[Edit, ...]:
    text, tokens = where.text, where.tokens
    place = find_clauses(read.table, tokens)
    if not matches_tree(place, read.inner, tokens) or len(place.items) != len(read.inner.expressions):
        return ()
    for item, (first, past) in zip(read.inner.expressions, place.items, strict=True):
        node = strip_parentheses(item.this) if isinstance(item, exp.Alias) else None
        if node is None or isinstance(node, (*_AGGREGATES, exp.Column)) or not _is_moved(node, read.inner):
            continue
        if read.is_padded and not _is_null_of_nulls(node):
            continue
        called = read_name(item.args["alias"])
        if any(read_name(column.this) == called for column in _list_sorting(read.inner)):
            return ()
        parts = list(_list_parts(node))
        end = find_unaliased_end(item, past, tokens)
        found = find_spans([SearchedNode(part, first, end) for part in parts], text, tokens)
        if len({begin for begin, _ in found}) < len(found):
            return ()
        inside, outside, at, places = [], [], tokens[first].start, sorted(found)
        written = [text[tokens[begin].start : tokens[stop - 1].end] for begin, stop in places]
        for (begin, stop), part, value in zip(places, written, name_values(written, where), strict=True):
            inside.append(f"{part} AS {quote_identifier(value)}")
            outside.append(text[at : tokens[begin].start])
            outside.append(f"{f'{spell_name(read.alias)}.' if read.alias else ''}{quote_identifier(value)}")
            at = tokens[stop - 1].end
        outside.append(text[at : tokens[end - 1].end])
        spelled = f"({''.join(outside)})"
        edits = [Edit.from_text(tokens[first].start, tokens[past - 1].end, ", ".join(inside), tokens[first].start)]
        for column in list_columns(read.outer):
            if read_name(column.this) == called and read_name(column.args.get("table")) in ("", read.alias):
                edits += _replace_name(column, spelled, called, read.outer, where)
        return tuple(edits)
    return ()


def _is_moved(node: exp.Expr, inner: exp.Select) -> bool:
    """Return True if an item of a subquery is computed of values, or of a row beside them."""
    if contains_aggregate(node):
        return True
    return inner.args.get("group") is None and node.find(exp.Column) is not None and node.find(exp.Query) is None


def _is_null_of_nulls(node: exp.Expr) -> bool:
    """Return True if an expression is NULL if its values are, as all columns behind LEFT JOIN without a row are."""
    if isinstance(node, _AGGREGATES):
        return True
    if isinstance(node, exp.And | exp.Or) and not all(map(contains_aggregate, (node.this, node.expression))):
        return False
    return isinstance(node, _NULL_OF_NULLS) and all(
        _is_null_of_nulls(child) for child in node.iter_expressions() if isinstance(child, exp.Expr)
    )


def _list_sorting(inner: exp.Select) -> Iterator[exp.Column]:
    """List the columns by which a subquery sorts: they may be names of its items."""
    for clause in (inner.args.get("order"), inner.args.get("distinct")):
        if clause is not None:
            yield from clause.find_all(exp.Column)


def _list_parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of an expression of values: its aggregates and windows, and columns beside windows."""
    if isinstance(node, (*_AGGREGATES, exp.Column)):
        yield node
        return
    for child in node.iter_expressions():
        if isinstance(child, exp.Expr):
            yield from _list_parts(child)


def _replace_name(
    column: exp.Column, spelled: str, called: str, outer: exp.Select, where: PrivateRead
) -> Iterator[Edit]:
    """Yield the edits that put the expression in the place of the name.

    It is shown under it where it is an item by itself.
    """
    shown = any(
        read_name(item.args["alias"]) == called if isinstance(item, exp.Alias) else item is column
        for item in outer.expressions
    )
    if isinstance(column.parent, exp.Ordered) and not column.args.get("table") and shown:
        return  # the name of what is shown
    table = column.args.get("table")
    start = where.tokens[find_token(where.tokens, find_offset(column.this if table is None else table))].start
    end = where.tokens[find_token(where.tokens, find_offset(column.this))].end
    label = f" AS {spell_name(called)}" if column.parent is outer and column.arg_key == "expressions" else ""
    yield Edit.from_text(start, end, f"{spelled}{label}", start)
