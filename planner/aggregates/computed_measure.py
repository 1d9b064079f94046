"""Expressions of a row that an aggregate adds up although they are no sum of columns: a time between dates, abs, least.

Each is a computed column in whole steps, clipped to the range that follows from the bounds of what it reads.

Guarantee: none is needed of the range. Values beyond it are clipped like those of any measure, so that it decides how
much a row may add and never whether that is true.

References: docs/decisions/0037-row-expressions.md.
"""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.known_ranges import known_ranges
from planner.catalog.model import Column, ComputedName
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.parser.tree import bare, position, write_node, write_short
from planner.predicates.computed.compare import computed_column
from planner.predicates.computed.numbers import EXACT, NoTermError
from planner.predicates.computed.ranges import Known
from planner.predicates.computed.read import read_term
from planner.predicates.computed.times import extract
from planner.predicates.row_scope import RowScope
from planner.question.condition import ALWAYS, Condition, all_of

_FUNCTIONS = (
    exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Greatest, exp.Least, exp.Nullif, exp.Mod, exp.Extract,
    exp.Length,
)  # fmt: skip


def computed_measure(
    node: exp.Expr, within: RowScope, *, where: Condition = ALWAYS, among: Condition = ALWAYS, counted: bool = False
) -> tuple[Column, Fraction, TermKind] | None:
    """Return a computed column with its bounds, what one of its steps is worth, and whether it is an integer's.

    Bounds are those of the columns that it reads, else what `among` says of the rows that count, beside what `where`
    says of all. If it is only `counted`, it needs none, and a length of time is its seconds. None for an expression
    that is a sum of columns, or no term. Raises KH203 where it may be arbitrarily large, KH204 for a length of time.
    """
    node = bare(node)
    if not isinstance(node, _FUNCTIONS) and not (isinstance(node, exp.Sub) and not _is_number(node.this, within)):
        return None
    term = read_term(node, within)
    if term is None or term.function == "ratio" or term.kind not in (*EXACT, TermKind.LENGTH):
        return None
    if term.kind is TermKind.LENGTH and not counted:
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} is an interval, which is not added up here",
            detail="HAVING compares sums and means of intervals with an interval; elsewhere aggregates add up numbers.",
            hint=f"Add up its seconds: extract(epoch FROM {write_node(node)}).",
            position=position(node),
        )
    try:
        known = known_ranges(where, within.scope), known_ranges(all_of((where, among)), within.scope)
        made = _measured_column(term, within, known)
    except NoTermError:
        return None
    if made.bounds is None and not counted:
        raise KeyholeError(
            "KH203",
            f"the range of {write_short(node)} is not known",
            detail="It follows from the declared bounds of the columns, or from what WHERE or FILTER says of it.",
            hint=f"Say which values count, with numbers of your own: FILTER (WHERE {write_node(node)} BETWEEN 0 AND "
            f"{864_000 if _is_seconds(node) else 1_000}).",
            position=position(node),
        )
    written = ComputedName.of(replace(made, comment=write_node(node))).column
    return written, Fraction(1, 10**term.scale), term.kind


def _measured_column(term: RowTerm, within: RowScope, known: tuple[Known, Known]) -> Column:
    """The column that a term is, with bounds if they are known. A length of time is its seconds then."""
    if term.kind is not TermKind.LENGTH:
        return computed_column(term, within, known=known)
    seconds = computed_column(extract("epoch", term), within, known=known)
    return computed_column(term, within) if seconds.bounds is None else seconds


def _is_seconds(node: exp.Expr) -> bool:
    return isinstance(node, exp.Extract) and str(node.this).lower().strip("'") == "epoch"


def _is_number(node: exp.Expr, within: RowScope) -> bool:
    found = read_term(node, within)
    return found is None or found.kind in EXACT or found.kind is TermKind.FLOATING
