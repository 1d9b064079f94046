"""A scalar subquery around a grouped subquery, over the same rows or groups, as the window inside that it is.

    WITH s AS (SELECT store, sum(revenue) AS r FROM sales GROUP BY store)
    SELECT store FROM s WHERE r > (SELECT avg(r) FROM s)

    WITH s AS (SELECT store, sum(revenue) AS r, avg(sum(revenue)) OVER () AS "total 1" FROM sales GROUP BY store)
    SELECT store FROM s WHERE r > s."total 1"

PostgreSQL gives the same for both: a window runs over all groups of the subquery, before the WHERE around leaves some
out. In `(SELECT sum(revenue) FROM sales)` both add up the same rows, if the subquery has no HAVING.
"""

from collections.abc import Iterator, Mapping

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import IN_QUESTION, is_kept_side, list_items, may_be_unit_query
from planner.extract.subqueries.same_groups import find_source
from planner.extract.subqueries.write_totals_as_windows import find_alike_keys, write_as_window, write_over_sizes
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, list_readers, list_references
from planner.parser.tree import read_alias, read_name, strip_parentheses


def write_outer_totals_as_windows(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that write scalar subqueries around a grouped subquery as its windows; none for others."""
    select = read.select
    if select.args.get("group") is None or select.args.get("having") is not None or select.args.get("joins"):
        return ()
    if any(value for key, value in select.args.items() if key not in IN_QUESTION):
        return ()
    try:
        return tuple(_write(read))
    except KeyholeError:
        return ()


def _write(read: PrivateRead) -> list[Edit]:
    select, text, tokens = read.select, read.text, read.tokens
    if find_source(select) is not read.node or not isinstance(select.parent, exp.Subquery | exp.CTE):
        return []
    if may_be_unit_query(read):
        return []  # its groups are privacy units
    place = find_clauses(read.node, tokens)
    found = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    items = list_items(select, place, tokens) if found else None
    if not found or items is None:
        return []
    readers = [one for one in found if not _is_scalar(one.select)]
    if len(readers) != 1 or not readers[0].alias or not is_kept_side(readers[0]):
        return []
    (reader,) = readers
    expressions = {name: item.unalias() for name, item in zip(items, select.expressions, strict=True)}
    sizes = {name: node for name, node in expressions.items() if items[name].is_aggregate}
    written: list[tuple[exp.Subquery, str]] = []
    for node in _list_subqueries(reader):
        window = _write_one(node.this, reader, expressions, sizes, read)
        if window is not None:
            written.append((node, window))
    own = {id(one) for node, _ in written for one in node.this.walk()}
    if not written or any(id(one.node) not in own for one in found if one is not reader):
        return []
    spans = find_spans([SearchedNode(node, reader.clauses.select, len(tokens)) for node, _ in written], text, tokens)
    called: dict[str, str] = {}
    changes: list[Edit] = []
    for (first, past), (_, window) in zip(spans, written, strict=True):
        if window not in called:
            called[window] = _choose_name({*items, *called.values()})
        column = f"{quote_identifier(reader.alias)}.{quote_identifier(called[window])}"
        changes.append(Edit.from_text(tokens[first].start, tokens[past - 1].end, column))
    shown = "".join(f", {window} AS {quote_identifier(name)}" for window, name in called.items())
    EditBudget(text).reserve(len(shown))
    end = tokens[place.items[-1][1] - 1].end
    return [*changes, Edit.from_text(end, end, shown, tokens[spans[0][0]].start)]


def _is_scalar(select: exp.Select) -> bool:
    """Return True if a SELECT is a scalar subquery: an expression of another SELECT."""
    return isinstance(select.parent, exp.Subquery) and not isinstance(select.parent.parent, exp.From | exp.Join)


def _list_subqueries(reader: Reader) -> Iterator[exp.Subquery]:
    """Yield the scalar subqueries in the select list and the WHERE of the SELECT around."""
    select = reader.select
    for part in (*select.expressions, select.args.get("where")):
        for node in part.find_all(exp.Subquery) if part is not None else ():
            within = isinstance(node.parent, exp.In | exp.Exists | exp.Any | exp.All)
            if isinstance(node.this, exp.Select) and node.find_ancestor(exp.Select) is select and not within:
                yield node


def _write_one(
    inner: exp.Select,
    reader: Reader,
    expressions: Mapping[str, exp.Expr],
    sizes: Mapping[str, exp.Expr],
    read: PrivateRead,
) -> str | None:
    """Return a scalar subquery as an expression of windows inside. Return None if it reads other rows or groups."""
    source = find_source(inner)
    parent = read.select.parent
    keys = {
        name: read_name(strip_parentheses(node).this)
        for name, node in expressions.items()
        if isinstance(strip_parentheses(node), exp.Column)
    }
    if isinstance(parent, exp.CTE) and any(node is source for node in list_references(parent)):
        plain = not any(value for key, value in inner.args.items() if key not in ("expressions", "from_", "where"))
        alias = source.args.get("alias") if source is not None else None
        named = alias is not None and alias.args.get("columns")
        if not plain or named or len(inner.expressions) != 1:
            return None
        own = read_alias(source) if isinstance(source, exp.Table) else ""
        alike = find_alike_keys(inner, own, reader.alias, keys=keys, own_keys=keys)
        shown = strip_parentheses(inner.expressions[0].unalias())
        return None if alike is None else write_over_sizes(shown, own, sizes, partition=alike)
    return write_as_window(inner, read, around=reader.alias, keys=keys)


def _choose_name(known: set[str]) -> str:
    return next(one for number in range(1, len(known) + 2) if (one := f"total {number}") not in known)
