"""The columns of numbers, as SQL: NULL, a bound that the answer proves, or the lower edge of a band.

PostgreSQL itself gives each its type: the number is computed over the question's tables without their rows.

    SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500
    SELECT country, (SELECT count(*) FROM (SELECT NULL::text AS country ...) AS sales HAVING false) AS n ...
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from planner.aggregates.aggregate import list_group_parts
from planner.catalog.catalog import Bands, Column
from planner.parser.clauses import find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token, quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, find_offset, find_start, read_name, strip_parentheses, write_node
from planner.scope.embedded import NumberColumn, NumberColumns, name_predicate_column
from planner.scope.name_resolution import Scope, find_column
from planner.scope.owner_bands import find_bands
from planner.scorecard.proven_bounds import Bound, prove_bound
from planner.scorecard.shown import ShownPredicate
from planner.scorecard.shown_numbers import UNTOUCHED, OuterUse, ShownNumber, SortedNumber, find_named_number

# expressions around an aggregate that keep the order of two numbers
_WRAPPINGS = (exp.Paren, exp.Cast, exp.Round, exp.Coalesce, exp.Floor, exp.Ceil)
_ORDER_OF_NONE = "NULL::integer"


@dataclass(frozen=True, slots=True)
class _BandedNumber:
    """A number with bands: the aggregate in it, and the predicates that decide a group's band.

    `lowest` is the least value of every group, None if it is unknown.
    """

    call: exp.Expr
    bands: Bands
    lowest: Decimal | None
    predicates: tuple[tuple[int, bool], ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that a question asks for: `shown` in its select list, `sorted` in its ORDER BY.

    `band_predicates` are the predicates that bands need and that the question does not show. `bands` has the bands of
    each number.
    """

    chosen: str = "refuse"
    shown: tuple[ShownNumber, ...] = ()
    sorted: tuple[SortedNumber, ...] = ()
    outer_use: OuterUse = UNTOUCHED
    band_predicates: tuple[exp.Expr, ...] = ()
    bands: tuple[_BandedNumber | None, ...] = ()
    sorts: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[exp.Expr, ...]:
        """The expressions of numbers, which are not part of the question."""
        return (*(one.node for one in self.shown), *(one.node for one in self.sorted))


NO_NUMBERS = Numbers()


def band_numbers(
    numbers: tuple[ShownNumber, ...], scope: Scope, keys: Sequence[Column], shown: tuple[ShownPredicate, ...]
) -> tuple[tuple[_BandedNumber | None, ...], tuple[exp.Expr, ...]]:
    """Return, by number, its bands (None if the owner declared none), and the predicates that decide the bands."""
    known = {write_node(one.node): one.number for one in shown}
    asked: list[exp.Expr] = []
    found: list[_BandedNumber | None] = []
    for number in numbers:
        call = find_aggregate(number.node)
        bands = find_bands(call, scope, {key.name for key in keys})
        if bands is None:
            found.append(None)
            continue
        reached = []
        for threshold in bands.thresholds:
            node, holds = _make_threshold_test(call, bands, f"{threshold:f}", above=threshold > 0)
            text = write_node(node)
            if text not in known:
                known[text] = len({one.number for one in shown}) + len(asked)
                asked.append(node)
            reached.append((known[text], holds))
        found.append(_BandedNumber(call, bands, _find_lowest(call, bands, scope), tuple(reached)))
    return tuple(found), tuple(asked)


def _find_lowest(call: exp.Expr, bands: Bands, scope: Scope) -> Decimal | None:
    """Return the least value of every group: that of no rows, or of an empty sum that is never below 0. Else None."""
    if bands.aggregate in ("rows", "units"):
        return Decimal(0)
    column = call.this if bands.aggregate == "sum" and isinstance(call, exp.Sum) else None
    known = find_column(column, scope) if column is not None else None
    is_positive = known is not None and known.bounds is not None and known.bounds[0] >= 0
    return Decimal(0) if is_positive and bands.thresholds[0] > 0 else None


def _make_threshold_test(call: exp.Expr, bands: Bands, number: str, *, above: bool) -> tuple[exp.Expr, bool]:
    """Return the predicate for a threshold, and True if the threshold is reached when the predicate holds.

    An empty sum is 0, so thresholds up to 0 are tested from below, as in `scope.bands.band_sql`.
    """
    literal: exp.Expr = exp.Literal.number(number.removeprefix("-"))
    literal = exp.Neg(this=literal) if number.startswith("-") else literal
    if bands.aggregate == "avg":
        return exp.GT(this=call.copy(), expression=literal), True
    if above:
        return exp.GTE(this=call.copy(), expression=literal), True
    return exp.LT(this=call.copy(), expression=literal), False


def find_aggregate(node: exp.Expr) -> exp.Expr:
    """Return the aggregate inside rounding, casts and replacements of NULL."""
    while isinstance(node, _WRAPPINGS):
        node = node.this
    return node


def describe_numbers(
    numbers: Numbers, scope: Scope, having: exp.Expr | None, *, keys: Sequence[Column], is_ranked: bool
) -> NumberColumns | None:
    """Return what an answer shows in the place of its numbers. Return None for an answer without numbers."""
    if not numbers.shown:
        return None
    columns = tuple(_describe_number(one, place, numbers, scope, having) for place, one in enumerate(numbers.shown))
    names = {key.name for key in keys}
    banded = [one.name for one in numbers.shown if find_bands(find_aggregate(one.node), scope, names) is not None]
    provable = tuple(one.name for one in numbers.shown if _prove(one.node, having, scope) is not None)
    shown = {one.name for one in columns if one.kind == "bands"}
    unsorted = () if is_ranked else tuple(one for one in numbers.sorts if one not in shown)
    if len(shown) < len(columns):
        unsorted = tuple(dict.fromkeys((*unsorted, *numbers.outer_use.sorted)))
    return NumberColumns(numbers.chosen, columns, unsorted, tuple(banded), provable)


def _describe_number(
    number: ShownNumber, place: int, numbers: Numbers, scope: Scope, having: exp.Expr | None
) -> NumberColumn:
    if numbers.bands and (banded := numbers.bands[place]) is not None:
        words = "from " + ", ".join(f"{one:f}" for one in banded.bands.thresholds)
        plain = _is_plain(number.node, banded.call)
        return NumberColumn(
            number.name,
            number.item,
            "bands",
            words,
            is_plain=plain,
            edges=(banded.lowest, *banded.bands.thresholds),
            predicate_values=banded.predicates,
        )
    if numbers.chosen == "threshold" and (proved := _prove(number.node, having, scope)) is not None:
        node, bound = proved
        plain = _is_plain(number.node, node)
        return NumberColumn(number.name, number.item, "threshold", bound.words, is_plain=plain, bound=bound.number)
    return NumberColumn(number.name, number.item, "null")


def _is_plain(node: exp.Expr, inner: exp.Expr) -> bool:
    """Return True if only parentheses are around an expression."""
    return strip_parentheses(node) is strip_parentheses(inner)


def _prove(node: exp.Expr, having: exp.Expr | None, scope: Scope) -> tuple[exp.Expr, Bound] | None:
    """Return the largest part of a number for which HAVING proves a bound, and the bound."""
    while having is not None and not contains_type(node, exp.Window):
        bound = prove_bound(node, (having,), scope)
        if bound is not None:
            return node, bound
        if not isinstance(node, _WRAPPINGS):
            return None
        node = node.this
    return None


@dataclass(frozen=True, slots=True)
class NumberSql:
    """The SQL of the columns of a question's numbers, within its statement."""

    numbers: Numbers
    select: exp.Select
    scope: Scope
    text: str
    tokens: tuple[Token, ...]
    source: str

    def list_edits(self) -> Iterator[Edit]:
        """Yield edits that replace numbers: in the select list by their columns, in ORDER BY by column positions."""
        for place, number in enumerate(self.numbers.shown):
            begin, end = self.tokens[number.first].start, self.tokens[number.stop - 1].end
            written, is_named = self._write(number, place)
            label = "" if number.has_alias or is_named or number.name == "?column?" else number.name
            named = f" AS {quote_identifier(label)}" if label else ""
            yield Edit.from_text(begin, end, written + named)
        for one in self.numbers.sorted:
            begin, end = self.tokens[one.first].start, self.tokens[one.stop - 1].end
            yield Edit.from_text(begin, end, _ORDER_OF_NONE if one.item is None else str(one.item + 1))
        yield from self._list_null_edits()

    def _list_null_edits(self) -> Iterator[Edit]:
        """Yield edits that add NULLS LAST behind DESC for bands whose lowest one has no edge."""
        order = self.select.args.get("order")
        edgeless = {
            number.item
            for number, banded in zip(self.numbers.shown, self.numbers.bands, strict=False)
            if banded is not None and banded.lowest is None
        }
        for one in order.expressions if order is not None and edgeless else ():
            named = find_named_number(one.this, self.select, self.numbers.shown)
            first = find_start(one.this)
            if named is None or named.item not in edgeless or not one.args.get("desc") or first is None:
                continue
            last = find_token(self.tokens, first)
            while not self.tokens[last].is_word("desc"):
                last += 1
            if last + 1 == len(self.tokens) or not self.tokens[last + 1].is_word("nulls"):
                yield Edit.from_text(self.tokens[last].end, self.tokens[last].end, " NULLS LAST")

    def _write(self, number: ShownNumber, place: int) -> tuple[str, bool]:
        """Return a number's column, and True if PostgreSQL gives it the name of the number."""
        if self.numbers.bands and (banded := self.numbers.bands[place]) is not None:
            return self._write_with_replacement(number, banded.call, self._write_band(number, banded)), False
        if self.numbers.chosen == "threshold":
            proved = _prove(number.node, self.select.args.get("having"), self.scope)
            if proved is not None:
                node, bound = proved
                cast = f"::{node.to.sql('postgres')}" if isinstance(node, exp.Cast) else ""  # which coalesce forgets
                shown = f"coalesce({self._write_null(number, node)}, '{bound.number:f}'){cast}"
                return self._write_with_replacement(number, node, shown), False
        return self._write_null(number, number.node), True

    def _write_band(self, number: ShownNumber, banded: _BandedNumber) -> str:
        edges = ", ".join(f"'{one:f}'" for one in banded.bands.thresholds)
        first = self._write_null(number, banded.call)
        if banded.lowest is not None:
            first = f"coalesce({first}, '{banded.lowest:f}')"
        alias = quote_identifier(self.scope.alias)
        reached = " + ".join(
            f"({alias}.{quote_identifier(name_predicate_column(one))} IS {'' if holds else 'NOT '}TRUE)::int"
            for one, holds in banded.predicates
        )
        return f"(ARRAY[{first}, {edges}])[1 + {reached}]"

    def _write_with_replacement(self, number: ShownNumber, node: exp.Expr, instead: str) -> str:
        """Return the number's text with one of its expressions replaced."""
        first, past = self._find_span(number, node)
        before = self.text[self.tokens[number.first].start : self.tokens[first].start]
        return f"{before}{instead}{self.text[self.tokens[past - 1].end : self.tokens[number.stop - 1].end]}"

    def _find_span(self, number: ShownNumber, node: exp.Expr) -> tuple[int, int]:
        if node is number.node:
            return number.first, number.stop
        ((first, past),) = find_spans([SearchedNode(node, number.first, number.stop)], self.text, self.tokens)
        return first, past

    def _write_without_schemas(self, node: exp.Expr, begin: int, end: int) -> str:
        """Return a text of the question with columns qualified by the table alone, which is a subquery there."""
        parts, at = [], begin
        for column in sorted(node.find_all(exp.Column), key=lambda one: find_offset(one.this)):
            if (schema := column.args.get("catalog") or column.args.get("db")) is not None:
                parts.append(self.text[at : find_offset(schema)])
                at = find_offset(column.args["table"])
        return "".join((*parts, self.text[at:end]))

    def _write_null(self, number: ShownNumber, node: exp.Expr) -> str:
        """Return NULL with the type that PostgreSQL gives an expression of the question."""
        first, past = self._find_span(number, node)
        written = self._write_without_schemas(node, self.tokens[first].start, self.tokens[past - 1].end)
        # any column may be a group here: nothing but the type is read
        grouped = ", ".join(dict.fromkeys(write_node(_strip_schema(one)) for one in _list_grouped_columns(node)))
        return f"(SELECT {written} {self.source}{f' GROUP BY {grouped}' if grouped else ''} HAVING false)"


def _list_grouped_columns(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the columns of a number outside of all aggregates."""
    if isinstance(node, exp.Column):
        yield node
        return
    for child in list_group_parts(node):
        yield from _list_grouped_columns(child)


def _strip_schema(node: exp.Expr) -> exp.Expr:
    twin = node.copy()
    for column in twin.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return twin


def list_group_expressions(select: exp.Select) -> tuple[exp.Expr, ...]:
    """Return the expressions by which a SELECT groups.

    Positions and aliases are replaced by items of the select list.
    """
    group = select.args.get("group")
    aliases = {read_name(item.args["alias"]): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    found = []
    for one in group.expressions if group is not None else ():
        inner = strip_parentheses(one)
        if isinstance(inner, exp.Literal) and inner.name.isdecimal() and int(inner.name) <= len(select.expressions):
            inner = select.expressions[int(inner.name) - 1].unalias()
        elif (
            isinstance(inner, exp.Column)
            and not inner.table
            and isinstance(aliases.get(read_name(inner.this)), exp.Func)
        ):
            inner = aliases[read_name(inner.this)]
        found.append(inner)
    return tuple(found)
