"""A query that computes windows, or arithmetic with them, from the sizes of a grouped subquery, merged into it.

    `SELECT month, n, lag(n) OVER (ORDER BY month) AS b FROM (SELECT month, count(*) AS n FROM sales GROUP BY 1) g`
    `SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month`

PostgreSQL gives the same for both: the query around has a row for each group, and its WHERE leaves some of them, as
HAVING does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES
from planner.bind.shown_expressions import computes_each_row
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import (
    Conjunct,
    SelectItem,
    find_mentioned_item,
    list_items,
    may_be_unit_query,
    plan_beside_sizes,
    spell_as_having,
    spell_item,
)
from planner.extract.ranks.push_down_ranks import is_plain_star
from planner.extract.subqueries.pull_up_subqueries import find_output_name, is_sorted_by, remove_cte
from planner.parser.clauses import Clauses, find_clauses, find_item_end, find_token, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import Token, spell_name
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import contains_type, find_offset, is_star, locate_name, read_name, strip_parentheses
from planner.values.group_statistics import SPREADS

_IN_SUBQUERY = frozenset(("expressions", "from_", "joins", "where", "group", "having"))
_IN_READER = frozenset(("expressions", "from_", "with_", "where", "order"))
_OVER_SIZES = (exp.Sum, exp.Avg, exp.Max, exp.Min, exp.FirstValue, exp.LastValue, exp.Lag, exp.Lead, *SPREADS)
_COMPARED = (exp.Predicate, exp.Case)
_KEEPS_LABEL = (exp.Binary, exp.Not, exp.Between, exp.Window, exp.In)


@dataclass(frozen=True, slots=True)
class _Merged:
    """A grouped subquery with its columns by name, and the one query that reads it."""

    read: PrivateRead
    place: Clauses
    items: Mapping[str, SelectItem]
    nodes: Mapping[str, exp.Expr]
    reader: Reader
    room: EditBudget

    def spell(self, called: str) -> str:
        """Return the expression of a column of the subquery."""
        return spell_item(self.items[called], self.room, self.read.text, self.read.tokens)


def merge_window_queries(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that merge a grouped SELECT with its reader, which has windows over its aggregates.

    Return none if several queries read the SELECT, or none has such windows.
    """
    return plan_beside_sizes(read, _plan_edits)


def _plan_edits(read: PrivateRead) -> list[Edit]:
    found = _find_merged(read)
    if found is None or not _reads_windows(found):
        return []
    source = _write_source(found)
    changes = None if source is None else list(_edit_columns(found) or ())
    if source is None or not changes:
        return []
    tokens, around = read.tokens, found.reader.clauses
    start, end = tokens[around.source + 1].start, tokens[around.end - 1].end
    changes.append(Edit.from_text(start, end, source, tokens[found.place.source + 1].start))
    if isinstance(read.select.parent, exp.CTE):
        changes.append(remove_cte(read.select.parent, found.place, tokens))
    return changes


def _find_merged(read: PrivateRead) -> _Merged | None:
    select, tokens = read.select, read.tokens
    if not isinstance(select.parent, exp.Subquery | exp.CTE) or may_be_unit_query(read):
        return None
    if any(value for key, value in select.args.items() if key not in _IN_SUBQUERY):
        return None
    first = select.args["from_"].this
    place = find_clauses(first if isinstance(first, exp.Table) else read.node, tokens)
    readers = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    items = list_items(select, place, tokens)
    if items is None or readers is None or len(readers) != 1:
        return None
    (reader,) = readers
    around = reader.select
    if not reader.is_only_source or reader.has_inner_queries():
        return None
    if any(value for key, value in around.args.items() if key not in _IN_READER):
        return None
    nodes = dict(zip(items, (item.unalias() for item in select.expressions), strict=True))
    called = [one for one in around.find_all(exp.AggFunc) if one.find_ancestor(exp.Select) is around]
    if not all(map(_gives_one_value, nodes.values())) or not all(map(_is_of_window, called)):
        return None
    return _Merged(read, place, items, nodes, reader, EditBudget(read.text))


def _gives_one_value(node: exp.Expr) -> bool:
    """Return True for an expression that gives one value for each group, and no rows of its own."""
    inner: exp.Expr = exp.Paren(this=node.copy())
    for called in list(inner.find_all(*AGGREGATES)):
        called.replace(exp.Null())
    return computes_each_row(inner)


def _is_of_window(node: exp.Expr) -> bool:
    """Return True for an aggregate that OVER follows, which is none of the groups together."""
    while isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _reads_windows(found: _Merged) -> bool:
    """Return True for windows over sizes around a subquery without windows, or a query around windows inside."""
    around = found.reader.select
    windows = list(around.find_all(exp.Window))
    own = [one for one in windows if one.find_ancestor(exp.Select) is around]
    if any(contains_type(node, exp.Window) for node in found.nodes.values()):
        if around.args.get("where") is not None or any(_reads_window(one, found) for one in own):
            return False
        if not own:
            return _is_read(around)
    if not own and _is_read(around) and around.args.get("where") is None:
        return _computes_sizes(found) and around.root().find(exp.Window) is not None
    called = [
        strip_parentheses(one.this)
        for one in own
        if _is_read(around) or one.find_ancestor(*_COMPARED, exp.Select) is not around
    ]
    return any(isinstance(one, _OVER_SIZES) and _reads_size(one, found) for one in called)


def _computes_sizes(found: _Merged) -> bool:
    """Return True if the query around shows an expression of a size, such as coalesce, for windows further out."""
    items = (strip_parentheses(item.unalias()) for item in found.reader.select.expressions)
    return any(isinstance(item, exp.Coalesce) and _reads_size(item, found) for item in items)


def _reads_window(node: exp.Expr, found: _Merged) -> bool:
    """Return True if a window around reads one of the subquery."""
    named = (find_mentioned_item(column, found.reader, found.items) for column in node.find_all(exp.Column))
    return any(one is not None and contains_type(found.nodes[one], exp.Window) for one in named)


def _is_read(select: exp.Select) -> bool:
    """Return True for a query that another one reads, which may compare what this one shows."""
    return isinstance(select.parent, exp.Subquery | exp.CTE)


def _reads_size(node: exp.Expr, found: _Merged) -> bool:
    named = (find_mentioned_item(column, found.reader, found.items) for column in node.find_all(exp.Column))
    return any(one is not None and found.items[one].is_aggregate for one in named)


def _edit_columns(found: _Merged) -> list[Edit] | None:
    """Return the changes to the select list and ORDER BY around. Return None for a name that is uncertain."""
    reader, tokens = found.reader, found.read.tokens
    select, place = reader.select, reader.clauses
    if len(select.expressions) != len(place.items):
        return None
    outputs = [find_output_name(item) for item in select.expressions]
    changes: dict[int, Edit] = {}
    for item, (first, past) in zip(select.expressions, place.items, strict=True):
        if is_star(item):
            if not is_plain_star(item):
                return None
            listed = ", ".join(f"{found.spell(called)} AS {spell_name(called)}" for called in found.items)
            changes[tokens[first].start] = Edit.from_text(tokens[first].start, tokens[past - 1].end, listed)
        elif isinstance(strip_parentheses(item), exp.Column):
            end = tokens[past - 1].end
            changes[-end] = Edit.from_text(end, end, f" AS {spell_name(find_output_name(item))}")
        elif not isinstance(item, exp.Alias) and not isinstance(strip_parentheses(item), _KEEPS_LABEL):
            return None
    where = (tokens[place.source].start, tokens[place.end - 1].end)
    for column in reader.list_columns():
        start = locate_name(column)
        if where[0] <= start < where[1] or isinstance(column.this, exp.Star):
            continue
        if not column.args.get("table") and read_name(column.this) in outputs and is_sorted_by(column, select):
            continue
        called = find_mentioned_item(column, reader, found.items)
        if called is None or (is_sorted_by(column, select) and not found.items[called].is_aggregate):
            return None  # a name there means what is shown, and a number means a place
        begin = tokens[find_token(tokens, start)].start
        end = tokens[find_token(tokens, find_offset(column.this))].end
        changes[begin] = Edit.from_text(begin, end, found.spell(called))
    return list(changes.values())


def _write_source(found: _Merged) -> str | None:
    """Return what follows FROM in the subquery, with the WHERE around. Return None for a part that is uncertain.

    The WHERE around leaves some of the groups, as HAVING does.
    """
    place, text, tokens = found.place, found.read.text, found.read.tokens
    first = min(index for _, index in place.marks)
    parts = [text[tokens[place.source + 1].start : tokens[first - 1].end]]
    around, grouped = _write_where_around(found), _write_groups(found)
    if around is None or grouped is None:
        return None
    where, having = (place.get_text(word, text, tokens)[len(word) :].strip() for word in ("where", "having"))
    at = place.find_mark("having")
    own = having if at is None else _parenthesise(having, tokens[at : place.end])
    kept = " AND ".join(filter(None, (own, around)))
    clauses = (("WHERE", where), ("GROUP BY", grouped), ("HAVING", kept))
    return " ".join([*parts, *(f"{word} {said}" for word, said in clauses if said)])


def _parenthesise(condition: str, tokens: Sequence[Token]) -> str:
    return f"({condition})" if any(token.is_word("or") for token in tokens) else condition


def _write_where_around(found: _Merged) -> str | None:
    """Return the outer WHERE as text in the subquery's names. Return None if a name is uncertain."""
    reader, tokens = found.reader, found.read.tokens
    where, at = reader.select.args.get("where"), reader.clauses.find_mark("where")
    if where is None or at is None:
        return "" if where is None and at is None else None
    if any(find_mentioned_item(column, reader, found.items) is None for column in where.find_all(exp.Column)):
        return None
    conjunct = Conjunct(at + 1, reader.clauses.end, can_move=True)
    condition = spell_as_having(conjunct, reader, found.items, found.room, found.read.text, tokens)
    return _parenthesise(condition, tokens[at : reader.clauses.end])


def _write_groups(found: _Merged) -> str | None:
    """Return the items of GROUP BY without numbers and names of the select list. Return None for other groupings."""
    group, text, tokens = found.read.select.args["group"], found.read.text, found.read.tokens
    at = found.place.find_mark("group")
    if at is None or any(value for key, value in group.args.items() if key != "expressions"):
        return None
    spans = list(_list_spans(at + 2, found))
    if len(spans) != len(group.expressions):
        return None
    written: list[str] = []
    table = found.read.table
    columns = {column.name for column in table.columns} | {band.name for band in table.band_columns}
    for node, (first, past) in zip(map(strip_parentheses, group.expressions), spans, strict=True):
        name = read_name(node.this) if isinstance(node, exp.Column) and not node.args.get("table") else ""
        is_column = name in columns
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            return None
        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(node.name) if node.name.isdecimal() else 0
            if not 1 <= number <= len(found.items):
                return None
            written.append(found.spell(list(found.items)[number - 1]))
        elif name in found.items and not is_column:
            if found.read.select.args.get("joins") and _find_name(found.nodes[name]) != name:
                return None  # it may be a column of the other table
            written.append(found.spell(name))
        else:
            written.append(text[tokens[first].start : tokens[past - 1].end])
    return ", ".join(written)


def _find_name(node: exp.Expr) -> str:
    return read_name(node.this) if isinstance(node, exp.Column) else ""


def _list_spans(first: int, found: _Merged) -> Iterator[tuple[int, int]]:
    """Yield the tokens of each item of GROUP BY."""
    tokens, past = found.read.tokens, found.place.end
    while first < past:
        end = min(find_item_end(tokens, first, before=("having",), stops_at_commas=True), past)
        yield first, end
        if end >= past or not tokens[end].is_symbol(","):
            return
        first = end + 1
