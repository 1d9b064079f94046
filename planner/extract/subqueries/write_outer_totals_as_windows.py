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
from planner.extract.subqueries.keep_groups import spell_around
from planner.extract.subqueries.same_groups import find_source
from planner.extract.subqueries.share_rows import SharedRows, find_shared_rows
from planner.extract.subqueries.write_totals_as_windows import (
    count_listed_groups,
    find_alike_keys,
    write_as_window,
    write_over_sizes,
)
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, find_conjuncts, list_readers, list_references
from planner.parser.tree import read_alias, read_name, strip_parentheses


def write_outer_totals_as_windows(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that turn scalar subqueries in the query around a grouped subquery into windows of the latter.

    Return none for other queries.
    """
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
    nodes = list(_list_subqueries(reader))
    shared = find_shared_rows(read, [node.this for node in nodes if not _reads_groups(node.this, read)], wraps=False)
    chosen = _choose_groups(reader, expressions, shared, read)
    if chosen is None or (chosen and any(_reads_groups(node.this, read) for node in nodes)):
        return []
    sizes = {name: shared.filter_own(node) for name, node in expressions.items() if items[name].is_aggregate}
    written: list[tuple[exp.Subquery, str]] = []
    for node in nodes:
        window = _write_one(node.this, reader, expressions, sizes, read, shared)
        if window is not None:
            written.append((node, window))
    own = {id(one) for node, _ in written for one in node.this.walk()}
    if all(" OVER (" not in window for _, window in written):
        return []
    if any(id(one.node) not in own for one in found if one is not reader):
        return []
    spans = find_spans([SearchedNode(node, reader.clauses.select, len(tokens)) for node, _ in written], text, tokens)
    called: dict[str, str] = {}
    changes = [*shared.edits, *chosen]
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
    """Yield the scalar subqueries in the select list, the WHERE and the ORDER BY of the SELECT around."""
    select = reader.select
    for part in (*select.expressions, select.args.get("where"), select.args.get("order")):
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
    shared: SharedRows,
) -> str | None:
    """Return a scalar subquery as an expression of windows inside. Return None if it reads other rows or groups."""
    source = find_source(inner)
    keys = {
        name: read_name(strip_parentheses(node).this)
        for name, node in expressions.items()
        if isinstance(strip_parentheses(node), exp.Column)
    }
    if _reads_groups(inner, read):
        plain = not any(value for key, value in inner.args.items() if key not in ("expressions", "from_", "where"))
        alias = source.args.get("alias") if source is not None else None
        named = alias is not None and alias.args.get("columns")
        if not plain or named or len(inner.expressions) != 1:
            return None
        own = read_alias(source) if isinstance(source, exp.Table) else ""
        alike = find_alike_keys(inner, own, reader.alias, keys=keys, own_keys=keys)
        shown = strip_parentheses(inner.expressions[0].unalias())
        if alike is None:
            return None
        return write_over_sizes(shown, own, sizes, partition=alike, groups=count_listed_groups(read, alike))
    return write_as_window(inner, read, shared, around=reader.alias, keys=keys)


def _choose_groups(
    reader: Reader, expressions: Mapping[str, exp.Expr], shared: SharedRows, read: PrivateRead
) -> list[Edit] | None:
    """Return the edits that let the WHERE around choose groups by their keys. Return None if it cannot."""
    if not shared.by_key:
        return []
    keys = {read_name(node.this): name for name, node in expressions.items() if isinstance(node, exp.Column)}
    named = {read_name(column.this) for one in shared.by_key for column in one.find_all(exp.Column)}
    found = find_conjuncts(reader.select, reader.clauses, read.tokens)
    if not found or not named <= set(keys):
        return None
    first, last = read.tokens[found[0][0][0]].start, read.tokens[found[-1][0][1] - 1].end
    condition = spell_around(shared.by_key, keys, reader.alias)
    return [Edit.from_text(first, first, f"{condition} AND ("), Edit.from_text(last, last, ")")]


def _reads_groups(inner: exp.Select, read: PrivateRead) -> bool:
    """Return True for a subquery over the WITH query of the groups."""
    source, parent = find_source(inner), read.select.parent
    return isinstance(parent, exp.CTE) and any(node is source for node in list_references(parent))


def _choose_name(known: set[str]) -> str:
    return next(one for number in range(1, len(known) + 2) if (one := f"total {number}") not in known)
