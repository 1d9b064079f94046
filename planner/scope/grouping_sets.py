"""ROLLUP, CUBE and GROUPING SETS, written out: one SELECT for each grouping, one below the other.

    SELECT country, month FROM sales GROUP BY ROLLUP (country, month) HAVING count(*) > 5

    SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 5
    UNION ALL SELECT country, NULL::date AS month FROM sales GROUP BY country HAVING count(*) > 5
    UNION ALL SELECT NULL::text AS country, NULL::date AS month FROM sales HAVING count(*) > 5

PostgreSQL gives the same rows for both. A key that a grouping does not have is NULL, of its type, wherever it stands
outside of aggregates, and `grouping(key)` is a constant.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.catalog.model import Column
from planner.parser.clauses import Clauses, at_offset
from planner.parser.lexer import Token, quote_identifier, readable
from planner.parser.tree import bare, name, start
from planner.scope.group_by import list_grouping_sets
from planner.scope.names import Scope, find_column

_IN_AGGREGATE = (exp.AggFunc, exp.Filter, exp.WithinGroup)


@dataclass(frozen=True, slots=True)
class _Mentioned:
    """Keys that the select list or HAVING names outside of aggregates, by their characters; several in grouping()."""

    start: int
    end: int
    keys: tuple[Column, ...]
    in_grouping: bool

    def written_for(self, grouped: tuple[Column, ...]) -> str | None:
        """What stands there where only some keys are grouped by; None for what stood there."""
        if self.in_grouping:
            return str(sum((key not in grouped) << place for place, key in enumerate(reversed(self.keys))))
        (key,) = self.keys
        return None if key in grouped else f"NULL::{key.declared}"


def write_out_groupings(
    select: exp.Select, place: Clauses, scope: Scope, *, text: str, tokens: tuple[Token, ...]
) -> str | None:
    """The SELECT up to its HAVING as one for each of its groupings; None where it has one, or is not understood.

    Raises what GROUP BY raises.
    """
    sets = list_grouping_sets(select, scope)
    having, group = place.mark("having"), place.mark("group")
    if len(sets) < 2 or group is None or not _orders_by_names(select):
        return None
    keys = tuple(dict.fromkeys(key for one in sets for key in one))
    mentioned = list(_find_mentioned(select, scope, keys, tokens))
    if None in mentioned:
        return None
    found = sorted((one for one in mentioned if one is not None), key=lambda one: one.start)
    labels = list(_labels(select, place, scope, tokens))
    if None in labels:
        return None
    named = [one for one in labels if one is not None]
    end = tokens[place.end - 1].end
    head = tokens[place.select].start, tokens[group - 1].end
    tail = end if having is None else tokens[having].start, end

    def write_part(span: tuple[int, int], grouped: tuple[Column, ...]) -> str:
        changes = [(one.start, one.end, one.written_for(grouped)) for one in found]
        changes += [(at, at, label) for at, label, key in named if key not in grouped]
        made, last = "", span[0]
        for first, past, written in sorted(changes, key=lambda one: one[:2]):
            if span[0] <= first and past <= span[1] and written is not None:
                made, last = made + text[last:first] + written, past
        return made + text[last : span[1]]

    def write_grouping(grouped: tuple[Column, ...]) -> str:
        keyed = f"GROUP BY {', '.join(map(scope.spell_column, grouped))}" if grouped else ""
        return " ".join(filter(None, (write_part(head, grouped), keyed, write_part(tail, grouped))))

    return " UNION ALL ".join(map(write_grouping, sets))


def _orders_by_names(select: exp.Select) -> bool:
    """Whether ORDER BY has nothing but names and places of the select list, as behind UNION ALL."""
    order = select.args.get("order")
    shown = {name(item.args["alias"]) for item in select.expressions if isinstance(item, exp.Alias)}
    shown |= {name(item.this) for item in select.expressions if isinstance(item, exp.Column)}
    items = [] if order is None else [bare(one.this) for one in order.expressions]
    return all(
        (isinstance(item, exp.Literal) and not item.is_string)
        or (isinstance(item, exp.Column) and item.args.get("table") is None and name(item.this) in shown)
        for item in items
    )


def _find_mentioned(
    select: exp.Select, scope: Scope, keys: tuple[Column, ...], tokens: tuple[Token, ...]
) -> Iterator[_Mentioned | None]:
    """Where keys stand; None for what cannot be written out."""
    having = select.args.get("having")
    for clause in (*select.expressions, *(() if having is None else (having,))):
        if clause.find(exp.Window, exp.Query, exp.Star) and not _is_counted_star(clause):
            yield None
        for grouping in clause.find_all(exp.Grouping):
            yield _of_grouping(grouping, scope, keys, tokens)
        for column in clause.find_all(exp.Column):
            if column.find_ancestor(*_IN_AGGREGATE) is not None:
                continue
            found, at = find_column(column, scope), start(column)
            if found not in keys or at is None or found is None:
                yield None
            else:
                yield _Mentioned(at, _end_of_name(at, tokens), (found,), in_grouping=False)


def _is_counted_star(clause: exp.Expr) -> bool:
    """Whether the only stars are those of count(*)."""
    stars = all(isinstance(one.parent, exp.Count) for one in clause.find_all(exp.Star))
    return stars and clause.find(exp.Window, exp.Query) is None


def _of_grouping(
    grouping: exp.Grouping, scope: Scope, keys: tuple[Column, ...], tokens: tuple[Token, ...]
) -> _Mentioned | None:
    found = [find_column(bare(one), scope) for one in grouping.expressions]
    told = tuple(one for one in found if one is not None and one in keys)
    starts = [start(one) for one in grouping.expressions]
    if not told or len(told) < len(found) or starts[0] is None or starts[-1] is None:
        return None
    first = at_offset(tokens, starts[0]) - 2
    past = at_offset(tokens, _end_of_name(starts[-1], tokens) - 1) + 1
    if first < 0 or past >= len(tokens) or not tokens[past].is_symbol(")"):
        return None
    if tokens[first].value != "grouping" or not tokens[first + 1].is_symbol("("):
        return None
    return _Mentioned(tokens[first].start, tokens[past].end, told, in_grouping=True)


def _end_of_name(at: int, tokens: tuple[Token, ...]) -> int:
    """Where a name that starts there ends, with what is behind its dots."""
    index = at_offset(tokens, at)
    while index + 2 < len(tokens) and tokens[index + 1].is_symbol("."):
        index += 2
    return tokens[index].end


def _labels(
    select: exp.Select, place: Clauses, scope: Scope, tokens: tuple[Token, ...]
) -> Iterator[tuple[int, str, Column | None] | None]:
    """The names that items have by themselves, to be written behind them where their key is none; None for one that is
    named in another way."""
    for item, (_, past) in zip(select.expressions, place.items, strict=True):
        at = tokens[past - 1].end
        match item:
            case exp.Alias():
                pass
            case exp.Column():
                yield at, f" AS {_label(name(item.this))}", find_column(item, scope)
            case exp.Grouping():
                yield at, ' AS "grouping"', None
            case _ if any(column.find_ancestor(*_IN_AGGREGATE) is None for column in item.find_all(exp.Column)):
                yield None
            case _:
                pass


def _label(called: str) -> str:
    return called if readable(called) == called else quote_identifier(called)
