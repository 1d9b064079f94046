"""Ranks by the sizes of a grouped subquery in the query around it, moved into its select list.

SELECT ward, rank() OVER (ORDER BY n DESC) AS place FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t
SELECT ward, t."rank 1" AS place
FROM (SELECT ward, rank() OVER (ORDER BY count(*) DESC) AS "rank 1" FROM visits GROUP BY ward) t

SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t ORDER BY n DESC LIMIT 5
SELECT ward FROM (SELECT ward, row_number() OVER (ORDER BY count(*) DESC) AS "rank 1" FROM visits GROUP BY ward) t
ORDER BY t."rank 1" LIMIT 5

SELECT DISTINCT ON (month) month, ward FROM (SELECT month, ward, count(*) AS n FROM visits GROUP BY 1, 2) t
ORDER BY month, n DESC
SELECT month, ward FROM (SELECT month, ward, row_number() OVER (PARTITION BY month ORDER BY count(*) DESC) AS "rank 1"
FROM visits GROUP BY 1, 2) t WHERE t."rank 1" = 1 ORDER BY month

PostgreSQL gives the same for both where the query around reads every row of the subquery, and nothing else. Sizes that
it shows stay in the subquery, where they are numbers of a question.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import (
    IN_QUESTION,
    Conjunct,
    SelectItem,
    add_thresholds,
    drop_aggregates,
    find_mentioned_item,
    list_items,
    list_outer_conjuncts,
    may_be_unit_query,
    plan_beside_sizes,
    reads_aggregates_elsewhere,
    spell_as_having,
    spell_item,
)
from planner.parser.clauses import Clauses, find_clauses, find_item_end, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import Token, quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import contains_type, is_star, read_limit, read_name, strip_parentheses
from planner.scorecard.shown_numbers import RANKS, is_cut_to_first

_IN_READER = frozenset(("expressions", "from_", "with_", "where", "order", "limit", "offset", "kind", "distinct"))
_ENDS_ORDER = ("limit", "offset", "fetch", "for")


@dataclass(frozen=True, slots=True)
class _MovedPart:
    """A moved part, by its tokens.

    `inner_text` is its text in the subquery, and `label` its name in the outer query.
    """

    first: int
    stop: int
    inner_text: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class _OuterQuery:
    """The query around a grouped subquery, with the subquery's columns by name."""

    reader: Reader
    items: Mapping[str, SelectItem]
    edit_budget: EditBudget
    text: str
    tokens: tuple[Token, ...]

    def spell(self, first: int, past: int) -> str:
        """Return some tokens as the subquery says them."""
        conjunct = Conjunct(first, past, can_move=True)
        return spell_as_having(conjunct, self.reader, self.items, self.edit_budget, self.text, self.tokens)

    def find_item(self, node: exp.Expr) -> SelectItem | None:
        """Return the subquery's column that an item of ORDER BY or DISTINCT ON names, itself, by place or by alias."""
        select, inner = self.reader.select, strip_parentheses(node)
        shown: list[exp.Expr] = []
        if isinstance(inner, exp.Literal) and inner.name.isdecimal() and not inner.is_string:
            shown = list(select.expressions[int(inner.name) - 1 :][:1]) if inner.name != "0" else []
            if any(map(is_star, select.expressions)) or not shown:
                return None
        elif isinstance(inner, exp.Column) and not inner.args.get("table"):
            called = read_name(inner.this)
            shown = [
                one for one in select.expressions if isinstance(one, exp.Alias) and _read_output_name(one) == called
            ]
        if len(shown) > 1:
            return None
        column = strip_parentheses(shown[0].unalias()) if shown else inner
        found = find_mentioned_item(column, self.reader, self.items) if isinstance(column, exp.Column) else None
        return None if found is None else self.items[found]

    def list_order(self) -> Iterator[tuple[exp.Expr, int, int]]:
        """Yield the items of ORDER BY, each with its tokens."""
        first = self.reader.clauses.end + 2
        for item in self.reader.select.args["order"].expressions:
            past = find_item_end(self.tokens, first, before=_ENDS_ORDER, stops_at_commas=True)
            yield item, first, past
            first = past + 1

    def spell_order(self, item: SelectItem, first: int, past: int) -> str:
        """Return an item of ORDER BY that names a column of the subquery, as the subquery orders by it."""
        start = past
        while start > first + 1 and self.tokens[start - 1].is_word("asc", "desc", "nulls", "first", "last"):
            start -= 1
        direction = "".join(f" {token.value.upper()}" for token in self.tokens[start:past])
        return spell_item(item, self.edit_budget, self.text, self.tokens) + direction


def push_down_ranks(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that move ranks from the only reader of a SELECT into the SELECT. Return none without a rank."""
    return plan_beside_sizes(read, _plan_moves)


def _plan_moves(read: PrivateRead) -> list[Edit]:
    select, text, tokens = read.select, read.text, read.tokens
    found = _find_reader(read)
    if found is None:
        return []
    place, reader = found
    items = list_items(select, place, tokens)
    if items is None or not reader.alias:
        return []
    around = _OuterQuery(reader, items, EditBudget(text), text, tokens)
    windows = list(_find_windows(around))
    first_of_each = _find_first_of_each(around)
    moved = [*windows, *([first_of_each] if first_of_each is not None else _find_order_rank(around))]
    conditions = _list_conditions(around)
    if conditions is None:
        return []
    if any(not one.can_move for one in conditions) and _compares_groups(around, select, conditions):
        if first_of_each is not None:
            return []
        # the query around ranks the groups that its conditions leave, by their places among all groups
        moved = [*_find_orders_of_windows(around), *_find_order_rank(around)]
        conditions = tuple(one for one in conditions if one.can_move)
    if any(one.inner_text.lower().count("order by") > 1 for one in moved):
        # what ranks reads other groups: conditions are columns, which leave out no group that it reads
        moved += [
            _MovedPart(one.first, one.stop, around.spell(one.first, one.stop)) for one in conditions if one.can_move
        ]
        conditions = ()
    spans_moved = (*(Conjunct(one.first, one.stop, can_move=True) for one in moved), *conditions)
    is_shown = reads_aggregates_elsewhere(reader, items, spans_moved, tokens)
    if not moved or (is_shown and not _may_show(around, read)):
        return []
    shown: dict[str, str] = {}
    changes: list[Edit] = list(_write_out_stars(around)) if is_shown else []
    if conditions:
        spelled = [around.spell(one.first, one.stop) for one in conditions]
        changes += [Edit.from_text(tokens[one.first].start, tokens[one.stop - 1].end, "true") for one in conditions]
        changes += add_thresholds(select, place, spelled, tokens[conditions[0].first].start, tokens)
    for one in moved:
        called = shown.setdefault(one.inner_text, _choose_unused_name(len(shown), items))
        column = f"{quote_identifier(reader.alias)}.{quote_identifier(called)}"
        if first_of_each is not None and one is first_of_each:
            changes += _keep_first_rank(one, column, around)
        else:
            changes.append(Edit.from_text(tokens[one.first].start, tokens[one.stop - 1].end, column + one.label))
    added = "".join(f", {spelled} AS {quote_identifier(called)}" for spelled, called in shown.items())
    inside = [] if is_shown else drop_aggregates(select, place, items, tokens)
    if inside is None:
        return []
    end = tokens[place.items[-1][1] - 1].end
    return [*changes, Edit.from_text(end, end, added, tokens[moved[0].first].start), *inside]


def _list_conditions(around: _OuterQuery) -> tuple[Conjunct, ...] | None:
    """Return the conditions of the outer WHERE on the subquery's keys and sizes. Return None if it has others.

    Those that read sizes can move. A condition on keys alone is true of whole groups.
    """
    reader, items = around.reader, around.items
    where = reader.select.args.get("where")
    for column in where.find_all(exp.Column) if where is not None else ():
        if find_mentioned_item(column, reader, items) is None:
            return None
    return list_outer_conjuncts(reader, items, around.tokens)


def _compares_groups(around: _OuterQuery, select: exp.Select, conditions: Sequence[Conjunct]) -> bool:
    """Return True if the subquery compares groups with others, or if conditions that move into it do.

    A condition on keys in its HAVING would leave groups out of the total.
    """
    having = select.args.get("having")
    parts = (*select.expressions, *(() if having is None else (having,)))
    if any(contains_type(part, exp.Window, exp.Query) for part in parts):
        return True
    spelled = (around.spell(one.first, one.stop).lower() for one in conditions if one.can_move)
    return any("over" in one or "select" in one for one in spelled)


def _may_show(around: _OuterQuery, read: PrivateRead) -> bool:
    """Return True if the sizes that the query around reads beside its ranks may be numbers of a question."""
    reader, items = around.reader, around.items
    if read.catalog.defaults.numbers == "refuse":
        return False
    limit = reader.select.args.get("limit")
    if limit is not None and not is_cut_to_first(reader.select):
        return False  # what tools cut any answer to
    whole = reader.alias not in items and any(
        not column.args.get("table") and read_name(column.this) == reader.alias for column in reader.list_columns()
    )
    stars = [item for item in reader.select.expressions if is_star(item)]
    return not whole and all(map(is_plain_star, stars))


def _write_out_stars(around: _OuterQuery) -> Iterator[Edit]:
    """Write a star in the select list as the columns that it stands for, without the ranks that are added to them."""
    tokens, reader = around.tokens, around.reader
    table = quote_identifier(reader.alias)
    listed = ", ".join(f"{table}.{quote_identifier(called)}" for called in around.items)
    for item, (first, past) in zip(reader.select.expressions, reader.clauses.items, strict=True):
        if is_star(item):
            yield Edit.from_text(tokens[first].start, tokens[past - 1].end, listed)


def is_plain_star(item: exp.Expr) -> bool:
    """Return True for a star that means all columns."""
    return not any(node.args.get(one) for node in item.walk() for one in ("except_", "replace", "rename"))


def _find_reader(read: PrivateRead) -> tuple[Clauses, Reader] | None:
    """Return the subquery's clauses and the one query that reads all of its rows, and nothing else."""
    select, node, tokens = read.select, read.node, read.tokens
    if not isinstance(select.parent, exp.Subquery | exp.CTE) or may_be_unit_query(read):
        return None
    if any(value for key, value in select.args.items() if key not in IN_QUESTION - {"order"}):
        return None
    first_node = select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else node, tokens)
    found = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    if found is None or len(found) != 1 or not found[0].is_only_source or found[0].has_inner_queries():
        return None
    if any(value for key, value in found[0].select.args.items() if key not in _IN_READER):
        return None
    return place, found[0]


def _find_windows(around: _OuterQuery) -> Iterator[_MovedPart]:
    """Yield the windows of the select list around that rank by an aggregate of the subquery."""
    reader, tokens = around.reader, around.tokens
    found: list[tuple[exp.Window, SearchedNode]] = []
    for item, (first, past) in zip(reader.select.expressions, reader.clauses.items, strict=True):
        windows = (one for one in item.find_all(exp.Window) if _ranks_by_size(one, around))
        found += [(window, SearchedNode(window, first, past)) for window in windows]
    places = find_spans([one for _, one in found], around.text, tokens)
    for (window, searched), (start, end) in zip(found, places, strict=True):
        alone = (start, end) == (searched.first, searched.stop)
        label = f" AS {tokens[start].value}" if alone and window.parent is reader.select else ""
        yield _MovedPart(start, end, around.spell(start, end), label)


def _find_orders_of_windows(around: _OuterQuery) -> Iterator[_MovedPart]:
    """Yield the sizes by which windows around rank, each as a place to move into the subquery."""
    tokens = around.tokens
    sizes: list[SearchedNode] = []
    for item, (first, past) in zip(around.reader.select.expressions, around.reader.clauses.items, strict=True):
        windows = (one for one in item.find_all(exp.Window) if _ranks_by_size(one, around))
        sizes += [SearchedNode(one.args["order"].expressions[0].this, first, past) for one in windows]
    for start, end in find_spans(sizes, around.text, tokens):
        past = end
        while past < len(tokens) and tokens[past].is_word("asc", "desc", "nulls", "first", "last"):
            past += 1
        yield _MovedPart(start, past, f"row_number() OVER (ORDER BY {around.spell(start, past)})")


def _ranks_by_size(window: exp.Window, around: _OuterQuery) -> bool:
    order = window.args.get("order")
    plain = not window.args.get("spec") and not window.args.get("alias") and isinstance(window.this, RANKS)
    return plain and order is not None and _is_ranked(order.expressions[0], around)


def _is_ranked(ordered: exp.Expr, around: _OuterQuery) -> bool:
    """Return True for an expression of the subquery's columns that reads a size, without windows of its own."""
    return not contains_type(ordered, exp.Window) and _computes_size(ordered, around)


def _find_order_rank(around: _OuterQuery) -> Iterator[_MovedPart]:
    """Yield the outer query's first ORDER BY item as a rank to move into the subquery.

    Yield nothing unless the item is one of the subquery's aggregates and the outer query has LIMIT.
    """
    select = around.reader.select
    distinct = select.args.get("distinct") is not None  # it may be ordered by what it shows alone
    if select.args.get("order") is None or distinct or read_limit(select) is None:
        return
    ordered, first, past = next(around.list_order())
    item = around.find_item(ordered.this)
    if item is not None and item.is_aggregate:
        yield _MovedPart(first, past, f"row_number() OVER (ORDER BY {around.spell_order(item, first, past)})")
        return
    is_column = isinstance(strip_parentheses(ordered.this), exp.Column)
    if item is None and not is_column and _computes_size(ordered, around):
        yield _MovedPart(first, past, f"row_number() OVER (ORDER BY {around.spell(first, past)})")


def _computes_size(node: exp.Expr, around: _OuterQuery) -> bool:
    """Return True for an expression of the subquery's columns that reads a size. Its windows then read all groups."""
    mentioned = [find_mentioned_item(column, around.reader, around.items) for column in node.find_all(exp.Column)]
    if contains_type(node, exp.Window) and around.reader.select.args.get("where") is not None:
        return False
    return None not in mentioned and any(one is not None and around.items[one].is_aggregate for one in mentioned)


def _find_first_of_each(around: _OuterQuery) -> _MovedPart | None:
    """Return the items of ORDER BY around that decide which row DISTINCT ON keeps of each group, as a rank."""
    select = around.reader.select
    distinct, order = select.args.get("distinct"), select.args.get("order")
    on = None if distinct is None else distinct.args.get("on")
    if on is None or order is None:
        return None
    each = [around.find_item(one) for one in on.expressions]
    listed = [(around.find_item(item.this), first, past) for item, first, past in around.list_order()]
    known = [(item, first, past) for item, first, past in listed if item is not None]
    if len(known) != len(listed) or len(known) <= len(each):
        return None
    before, behind = known[: len(each)], known[len(each) :]
    sizes = [index for index, (item, _, _) in enumerate(known) if item.is_aggregate]
    if {item for item, _, _ in before} != set(each) or sizes != [len(each)]:
        return None
    partition = ", ".join(spell_item(item, around.edit_budget, around.text, around.tokens) for item, _, _ in before)
    ordered = ", ".join(around.spell_order(*one) for one in behind)
    inside = f"row_number() OVER (PARTITION BY {partition} ORDER BY {ordered})"
    return _MovedPart(behind[0][1], behind[-1][2], inside)


def _keep_first_rank(moved: _MovedPart, column: str, around: _OuterQuery) -> Iterator[Edit]:
    """Yield the edits that write WHERE for DISTINCT ON, which leaves its order."""
    tokens, place = around.tokens, around.reader.clauses
    yield Edit.from_text(tokens[place.select].end, tokens[place.items[0][0]].start, " ")
    end = tokens[place.end - 1].end
    added = "WHERE" if place.find_mark("where") is None else "AND"
    yield Edit.from_text(end, end, f" {added} {column} = 1", tokens[moved.first].start)
    yield Edit.from_text(tokens[moved.first - 2].end, tokens[moved.stop - 1].end, "")


def _read_output_name(item: exp.Alias) -> str:
    return read_name(item.args["alias"])


def _choose_unused_name(number: int, items: Mapping[str, SelectItem]) -> str:
    while (called := f"rank {number + 1}") in items:
        number += 1
    return called
