"""Expressions of a row that an aggregate adds up although they are no sum of columns: a time between dates, abs, least.

Each is a computed column in whole steps, clipped to the range that follows from the bounds of what it reads.

Guarantee: none is needed of the range. Values beyond it are clipped like those of any measure, so that it decides how
much a row may add and never whether that is true.

References: docs/decisions/0037-row-expressions.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.aggregates.having_refusals import unknown_range
from planner.aggregates.known_ranges import known_ranges
from planner.catalog.catalog import Column, Computed, ComputedName, SqlType
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses, write_node, write_short
from planner.predicates.computed import ratios
from planner.predicates.computed.compare import computed_column, measured_column
from planner.predicates.computed.number_arithmetic import NUMBERS, NoTermError
from planner.predicates.computed.ranges import Clip, Known
from planner.predicates.computed.read import read_measure, read_term
from planner.predicates.computed.text import spell
from planner.predicates.computed.times import extract
from planner.predicates.row_scope import RowScope
from planner.question.condition import ALWAYS, Condition, all_of

_FUNCTIONS = (
    exp.Abs, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Greatest, exp.Least, exp.Nullif, exp.Mod, exp.Extract,
    exp.Length,
)  # fmt: skip
_SUMMED = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)

Clips: TypeAlias = Mapping[str, Clip]
"""By the text of an expression without a range, which of its values count as they are."""


@dataclass(frozen=True, slots=True)
class MeasureReading:
    """The names and the conditions under which an expression is read that an aggregate adds up.

    `where` is known of all rows of the question, `among` of those that count. Expressions that are only `counted` need
    no range. With `clips` one without a range is a column without bounds, unless it is among them; without, it is
    refused.
    """

    within: RowScope
    where: Condition = ALWAYS
    among: Condition = ALWAYS
    counted: bool = False
    clips: Clips | None = None

    @property
    def known(self) -> tuple[Known, Known]:
        """The ranges of terms: those that hold in all rows, and those that hold in the rows that count."""
        scope = self.within.scope
        return known_ranges(self.where, scope), known_ranges(all_of((self.where, self.among)), scope)


@dataclass(frozen=True, slots=True)
class ComputedMeasure:
    """A computed column, what one of its steps is worth, and how PostgreSQL computes with it."""

    column: Column
    step: Fraction
    kind: TermKind


def computed_measure(node: exp.Expr, reading: MeasureReading) -> ComputedMeasure | None:
    """Return an expression that is no sum of columns as a column with the bounds that it has in public.

    If it is only counted, it needs none, and a length of time is its seconds. None for a sum of columns, or no term.
    Raises KH203 where it may be arbitrarily large, KH204 for a length of time.
    """
    node = strip_parentheses(node)
    within = reading.within
    of_times = isinstance(node, exp.Sub) and not _is_number(node.this, within)
    if not (isinstance(node, _FUNCTIONS) or of_times or _is_number_of_text(node, within)):
        return None
    term = read_measure(node, within)
    if term is None or term.kind not in (*NUMBERS, TermKind.LENGTH):
        return None
    if term.kind is TermKind.LENGTH and not reading.counted:
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} is an interval, which is not added up here",
            detail="HAVING compares sums and means of intervals with an interval; elsewhere aggregates add up numbers.",
            hint=f"Add up its seconds: extract(epoch FROM {write_node(node)}).",
            position=find_position(node),
        )
    return _measure(node, term, reading)


def whole_measure(node: exp.Expr, reading: MeasureReading) -> ComputedMeasure | None:
    """Return a whole expression of numbers as one column: a quotient, or what has a part without a range.

    A quotient by a column that PostgreSQL computes in numerics is a double here. None for what is no term. Raises KH203
    where it may be arbitrarily large.
    """
    node = strip_parentheses(node)
    term = read_measure(node, reading.within)
    return None if term is None or term.kind not in NUMBERS else _measure(node, term, reading)


def open_column(column: Column, node: exp.Expr, reading: MeasureReading) -> ComputedMeasure | None:
    """Return a column of numbers without declared bounds, as far as the rows that count or a clip give it any."""
    if column.bounds is not None or column.sql_type not in _SUMMED or column.filter_only or reading.clips is None:
        return None
    term = read_term(node, reading.within)
    if term is None:
        return None
    # a column by its own name has no bounds
    term = RowTerm("same", term.kind, (term,), scale=term.scale, limit=term.limit)
    return None if reading.counted and spell(term) not in reading.clips else _measure(node, term, reading)


def is_open(column: Column | None) -> bool:
    """Return True for a computed column without bounds."""
    return column is not None and column.bounds is None and isinstance(column.derivation, Computed)


def least_value(column: Column) -> Fraction | None:
    """Return the least value of a column by its bounds, or as far as it is known where it has none."""
    if column.bounds is not None:
        return Fraction(column.bounds[0])
    return column.derivation.ends[0] if isinstance(column.derivation, Computed) else None


def _measure(node: exp.Expr, term: RowTerm, reading: MeasureReading) -> ComputedMeasure | None:
    step = Fraction(1)
    if term.function == "ratio":
        term, under = ratios.split(term)
        assert isinstance(under.value, int)
        step = Fraction(10**under.scale, under.value)
    try:
        made = _name_measure(term, reading)
    except NoTermError:
        return None
    written = ComputedName.from_column(replace(made, comment=write_node(node))).column
    if made.bounds is None and not reading.counted and (reading.clips is None or _reads_filter_only(term, reading)):
        raise unknown_range(written, position=find_position(node))
    return ComputedMeasure(written, step / 10**term.scale, term.kind)


def _reads_filter_only(term: RowTerm, reading: MeasureReading) -> bool:
    return any(reading.within.scope.table.get_column(name).filter_only for name in term.columns)


def _name_measure(term: RowTerm, reading: MeasureReading) -> Column:
    """Return the column that a term is, with bounds if they are known. A length of time is a number of seconds then."""
    within, known = reading.within, reading.known
    if term.kind is not TermKind.LENGTH:
        clip = (reading.clips or {}).get(spell(term))
        return measured_column(term, within, known=known, clip=clip)
    seconds = extract("epoch", term)
    made = measured_column(seconds, within, known=known, clip=(reading.clips or {}).get(spell(seconds)))
    return computed_column(term, within) if made.bounds is None else made


def _is_number_of_text(node: exp.Expr, within: RowScope) -> bool:
    """Return True for a text that is cast, to the number that it says."""
    if not isinstance(node, exp.Cast) or within.is_constant(node):
        return False
    found = read_term(node.this, within)
    return found is not None and found.kind is TermKind.TEXT


def _is_number(node: exp.Expr, within: RowScope) -> bool:
    if within.is_constant(node):
        return not isinstance(within.constant(node), date)
    found = read_term(node, within)
    return found is None or found.kind in NUMBERS
