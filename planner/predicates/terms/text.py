"""Functions of a text: its beginning, its end, its lower case and its parts, as lists and LIKE patterns."""

from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType
from planner.parser.tree import write_node, write_short
from planner.predicates.computed.compare import read_computed_term
from planner.predicates.letter_case import list_lowered_spellings, refuse_letter_case
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.term import ColumnTerm, CompareConstant, LikePattern
from planner.predicates.where_refusals import refuse_unlisted_expression
from planner.question.condition import Compare, IsNull, Like, Not, Within, join_all, join_any
from planner.question.three_valued import UNKNOWN, Truth, make_known_unless_null
from planner.values.constant import Constant, Number, refuse_constant
from planner.values.functions import get_text
from planner.values.like import escape_pattern, split_pattern


def read_text_function(node: exp.Expr, inner: ColumnTerm | None, within: RowScope) -> ColumnTerm | None:
    """Return the term for `left`, `right`, `lower`, or `substring` from the first character, of the text `inner`."""
    if inner is None or not inner.is_plain or inner.column.sql_type is not SqlType.TEXT:
        return None
    column = inner.column
    if isinstance(node, exp.Lower):
        return ColumnTerm(
            column, _compare_lowered_text(column, node, within), like=_make_lowered_like(column, node, within)
        )
    length = _find_length(node, within)
    if length is None:
        return None

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        text = _read_compared_text(operator, constant, at)
        if text is None:
            return UNKNOWN
        if len(text) < length:
            return inner.compare(operator, text, at)
        if len(text) > length:
            equal = make_known_unless_null(column.name, true=join_any(()), false=Not(IsNull(column.name)))
        else:
            found = Like(
                column.name, f"%{escape_pattern(text)}" if isinstance(node, exp.Right) else f"{escape_pattern(text)}%"
            )
            equal = make_known_unless_null(column.name, true=found, false=Not(found))
        return equal if operator == "=" else equal.negate()

    return ColumnTerm(column, compare)


def _find_length(node: exp.Expr, within: RowScope) -> int | None:
    """Return the number of characters that `left`, `right` or a `substring` from the first one keeps."""
    begin = node.args.get("start")
    count = node.args.get("length") if isinstance(node, exp.Substring) else node.args.get("expression")
    if count is None or (isinstance(node, exp.Substring) and (begin is None or not within.is_constant(begin))):
        return None
    first = within.fold_constant(begin) if begin is not None else Number(Fraction(1), is_integral=True)
    found = within.fold_constant(count) if within.is_constant(count) else None
    if not isinstance(found, Number) or not found.is_integral or not isinstance(first, Number) or first.value != 1:
        return None
    return int(found.value) if 0 < found.value < 10_000 else None


def _read_compared_text(operator: str, constant: Constant, at: exp.Expr) -> str | None:
    if constant is None:
        return None
    text = get_text(constant)
    if text is None or "\x00" in text:
        raise refuse_constant(at, f"{write_short(at)} is not text")
    if operator not in ("=", "<>"):
        raise refuse_unlisted_expression(at, "the order of texts depends on a collation", hint="Use =, <>, IN or LIKE.")
    return text


def _compare_lowered_text(column: Column, node: exp.Lower, within: RowScope) -> CompareConstant:
    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        text = _read_compared_text(operator, constant, at)
        if text is None:
            return UNKNOWN
        patterns = list_lowered_spellings(list(text), node)
        if patterns is None:
            return _read_lowered_text(node, within).compare(operator, constant, at)
        equal = make_one_of(column, ["".join(character or "" for character in split_pattern(one)) for one in patterns])
        return equal if operator == "=" else equal.negate()

    return compare


def _make_lowered_like(column: Column, node: exp.Lower, within: RowScope) -> LikePattern:
    def like(pattern: str, at: exp.Expr) -> Truth:
        patterns = list_lowered_spellings(split_pattern(pattern), at)
        if patterns is not None:
            return make_like_any(column, patterns)
        found = _read_lowered_text(node, within)
        assert found.like is not None
        return found.like(pattern, at)

    return like


def _read_lowered_text(node: exp.Lower, within: RowScope) -> ColumnTerm:
    """Return the text lowered by the C collation. Raise KH205 if it is not computed from a row."""
    found = read_computed_term(node, within)
    if found is None:
        raise refuse_letter_case(node)
    return found


def read_word_position(node: exp.StrPosition, text: ColumnTerm, within: RowScope) -> ColumnTerm | None:
    """Return `position(word IN text)`, as a term that says whether the word is in the text."""
    word = node.args.get("substr")
    if word is None or node.args.get("position") or not within.is_constant(word) or text.like is None:
        return None
    looked_for = within.fold_constant(word)
    pattern = None if looked_for is None else f"%{escape_pattern(get_text(looked_for) or '')}%"
    like = text.like

    def compare(operator: str, constant: Constant, at: exp.Expr) -> Truth:
        if constant is None or pattern is None:
            return UNKNOWN
        found = like(pattern, at)
        match operator, constant:
            case (">", Number(0)) | (">=", Number(1)) | ("<>", Number(0)):
                return found
            case ("=", Number(0)) | ("<", Number(1)) | ("<=", Number(0)):
                return found.negate()
        raise refuse_unlisted_expression(
            node,
            f"{write_short(node)} may be compared with 0 only",
            hint=f"Instead you can ask: {write_node(node)} > 0, which is true if the text contains it.",
        )

    return ColumnTerm(text.column, compare)


def make_one_of(column: Column, texts: list[str]) -> Truth:
    """Return the `Truth` of the test that a text column equals at least one of some texts."""
    match sorted(set(texts)):
        case []:
            return make_known_unless_null(column.name, true=join_any(()), false=Not(IsNull(column.name)))
        case [text]:
            equal, other = Compare(column.name, "=", text), Compare(column.name, "<>", text)
            return make_known_unless_null(column.name, true=equal, false=other)
        case several:
            found = Within(column.name, tuple(several))
            return make_known_unless_null(column.name, true=found, false=Not(found))


def make_like_any(column: Column, patterns: list[str]) -> Truth:
    """Return the `Truth` of the test that a text column is LIKE at least one of some patterns."""
    if not patterns:
        return make_one_of(column, [])
    found = [Like(column.name, pattern) for pattern in dict.fromkeys(patterns)]
    return make_known_unless_null(column.name, true=join_any(found), false=join_all(Not(one) for one in found))
