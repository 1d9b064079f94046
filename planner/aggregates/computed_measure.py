"""Expressions of a row that an aggregate sums although they are no sum of columns: a time between dates, abs, least.

Each is a computed column in whole steps, clipped to the range that follows from the bounds of the columns that it
reads.

Guarantee: none is needed of the range. Values beyond it are clipped like those of any measure. The range decides how
much a row may add, and no guarantee depends on whether values exceed it.

References: docs/decisions/0037-row-expressions.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.aggregates.having_refusals import refuse_unknown_range
from planner.aggregates.known_ranges import make_range_lookup
from planner.catalog.catalog import Column, Computed, ComputedName, SqlType
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses, write_node, write_short
from planner.predicates.computed import ratios
from planner.predicates.computed.compare import make_computed_column, make_measured_column
from planner.predicates.computed.number_arithmetic import NUMBERS, NoTermError
from planner.predicates.computed.ranges import Clip, Known
from planner.predicates.computed.read import read_measure, read_term
from planner.predicates.computed.text import spell
from planner.predicates.computed.times import extract
from planner.predicates.row_scope import RowScope
from planner.question.condition import ALWAYS, Condition, join_all

_FUNCTIONS = (
    exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Greatest, exp.Least, exp.Nullif, exp.Mod, exp.Extract,
    exp.Length,
)  # fmt: skip
_SUMMED = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)

Clips: TypeAlias = Mapping[str, Clip]
"""By the text of an expression without a range, which of its values count as they are."""


@dataclass(frozen=True, slots=True)
class MeasureReading:
    """The names and conditions with which the argument of an aggregate is read.

    All rows of the question satisfy `where`. The rows that the aggregate counts satisfy `counted_rows`. If the
    argument `is_counted` only, it needs no range. With `clips`, an expression without a range is clipped if they list
    it, and is otherwise read as a column without bounds. If `clips` is None, it is refused.
    """

    within: RowScope
    where: Condition = ALWAYS
    counted_rows: Condition = ALWAYS
    is_counted: bool = False
    clips: Clips | None = None

    @property
    def known_ranges(self) -> tuple[Known, Known]:
        """The known ranges of terms: those that hold in all rows, and those that hold in the counted rows."""
        scope = self.within.scope
        return make_range_lookup(self.where, scope), make_range_lookup(join_all((self.where, self.counted_rows)), scope)


@dataclass(frozen=True, slots=True)
class ComputedMeasure:
    """A computed column, the size of one of its steps, and how PostgreSQL computes with it."""

    column: Column
    step: Fraction
    kind: TermKind


def read_computed_measure(node: exp.Expr, reading: MeasureReading) -> ComputedMeasure | None:
    """Return an expression that is no sum of columns as a column with its public bounds.

    If it is only counted, it needs no bounds, and a duration is counted in seconds. Return None for a sum of columns,
    and for an expression that is no term. Raise KH203 for one that may be arbitrarily large, KH204 for a duration.
    """
    node = strip_parentheses(node)
    within = reading.within
    of_times = isinstance(node, exp.Sub) and not _is_number(node.this, within)
    if not (isinstance(node, _FUNCTIONS) or of_times or _is_number_of_text(node, within)):
        return None
    term = read_measure(node, within)
    if term is None or term.kind not in (*NUMBERS, TermKind.LENGTH):
        return None
    if term.kind is TermKind.LENGTH and not reading.is_counted:
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} is an interval, which is not added up here",
            detail="HAVING compares sums and means of intervals with an interval; elsewhere aggregates add up numbers.",
            hint=f"Add up its seconds: extract(epoch FROM {write_node(node)}).",
            position=find_position(node),
        )
    return _make_measure(node, term, reading)


def read_whole_measure(node: exp.Expr, reading: MeasureReading) -> ComputedMeasure | None:
    """Return a whole numeric expression as one column: a quotient, or an expression with a part that has no range.

    A quotient by a column is a double here, though PostgreSQL computes it in numerics. Return None if the expression
    is no term. Raise KH203 if the expression may be arbitrarily large.
    """
    node = strip_parentheses(node)
    term = read_measure(node, reading.within)
    return None if term is None or term.kind not in NUMBERS else _make_measure(node, term, reading)


def bound_column(column: Column, node: exp.Expr, reading: MeasureReading) -> ComputedMeasure | None:
    """Return a number column without declared bounds, with bounds from the rows that count or from a clip, if any."""
    if column.bounds is not None or column.sql_type not in _SUMMED or column.filter_only or reading.clips is None:
        return None
    term = read_term(node, reading.within)
    if term is None:
        return None
    # a column by its own name has no bounds
    term = RowTerm("same", term.kind, (term,), scale=term.scale, limit=term.limit)
    return None if reading.is_counted and spell(term) not in reading.clips else _make_measure(node, term, reading)


def is_unbounded(column: Column | None) -> bool:
    """Return True for a computed column without bounds."""
    return column is not None and column.bounds is None and isinstance(column.derivation, Computed)


def find_least_value(column: Column) -> Fraction | None:
    """Return the least value of a column: by its bounds, or else by the public lower limit of its expression."""
    if column.bounds is not None:
        return Fraction(column.bounds[0])
    return column.derivation.ends[0] if isinstance(column.derivation, Computed) else None


def _make_measure(node: exp.Expr, term: RowTerm, reading: MeasureReading) -> ComputedMeasure | None:
    step = Fraction(1)
    if term.function == "ratio":
        term, under = ratios.split_ratio(term)
        assert isinstance(under.value, int)
        step = Fraction(10**under.scale, under.value)
    try:
        made = _name_measure(term, reading)
    except NoTermError:
        return None
    written = ComputedName.from_column(replace(made, comment=write_node(node))).column
    if made.bounds is None and not reading.is_counted and (reading.clips is None or _reads_filter_only(term, reading)):
        raise refuse_unknown_range(written, position=find_position(node))
    return ComputedMeasure(written, step / 10**term.scale, term.kind)


def _reads_filter_only(term: RowTerm, reading: MeasureReading) -> bool:
    return any(reading.within.scope.table.get_column(name).filter_only for name in term.columns)


def _name_measure(term: RowTerm, reading: MeasureReading) -> Column:
    """Return the column of a term, with bounds if they are known. A duration becomes a number of seconds."""
    within, known = reading.within, reading.known_ranges
    if term.kind is not TermKind.LENGTH:
        clip = (reading.clips or {}).get(spell(term))
        return make_measured_column(term, within, known=known, clip=clip)
    seconds = extract("epoch", term)
    made = make_measured_column(seconds, within, known=known, clip=(reading.clips or {}).get(spell(seconds)))
    return make_computed_column(term, within) if made.bounds is None else made


def _is_number_of_text(node: exp.Expr, within: RowScope) -> bool:
    """Return True for a text that is cast to the number that it spells."""
    if not isinstance(node, exp.Cast) or within.is_constant(node):
        return False
    found = read_term(node.this, within)
    return found is not None and found.kind is TermKind.TEXT


def _is_number(node: exp.Expr, within: RowScope) -> bool:
    if within.is_constant(node):
        return not isinstance(within.fold_constant(node), date)
    found = read_term(node, within)
    return found is None or found.kind in NUMBERS
