"""What stands in the columns of numbers, as SQL: NULL, a bound that the answer proves, or the lower edge of a band.

PostgreSQL itself gives each its type: the number is computed over the question's tables without their rows.

    SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500
    SELECT country, (SELECT count(*) FROM (SELECT NULL::text AS country ...) AS sales HAVING false) AS n ...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from sqlglot import exp

from planner.catalog.model import BandColumn, Bands, Catalog, Column, Table
from planner.parser.clauses import Clauses, at_offset, closing_index
from planner.parser.edits import Edit
from planner.parser.lexer import Token, quote_identifier
from planner.parser.tree import bare, name, offset, write_node
from planner.scope.bands import find_bands
from planner.scope.embedded import ToldNumber, ToldNumbers, predicate_column
from planner.scope.names import Scope, find_column
from planner.scorecard.numbers import (
    UNTOUCHED,
    PassedOn,
    ShownNumber,
    SortedNumber,
)
from planner.scorecard.proven_bounds import Bound, prove_bound
from planner.scorecard.shown import ShownPredicate
from planner.scorecard.spans import Searched, spans

# around an aggregate: what leaves the order of two numbers as it is
_WRAPPINGS = (exp.Paren, exp.Cast, exp.Round, exp.Coalesce, exp.Floor, exp.Ceil)
_ORDER_OF_NONE = "NULL::integer"


@dataclass(frozen=True, slots=True)
class _Banded:
    """A number with bands: the aggregate in it, and the predicates that say which band a group is in.

    `lowest` is what every group has at least, None where that follows from nothing.
    """

    call: exp.Expr
    bands: Bands
    lowest: Decimal | None
    predicates: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of a question as they are read: `shown` in its select list, `sorted` in its ORDER BY.

    `asked` are the predicates that bands ask for beside those that the question shows, numbered from `first_asked`.
    """

    chosen: str = "refuse"
    shown: tuple[ShownNumber, ...] = ()
    sorted: tuple[SortedNumber, ...] = ()
    passed: PassedOn = UNTOUCHED
    asked: tuple[exp.Expr, ...] = ()
    bands: tuple[_Banded | None, ...] = ()
    sorts: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[exp.Expr, ...]:
        """The expressions that are no part of the question."""
        return (*(one.node for one in self.shown), *(one.node for one in self.sorted))


NO_NUMBERS = Numbers()


def band_numbers(
    numbers: tuple[ShownNumber, ...], scope: Scope, keys: Sequence[Column], shown: tuple[ShownPredicate, ...]
) -> tuple[tuple[_Banded | None, ...], tuple[exp.Expr, ...]]:
    """Return for each number its bands, None where its owner declared none, and the predicates to be asked."""
    known = {write_node(one.node): one.number for one in shown}
    asked: list[exp.Expr] = []
    found: list[_Banded | None] = []
    for number in numbers:
        call = aggregate_in(number.node)
        bands = find_bands(call, scope, {key.name for key in keys})
        if bands is None:
            found.append(None)
            continue
        reached = []
        for threshold in bands.thresholds:
            node, holds = _reaches(call, bands, f"{threshold:f}", above=threshold > 0)
            text = write_node(node)
            if text not in known:
                known[text] = len({one.number for one in shown}) + len(asked)
                asked.append(node)
            reached.append((known[text], holds))
        found.append(_Banded(call, bands, _lowest(call, bands, scope), tuple(reached)))
    return tuple(found), tuple(asked)


def _lowest(call: exp.Expr, bands: Bands, scope: Scope) -> Decimal | None:
    """What every group has at least: no rows, or the sum of no values that is not below 0."""
    if bands.aggregate in ("rows", "units"):
        return Decimal(0)
    column = call.this if bands.aggregate == "sum" and isinstance(call, exp.Sum) else None
    known = find_column(column, scope) if column is not None else None
    is_positive = known is not None and known.bounds is not None and known.bounds[0] >= 0
    return Decimal(0) if is_positive and bands.thresholds[0] > 0 else None


def _reaches(call: exp.Expr, bands: Bands, number: str, *, above: bool) -> tuple[exp.Expr, bool]:
    """The predicate that says whether a threshold is reached, and whether it is by holding.

    A sum of nothing is 0: thresholds up to 0 are asked from below, as in `scope.bands.band_sql`.
    """
    literal: exp.Expr = exp.Literal.number(number.removeprefix("-"))
    literal = exp.Neg(this=literal) if number.startswith("-") else literal
    if bands.aggregate == "avg":
        return exp.GT(this=call.copy(), expression=literal), True
    if above:
        return exp.GTE(this=call.copy(), expression=literal), True
    return exp.LT(this=call.copy(), expression=literal), False


def aggregate_in(node: exp.Expr) -> exp.Expr:
    """Return the aggregate under what rounds, casts and replaces NULL."""
    while isinstance(node, _WRAPPINGS):
        node = node.this
    return node


def told_numbers(
    numbers: Numbers, scope: Scope, having: exp.Expr | None, *, keys: Sequence[Column], is_ranked: bool
) -> ToldNumbers | None:
    """Return what an answer says of its numbers; None for an answer without."""
    if not numbers.shown:
        return None
    columns = tuple(_tell(one, place, numbers, scope, having) for place, one in enumerate(numbers.shown))
    names = {key.name for key in keys}
    banded = [one.name for one in numbers.shown if find_bands(aggregate_in(one.node), scope, names) is not None]
    shown = {one.name for one in columns if one.kind == "bands"}
    unsorted = () if is_ranked else tuple(one for one in numbers.sorts if one not in shown)
    if len(shown) < len(columns):
        unsorted = tuple(dict.fromkeys((*unsorted, *numbers.passed.sorted)))
    return ToldNumbers(numbers.chosen, columns, unsorted, tuple(banded))


def _tell(number: ShownNumber, place: int, numbers: Numbers, scope: Scope, having: exp.Expr | None) -> ToldNumber:
    if numbers.bands and (banded := numbers.bands[place]) is not None:
        words = "from " + ", ".join(f"{one:f}" for one in banded.bands.thresholds)
        plain = _is_plain(number.node, banded.call)
        return ToldNumber(
            number.name,
            number.item,
            "bands",
            words,
            is_plain=plain,
            edges=(banded.lowest, *banded.bands.thresholds),
            reached=banded.predicates,
        )
    if numbers.chosen == "threshold" and (proved := _prove(number.node, having, scope)) is not None:
        node, bound = proved
        plain = _is_plain(number.node, node)
        return ToldNumber(number.name, number.item, "threshold", bound.words, is_plain=plain, bound=bound.number)
    return ToldNumber(number.name, number.item, "null")


def _is_plain(node: exp.Expr, inner: exp.Expr) -> bool:
    """Return True if nothing but parentheses stands around an expression."""
    return bare(node) is bare(inner)


def _prove(node: exp.Expr, having: exp.Expr | None, scope: Scope) -> tuple[exp.Expr, Bound] | None:
    """The part of a number of which HAVING proves a bound, the largest one, and the bound."""
    while having is not None:
        bound = prove_bound(node, (having,), scope)
        if bound is not None:
            return node, bound
        if not isinstance(node, _WRAPPINGS):
            return None
        node = node.this
    return None


@dataclass(frozen=True, slots=True)
class NumberSql:
    """What writes the columns of a question's numbers, where it stands in a statement."""

    numbers: Numbers
    select: exp.Select
    scope: Scope
    text: str
    tokens: tuple[Token, ...]
    groups: tuple[exp.Expr, ...]
    source: str

    def edits(self) -> Iterator[Edit]:
        """Every number of the select list as what stands in its column, and of ORDER BY as that column's place."""
        for place, number in enumerate(self.numbers.shown):
            start, end = self.tokens[number.first].start, self.tokens[number.past - 1].end
            written, is_named = self._write(number, place)
            label = "" if number.has_alias or is_named or number.name == "?column?" else number.name
            named = f" AS {quote_identifier(label)}" if label else ""
            yield Edit.of(start, end, written + named)
        for one in self.numbers.sorted:
            start, end = self.tokens[one.first].start, self.tokens[one.past - 1].end
            yield Edit.of(start, end, _ORDER_OF_NONE if one.item is None else str(one.item + 1))

    def _write(self, number: ShownNumber, place: int) -> tuple[str, bool]:
        """A number's column, and whether PostgreSQL names it as it names the number."""
        if self.numbers.bands and (banded := self.numbers.bands[place]) is not None:
            return self._within(number, banded.call, self._band(number, banded)), False
        if self.numbers.chosen == "threshold":
            proved = _prove(number.node, self.select.args.get("having"), self.scope)
            if proved is not None:
                node, bound = proved
                cast = f"::{node.to.sql('postgres')}" if isinstance(node, exp.Cast) else ""  # which coalesce forgets
                shown = f"coalesce({self._null(number, node)}, '{bound.number:f}'){cast}"
                return self._within(number, node, shown), False
        return self._null(number, number.node), True

    def _band(self, number: ShownNumber, banded: _Banded) -> str:
        edges = ", ".join(f"'{one:f}'" for one in banded.bands.thresholds)
        first = self._null(number, banded.call)
        if banded.lowest is not None:
            first = f"coalesce({first}, '{banded.lowest:f}')"
        alias = quote_identifier(self.scope.alias)
        reached = " + ".join(
            f"({alias}.{quote_identifier(predicate_column(one))} IS {'' if holds else 'NOT '}TRUE)::int"
            for one, holds in banded.predicates
        )
        return f"(ARRAY[{first}, {edges}])[1 + {reached}]"

    def _within(self, number: ShownNumber, node: exp.Expr, instead: str) -> str:
        """The number's text with something else in the place of one expression."""
        first, past = self._span(number, node)
        before = self.text[self.tokens[number.first].start : self.tokens[first].start]
        return f"{before}{instead}{self.text[self.tokens[past - 1].end : self.tokens[number.past - 1].end]}"

    def _span(self, number: ShownNumber, node: exp.Expr) -> tuple[int, int]:
        if node is number.node:
            return number.first, number.past
        ((first, past),) = spans([Searched(node, number.first, number.past)], self.text, self.tokens)
        return first, past

    def _null(self, number: ShownNumber, node: exp.Expr) -> str:
        """NULL, of the type that PostgreSQL gives an expression of the question."""
        first, past = self._span(number, node)
        written = self.text[self.tokens[first].start : self.tokens[past - 1].end]
        reads_keys = any(column.find_ancestor(exp.AggFunc) is None for column in node.find_all(exp.Column))
        grouped = ", ".join(map(write_node, self.groups)) if reads_keys else ""
        return f"(SELECT {written} {self.source}{f' GROUP BY {grouped}' if grouped else ''} HAVING false)"


def group_expressions(select: exp.Select) -> tuple[exp.Expr, ...]:
    """Return what a SELECT groups by, with the items of the select list that it names by place or alias."""
    group = select.args.get("group")
    aliases = {name(item.args["alias"]): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    found = []
    for one in group.expressions if group is not None else ():
        inner = bare(one)
        if isinstance(inner, exp.Literal) and inner.name.isdecimal() and int(inner.name) <= len(select.expressions):
            inner = select.expressions[int(inner.name) - 1].unalias()
        elif isinstance(inner, exp.Column) and not inner.table and isinstance(aliases.get(name(inner.this)), exp.Func):
            inner = aliases[name(inner.this)]
        found.append(inner)
    return tuple(found)


def empty_source(select: exp.Select, place: Clauses, text: str, tokens: tuple[Token, ...], catalog: Catalog) -> str:
    """Return the FROM of a question with no row in its private tables, which keep columns that the statement names."""
    past = min((index for _, index in place.marks), default=place.end)
    parts = [select.args["from_"], *(select.args.get("joins") or ())]
    tables = [node for part in parts for node in part.find_all(exp.Table)]
    return _write_emptied(tables, place.source, past, text, tokens, catalog, select)


def _write_emptied(
    tables: list[exp.Table],
    first: int,
    past: int,
    text: str,
    tokens: tuple[Token, ...],
    catalog: Catalog,
    select: exp.Select,
) -> str:
    edits = [one for node in tables if (one := _empty(node, text, tokens, catalog, select)) is not None]
    at, parts = tokens[first].start, []
    for edit in sorted(edits):
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*parts, text[at : tokens[past - 1].end]))


def _empty(node: exp.Table, text: str, tokens: tuple[Token, ...], catalog: Catalog, select: exp.Select) -> Edit | None:
    """A private table, or a WITH query that reads one, as a relation without rows."""
    first = at_offset(tokens, offset(node.args.get("catalog") or node.args.get("db") or node.this))
    last = at_offset(tokens, offset(node.this))
    alias = node.args.get("alias")
    called = name(node.this)
    named = "" if alias is not None and alias.this is not None else f" AS {quote_identifier(called)}"
    table = catalog.table(called) if name(node.args.get("db")) in ("", "public") else None
    if table is not None:
        return Edit.of(tokens[first].start, tokens[last].end, without_rows(table, _list_mentioned(tokens)) + named)
    if node.args.get("db") is not None:
        return None
    for cte in select.root().find_all(exp.CTE):
        inside = cte.this
        if name(cte.args["alias"].this) != called or not isinstance(inside, exp.Select):
            continue
        read = [one for one in inside.find_all(exp.Table) if catalog.table(name(one.this)) is not None]
        if not read or cte.args["alias"].args.get("columns"):
            continue
        opening = at_offset(tokens, offset(cte.args["alias"].this))
        while not tokens[opening].is_symbol("("):
            opening += 1
        closing = closing_index(tokens, opening)
        written = _write_emptied(list(inside.find_all(exp.Table)), opening, closing + 1, text, tokens, catalog, select)
        return Edit.of(tokens[first].start, tokens[last].end, written + named)
    return None


def _list_mentioned(tokens: tuple[Token, ...]) -> frozenset[str] | None:
    """Return the names that a statement says; None where a star may mean others, too."""
    for before, token in pairwise(tokens):
        if token.is_symbol("*") and (before.is_symbol(".") or before.is_symbol(",") or before.is_word("select")):
            return None
    return frozenset(token.value for token in tokens if token.names)


def without_rows(table: Table, mentioned: frozenset[str] | None = None) -> str:
    """Return a private table as a subquery of its columns, or of those that are `mentioned`, that has no row."""
    declared = [(column.name, column.declared) for column in table.columns]
    declared += [(shown.name, BandColumn.DECLARED) for shown in table.band_columns]
    kept = [one for one in declared if mentioned is None or one[0] in mentioned]
    columns = ", ".join(f"NULL::{type_} AS {quote_identifier(called)}" for called, type_ in kept or declared[:1])
    return f"(SELECT {columns} WHERE false)"
