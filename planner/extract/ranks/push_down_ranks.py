"""Ranks by the sizes of a grouped subquery in the query around it, moved into its select list.

SELECT ward, rank() OVER (ORDER BY n DESC) AS place FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t
SELECT ward, t."rank 1" AS place
FROM (SELECT ward, rank() OVER (ORDER BY count(*) DESC) AS "rank 1" FROM visits GROUP BY ward) t

SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t ORDER BY n DESC LIMIT 5
SELECT ward FROM (SELECT ward, row_number() OVER (ORDER BY count(*) DESC) AS "rank 1" FROM visits GROUP BY ward) t
ORDER BY t."rank 1" LIMIT 5

PostgreSQL gives the same for both where the query around reads every row of the subquery, and nothing else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import (
    IN_QUESTION,
    Conjunct,
    Item,
    list_items,
    mentioned_item,
    mentions,
    plan_beside_sizes,
    seems_per_unit,
    spell_inside,
    without_aggregates,
)
from planner.parser.clauses import Clauses, clauses, end_of, fits
from planner.parser.edits import Edit, Room
from planner.parser.lexer import quote_identifier
from planner.parser.spans import Searched, spans
from planner.parser.subquery_readers import Reader, readers
from planner.parser.tree import bare, read_limit
from planner.scorecard.ranked import RANKS

_IN_READER = frozenset(("expressions", "from_", "with_", "order", "limit", "offset", "kind", "distinct"))


@dataclass(frozen=True, slots=True)
class _Moved:
    """What moves, by its tokens; `inside` goes around it there, and `label` behind its column here."""

    first: int
    past: int
    inside: str
    label: str


def push_down_ranks(read: PrivateRead) -> tuple[Edit, ...]:
    """The changes that move ranks into the SELECT from the query that alone reads it; none if there are none."""
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
    moved = [*_find_windows(reader, items, read), *_find_order(reader, items, read)]
    spans_moved = tuple(Conjunct(one.first, one.past, moves=True) for one in moved)
    if not moved or mentions(reader, items, spans_moved, tokens):
        return []
    room = Room(text)
    shown: dict[str, str] = {}
    changes: list[Edit] = []
    for one in moved:
        spelled = spell_inside(Conjunct(one.first, one.past, moves=True), reader, items, room, text, tokens)
        called = shown.setdefault(one.inside.format(spelled), _unused_name(len(shown), items))
        column = f"{quote_identifier(reader.alias)}.{quote_identifier(called)}{one.label}"
        changes.append(Edit.of(tokens[one.first].start, tokens[one.past - 1].end, column))
    added = "".join(f", {spelled} AS {quote_identifier(called)}" for spelled, called in shown.items())
    inside = without_aggregates(select, place, items, tokens)
    if inside is None:
        return []
    end = tokens[place.items[-1][1] - 1].end
    return [*changes, Edit.of(end, end, added, tokens[moved[0].first].start), *inside]


def _find_reader(read: PrivateRead) -> tuple[Clauses, Reader] | None:
    """The subquery's clauses and the one query that reads all of its rows, and nothing else."""
    select, node, tokens = read.select, read.node, read.tokens
    if not isinstance(select.parent, exp.Subquery | exp.CTE) or seems_per_unit(read):
        return None
    if any(value for key, value in select.args.items() if key not in IN_QUESTION - {"order"}):
        return None
    first_node = select.args["from_"].this
    place = clauses(first_node if isinstance(first_node, exp.Table) else node, tokens)
    found = readers(select, place.select, tokens) if fits(place, select, tokens) else None
    if found is None or len(found) != 1 or not found[0].alone or found[0].inner_queries():
        return None
    if any(value for key, value in found[0].select.args.items() if key not in _IN_READER):
        return None
    return place, found[0]


def _find_windows(reader: Reader, items: Mapping[str, Item], read: PrivateRead) -> Iterator[_Moved]:
    """The windows of the select list around that rank by an aggregate of the subquery."""
    found: list[tuple[exp.Window, Searched]] = []
    for item, (first, past) in zip(reader.select.expressions, reader.clauses.items, strict=True):
        for window in item.find_all(exp.Window):
            order = window.args.get("order")
            plain = not window.args.get("spec") and not window.args.get("alias") and isinstance(window.this, RANKS)
            if plain and order is not None and _is_ranked(order.expressions[0], reader, items):
                found.append((window, Searched(window, first, past)))
    places = spans([one for _, one in found], read.text, read.tokens)
    for (window, searched), (start, end) in zip(found, places, strict=True):
        alone = (start, end) == (searched.first, searched.past)
        label = f" AS {read.tokens[start].value}" if alone and window.parent is reader.select else ""
        yield _Moved(start, end, "{}", label)


def _find_order(reader: Reader, items: Mapping[str, Item], read: PrivateRead) -> Iterator[_Moved]:
    """The first item of ORDER BY around, if it is an aggregate of the subquery and LIMIT cuts what it orders."""
    order, tokens = reader.select.args.get("order"), read.tokens
    distinct = reader.select.args.get("distinct") is not None  # it may be ordered by what it shows alone
    if (
        order is None
        or distinct
        or read_limit(reader.select) is None
        or not _is_ranked(order.expressions[0], reader, items)
    ):
        return
    first = reader.clauses.end + 2
    past = end_of(tokens, first, before=("limit", "offset", "fetch", "for"), commas=True)
    yield _Moved(first, past, "row_number() OVER (ORDER BY {})", "")


def _is_ranked(ordered: exp.Expr, reader: Reader, items: Mapping[str, Item]) -> bool:
    column = bare(ordered.this) if isinstance(ordered, exp.Ordered) else ordered
    called = mentioned_item(column, reader, items) if isinstance(column, exp.Column) else None
    return called is not None and items[called].aggregate


def _unused_name(number: int, items: Mapping[str, Item]) -> str:
    while (called := f"rank {number + 1}") in items:
        number += 1
    return called
