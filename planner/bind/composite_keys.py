"""Public tables that are looked up by several columns at once, which together are unique and never NULL.

    JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey

The columns are integers. One integer stands for all of them: each is brought into the range of its pinned values, to
which one step is added on both sides for what lies beyond and for NULL, and they are the digits of a number. So the
join is one by a single column, for which all holds that is proved of lookups.

Guarantee: a row's number is a pinned row's if and only if all its columns equal that row's. No row overflows it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction

import numpy as np

from planner.bind.lookup_columns import read_public_values
from planner.catalog.catalog import Column, PublicTable, SqlType, Value
from planner.catalog.row_terms import RowTerm, TermKind
from planner.predicates.computed import number_arithmetic
from planner.predicates.computed.compare import make_computed_column
from planner.predicates.computed.number_arithmetic import NoTermError, TooWideError
from planner.predicates.computed.read import read_term
from planner.predicates.row_scope import RowScope
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext

_BIGINT = 2**63  # the end of the numbers that stand for several columns
_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_Span = tuple[int, int]


def join_by_composite_key(
    public: PublicTable, pairs: Sequence[tuple[str, Column]], scope: Scope
) -> tuple[PublicTable, str, Column] | None:
    """Join a public table by several columns at once: return the table with one column that combines them.

    Also return the name of that column, and the private rows' column that equals it. Return None if a column is no
    stored integer, a pinned value is missing, or the combined range is too wide.

    Parameters:
        pairs: columns of the public table, each with the column that it equals.
    """
    stored = all(base.sql_type is SqlType.INTEGER and base.derivation is None for _, base in pairs)
    known = {column.name: column for column in public.columns}
    if not stored or any(key not in known or known[key].sql_type is not SqlType.INTEGER for key, _ in pairs):
        return None
    pairs = sorted(pairs, key=lambda pair: pair[0])
    name = ", ".join(key for key, _ in pairs)
    found = [read_public_values(public, key) for key, _ in pairs]
    known_spans = public.results.get(("spans", name), lambda: [_find_span(one) for one in found])
    spans = [span for span in known_spans if span is not None]
    if len(spans) < len(pairs):
        return None
    within = RowScope(scope, _NOTHING_GIVEN)
    try:
        column = make_computed_column(_number_rows([base for _, base in pairs], spans, within), within)
    except (NoTermError, TooWideError):
        return None
    return public.results.get(("as one", name), lambda: _with_numbers(public, name, found, spans)), name, column


def _find_span(found: Sequence[Value | None]) -> _Span | None:
    """Return the least number before the pinned values of a column, and the greatest behind them.

    Return None if one is missing.
    """
    if None in found:
        return None
    present = np.array(found or (0,), dtype=np.int64)
    return int(present.min()) - 1, int(present.max()) + 1


def _number_rows(bases: Sequence[Column], spans: Sequence[_Span], within: RowScope) -> RowTerm:
    """Return the number of a row. Its digits are the columns, each within its span."""
    number: RowTerm | None = None
    for base, (low, high) in zip(bases, spans, strict=True):
        column = read_term(within.scope.make_reference(base), within)
        if column is None or column.kind is not TermKind.WHOLE:
            raise NoTermError
        inside = column
        for function, end in (("least", high), ("greatest", low)):
            ending = number_arithmetic.make_constant(Fraction(end), is_integral=True)
            limit = max(inside.limit, ending.limit)
            inside = number_arithmetic.make_exact_term(function, TermKind.WHOLE, inside, ending, scale=0, limit=limit)
        digit = replace(inside, limit=max(abs(low), abs(high)))
        size = number_arithmetic.make_constant(Fraction(high - low + 1), is_integral=True)
        number = digit if number is None else number_arithmetic.add(number_arithmetic.multiply(number, size), digit)
    assert number is not None, "a key has columns"
    if number.limit >= _BIGINT:
        raise TooWideError
    return number


def _with_numbers(
    public: PublicTable, name: str, found: Sequence[Sequence[Value | None]], spans: Sequence[_Span]
) -> PublicTable:
    """Return the table with the number of each of its rows, under the name."""
    told = np.zeros(len(public.rows), dtype=np.int64)  # no row overflows it
    for digits, (low, high) in zip(found, spans, strict=True):
        told = told * (high - low + 1) + np.array(digits, dtype=np.int64)
    numbered = tuple(told.tolist())
    made = replace(public, columns=(*public.columns, Column(name, SqlType.INTEGER, "bigint")))
    made.results.get(("values", name), lambda: numbered)
    return made
