"""Bands: width_bucket of an aggregate, and the columns of the owner's bands.

A width_bucket is spelled out as the number of thresholds that are reached.

    SELECT width_bucket(sum(amount), ARRAY[5000, 10000])
    SELECT ((sum(amount) >= 5000)::int + (sum(amount) >= 10000)::int)

    HAVING width_bucket(sum(amount), ARRAY[5000, 10000]) = 1
    HAVING (sum(amount) >= 5000 AND sum(amount) < 10000)

Each comparison is then a predicate, and all of them are decided by one noisy value.

    SELECT country, max(amount_sum_band) FROM sales GROUP BY country
    SELECT country, width_bucket(sum(amount), ARRAY[5000, 10000]) AS max FROM sales GROUP BY country

Tools drag columns, and write an aggregate around each. The column of a band has the band of the group in all its rows:
the least, the greatest and the mean of equal values are that value.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.catalog import MOST_BANDS, BandColumn, Bands
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import find_clauses, find_closing, find_item_end, find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, find_start, read_name, strip_parentheses, write_node
from planner.scope.owner_bands import write_aggregate, write_at_least, write_band, write_below
from planner.scorecard.find import find_predicates, shows_size
from planner.values.decimals import convert_to_exact_decimal

_OF_EQUAL_VALUES = (exp.Max, exp.Min, exp.Avg)


def spell_out_bands(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that spell out every width_bucket of an aggregate.

    In the select list and ORDER BY, it becomes a sum of comparisons. In HAVING, width_bucket compared with a number
    becomes a comparison of the aggregate.

    PostgreSQL gives the same number for both if the aggregate has a value. If the aggregate has no value, the sum of
    comparisons is 0.
    """
    parts, having = [*read.select.expressions, read.select.args.get("order")], read.select.args.get("having")
    if not any(part is not None and contains_type(part, exp.WidthBucket) for part in (*parts, having)):
        return ()
    edits = [edit for part in parts if part is not None for edit in _list_edits(part, read)]
    try:
        return (*edits, *(() if having is None else _compare_bands(having, read, _find_width_bucket)))
    except KeyholeError:
        return tuple(edits)


_Banded: TypeAlias = tuple[str, Bands]  # an aggregate as it is written, and its bands
_FindBanded: TypeAlias = Callable[[exp.Expr, PrivateRead], _Banded | None]


def _compare_bands(having: exp.Expr, read: PrivateRead, find: _FindBanded) -> Iterator[Edit]:
    """Yield the edits that replace comparisons of a band with whole numbers by thresholds of the aggregate.

    Parameters:
        find: returns the aggregate and the bands if an expression is a band's number.

    Raise KH106.
    """
    first = find_clauses(read.node, read.tokens).find_mark("having")
    if first is None:
        return
    for node in having.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between, exp.In):
        banded = find(strip_parentheses(node.this), read)
        meant = None if banded is None else _spell_comparison(node, *banded)
        if meant is None:
            continue
        opposite = node.parent if isinstance(node, exp.Between | exp.In) and isinstance(node.parent, exp.Not) else None
        # NOT stands within NOT IN and NOT BETWEEN, and is replaced with them
        ((at, past),) = find_spans(
            [SearchedNode(opposite or node, first + 1, len(read.tokens))], read.text, read.tokens
        )
        spelled = f"(NOT ({meant}))" if opposite is not None else f"({meant})"
        yield Edit.from_text(read.tokens[at].start, read.tokens[past - 1].end, spelled)


def _spell_comparison(comparison: exp.Expr, aggregate: str, bands: Bands) -> str | None:
    """Return a comparison of a band's number as a formula of thresholds. Return None if it always or never holds."""
    most = len(bands.thresholds)

    def within(low: int, high: int) -> str | None:
        """Return that the number is from `low` to `high`."""
        if low > min(high, most) or high < 0:
            return None
        ends = [write_at_least(aggregate, bands, low)] if low > 0 else []
        ends += [write_below(aggregate, bands, high + 1)] if high < most else []
        return " AND ".join(ends) or None

    if comparison.args.get("query") is not None or comparison.args.get("symmetric"):
        return None
    operands = [comparison.args.get(name) for name in ("expression", "low", "high")]
    listed = [*comparison.expressions, *(one for one in operands if one is not None)]
    numbers = [number for one in listed if (number := _read_number(one)) is not None and number.denominator == 1]
    if not numbers or len(numbers) < len(listed):
        return None
    first = int(numbers[0])
    match comparison:
        case exp.GTE():
            return within(first, most)
        case exp.GT():
            return within(first + 1, most)
        case exp.LTE():
            return within(0, first)
        case exp.LT():
            return within(0, first - 1)
        case exp.Between():
            return within(first, int(numbers[1]))
        case exp.NEQ():
            others = [within(0, first - 1), within(first + 1, most)]
        case _:
            others = [within(number, number) for number in sorted({int(number) for number in numbers})]
    return " OR ".join(f"({one})" for one in others if one is not None) or None


def _find_width_bucket(node: exp.Expr, read: PrivateRead) -> _Banded | None:
    thresholds, at = (_read_thresholds(node), find_start(node)) if isinstance(node, exp.WidthBucket) else (None, None)
    if thresholds is None or at is None or not contains_aggregate(node.this) or contains_type(node, exp.Parameter):
        return None
    first = find_token(read.tokens, node.meta["start"]) + 2
    aggregate = read.text[read.tokens[first].start : _find_argument_end(read.tokens, first)]
    return aggregate, Bands("sum", tuple(map(Decimal, thresholds)))


def _list_edits(part: exp.Expr, read: PrivateRead) -> Iterator[Edit]:
    for call in part.find_all(exp.WidthBucket):
        thresholds, at = _read_thresholds(call), find_start(call)
        if thresholds is None or at is None or not contains_aggregate(call.this):
            continue
        first = find_token(read.tokens, call.meta["start"])
        last = find_closing(read.tokens, first + 1)
        value = read.text[read.tokens[first + 2].start : _find_argument_end(read.tokens, first + 2)]
        reached = " + ".join(f"({value} >= {threshold})::int" for threshold in thresholds)
        end = read.tokens[last].end
        yield Edit(read.tokens[first].start, end, (f"({reached})",))
        if _names_item(call):
            item_end = _find_end_of_casts(read.tokens, last)
            yield Edit(item_end, item_end, (" AS width_bucket",))


def _read_thresholds(call: exp.WidthBucket) -> tuple[str, ...] | None:
    """Return the thresholds in rising order as SQL. Return None if PostgreSQL would not take them.

    Parameters have no value yet, and are taken to rise in the order in which they are listed.
    """
    listed = call.args.get("threshold")
    cast, listed = (listed.to, listed.this) if isinstance(listed, exp.Cast) else (None, listed)
    if isinstance(listed, exp.Array):
        rising = [number for one in listed.expressions if (number := _read_number(one)) is not None]
        given = sum(isinstance(one, exp.Parameter) for one in listed.expressions)
        if len(rising) + given != len(listed.expressions) or rising != sorted(rising):
            return None
        if not 0 < len(listed.expressions) <= MOST_BANDS or (cast is not None and not _keeps_numbers(cast, rising)):
            return None
        return tuple(write_node(one) for one in listed.expressions)
    low, high, count = (_read_number(call.args.get(name)) for name in ("min_value", "max_value", "num_buckets"))
    if low is None or high is None or count is None or count.denominator != 1:
        return None
    if low >= high or not 0 < count < MOST_BANDS:
        return None
    steps = [convert_to_exact_decimal(low + (high - low) * place / count) for place in range(int(count) + 1)]
    return None if None in steps else tuple(f"{step:f}" for step in steps)


def _keeps_numbers(cast: exp.DataType, numbers: list[Fraction]) -> bool:
    """Return True if a list of numbers is the same after a cast to another type of array."""
    element = cast.expressions[0] if len(cast.expressions) == 1 else None
    if not isinstance(element, exp.DataType) or element.expressions:
        return False
    whole = element.this in (exp.DataType.Type.INT, exp.DataType.Type.BIGINT)
    return element.this is exp.DataType.Type.DECIMAL or (whole and all(one.denominator == 1 for one in numbers))


def _read_number(node: exp.Expr | None) -> Fraction | None:
    inner = None if node is None else strip_parentheses(node)
    if isinstance(inner, exp.Neg):
        found = _read_number(inner.this)
        return None if found is None else -found
    return Fraction(str(inner.this)) if isinstance(inner, exp.Literal) and not inner.is_string else None


def _find_argument_end(tokens: tuple[Token, ...], first: int) -> int:
    """Return the end of the argument that begins with a token."""
    return tokens[find_item_end(tokens, first, before=(), stops_at_commas=True) - 1].end


def _names_item(call: exp.Expr) -> bool:
    """Return True if PostgreSQL names an item of the select list after the call: it is the item, or its cast."""
    node = call
    while isinstance(node.parent, exp.Cast | exp.Paren):
        node = node.parent
    return isinstance(node.parent, exp.Select) and node.arg_key == "expressions"


def _find_end_of_casts(tokens: tuple[Token, ...], last: int) -> int:
    """Return the end of an item whose last call ends with a token: of the parentheses and casts behind it."""
    index = last + 1
    depth = 0
    while index < len(tokens) and not (depth <= 0 and (tokens[index].is_symbol(",") or tokens[index].is_word("from"))):
        depth += tokens[index].is_symbol("(") - tokens[index].is_symbol(")")
        index += 1
    return tokens[index - 1].end


def spell_out_band_columns(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that write a band's thresholds in the place of every max, min and avg of a band column.

    In HAVING, they write a comparison of the aggregate with these thresholds.
    """
    known = {shown.name for shown in read.table.band_columns}
    if not any(token.is_name and token.value in known for token in read.tokens):
        return ()
    parts, having = [*read.select.expressions, read.select.args.get("order")], read.select.args.get("having")
    edits = [edit for part in parts if part is not None for edit in _list_column_edits(part, read)]
    try:
        return (*edits, *(() if having is None else _compare_bands(having, read, _find_banded_number)))
    except KeyholeError:
        return tuple(edits)


def _list_column_edits(part: exp.Expr, read: PrivateRead) -> Iterator[Edit]:
    for call in part.find_all(*_OF_EQUAL_VALUES):
        banded = None if isinstance(call.parent, exp.Filter | exp.Window) else _find_banded_number(call, read)
        if banded is None:
            continue
        first, last = _find_span(call, read.tokens)
        band = write_band(*banded)  # a whole number, whose mean has decimals to PostgreSQL
        spelled = f"({band})::numeric" if isinstance(call, exp.Avg) else band
        yield Edit.from_text(read.tokens[first].start, read.tokens[last].end, spelled)
        if _names_item(call):  # PostgreSQL would name it after the call that was there
            at = _find_end_of_casts(read.tokens, last)
            yield Edit.from_text(at, at, f" AS {call.key}")


def _find_banded_number(call: exp.Expr, read: PrivateRead) -> _Banded | None:
    column = strip_parentheses(call.this) if isinstance(call, _OF_EQUAL_VALUES) else None
    if not isinstance(column, exp.Column) or call.meta.get("start") is None:
        return None
    if call.find_ancestor(exp.Select) is not read.select or not _is_own_column(column, read):
        return None
    shown = _find_band_column(read_name(column.this), read)
    if shown is None:
        return None
    first, last = _find_span(call, read.tokens)
    written = [
        token for token in read.tokens[first + 2 : last] if not token.is_symbol("(") and not token.is_symbol(")")
    ]
    qualifier = read.text[written[0].start : written[-1].start]
    return write_aggregate(shown, read.table, qualifier=qualifier), shown.bands


def _find_band_column(wanted: str, read: PrivateRead) -> BandColumn | None:
    return next((shown for shown in read.table.band_columns if shown.name == wanted), None)


def _is_own_column(column: exp.Column, read: PrivateRead) -> bool:
    """Return True if a column's qualifier, if any, names the table that is read."""
    qualifier, schema, alias = read_name(column.args.get("table")), read_name(column.args.get("db")), read.node.alias
    if schema:
        return schema == "public" and qualifier == read.table.name and not alias
    return qualifier in ("", alias or read.table.name)


def _find_span(call: exp.Expr, tokens: tuple[Token, ...]) -> tuple[int, int]:
    """Return the first and the last token of a call."""
    first = find_token(tokens, call.meta["start"])
    return first, find_closing(tokens, first + 1)


def drop_having_of_rows(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edit that drops HAVING COUNT(1) > 0 from a scorecard. Tableau writes it in every query.

    In PostgreSQL every group has rows, so the condition says nothing. Here every listed key is a row of the answer, so
    the condition would ask which groups have rows. People ask that with count(*) > 0, which stays.
    """
    group, having = read.select.args.get("group"), read.select.args.get("having")
    if group is None or not group.expressions or having is None or not _only_says_rows_exist(having.this):
        return ()
    has_bands = read.catalog.defaults.numbers == "bands"
    if not any(find_predicates(item) or (has_bands and shows_size(item)) for item in read.select.expressions):
        return ()
    place = find_clauses(read.node, read.tokens)
    at = place.find_mark("having")
    if at is None:
        return ()
    return (Edit.from_text(read.tokens[at - 1].end, read.tokens[place.end - 1].end, ""),)


def _only_says_rows_exist(condition: exp.Expr) -> bool:
    match strip_parentheses(condition):
        case exp.GT(this=exp.Count(this=exp.Literal(this="1")), expression=exp.Literal(this="0", is_string=False)):
            return True
    return False
