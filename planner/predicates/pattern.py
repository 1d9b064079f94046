"""LIKE, ILIKE, starts_with and regular expressions: a text column, or a function of one, and a constant pattern."""

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.parser.lexer import spell_name
from planner.parser.tree import strip_parentheses
from planner.predicates.computed.compare import match_text, read_computed_term
from planner.predicates.letter_case import list_spellings, lower_pattern, refuse_letter_case
from planner.predicates.row_scope import RowScope, combine_truths
from planner.predicates.terms.operand import read_operand
from planner.predicates.terms.term import ColumnTerm
from planner.predicates.terms.text import make_like_any
from planner.predicates.where_refusals import refuse_function
from planner.question.three_valued import UNKNOWN, Truth, make_constant
from planner.values.constant import Constant, refuse_constant
from planner.values.functions import get_text
from planner.values.like import escape_pattern, is_unfinished, matches_pattern, normalise_escape, split_pattern
from planner.values.regular_expressions import convert_expression, convert_similar_pattern, write_plain_expression


def read_like(node: exp.Expr, within: RowScope, *, escape: exp.Expr | None) -> Truth:
    """Return the `Truth` of LIKE, ILIKE and starts_with."""
    pattern = within.fold_constant(node.expression)
    mark = "\\" if escape is None else within.fold_constant(escape)
    if pattern is None or mark is None:
        return UNKNOWN
    if within.is_constant(strip_parentheses(node.this)):
        value = within.fold_constant(strip_parentheses(node.this))
        if value is None:
            return UNKNOWN
        if isinstance(node, exp.ILike):
            raise refuse_constant(
                node, "ILIKE of constants depends on a collation", hint="Write the condition without it: true."
            )
        text = _read_text(value, node.this)
        return make_constant(value=matches_pattern(text, _read_pattern(node, pattern, mark)))
    found = read_operand(strip_parentheses(node.this), within)
    if found.column.sql_type is not SqlType.TEXT:
        raise refuse_constant(
            node,
            f'LIKE needs a text column; "{found.column.name}" is not',
            hint=f"Compare {spell_name(found.column.name)} with = or a range: "
            f"{spell_name(found.column.name)} BETWEEN ... AND ...",
        )
    made = _read_pattern(node, pattern, mark)
    if isinstance(node, exp.ILike):
        return _like_any_case(node, found, made, within)
    if found.like is None:
        raise refuse_function(node)
    return found.like(made, node)


def read_regular_expression(node: exp.Expr, within: RowScope) -> Truth:
    """Return the `Truth` of a regular expression or SIMILAR TO that LIKE patterns can express.

    Raise KH205 for any other.
    """
    pattern = within.fold_constant(node.expression)
    if pattern is None:
        return UNKNOWN
    read = convert_similar_pattern if isinstance(node, exp.SimilarTo) else convert_expression
    made = None if node.args.get("flag") is not None else read(_read_text(pattern, node.expression))
    if made is None:
        found = _match_simple_classes(node, pattern, within)
        if found is None:
            raise refuse_function(node)
        return found
    kind = exp.ILike if isinstance(node, exp.RegexpILike) else exp.Like
    alike = [kind(this=node.this.copy(), expression=exp.Literal.string(one)) for one in made]
    return combine_truths((read_like(one, within, escape=None) for one in alike), is_conjunction=False)


def _match_simple_classes(node: exp.Expr, pattern: Constant, within: RowScope) -> Truth | None:
    """Return the `Truth` of a regular expression of classes, which all engines read alike.

    Return None for any other.
    """
    if not isinstance(node, exp.RegexpLike) or node.args.get("flag") is not None:
        return None
    plain = write_plain_expression(_read_text(pattern, node.expression))
    return (
        None
        if plain is None or within.is_constant(strip_parentheses(node.this))
        else match_text(strip_parentheses(node.this), plain, within)
    )


def _like_any_case(node: exp.ILike, found: ColumnTerm, pattern: str, within: RowScope) -> Truth:
    """Return the `Truth` of ILIKE as LIKE of all spellings, or of the text in lower case."""
    characters = split_pattern(pattern)
    patterns = list_spellings(characters, node)
    if found.is_plain and patterns is not None:
        return make_like_any(found.column, patterns)
    lowered = read_computed_term(exp.Lower(this=node.this.copy()), within)
    if lowered is None or lowered.like is None:
        raise refuse_letter_case(node)
    return lowered.like(lower_pattern(characters), node)


def _read_text(value: Constant, node: exp.Expr) -> str:
    text = get_text(value)
    if text is None:
        raise refuse_constant(node, "a LIKE pattern is text", hint="Write it in quotes: x LIKE 'a%'.")
    return text


def _read_pattern(node: exp.Expr, pattern: Constant, mark: Constant) -> str:
    """Return the pattern with the backslash as its escape."""
    text, escape = _read_text(pattern, node.expression), _read_text(mark, node)
    if "\x00" in text:
        raise refuse_constant(
            node.expression, "a text constant contains a zero byte, which SQL text cannot hold", hint="Remove it."
        )
    if isinstance(node, exp.StartsWith):
        return f"{escape_pattern(text)}%"
    if len(escape) > 1:
        raise refuse_constant(node, "an escape is one character", hint="Write x LIKE '50/%' ESCAPE '/'.")
    made = text if escape == "\\" else normalise_escape(text, escape)
    if made is None or is_unfinished(made):
        raise refuse_constant(
            node.expression,
            "a LIKE pattern ends in an unfinished escape",
            hint="Write the escape character twice if it stands for itself.",
        )
    return made
