"""Conditions on the keys of a question, written around it: its totals then read all groups.

    SELECT ward FROM visits WHERE ward IN ('A', 'B') GROUP BY ward HAVING count(*) > 0.1 * (SELECT count(*) FROM visits)

    SELECT groups.ward FROM (
      SELECT ward FROM visits GROUP BY ward HAVING count(*) > 0.1 * (SELECT count(*) FROM visits)
    ) groups WHERE groups.ward IN ('A', 'B')

PostgreSQL returns the same: rows of a group are alike in its keys. So WHERE leaves a group whole, or nothing of it.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.same_groups import read_items
from planner.parser.clauses import Clauses
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.tree import read_name, write_node
from planner.scope.group_by import resolve_position

_AROUND = "groups"
_KEPT = frozenset(("expressions", "from_", "where", "group", "having", "order", "limit", "offset", "with_"))


def keep_groups(
    conditions: Sequence[exp.Expr],
    removed: Sequence[tuple[int, int]],
    in_having: Sequence[tuple[tuple[int, int], exp.Expr]],
    place: Clauses,
    read: PrivateRead,
) -> list[Edit] | None:
    """Return the edits that write conditions around a question. Return None if its columns have no certain names.

    Parameters:
        removed: the tokens of those that stand in HAVING, from which they are taken out.
        in_having: all conditions of HAVING, with their tokens.
    """
    select, tokens = read.select, read.tokens
    items = read_items(select)
    if items is None or any(value for key, value in select.args.items() if key not in _KEPT):
        return None
    if not _sorts_by_output(select, items) or (removed and len(removed) == len(in_having)):
        return None
    shown = {read_name(node.this): name for name, node in items.items() if isinstance(node, exp.Column)}
    added: dict[str, str] = {}
    for column in (column for one in conditions for column in one.find_all(exp.Column)):
        name = read_name(column.this)
        if name not in shown:
            added[name] = shown[name] = _choose_name({*items, *added.values()})
    keys = ", ".join(f"{quote_identifier(name)} AS {quote_identifier(called)}" for name, called in added.items())
    further = f", {keys}" if items else f" {keys}"
    last = tokens[place.items[-1][1] - 1 if items else place.select].end
    start, end = tokens[place.select].start, tokens[place.end - 1].end
    columns = ", ".join(f"{quote_identifier(_AROUND)}.{quote_identifier(name)}" for name in items)
    spelled = spell_around(conditions, shown, _AROUND)
    return [
        Edit.from_text(start, start, f"SELECT {columns} FROM ("),
        *([Edit.from_text(last, last, further)] if keys else ()),
        *_take_out(removed, [span for span, _ in in_having], read),
        Edit.from_text(end, end, f") {quote_identifier(_AROUND)} WHERE {spelled}"),
    ]


def spell_around(conditions: Sequence[exp.Expr], shown: Mapping[str, str], source: str) -> str:
    """Return conditions on keys as text, as conditions on the columns of a source that show these keys."""

    def write(condition: exp.Expr) -> str:
        copied: exp.Expr = exp.Paren(this=condition.copy())
        for column in list(copied.find_all(exp.Column)):
            called = exp.to_identifier(shown[read_name(column.this)], quoted=True)
            column.replace(exp.Column(this=called, table=exp.to_identifier(source, quoted=True)))
        return write_node(copied)

    return " AND ".join(map(write, conditions))


def _sorts_by_output(select: exp.Select, items: Mapping[str, exp.Expr]) -> bool:
    """Return True if ORDER BY names columns of the answer alone. With LIMIT these are keys: others rank the groups."""
    order = select.args.get("order")
    is_cut = any(select.args.get(part) is not None for part in ("limit", "offset"))
    for one in order.expressions if order is not None else ():
        node = one.this
        if isinstance(node, exp.Column):
            found = None if node.args.get("table") else items.get(read_name(node.this))
        else:
            place = resolve_position(node, select, clause="ORDER BY")
            found = None if place is None else [*items.values()][place]
        if found is None or (is_cut and contains_aggregate(found)):
            return False
    return True


def _take_out(removed: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]], read: PrivateRead) -> list[Edit]:
    """Return the edits that remove some of the conditions that AND joins, each with an AND beside it."""
    tokens = read.tokens
    first = next((at for at, span in enumerate(spans) if span not in removed), 0)
    edits = [Edit.from_text(tokens[spans[0][0]].start, tokens[spans[first][0]].start, "")] if first else []
    for before, span in zip(spans[first:], spans[first + 1 :], strict=False):
        if span in removed:
            edits.append(Edit.from_text(tokens[before[1] - 1].end, tokens[span[1] - 1].end, ""))
    return edits


def _choose_name(known: set[str]) -> str:
    return next(one for number in range(1, len(known) + 2) if (one := f"key {number}") not in known)
