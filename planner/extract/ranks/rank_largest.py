"""Comparisons with the largest or least group, turned into the first place of a ranking.

SELECT region, ward FROM (SELECT region, ward, count(*) AS n, max(count(*)) OVER (PARTITION BY region) AS m
FROM visits GROUP BY 1, 2) t WHERE n = m
SELECT region, ward FROM (SELECT region, ward, rank() OVER (PARTITION BY region ORDER BY count(*) DESC) AS n
FROM visits GROUP BY 1, 2) t WHERE n = 1

WITH q AS (SELECT ward, count(*) AS n FROM visits GROUP BY ward) SELECT ward FROM q WHERE n = (SELECT max(n) FROM q)
WITH q AS (SELECT ward, rank() OVER (ORDER BY count(*) DESC) AS n FROM visits GROUP BY ward)
SELECT ward FROM q WHERE n = 1

PostgreSQL gives the same for both; of groups that are level a ranking has one first (docs/asking.md, Rankings).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import find_mentioned_item, list_items, may_be_unit_query, plan_beside_sizes
from planner.parser.clauses import Clauses, find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import Token, quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, find_conjuncts, find_unaliased_end, list_readers
from planner.parser.tree import read_name, strip_parentheses
from planner.scorecard.find import shows_size
from planner.scorecard.ranked import is_size

_REACHES: Mapping[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
    exp.Max: (exp.EQ, exp.GTE),
    exp.Min: (exp.EQ, exp.LTE),
}
_MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.EQ: exp.EQ, exp.GTE: exp.LTE, exp.LTE: exp.GTE}
_IN_COMPARED = frozenset(("expressions", "from_", "where"))


@dataclass(frozen=True, slots=True)
class _Level:
    """A SELECT, with a test `is_size` of whether an expression in it is the size of a group."""

    select: exp.Select
    clauses: Clauses
    is_size: Callable[[exp.Expr], bool]


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a select list: its number, name and expression, the expression's tokens, and the item's `end`."""

    number: int
    name: str
    node: exp.Expr
    first: int
    stop: int
    end: int


@dataclass(frozen=True, slots=True)
class _Extreme:
    """max(x) or min(x) OVER (PARTITION BY ...)."""

    kind: type[exp.Expr]
    node: exp.Expr
    partition: tuple[exp.Expr, ...]


def rank_largest(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that rewrite a comparison of a size with the largest or least size as one of its rank with 1.

    Return none if there is no such comparison.
    """
    return plan_beside_sizes(read, _plan_edits)


def _plan_edits(read: PrivateRead) -> list[Edit]:
    select, tokens = read.select, read.tokens
    first_node = select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else read.node, tokens)
    if not matches_tree(place, select, tokens) or may_be_unit_query(read):
        return []
    for level in _list_levels(select, place, tokens):
        changes = _compare_in_list(level, read) or _compare_columns(level, read)
        if changes:
            return changes
    return _compare_with_query(select, place, read)


def _list_levels(select: exp.Select, place: Clauses, tokens: tuple[Token, ...]) -> Iterator[_Level]:
    """Yield the grouped SELECT, and the outer SELECT if it alone reads the grouped SELECT's rows."""
    yield _Level(select, place, is_size)
    found = list_readers(select, place.select, tokens) if isinstance(select.parent, exp.Subquery | exp.CTE) else None
    items = list_items(select, place, tokens)
    if items is None or found is None or len(found) != 1 or not found[0].is_only_source:
        return
    (reader,) = found

    def is_outer_size(node: exp.Expr) -> bool:
        called = find_mentioned_item(node, reader, items) if isinstance(node, exp.Column) else None
        return called is not None and items[called].is_aggregate

    yield _Level(reader.select, reader.clauses, is_outer_size)


def _compare_in_list(level: _Level, read: PrivateRead) -> list[Edit]:
    """Return the edits for `count(*) = max(count(*)) OVER ()` in the select list."""
    changes: list[Edit] = []
    for item, (first, past) in zip(level.select.expressions, level.clauses.items, strict=True):
        for node in item.find_all(exp.EQ, exp.GTE, exp.LTE):
            for own, other, kind in _list_sides(node):
                extreme = _read_extreme_size(other)
                if extreme is None or not _compares_with_extreme(own, extreme, kind, level):
                    continue
                written = [SearchedNode(one, first, past) for one in (node, own, *extreme.partition)]
                (start, end), *parts = find_spans(written, read.text, read.tokens)
                texts = [_copy_text(read, *part) for part in parts]
                rank = _write_rank(texts[0], texts[1:], extreme.kind)
                changes.append(Edit.from_text(read.tokens[start].start, read.tokens[end - 1].end, f"{rank} = 1"))
    return changes


def _compare_columns(level: _Level, read: PrivateRead) -> list[Edit]:
    """Return the edits for `n = m` in the outer WHERE, if `m` is the largest value of `n`."""
    tokens = read.tokens
    if not isinstance(level.select.parent, exp.Subquery | exp.CTE):
        return []
    found = list_readers(level.select, level.clauses.select, tokens)
    items = _list_items(level.select, level.clauses, tokens)
    if found is None or len(found) != 1 or items is None:
        return []
    (outer,) = found
    for (first, past), node in find_conjuncts(outer.select, outer.clauses, tokens) or ():
        for own, other, kind in _list_sides(strip_parentheses(node)):
            size, largest = _find_item(own, outer, items), _find_item(other, outer, items)
            extreme = None if largest is None else _read_extreme_size(largest.node)
            if size is None or largest is None or extreme is None:
                continue
            if not _compares_with_extreme(size.node, extreme, kind, level):
                continue
            if _mentions(outer, node, {size.name, largest.name}):
                return []
            written = [SearchedNode(one, largest.first, largest.stop) for one in extreme.partition]
            parts = [_copy_text(read, *part) for part in find_spans(written, read.text, tokens)]
            return [
                _write_rank_item(size, parts, extreme.kind, read),
                _drop_item(largest, items, level.clauses, tokens),
                _write_first_place(own, first, past, read),
            ]
    return []


def _compare_with_query(select: exp.Select, place: Clauses, read: PrivateRead) -> list[Edit]:
    """Return the edits of the reader of the WITH query q.

    They are for `n = (SELECT max(n) FROM q)` and `n >= ALL (SELECT n FROM q)`.
    """
    tokens = read.tokens
    found = list_readers(select, place.select, tokens) if isinstance(select.parent, exp.CTE) else None
    items = _list_items(select, place, tokens)
    if found is None or len(found) != 2 or items is None:
        return []
    for outer, inner in (found, found[::-1]):
        for (first, past), node in find_conjuncts(outer.select, outer.clauses, tokens) or ():
            for own, other, kind in _list_sides(strip_parentheses(node)):
                size = _find_item(own, outer, items)
                if size is None or not is_size(size.node) or not _is_extreme_of(other, size, kind, inner):
                    continue
                parts = _find_correlated_keys(outer, inner, items)
                if parts is None or _mentions(outer, node, {size.name}):
                    return []
                texts = [_copy_text(read, one.first, one.stop) for one in parts]
                extreme = exp.Max if _is_largest(other, kind) else exp.Min
                return [_write_rank_item(size, texts, extreme, read), _write_first_place(own, first, past, read)]
    return []


def _list_sides(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, type[exp.Expr]]]:
    """Yield both sides of a comparison, each once as the first, with its operator then."""
    if isinstance(node, exp.EQ | exp.GTE | exp.LTE):
        own, other = strip_parentheses(node.this), strip_parentheses(node.expression)
        yield own, other, type(node)
        yield other, own, _MIRRORED[type(node)]


def _read_extreme_size(node: exp.Expr) -> _Extreme | None:
    node = strip_parentheses(node)
    if not isinstance(node, exp.Window) or not isinstance(node.this, exp.Max | exp.Min):
        return None
    if any(node.args.get(clause) for clause in ("order", "spec", "alias")) or node.this.args.get("expressions"):
        return None
    return _Extreme(type(node.this), strip_parentheses(node.this.this), tuple(node.args.get("partition_by") or ()))


def _compares_with_extreme(size: exp.Expr, extreme: _Extreme, kind: type[exp.Expr], level: _Level) -> bool:
    size, largest = strip_parentheses(size), extreme.node
    if kind not in _REACHES[extreme.kind] or not level.is_size(size) or not level.is_size(largest):
        return False
    columns = isinstance(size, exp.Column) and isinstance(largest, exp.Column)
    return size == largest or (columns and read_name(size.this) == read_name(largest.this))


def _is_extreme_of(other: exp.Expr, size: _Item, kind: type[exp.Expr], inner: Reader) -> bool:
    """Return True if the other side of a comparison is a SELECT of a column's largest or least, which is reached."""
    query = strip_parentheses(other.this) if isinstance(other, exp.Subquery | exp.All) else other
    query = query.this if isinstance(query, exp.Subquery) else query
    if query is not inner.select or not inner.is_only_source or len(inner.select.expressions) != 1:
        return False
    if any(value for key, value in inner.select.args.items() if key not in _IN_COMPARED):
        return False
    shown = strip_parentheses(inner.select.expressions[0].unalias())
    if isinstance(other, exp.All):
        reached = kind in (exp.GTE, exp.LTE)
    else:
        reached = isinstance(shown, exp.Max | exp.Min) and kind in _REACHES[type(shown)]
        reached = reached and not shown.args.get("expressions")
        shown = strip_parentheses(shown.this) if reached else shown
    if not reached or not isinstance(shown, exp.Column) or read_name(shown.this) != size.name:
        return False
    return shown.args.get("db") is None and read_name(shown.args.get("table")) in ("", inner.alias)


def _is_largest(other: exp.Expr, kind: type[exp.Expr]) -> bool:
    return kind is exp.GTE if isinstance(other, exp.All) else other.find(exp.Max) is not None


def _find_correlated_keys(outer: Reader, inner: Reader, items: Sequence[_Item]) -> list[_Item] | None:
    """Return the keys that the subquery's WHERE compares with the outer SELECT's. Return None for any other WHERE."""
    where = inner.select.args.get("where")
    if where is None:
        return []
    found: list[_Item] = []
    for one in where.this.flatten() if isinstance(where.this, exp.And) else (where.this,):
        equal = strip_parentheses(one)
        left, right = (
            (strip_parentheses(equal.this), strip_parentheses(equal.expression))
            if isinstance(equal, exp.EQ)
            else (equal, equal)
        )
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column) or outer.alias == inner.alias:
            return None
        sides = {read_name(side.args.get("table")) for side in (left, right)}
        key = next((item for item in items if item.name == read_name(left.this) == read_name(right.this)), None)
        if sides not in ({outer.alias, inner.alias}, {outer.alias, ""}) or key is None or shows_size(key.node):
            return None
        found.append(key)
    return found


def _list_items(select: exp.Select, place: Clauses, tokens: tuple[Token, ...]) -> list[_Item] | None:
    """Return the named items of a select list. Return None if an item may be read by an unknown name."""
    found: list[_Item] = []
    if len(select.expressions) != len(place.items):
        return None
    for number, (item, (first, past)) in enumerate(zip(select.expressions, place.items, strict=True)):
        node = item.unalias()
        called = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else ""
        if not called and isinstance(node, exp.Column):
            called = read_name(node.this)
        if not called or called in {one.name for one in found}:
            return None
        found.append(
            _Item(number, called, strip_parentheses(node), first, find_unaliased_end(item, past, tokens), past)
        )
    return found


def _find_item(node: exp.Expr, outer: Reader, items: Sequence[_Item]) -> _Item | None:
    if not isinstance(node, exp.Column) or node.args.get("db") is not None:
        return None
    if read_name(node.args.get("table")) not in ("", outer.alias):
        return None
    return next((item for item in items if item.name == read_name(node.this)), None)


def _mentions(outer: Reader, conjunct: exp.Expr, names: set[str]) -> bool:
    """Return True if the SELECT around may read one of the columns elsewhere than in this condition."""
    within = {id(node) for node in conjunct.walk()}
    if any(isinstance(item, exp.Star) for item in outer.select.expressions):
        return True
    for column in outer.list_columns():
        qualifier, called = read_name(column.args.get("table")), read_name(column.this)
        if id(column) in within or qualifier not in ("", outer.alias):
            continue
        if isinstance(column.this, exp.Star) or called in names or (not qualifier and called == outer.alias):
            return True
    return any(join.args.get("using") or join.args.get("method") for join in outer.select.args.get("joins") or ())


def _write_rank(size: str, partition: Sequence[str], kind: type[exp.Expr]) -> str:
    parts = f"PARTITION BY {', '.join(partition)} " if partition else ""
    return f"rank() OVER ({parts}ORDER BY {size}{' DESC' if kind is exp.Max else ''})"


def _write_rank_item(size: _Item, partition: Sequence[str], kind: type[exp.Expr], read: PrivateRead) -> Edit:
    rank = _write_rank(_copy_text(read, size.first, size.stop), partition, kind)
    start, end = read.tokens[size.first].start, read.tokens[size.end - 1].end
    return Edit.from_text(start, end, f"{rank} AS {quote_identifier(size.name)}")


def _drop_item(item: _Item, items: Sequence[_Item], place: Clauses, tokens: tuple[Token, ...]) -> Edit:
    """Return the edit that drops an item of the select list.

    The last item is removed. An earlier item becomes the constant 1, as numbers in ORDER BY may count the items after
    it.
    """
    if item.number == len(items) - 1 and item.number > 0:
        return Edit.from_text(tokens[place.items[item.number - 1][1] - 1].end, tokens[item.end - 1].end, "")
    return Edit.from_text(tokens[item.first].start, tokens[item.end - 1].end, f"1 AS {quote_identifier(item.name)}")


def _write_first_place(own: exp.Expr, first: int, past: int, read: PrivateRead) -> Edit:
    table = f"{quote_identifier(read_name(own.args['table']))}." if own.args.get("table") else ""
    written = f"{table}{quote_identifier(read_name(own.this))} = 1"
    return Edit.from_text(read.tokens[first].start, read.tokens[past - 1].end, written)


def _copy_text(read: PrivateRead, first: int, past: int) -> str:
    return read.text[read.tokens[first].start : read.tokens[past - 1].end]
