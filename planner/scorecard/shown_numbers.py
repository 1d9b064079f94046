"""The numbers of a question: items of its select list and of ORDER BY that ask for the size of a group.

    SELECT country, count(*) AS n FROM sales GROUP BY country HAVING count(*) > 500 ORDER BY n DESC

shows one, `n`, and sorts by it. The answer has keys only. The setting `keyhole.numbers` decides the column's values.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.parser.clauses import Clauses, find_closing, find_item_end
from planner.parser.lexer import Token
from planner.parser.subquery_readers import find_unaliased_end
from planner.parser.tree import contains_type, read_limit, read_name, strip_parentheses, write_node
from planner.scorecard.find import shows_size

_UNNAMED = "?column?"
_TYPE_NAMES = {
    exp.DType.INT: "int4",
    exp.DType.BIGINT: "int8",
    exp.DType.SMALLINT: "int2",
    exp.DType.DECIMAL: "numeric",
    exp.DType.DOUBLE: "float8",
    exp.DType.FLOAT: "float4",
    exp.DType.BOOLEAN: "bool",
}
RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile, exp.PercentRank, exp.CumeDist, exp.FirstValue)
"""The window functions that rank, or read a key of the first place alone."""
_MOST_RANKED = 100  # rows: tools cut all that they ask to hundreds or thousands, and do not mean the first of them


@dataclass(frozen=True, slots=True)
class ShownNumber:
    """A number in the select list: its expression, the item's index, its tokens without the name, and its name."""

    node: exp.Expr
    item: int
    first: int
    stop: int
    name: str
    has_alias: bool


@dataclass(frozen=True, slots=True)
class SortedNumber:
    """A number that ORDER BY writes as an expression, by its tokens.

    `item` is the shown number that it repeats, if any.
    """

    node: exp.Expr
    first: int
    stop: int
    item: int | None


def find_numbers(select: exp.Select, place: Clauses, tokens: tuple[Token, ...]) -> tuple[ShownNumber, ...]:
    """Return the items of a select list that ask for a group's size, such as `count(*) / sum(count(*)) OVER ()`.

    Windows that rank are left out, and so are expressions that read a rank.
    """
    if len(select.expressions) != len(place.items):
        return ()
    found = []
    for index, (item, (first, past)) in enumerate(zip(select.expressions, place.items, strict=True)):
        node = item.unalias()
        if contains_aggregate(node) and shows_size(node) and not any(map(is_rank_window, node.find_all(exp.Window))):
            has_alias = isinstance(item, exp.Alias)
            end = find_unaliased_end(item, past, tokens)
            called = read_name(item.args["alias"]) if has_alias else find_default_name(node, tokens[first:end])
            found.append(ShownNumber(node, index, first, end, called, has_alias))
    return tuple(found)


def is_rank_window(window: exp.Expr) -> bool:
    """Return True for a window function that ranks groups, or that is defined by name in a WINDOW clause."""
    called = window.this.this if isinstance(window.this, exp.Filter) else window.this
    return isinstance(called, RANKS) or bool(window.args.get("alias"))


def find_default_name(node: exp.Expr, tokens: tuple[Token, ...]) -> str:
    """Return the name that PostgreSQL gives to a call, or to a cast of one, without an alias.

    An operation has no name. A cast of an operation or of a CASE has the name of the type.
    """
    node = strip_parentheses(node)
    kind: object = None
    while isinstance(node, exp.Cast):
        kind = kind or node.to.this
        node = strip_parentheses(node.this)
    if kind is not None and isinstance(node, exp.Binary | exp.Unary | exp.Case):
        return _TYPE_NAMES.get(kind, kind.value.lower()) if isinstance(kind, exp.DType) else _UNNAMED
    if isinstance(node, exp.Binary | exp.Unary) and not _is_one_call(tokens):  # mod(a, b) is no a % b
        return _UNNAMED
    called = [token for token in tokens if not token.is_symbol("(") and not token.is_word("cast")]
    return called[0].value if called and called[0].kind == "word" else _UNNAMED


def _is_one_call(tokens: tuple[Token, ...]) -> bool:
    is_called = len(tokens) > 2 and tokens[0].kind == "word" and tokens[1].is_symbol("(")
    return is_called and find_closing(tokens, 1) == len(tokens) - 1


def find_sorted_numbers(
    select: exp.Select, place: Clauses, tokens: tuple[Token, ...], numbers: tuple[ShownNumber, ...]
) -> tuple[SortedNumber, ...]:
    """Return the items of ORDER BY that are numbers written as expressions, if the question shows numbers."""
    order = select.args.get("order")
    if order is None or not numbers or place.end >= len(tokens) or not tokens[place.end].is_word("order"):
        return ()
    written = {one.node: one.item for one in numbers}
    found, first = [], place.end + 2
    for ordered in order.expressions:
        past = find_item_end(
            tokens,
            first,
            before=("limit", "offset", "fetch", "for", "union", "intersect", "except"),
            stops_at_commas=True,
        )
        node = ordered.this if isinstance(ordered, exp.Ordered) else ordered
        if contains_aggregate(node) and not contains_type(node, exp.Window) and shows_size(node):
            found.append(
                SortedNumber(node, first, _skip_direction(tokens, first, past), written.get(strip_parentheses(node)))
            )
        first = past + 1
    return tuple(found)


def _skip_direction(tokens: tuple[Token, ...], first: int, past: int) -> int:
    while past > first + 1 and tokens[past - 1].is_word("asc", "desc", "nulls", "first", "last"):
        past -= 1
    return past


def list_sorting_names(select: exp.Select, numbers: tuple[ShownNumber, ...]) -> tuple[str, ...]:
    """Return the numbers by which ORDER BY sorts, as an analyst calls them."""
    order, found = select.args.get("order"), []
    for one in order.expressions if order is not None else ():
        named = find_named_number(one.this, select, numbers)
        if named is not None:
            found.append(named.name)
        elif contains_aggregate(one) and shows_size(one.this):
            same = [number.name for number in numbers if number.node == strip_parentheses(one.this)]
            found += same[:1] or [write_node(strip_parentheses(one.this))]
    return tuple(found)


def find_named_number(node: exp.Expr, select: exp.Select, numbers: tuple[ShownNumber, ...]) -> ShownNumber | None:
    """Return the number that an item of ORDER BY means by a column's name or position. Return None if it means none."""
    inner = strip_parentheses(node)
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdecimal():
        return next((one for one in numbers if one.item == int(inner.name) - 1), None)
    if isinstance(inner, exp.Column) and not inner.args.get("table") and isinstance(inner.this, exp.Identifier):
        called = read_name(inner.this)
        outputs = [one for one in select.expressions if _find_output_name(one) == called]
        return next((one for one in numbers if one.name == called), None) if len(outputs) <= 1 else None
    return None


def _find_output_name(item: exp.Expr) -> str:
    if isinstance(item, exp.Alias):
        return read_name(item.args["alias"])
    inner = strip_parentheses(item)
    return read_name(inner.this) if isinstance(inner, exp.Column) else ""


def is_cut_to_first(select: exp.Select) -> bool:
    """Return True if LIMIT asks for the first few groups. Tools cut every answer to hundreds or thousands of rows."""
    limit = read_limit(select)
    if limit is None:
        return select.args.get("limit") is not None and not _is_all(select)
    inner = strip_parentheses(limit)
    return not (isinstance(inner, exp.Literal) and inner.name.isdecimal() and int(inner.name) > _MOST_RANKED)


def find_limit(select: exp.Select) -> int | None:
    """Return the number of rows in a numeric LIMIT. Return None for any other LIMIT."""
    limit = read_limit(select)
    inner = None if limit is None else strip_parentheses(limit)
    return int(inner.name) if isinstance(inner, exp.Literal) and inner.name.isdecimal() else None


def _is_all(select: exp.Select) -> bool:
    limit = select.args["limit"]
    return isinstance(limit, exp.Limit) and (limit.expression is None or contains_type(limit, exp.Var, exp.Null))


def read_outer_use(select: exp.Select, numbers: tuple[ShownNumber, ...]) -> "OuterUse":
    """Return how the statement around a question uses its numbers.

    It may show them as they are, cast, rounded or renamed, and sort by them if it cuts nothing. For any other use it
    would have to compute with a value that the answer does not have.
    """
    return _OuterReader(select, numbers).read()


@dataclass(frozen=True, slots=True)
class OuterUse:
    """The use of a question's numbers by the statement around it. `passes_only`: the statement only shows them.

    `sorted` are the numbers by which that statement sorts. `least_limit` is the least LIMIT after such an order. It
    removes nothing from an answer of at most that many groups.
    """

    passes_only: bool
    sorted: tuple[str, ...] = ()
    least_limit: int | None = None


UNTOUCHED = OuterUse(passes_only=True)


_CARRIES = (exp.Alias, exp.Cast, exp.Paren, exp.Round)
_ON_THE_WAY = (exp.Subquery, exp.CTE, exp.With, exp.From, exp.Join, exp.Select)


class _OuterReader:
    """Reader of the statement around a question: it follows the names under which numbers are passed on."""

    def __init__(self, select: exp.Select, numbers: tuple[ShownNumber, ...]) -> None:
        self._select = select
        self._root = select.root()
        self._inside = {id(node) for node in select.walk()}
        self._tracked = {one.name for one in numbers}
        self._tracked |= {_UNNAMED for one in numbers if not one.has_alias}  # as PostgreSQL calls what is computed
        self._items = {one.item for one in numbers}
        self._sorted: dict[str, None] = {}
        self._limits: list[int] = []

    def read(self) -> OuterUse:
        if self._root is self._select:
            return UNTOUCHED
        if self._select.args.get("distinct") is not None or not self._reaches_answer(self._select):
            return OuterUse(passes_only=False)
        self._follow_aliases()
        while True:
            before = len(self._tracked)
            if not all(map(self._is_plain, self._root.find_all(exp.Query))):
                return OuterUse(passes_only=False)
            if len(self._tracked) == before:
                break
        names = all(map(self._is_passed, self._find_outside(exp.Column)))
        joins = all(map(self._keeps_numbers_apart, self._find_outside(exp.Join)))
        return OuterUse(
            passes_only=names and joins, sorted=tuple(self._sorted), least_limit=min(self._limits, default=None)
        )

    def _find_outside(self, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
        return (node for node in self._root.find_all(kind) if id(node) not in self._inside)

    def _follow_aliases(self) -> None:
        """Follow the numbers into a list of columns behind an alias, and to the first side of UNION ALL."""
        node: exp.Expr | None = self._select
        while node is not None and node is not self._root:
            node = node.parent
            alias = None if node is None else node.args.get("alias")
            columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
            if columns:
                listed = [read_name(one.this if isinstance(one, exp.ColumnDef) else one) for one in columns]
                self._tracked |= {listed[item] for item in self._items if item < len(listed)}
            if isinstance(node, exp.SetOperation):
                first = node.left
                while isinstance(first, exp.SetOperation | exp.Subquery):
                    first = first.left if isinstance(first, exp.SetOperation) else first.this
                if isinstance(first, exp.Select):
                    listed = [_find_output_name(one) for one in first.expressions]
                    self._tracked |= {listed[item] for item in self._items if item < len(listed)}

    def _learn_names(self, items: Iterable[exp.Expr]) -> None:
        for item in items:
            if isinstance(item, exp.Alias):
                self._tracked.add(read_name(item.args["alias"]))
            elif isinstance(item, exp.Round):
                self._tracked.add("round")

    def _rename_shown(self, query: exp.Query, items: set[int] | None) -> None:
        """Follow the columns of an outer query into the names that its alias or a side of UNION ALL gives.

        Parameters:
            items: the indices of its columns that are numbers; None if a star may be any of them.
        """
        node: exp.Expr | None = query.parent
        while node is not None and not isinstance(node, exp.Select):
            alias = node.args.get("alias")
            listed = [_find_output_name(one) for one in _find_first_side(node).expressions]
            if isinstance(alias, exp.TableAlias) and alias.args.get("columns"):
                columns = alias.args["columns"]
                listed = [read_name(one.this if isinstance(one, exp.ColumnDef) else one) for one in columns]
            named = {one or _UNNAMED for place, one in enumerate(listed) if items is None or place in items}
            self._tracked |= named - {"*"}
            node = node.parent

    def _reaches_answer(self, query: exp.Expr) -> bool:
        """Return True if a query's rows become rows of the statement's answer, through subqueries and UNION ALL."""
        node, above = query, query.parent
        while above is not None:
            if isinstance(above, exp.Exists):
                return True
            if isinstance(above, exp.SetOperation):
                if not isinstance(above, exp.Union) or above.args.get("distinct") is not False:
                    return False
            elif (
                not isinstance(above, _ON_THE_WAY)
                or above.args.get("recursive")
                or (isinstance(above, exp.Select) and node.arg_key not in ("from_", "joins", "with_"))
            ):
                return False
            node, above = above, above.parent
        return True

    def _is_plain(self, query: exp.Expr) -> bool:
        """Return True if an outer query only passes on the columns that it shows.

        Record the names that it gives to numbers.
        """
        if id(query) in self._inside or not isinstance(query, exp.Select | exp.SetOperation):
            return True
        cut = query.args.get("limit") is not None or query.args.get("offset") is not None
        order = query.args.get("order")
        if isinstance(query, exp.SetOperation):
            positions = order is not None and any(
                isinstance(strip_parentheses(one.this), exp.Literal) for one in order.expressions
            )
            return not (cut and positions)
        shown = [self._shows(item) for item in query.expressions]
        if not any(shown):
            return True
        if not self._reaches_answer(query) or query.args.get("distinct") is not None:
            return False
        stars = any(map(_is_star, query.expressions))
        if query.args.get("group") is not None:
            return False
        self._learn_names(item for item, shows in zip(query.expressions, shown, strict=True) if shows)
        self._rename_shown(query, None if stars else {place for place, shows in enumerate(shown) if shows})
        for one in order.expressions if order is not None else ():
            inner = strip_parentheses(one.this)
            if isinstance(inner, exp.Literal) and inner.name.isdecimal():
                place = int(inner.name) - 1
                if stars or (place < len(shown) and shown[place]):
                    if cut and not self._fits_limit(query):
                        return False
                    self._sorted[str(place + 1) if stars else query.expressions[place].alias_or_name] = None
        return True

    def _shows(self, item: exp.Expr) -> bool:
        """Return True if an item is a number that is passed on, or may have one among its columns."""
        return _is_star(item) or self._find_carried_column(item) is not None

    def _find_carried_column(self, item: exp.Expr) -> exp.Column | None:
        node = _find_carried_expression(item)
        return node if isinstance(node, exp.Column) and read_name(node.this) in self._tracked else None

    def _is_passed(self, column: exp.Expr) -> bool:
        if isinstance(column.this, exp.Star):
            return isinstance(column.parent, exp.Select)
        called = read_name(column.this)
        if called not in self._tracked:
            return column.args.get("table") is not None or called not in self._list_aliases()
        node: exp.Expr = column
        while isinstance(node.parent, _CARRIES):
            if node.arg_key != "this":
                return False
            node = node.parent
        above = node.parent
        if isinstance(above, exp.Select) and node.arg_key == "expressions":
            return True
        if isinstance(above, exp.Ordered) and isinstance(above.parent, exp.Order):
            query = above.parent.parent
            if isinstance(query, exp.Query) and above.parent.arg_key == "order":
                self._sorted[called] = None
                free = ("limit", "offset", "distinct") if isinstance(query, exp.Select) else ("limit", "offset")
                return not any(query.args.get(clause) for clause in free) or self._fits_limit(query)
        return False

    def _fits_limit(self, query: exp.Query) -> bool:
        """Return True if a query has at most one row for each group, and a numeric LIMIT, which is recorded."""
        if not isinstance(query, exp.Select) or any(query.args.get(one) for one in ("offset", "distinct")):
            return False
        most = find_limit(query)
        around = [one for one in self._find_outside(exp.Select) if isinstance(one, exp.Select)]
        plain = all(
            isinstance(_find_carried_expression(item), exp.Column | exp.Star)
            for one in around
            for item in one.expressions
        )
        if most is None or not plain or any(self._find_outside(exp.Join)) or any(self._find_outside(exp.SetOperation)):
            return False
        self._limits.append(most)
        return True

    def _list_aliases(self) -> set[str]:
        """Return the names by which the rows that hold numbers can be referred to as a whole."""
        found: set[str] = set()
        node: exp.Expr | None = self._select.parent
        while node is not None:
            alias = node.args.get("alias")
            if isinstance(alias, exp.TableAlias):
                found.add(read_name(alias.this))
            node = node.parent
        for table in self._find_outside(exp.Table):
            alias = table.args.get("alias")
            if read_name(table.this) in found and isinstance(alias, exp.TableAlias):
                found.add(read_name(alias.this))
        return found - {""}

    def _keeps_numbers_apart(self, join: exp.Expr) -> bool:
        using = {
            read_name(one if isinstance(one, exp.Identifier) else one.this) for one in join.args.get("using") or ()
        }
        return not (using & self._tracked) and str(join.args.get("method") or "").upper() != "NATURAL"


def _find_first_side(node: exp.Expr) -> exp.Expr:
    """Return the SELECT whose columns name those of a set operation. For anything else return an empty SELECT."""
    if not isinstance(node, exp.SetOperation):
        return exp.Select()
    first: exp.Expr = node.left
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.left if isinstance(first, exp.SetOperation) else first.this
    return first


def is_carried(item: exp.Expr) -> bool:
    """Return True if an item only passes a column on: unchanged, cast or rounded."""
    return isinstance(_find_carried_expression(item), exp.Column)


def _find_carried_expression(item: exp.Expr) -> exp.Expr:
    while isinstance(item, _CARRIES):
        item = item.this
    return item


def _is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
