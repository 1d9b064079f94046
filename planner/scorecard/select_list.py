"""The select list of a scorecard as a program computes it without a database: keys, truths, and values of truths.

    SELECT country, CASE WHEN sum(amount) > 20000 THEN 'high' ELSE 'low' END AS band, (count(*) > 50)::int FROM ...

PostgreSQL runs any text around truths. Only expressions are read here that give the same result there and here whatever
the types. They are CASE, AND, OR, NOT, IS, coalesce, casts of truths to integers and sums of them, over texts, whole
numbers, true, false and NULL.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add
from typing import TypeAlias

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.tree import read_name, strip_parentheses, write_node
from planner.scope.embedded import EmbeddedQuestion, NumberColumn
from planner.scope.key_classes import write_identity

Cell: TypeAlias = str | int | bool | None
_Show: TypeAlias = Callable[[Sequence[str | None]], Cell]

_MOST_NUMBER = 10**6  # of a constant, so that no sum of a text's length leaves PostgreSQL's integers
_LONGEST_NAME = 63  # bytes that PostgreSQL keeps of a name


@dataclass(frozen=True, slots=True)
class SelectList:
    """The columns of an answer's rows, with their names as PostgreSQL gives them.

    Each item is a function that computes the column from a key's texts and the truths of its predicates.
    """

    names: tuple[str, ...]
    items: tuple[_Show, ...]

    def show(self, key: Sequence[str | None]) -> list[Cell]:
        """Return the row of one key. `key` has the key's texts, and the truths as "true", "false" or None."""
        return [item(key) for item in self.items]


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression that was read: its type ("" for NULL alone), and the function that computes it for a key."""

    type: str
    show: _Show


class _Unread(Exception):
    """An expression that only PostgreSQL can run."""


def read_select_list(embedded: EmbeddedQuestion) -> SelectList | None:
    """Return the select list of a question with predicates or numbers.

    Return None if only PostgreSQL can evaluate it.
    """
    if not (embedded.predicates or embedded.numbers) or embedded.tree.args.get("distinct") is not None:
        return None
    reader = _Reader(embedded)
    try:
        values = [reader.read_item(place, item) for place, item in enumerate(embedded.tree.expressions)]
    except _Unread:
        return None
    names = tuple(reader.name_item(place, item) for place, item in enumerate(embedded.tree.expressions))
    return SelectList(names, tuple(value.show for value in values))


class _Reader:
    """Reader of the columns of one question's answer."""

    def __init__(self, embedded: EmbeddedQuestion) -> None:
        self._scope = embedded.scope
        shown, own = embedded.shown_keys, embedded.columns[: len(embedded.keys)]
        items = [(name, "") for name, _ in own] if shown is None else [(one.name, one.sql) for one in shown.items]
        self._items = [name for name, _ in items]
        self._keys = {name: place for place, (name, sql) in enumerate(items) if not sql}
        self._computed = {} if shown is None else {one.text: at for at, one in enumerate(shown.items) if one.sql}
        first = self._first = len(embedded.columns) - len(embedded.predicates) + len(items) - len(own)
        self._numbers = embedded.numbers
        self._truths = {write_node(one.tree): first + number for number, one in enumerate(embedded.predicates)}

    def read_item(self, place: int, item: exp.Expr) -> _Value:
        told = self._find_number(place)
        return self.read(item) if told is None else self._read_number(told)

    def name_item(self, place: int, item: exp.Expr) -> str:
        told = self._find_number(place)
        return self.find_name(item) if told is None else _shorten(told.name)

    def _find_number(self, place: int) -> NumberColumn | None:
        columns = () if self._numbers is None else self._numbers.columns
        return next((one for one in columns if one.item == place), None)

    def _read_number(self, told: NumberColumn) -> _Value:
        """Return the column's expression for a number."""
        if not told.is_plain:
            raise _Unread
        if told.kind != "bands":
            return _Value("number", lambda _: _make_number_cell(told.bound))
        truths = [(self._first + number, "true" if holds else "false") for number, holds in told.predicate_values]
        return _Value(
            "number", lambda key: _make_number_cell(told.edges[sum(key[place] == wanted for place, wanted in truths)])
        )

    def read(self, item: exp.Expr) -> _Value:
        node = strip_parentheses(item.this if isinstance(item, exp.Alias) else item)
        if (place := self._truths.get(write_node(node))) is not None:
            return _read_truth_at(place)
        if (place := self._find_computed_place(node)) is not None:
            return _read_text_at(place)
        match node:
            case exp.Column():
                return _read_text_at(self._find_key_index(node))
            case exp.Boolean() | exp.Null() | exp.Literal():
                return _read_constant(node)
            case exp.Case() if node.this is None:
                return self._read_case(node)
            case exp.And() | exp.Or():
                return _connect([self._read_boolean(one) for one in node.flatten()], every=isinstance(node, exp.And))
            case exp.Not():
                negated = self._read_boolean(node.this).show
                return _Value("boolean", lambda key: None if (truth := negated(key)) is None else not truth)
            case exp.Is():
                return self._read_is(node)
            case exp.Coalesce():
                return _coalesce([self.read(one) for one in (node.this, *node.expressions)])
            case exp.Cast() if node.to.this == exp.DataType.Type.INT:
                counted = self._read_boolean(node.this).show
                return _Value("integer", lambda key: None if (truth := counted(key)) is None else int(bool(truth)))
            case exp.Add():
                return _sum([self.read(one) for one in node.flatten()])
        raise _Unread

    def _find_computed_place(self, node: exp.Expr) -> int | None:
        return self._computed.get(write_identity(node, self._scope)) if self._computed else None

    def _find_key_index(self, node: exp.Column) -> int:
        try:
            column = self._scope.resolve_column(node)
        except KeyholeError:
            raise _Unread from None
        place = self._keys.get(column.name)
        if place is None or read_name(node.this) != column.name:
            raise _Unread
        return place

    def _read_boolean(self, node: exp.Expr) -> _Value:
        value = self.read(node)
        if value.type not in ("boolean", ""):
            raise _Unread
        return value

    def _read_is(self, node: exp.Is) -> _Value:
        wanted = strip_parentheses(node.expression)
        if isinstance(wanted, exp.Null):
            shown = self.read(node.this).show
            known = bool(node.args.get("negate"))  # IS NOT NULL is no NOT of IS NULL in the tree
            return _Value("boolean", lambda key: (shown(key) is not None) is known)
        if not isinstance(wanted, exp.Boolean):
            raise _Unread
        tested, truth = self._read_boolean(node.this).show, bool(wanted.this)
        return _Value("boolean", lambda key: tested(key) is truth)

    def _read_case(self, node: exp.Case) -> _Value:
        default = node.args.get("default")
        otherwise = _Value("", _show_nothing) if default is None else self.read(default)
        branches = [(self._read_boolean(one.this).show, self.read(one.args["true"])) for one in node.args["ifs"]]
        type_ = _find_common_type([*(value for _, value in branches), otherwise])

        def show(key: Sequence[str | None]) -> Cell:
            found = next((value for condition, value in branches if condition(key) is True), otherwise)
            return found.show(key)

        return _Value(type_, show)

    def find_name(self, item: exp.Expr) -> str:
        """Return PostgreSQL's name for the item.

        A computed key without an alias has the name of the answer's column for it.
        """
        if isinstance(item, exp.Alias):
            return _shorten(read_name(item.args["alias"]))
        if (place := self._find_computed_place(strip_parentheses(item))) is not None:
            return self._items[place]
        return _shorten(self._find_own_name(item)[0])

    def _find_own_name(self, item: exp.Expr) -> tuple[str, bool]:
        """Return the name that an expression gives its column, and True if it comes from the expression's argument."""
        node = strip_parentheses(item)
        match node:
            case _ if write_node(node) in self._truths:
                return _name_predicate_column(node)
            case exp.Column():
                return read_name(node.this), True
            case exp.Coalesce():
                return "coalesce", True
            case exp.Case():
                default = node.args.get("default")
                inner, strong = ("", False) if default is None else self._find_own_name(default)
                return (inner, True) if strong else ("case", False)
            case exp.Cast():
                inner, strong = self._find_own_name(node.this)
                return (inner, True) if strong else ("int4", False)
        return "?column?", False


def _name_predicate_column(node: exp.Expr) -> tuple[str, bool]:
    """Return the name of a predicate's column: a formula has none, an aggregate has its own.

    `bool_and` alone is no predicate, so its name does not occur.
    """
    called = node.this if isinstance(node, exp.Filter) else node
    return ("bool_or", True) if isinstance(called, exp.LogicalOr) else ("?column?", False)


def _show_nothing(_: Sequence[str | None]) -> Cell:
    return None


def _read_truth_at(place: int) -> _Value:
    return _Value("boolean", lambda key: None if key[place] is None else key[place] == "true")


def _read_text_at(place: int) -> _Value:
    return _Value("key", lambda key: key[place])


def _read_constant(node: exp.Boolean | exp.Null | exp.Literal) -> _Value:
    if isinstance(node, exp.Null):
        return _Value("", _show_nothing)
    if isinstance(node, exp.Boolean):
        truth = bool(node.this)
        return _Value("boolean", lambda _: truth)
    text = str(node.this)
    if node.is_string:
        return _Value("text", lambda _: text)
    if not text.isdecimal() or int(text) > _MOST_NUMBER:
        raise _Unread
    number = int(text)
    return _Value("integer", lambda _: number)


def _find_common_type(values: Sequence[_Value]) -> str:
    """Return the one type of expressions that may be in one place.

    The type of NULLs alone is text. Keys have texts of some type, which no text constant has.
    """
    types = {value.type for value in values} - {""}
    if len(types) > 1 or "key" in types:
        raise _Unread
    return types.pop() if types else "text"


def _coalesce(values: list[_Value]) -> _Value:
    type_ = _find_common_type(values)
    return _Value(type_, lambda key: next((cell for value in values if (cell := value.show(key)) is not None), None))


def _connect(values: list[_Value], *, every: bool) -> _Value:
    """Return AND or OR over SQL's three truths."""

    def show(key: Sequence[str | None]) -> Cell:
        truths = [value.show(key) for value in values]
        deciding = not every
        if any(truth is deciding for truth in truths):
            return deciding
        return None if None in truths else every

    return _Value("boolean", show)


def _sum(values: list[_Value]) -> _Value:
    if any(value.type != "integer" for value in values):
        raise _Unread

    def show(key: Sequence[str | None]) -> Cell:
        cells = [value.show(key) for value in values]
        return None if None in cells else reduce(add, (cell for cell in cells if isinstance(cell, int)))

    return _Value("integer", show)


def _make_number_cell(number: Decimal | None) -> Cell:
    if number is None or number != number.to_integral_value():
        return None if number is None else f"{number:f}"
    return int(number)


def _shorten(written: str) -> str:
    return written.encode()[:_LONGEST_NAME].decode(errors="ignore")
