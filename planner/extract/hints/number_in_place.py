"""A question that compares rows with an aggregate over all rows, with a number in the place of that.

l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)
l_quantity < (0.2 * 25.5)
"""

from decimal import Decimal

from sqlglot import exp

from planner.catalog.catalog import Catalog, Table
from planner.extract.hints.answerable_questions import INSTEAD
from planner.extract.private_read import ParsedQuestion
from planner.parser.clauses import find_closing, find_opening, find_token
from planner.parser.tree import contains_type, find_offset, read_name, strip_parentheses, write_node


def replace_by_number(place: ParsedQuestion, inner: exp.Query) -> str | None:
    """Return the question with a number that replaces a measure's mean, least or greatest value over all rows.

    The number is the middle of the measure's public bounds. Return None if the subquery does not compute one of these
    values of one private table.
    """
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    value = _write_value(inner, place)
    source = inner.args.get("from_")
    if value is None or source is None:
        return None
    tokens = place.tokens
    first = find_opening(tokens, find_token(tokens, find_offset(source.this.this)))
    if first is None:
        return None
    last = find_closing(tokens, first)
    start, end = tokens[place.clauses.select].start, tokens[place.clauses.end - 1].end
    text = f"{place.text[start : tokens[first].start]}({value}){place.text[tokens[last].end : end]}"
    return f"{INSTEAD}{' '.join(text.split())};"


def _write_value(inner: exp.Query, place: ParsedQuestion) -> str | None:
    if not isinstance(inner, exp.Select) or len(inner.expressions) != 1 or inner.args.get("joins"):
        return None
    if not contains_type(inner.expressions[0], exp.Avg, exp.Min, exp.Max):
        return None
    table = _find_table(inner, place.catalog)
    if table is None:
        return None
    known = {column.name: column for column in table.columns}
    value = inner.expressions[0].copy()

    def put_middle(node: exp.Expr) -> exp.Expr:
        column = strip_parentheses(node.this) if isinstance(node, exp.Avg | exp.Min | exp.Max) else None
        found = known.get(read_name(column.this)) if isinstance(column, exp.Column) else None
        if found is None or found.bounds is None:
            return node
        return exp.Literal.number(f"{(sum(found.bounds) / Decimal(2)).normalize():f}")

    written = exp.Paren(this=value).transform(put_middle).this
    return None if contains_type(written, exp.AggFunc, exp.Column, exp.Query) else write_node(written)


def _find_table(inner: exp.Select, catalog: Catalog | None) -> Table | None:
    source = inner.args.get("from_")
    if catalog is None or source is None or not isinstance(source.this, exp.Table):
        return None
    return next((table for table in catalog.tables if table.name == read_name(source.this.this)), None)
