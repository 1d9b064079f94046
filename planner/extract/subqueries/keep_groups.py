"""Conditions on the keys of a question, written around it: its totals then read all groups.

    SELECT ward FROM visits WHERE ward IN ('A', 'B') GROUP BY ward HAVING count(*) > 0.1 * (SELECT count(*) FROM visits)

    SELECT groups.ward FROM (
      SELECT ward FROM visits GROUP BY ward HAVING count(*) > 0.1 * (SELECT count(*) FROM visits)
    ) groups WHERE groups.ward IN ('A', 'B')

PostgreSQL returns the same: rows of a group are alike in its keys. So WHERE leaves a group whole, or nothing of it.
"""

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.same_groups import read_items
from planner.parser.clauses import Clauses, find_item_end
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import read_name, strip_parentheses, write_node
from planner.scope.group_by import resolve_position
from planner.scorecard.ranked import is_size

_AROUND = "groups"
_ENDS_ORDER = ("limit", "offset", "fetch", "for")
_KEPT = frozenset(("expressions", "from_", "where", "group", "having", "order", "limit", "offset", "with_"))


def keep_groups(
    conditions: Sequence[exp.Expr],
    removed: Sequence[tuple[int, int]],
    in_having: Sequence[tuple[tuple[int, int], exp.Expr]],
    place: Clauses,
    read: PrivateRead,
    *,
    filter_own: Callable[[exp.Expr], exp.Expr] | None,
) -> list[Edit] | None:
    """Return the edits that write conditions in a query around a question.

    Return None if its columns lack certain names.

    Parameters:
        removed: the tokens of those conditions that are removed from HAVING.
        in_having: all conditions of HAVING, with their tokens.
        filter_own: returns a size of ORDER BY over the question's own rows. None if these are the rows of the totals.
    """
    select, tokens = read.select, read.tokens
    items = read_items(select)
    if items is None or any(value for key, value in select.args.items() if key not in _KEPT):
        return None
    sorted_by = _sort_around(items, place, read, filter_own)
    if sorted_by is None or (removed and len(removed) == len(in_having)):
        return None
    sizes, sorting = sorted_by
    shown = {read_name(node.this): name for name, node in items.items() if isinstance(node, exp.Column)}
    added: dict[str, str] = {}
    for column in (column for one in conditions for column in one.find_all(exp.Column)):
        name = read_name(column.this)
        if name not in shown:
            added[name] = shown[name] = _choose_name("key", {*items, *added.values()})
    named = [*((quote_identifier(name), called) for name, called in added.items()), *sizes]
    listed = ", ".join(f"{spelled} AS {quote_identifier(called)}" for spelled, called in named)
    further = f", {listed}" if items else f" {listed}"
    last = tokens[place.items[-1][1] - 1 if items else place.select].end
    start, end = tokens[place.select].start, tokens[place.end - 1].end
    columns = ", ".join(f"{quote_identifier(_AROUND)}.{quote_identifier(name)}" for name in items)
    spelled = spell_around(conditions, shown, _AROUND)
    return [
        Edit.from_text(start, start, f"SELECT {columns} FROM ("),
        *([Edit.from_text(last, last, further)] if named else ()),
        *_take_out(removed, [span for span, _ in in_having], read),
        Edit.from_text(end, end, f") {quote_identifier(_AROUND)} WHERE {spelled}"),
        *sorting,
    ]


def spell_around(conditions: Sequence[exp.Expr], shown: Mapping[str, str], source: str) -> str:
    """Return conditions on keys as text, with the keys read from the columns of a source that shows them."""

    def write(condition: exp.Expr) -> str:
        copied: exp.Expr = exp.Paren(this=condition.copy())
        for column in list(copied.find_all(exp.Column)):
            called = exp.to_identifier(shown[read_name(column.this)], quoted=True)
            column.replace(exp.Column(this=called, table=exp.to_identifier(source, quoted=True)))
        return write_node(copied)

    return " AND ".join(map(write, conditions))


def _sort_around(
    items: Mapping[str, exp.Expr],
    place: Clauses,
    read: PrivateRead,
    filter_own: Callable[[exp.Expr], exp.Expr] | None,
) -> tuple[list[tuple[str, str]], list[Edit]] | None:
    """Return sizes to show with their new names, and the edits of ORDER BY that name them.

    Columns of the answer keep their names around the question. Return None if ORDER BY has something else.
    """
    select, tokens = read.select, read.tokens
    order = select.args.get("order")
    is_cut = any(select.args.get(part) is not None for part in ("limit", "offset"))
    sizes: list[tuple[str, str]] = []
    edits: list[Edit] = []
    first = place.end + 2
    for one in order.expressions if order is not None else ():
        past = find_item_end(tokens, first, before=_ENDS_ORDER, stops_at_commas=True)
        node = strip_parentheses(one.this)
        if isinstance(node, exp.Column):
            found = None if node.args.get("table") else items.get(read_name(node.this))
        else:
            position = resolve_position(node, select, clause="ORDER BY")
            found = None if position is None else [*items.values()][position]
        if found is None:
            if not (is_cut and is_size(node)):
                return None
            ((start, end),) = find_spans([SearchedNode(node, first, past)], read.text, tokens)
            called = _choose_name("size", {*items, *(known for _, known in sizes)})
            written = read.text[tokens[start].start : tokens[end - 1].end]
            sizes.append((written if filter_own is None else write_node(filter_own(node)), called))
            column = f"{quote_identifier(_AROUND)}.{quote_identifier(called)}"
            edits.append(Edit.from_text(tokens[start].start, tokens[end - 1].end, column))
        first = past + 1
    return sizes, edits


def _take_out(removed: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]], read: PrivateRead) -> list[Edit]:
    """Return the edits that remove some of the conditions that AND joins, each with an AND beside it."""
    tokens = read.tokens
    first = next((at for at, span in enumerate(spans) if span not in removed), 0)
    edits = [Edit.from_text(tokens[spans[0][0]].start, tokens[spans[first][0]].start, "")] if first else []
    for before, span in zip(spans[first:], spans[first + 1 :], strict=False):
        if span in removed:
            edits.append(Edit.from_text(tokens[before[1] - 1].end, tokens[span[1] - 1].end, ""))
    return edits


def _choose_name(kind: str, known: set[str]) -> str:
    return next(one for number in range(1, len(known) + 2) if (one := f"{kind} {number}") not in known)
