"""ROLLUP, CUBE and GROUPING SETS, rewritten as a union with one SELECT for each grouping.

    SELECT country, quantity > 9 AS big FROM sales GROUP BY ROLLUP (country, big) HAVING count(*) > 5

    SELECT country, quantity > 9 AS big FROM sales GROUP BY country, quantity > 9 HAVING count(*) > 5
    UNION ALL SELECT country, NULL::boolean AS big FROM sales GROUP BY country HAVING count(*) > 5
    UNION ALL SELECT NULL::text AS country, NULL::boolean AS big FROM sales HAVING count(*) > 5

PostgreSQL gives the same rows for both. A key that a grouping does not have is NULL, of its type, everywhere outside of
aggregates, and `grouping(key)` is a constant.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.parser.clauses import Clauses, find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token, quote_identifier, spell_name
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import find_start, read_name, strip_parentheses
from planner.scope.group_by import list_grouped_items
from planner.scope.name_resolution import Scope, find_column
from planner.scope.truth_keys import spell_canonically

_IN_AGGREGATE = (exp.AggFunc, exp.Filter, exp.WithinGroup)
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean)


@dataclass(frozen=True, slots=True)
class _GroupedItem:
    """An item of groupings: its SQL in a GROUP BY, and the SQL for NULL of its type. Equal identities are one item."""

    identity: str
    sql: str
    null_sql: str


@dataclass(frozen=True, slots=True)
class _ItemMention:
    """A place in the select list or HAVING, outside of aggregates, that mentions items; grouping() may mention several.

    `start` and `end` are character offsets.
    """

    start: int
    end: int
    items: tuple[_GroupedItem, ...]
    is_grouping_call: bool

    def write_for(self, grouped: tuple[_GroupedItem, ...]) -> str | None:
        """Return the replacement text for a grouping by only some items. Return None if the text stays."""
        if self.is_grouping_call:
            return str(sum((item not in grouped) << place for place, item in enumerate(reversed(self.items))))
        (item,) = self.items
        return None if item in grouped else item.null_sql


def write_out_groupings(
    select: exp.Select, place: Clauses, scope: Scope, *, text: str, tokens: tuple[Token, ...]
) -> tuple[Edit, ...]:
    """Return edits that replace the SELECT up to its HAVING by one SELECT for each of its groupings.

    Items of ORDER BY become positions. Return none if the SELECT has one grouping, or is not understood. Raise the
    refusals of GROUP BY.
    """
    listed = list_grouped_items(select, scope)
    having, group = place.find_mark("having"), place.find_mark("group")
    if len(listed) < 2 or group is None:
        return ()
    reader = _Reader(select, scope, text, tokens)
    sets = [tuple(dict.fromkeys(map(reader.read_item, items))) for items in listed]
    clauses = (*select.expressions, *(() if having is None else (select.args["having"],)))
    found = [one for clause in clauses for one in reader.find_mentions(clause)]
    labels, order = list(_list_labels(reader, place, sets[0])), list(reader.rewrite_order())
    if None in (*found, *labels, *order):
        return ()
    mentioned, named = [one for one in found if one], [one for one in labels if one]
    end = tokens[place.end - 1].end
    head = tokens[place.select].start, tokens[group - 1].end
    tail = end if having is None else tokens[having].start, end

    def write_part(span: tuple[int, int], grouped: tuple[_GroupedItem, ...]) -> str:
        changes = [(one.start, one.end, one.write_for(grouped)) for one in mentioned]
        changes += [(at, at, label) for at, label, item in named if item not in grouped]
        made, last = "", span[0]
        for first, past, written in sorted(changes, key=lambda one: one[:2]):
            if span[0] <= first and past <= span[1] and written is not None:
                made, last = made + text[last:first] + written, past
        return made + text[last : span[1]]

    def write_grouping(grouped: tuple[_GroupedItem, ...]) -> str:
        keyed = f"GROUP BY {', '.join(item.sql for item in grouped)}" if grouped else ""
        return " ".join(filter(None, (write_part(head, grouped), keyed, write_part(tail, grouped))))

    together = " UNION " if select.args.get("distinct") else " UNION ALL "
    written = together.join(map(write_grouping, sets))
    if isinstance(select.parent, exp.SetOperation):
        written = f"({written})"
    return (Edit.from_text(head[0], end, written, head[0]), *(one for one in order if one))


class _Reader:
    """The items of all groupings by their identities, and the places where a clause mentions them."""

    def __init__(self, select: exp.Select, scope: Scope, text: str, tokens: tuple[Token, ...]) -> None:
        self.select, self.tokens = select, tokens
        self._scope, self._text = scope, text
        self._items: dict[str, _GroupedItem] = {}

    def read_item(self, item: exp.Expr) -> _GroupedItem:
        """Return an item of GROUP BY. Raise KH106 if it cannot be found in the text, and what names raise."""
        known = self._identify(item)
        if known not in self._items:
            column = find_column(item, self._scope)
            if column is not None:
                found = _GroupedItem(known, self._scope.spell_column(column), f"NULL::{column.declared}")
            else:
                first, past = self._find_span(item)
                written = self._text[first:past]
                found = _GroupedItem(known, written, self._write_null(item, first, past))
            self._items[known] = found
        return self._items[known]

    def find_mentions(self, clause: exp.Expr) -> Iterator[_ItemMention | None]:
        """Yield the mentions of items outside of aggregates, and None for one that cannot be rewritten."""
        starred = any(not isinstance(star.parent, exp.Count) for star in clause.find_all(exp.Star))
        if starred or clause.find(exp.Window, exp.Query) is not None:
            yield None
        else:
            yield from self._walk(clause)

    def _walk(self, node: exp.Expr) -> Iterator[_ItemMention | None]:
        if isinstance(node, _IN_AGGREGATE) and not isinstance(node, exp.Grouping):
            return
        if isinstance(node, exp.Grouping):
            items = tuple(self.find_item(one) for one in node.expressions)
            told = tuple(one for one in items if one is not None)
            yield _ItemMention(*self._find_span(node), told, is_grouping_call=True) if len(told) == len(items) else None
            return
        found = self.find_item(node)
        if found is not None:
            yield _ItemMention(*self._find_span(node), (found,), is_grouping_call=False)
        elif isinstance(node, exp.Column):
            yield None
        else:
            for child in node.iter_expressions():
                yield from self._walk(child)

    def rewrite_order(self) -> Iterator[Edit | None]:
        """Yield the edits that make ORDER BY sort by items of the select list, and None for anything else.

        After UNION ALL, only names and positions are allowed.
        """
        order, shown = self.select.args.get("order"), self.select.expressions
        names = {read_name(item.args["alias"]) for item in shown if isinstance(item, exp.Alias)}
        names |= {read_name(item.this) for item in shown if isinstance(item, exp.Column)}
        for item in () if order is None else [strip_parentheses(one.this) for one in order.expressions]:
            plain = isinstance(item, exp.Column) and item.args.get("table") is None and read_name(item.this) in names
            if plain or (isinstance(item, exp.Literal) and not item.is_string):
                continue
            place = next(
                (at for at, one in enumerate(shown, start=1) if strip_parentheses(one.unalias()) == item), None
            )
            if place is None:
                yield None
            else:
                first, past = self._find_span(item)
                yield Edit.from_text(first, past, str(place), first)

    def find_item(self, node: exp.Expr) -> _GroupedItem | None:
        """Return the item of GROUP BY that an expression is."""
        if isinstance(node, exp.Alias | exp.Paren | exp.Having) or node.find(exp.Column) is None:
            return self.find_item(node.this) if isinstance(node, exp.Paren) else None
        return self._items.get(self._identify(node))

    def _identify(self, node: exp.Expr) -> str:
        column = find_column(node, self._scope)
        return spell_canonically(
            strip_parentheses(node) if column is None else self._scope.make_reference(column), self._scope
        )

    def _find_span(self, node: exp.Expr) -> tuple[int, int]:
        """Return the character offsets of an expression; for a column without its surroundings."""
        at = find_start(node) if isinstance(node, exp.Column) else None
        if at is not None:
            return at, _find_name_end(at, self.tokens)
        ((first, past),) = find_spans([SearchedNode(node, 0, len(self.tokens))], self._text, self.tokens)
        return self.tokens[first].start, self.tokens[past - 1].end

    def _write_null(self, item: exp.Expr, first: int, past: int) -> str:
        """Return SQL for NULL of the type of the expression between two characters. PostgreSQL finds the type."""
        if isinstance(item, _TRUTHS):
            return "NULL::boolean"
        made, last = "", first
        for at, column in sorted((find_start(one) or 0, one) for one in item.find_all(exp.Column)):
            found = find_column(column, self._scope)
            declared = "" if found is None else f"::{found.declared}"
            made, last = f"{made}{self._text[last:at]}NULL{declared}", _find_name_end(at, self.tokens)
        return f"CASE WHEN false THEN {made}{self._text[last:past]} END"


def _find_name_end(at: int, tokens: tuple[Token, ...]) -> int:
    """Return the end of a name that starts there, including the parts after its dots."""
    index = find_token(tokens, at)
    while index + 2 < len(tokens) and tokens[index + 1].is_symbol("."):
        index += 2
    return tokens[index].end


def _list_labels(
    reader: _Reader, place: Clauses, first: tuple[_GroupedItem, ...]
) -> Iterator[tuple[int, str, _GroupedItem | None] | None]:
    """Yield the names that items have by themselves. They are added as aliases if their key becomes NULL.

    Yield None for an item that has an alias. The `first` grouping names all columns.
    """
    for item, (_, past) in zip(reader.select.expressions, place.items, strict=True):
        at = reader.tokens[past - 1].end
        match item:
            case exp.Alias():
                pass
            case exp.Column():
                yield at, f" AS {_write_label(read_name(item.this))}", reader.find_item(item)
            case exp.Grouping():
                yield at, ' AS "grouping"', None
            case _:
                named = (one for one in reader.find_mentions(item) if one is not None)
                if any(one.is_grouping_call or not set(one.items) <= set(first) for one in named):
                    yield None


def _write_label(called: str) -> str:
    return called if spell_name(called) == called else quote_identifier(called)
