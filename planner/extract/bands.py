"""Bands: width_bucket of an aggregate, spelled out as the number of thresholds that are reached.

    width_bucket(sum(amount), ARRAY[5000, 10000])
    ((sum(amount) >= 5000)::int + (sum(amount) >= 10000)::int)

Each comparison is then a predicate, and all of them are decided by one noisy value.
"""

from collections.abc import Iterator
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.model import MOST_BANDS
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import at_offset, closing_index
from planner.parser.edits import Edit
from planner.parser.lexer import Token
from planner.parser.tree import bare, contains, start, write_node
from planner.values.decimals import terminating_decimal


def spell_out_bands(read: PrivateRead) -> tuple[Edit, ...]:
    """Every width_bucket of an aggregate in the select list and ORDER BY, as a sum of comparisons.

    PostgreSQL gives the same number for both where the aggregate has a value, and 0 for the second where it has none.
    """
    parts = [*read.select.expressions, read.select.args.get("order")]
    if not any(part is not None and contains(part, exp.WidthBucket) for part in parts):
        return ()
    return tuple(edit for part in parts if part is not None for edit in _edits(part, read))


def _edits(part: exp.Expr, read: PrivateRead) -> Iterator[Edit]:
    for call in part.find_all(exp.WidthBucket):
        thresholds, at = _thresholds(call), start(call)
        if thresholds is None or at is None or not contains_aggregate(call.this):
            continue
        first = at_offset(read.tokens, call.meta["start"])
        last = closing_index(read.tokens, first + 1)
        value = read.text[read.tokens[first + 2].start : _end_of_argument(read.tokens, first + 2)]
        reached = " + ".join(f"({value} >= {threshold})::int" for threshold in thresholds)
        end = read.tokens[last].end
        yield Edit(read.tokens[first].start, end, (f"({reached})",))
        if _names_item(call):
            item_end = _end_of_casts(read.tokens, last)
            yield Edit(item_end, item_end, (" AS width_bucket",))


def _thresholds(call: exp.WidthBucket) -> tuple[str, ...] | None:
    """The thresholds in rising order as SQL; None where they are not constants that PostgreSQL would take."""
    listed = call.args.get("threshold")
    if isinstance(listed, exp.Array):
        numbers = [_number(one) for one in listed.expressions]
        rising = [number for number in numbers if number is not None]
        if len(rising) != len(numbers) or not 0 < len(rising) <= MOST_BANDS or rising != sorted(rising):
            return None
        return tuple(write_node(one) for one in listed.expressions)
    low, high, count = (_number(call.args.get(name)) for name in ("min_value", "max_value", "num_buckets"))
    if low is None or high is None or count is None or count.denominator != 1:
        return None
    if low >= high or not 0 < count < MOST_BANDS:
        return None
    steps = [terminating_decimal(low + (high - low) * place / count) for place in range(int(count) + 1)]
    return None if None in steps else tuple(f"{step:f}" for step in steps)


def _number(node: exp.Expr | None) -> Fraction | None:
    inner = None if node is None else bare(node)
    if isinstance(inner, exp.Neg):
        found = _number(inner.this)
        return None if found is None else -found
    return Fraction(str(inner.this)) if isinstance(inner, exp.Literal) and not inner.is_string else None


def _end_of_argument(tokens: tuple[Token, ...], first: int) -> int:
    """Where the first argument ends that begins with a token."""
    depth = 0
    for index in range(first, len(tokens)):
        token = tokens[index]
        if token.is_symbol("(") or token.is_symbol("["):
            depth += 1
        elif token.is_symbol(")") or token.is_symbol("]"):
            depth -= 1
        elif depth == 0 and token.is_symbol(","):
            return tokens[index - 1].end
    return tokens[first].end


def _names_item(call: exp.WidthBucket) -> bool:
    """Whether PostgreSQL names an item of the select list after the call: it is the item, or what is cast there."""
    node: exp.Expr = call
    while isinstance(node.parent, exp.Cast | exp.Paren):
        node = node.parent
    return isinstance(node.parent, exp.Select) and node.arg_key == "expressions"


def _end_of_casts(tokens: tuple[Token, ...], last: int) -> int:
    """The end of an item whose last call ends with a token: of the parentheses and casts behind it."""
    index = last + 1
    depth = 0
    while index < len(tokens) and not (depth <= 0 and (tokens[index].is_symbol(",") or tokens[index].is_word("from"))):
        depth += tokens[index].is_symbol("(") - tokens[index].is_symbol(")")
        index += 1
    return tokens[index - 1].end
