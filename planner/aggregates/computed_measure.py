"""Expressions of a row that an aggregate adds up although they are no sum of columns: a time between dates, abs, least.

Each is a computed column in whole steps, clipped to the range that follows from the bounds of what it reads.

Guarantee: none is needed of the range. Values beyond it are clipped like those of any measure, so that it decides how
much a row may add and never whether that is true.

References: docs/decisions/0037-row-expressions.md.
"""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from planner.catalog.model import Column, ComputedName
from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.parser.tree import bare, position, write_node
from planner.predicates.computed.compare import computed_column
from planner.predicates.computed.numbers import EXACT, NoTermError
from planner.predicates.computed.read import read_term
from planner.predicates.row_scope import RowScope
from planner.values.model import Span

_FUNCTIONS = (
    exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Greatest, exp.Least, exp.Nullif, exp.Mod, exp.Extract,
    exp.Length,
)  # fmt: skip

_SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


def computed_measure(node: exp.Expr, within: RowScope) -> tuple[Column, Fraction, TermKind] | None:
    """Return a computed column with its bounds, what one of its steps is worth, and whether it is an integer's.

    None for an expression that is a sum of columns, or no term. Raises KH203 where it may be arbitrarily large, KH204
    for a length of time.
    """
    node = bare(node)
    if not isinstance(node, _FUNCTIONS) and not (isinstance(node, exp.Sub) and not _is_number(node.this, within)):
        return None
    term = read_term(node, within)
    if term is None or term.function == "ratio" or term.kind not in (*EXACT, TermKind.LENGTH):
        return None
    if term.kind is TermKind.LENGTH:
        raise KeyholeError(
            "KH204",
            f"{write_node(node)[:80]} is an interval, which is not added up",
            detail="Aggregates add up numbers.",
            hint=_ask_seconds(node, within)
            or f"Add up its seconds: least(greatest(extract(epoch FROM {write_node(node)}), 0), 864000).",
            position=position(node),
        )
    try:
        made = computed_column(term, within)
    except NoTermError:
        return None
    if made.bounds is None:
        raise KeyholeError(
            "KH203",
            f"the range of {write_node(node)[:80]} is not known",
            detail="It follows from the declared bounds of the columns, and dates have none.",
            hint=f"Clip it: least(greatest({write_node(node)}, 0), {864_000 if _is_seconds(node) else 100}).",
            position=position(node),
        )
    written = ComputedName.of(replace(made, comment=write_node(node))).column
    return written, Fraction(1, 10**term.scale), term.kind


def _ask_seconds(node: exp.Expr, within: RowScope) -> str | None:
    """The question with a mean of seconds in the place of a mean interval, up to five times the analyst's threshold;
    None where it is not compared with one."""
    compared = node.find_ancestor(exp.GT, exp.GTE, exp.LT, exp.LTE)
    select = None if compared is None else compared.find_ancestor(exp.Select)
    if compared is None or select is None or not within.is_constant(compared.expression):
        return None
    length = within.constant(compared.expression)
    if not isinstance(length, Span) or length.months or not isinstance(bare(compared.this), exp.Avg | exp.Filter):
        return None
    seconds = length.days * 86_400 + length.microseconds // 10**6
    if seconds <= 0:
        return None
    clipped = f"least(greatest(extract(epoch FROM {write_node(node)}), 0), {5 * seconds})"
    mean = write_node(compared.this).replace(write_node(node), clipped)
    text = f"{mean} {_SIGNS[type(compared)]} {seconds}"
    question = write_node(select).replace(write_node(compared), text)
    return f"Instead you can ask: {question};"


def _is_seconds(node: exp.Expr) -> bool:
    return isinstance(node, exp.Extract) and str(node.this).lower().strip("'") == "epoch"


def _is_number(node: exp.Expr, within: RowScope) -> bool:
    found = read_term(node, within)
    return found is None or found.kind in EXACT or found.kind is TermKind.FLOATING
