"""The least and the most that one row can add to a functional, over all combinations of conditions that a row can meet.

A term counts if its condition holds and its column has a value. Each subset of the conditions is considered that some
row may satisfy while it fails the others. The coefficients of each column are summed first, and then multiplied by the
column's range as far as the conditions leave it. So `x - t` over rows with an x lies between `L - t` and `U - t`, and
`x` with `x < 10` is at most 10.

Guarantee: no row whose values lie in `ranges` adds less than the first number or more than the second. A row that
counts for nothing adds 0, so 0 always lies between them. Beyond `MOST_CONDITIONS` conditions each term is bounded
alone, which gives a wider range and is still sound.

References: docs/proofs/joint_loss.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from planner.aggregates.comparison import Comparison, Slack
from planner.aggregates.row_expression import SumPart
from planner.catalog.catalog import Column, Lookup, SqlType, Table
from planner.question.condition import ALWAYS, And, Condition, IsNull, Leaf, Not, Within, join_all, join_any
from planner.question.condition_text import write_canonical
from planner.question.disjoint import ConditionRows
from planner.question.question import Term
from planner.question.range_inference import narrow_range

MOST_CONDITIONS = 8  # all 256 subsets of so many are looked at; beyond, the range is wider and still sound
Range = tuple[int, int]


def find_row_range(
    terms: Sequence[Term], *, ranges: Mapping[str, Range], table: Table, among: Condition = ALWAYS
) -> Range:
    """Return the least and the most that one row can add if it satisfies `among`.

    Parameters:
        ranges: in grid steps, of every column that a term adds up.
        table: the rows' table. It knows which columns may hold NaN.
    """
    conditions = {write_canonical(term.condition): term.condition for term in terms}
    if len(conditions) > MOST_CONDITIONS:
        each = [
            find_sum_range([term], _make_box(term, (among, term.condition), ranges, table), frozenset())
            for term in terms
        ]
        return sum(min(low, 0) for low, _ in each), sum(max(high, 0) for _, high in each)
    low = high = 0
    for held, known, rows in _list_possible_condition_sets(conditions, among):
        meeting = [term for term in terms if write_canonical(term.condition) in held]
        empty = {
            name
            for name in _list_columns(meeting)
            if rows.are_disjoint_from(Not(IsNull(name))) or _is_never_found(name, rows, table)
        }
        counting = [term for term in meeting if term.column not in empty]
        integral = (name for name in _list_columns(counting) if not may_be_nan(name, table))
        always = frozenset(name for name in integral if _is_in_all(name, rows, table))
        failed = (make_not_true_condition(condition) for text, condition in conditions.items() if text not in held)
        known_conditions = (known, *failed)
        summed = _list_columns([term for term in counting if term.power])
        box = {name: narrow_range(name, ranges[name], among=known_conditions, table=table) for name in summed}
        least, most = find_sum_range(counting, box, always)
        low, high = min(low, least), max(high, most)
    return low, high


def find_row_range_without(
    terms: Sequence[Term],
    *,
    column: str | None,
    condition: Condition,
    ranges: Mapping[str, Range],
    table: Table,
    among: Condition = ALWAYS,
) -> Range:
    """Return the range of a row that satisfies `among` but has no value of `column` or fails `condition`."""
    low, high = find_row_range(
        terms, ranges=ranges, table=table, among=join_all((among, make_not_true_condition(condition)))
    )
    if column is not None and not is_never_null(table.get_column(column), table):
        left = [term for term in terms if term.column != column]
        least, most = find_row_range(left, ranges=ranges, table=table, among=join_all((among, IsNull(column))))
        low, high = min(low, least), max(high, most)
    return low, high


def is_never_null(column: Column, table: Table) -> bool:
    """Return True if the source's schema guarantees that the column has a value in every row of the table."""
    return column.required and not table.members


def _make_found_condition(name: str, table: Table) -> Condition:
    """Return a condition that holds if a looked-up column has a value. For any other column it always holds."""
    lookup = table.get_column(name).derivation
    if not isinstance(lookup, Lookup):
        return ALWAYS
    if not lookup.is_listed:
        return Not(IsNull(name))
    return Within(lookup.column, tuple(known for known, value in lookup.pairs if value is not None))


def _is_in_all(name: str, rows: ConditionRows, table: Table) -> bool:
    """Return True if a column has a value in each of the rows.

    A looked-up column has a value exactly if its row is found, so either fact is enough.
    """
    if rows.are_disjoint_from(IsNull(name)):
        return True
    is_looked_up = isinstance(table.get_column(name).derivation, Lookup)
    return is_looked_up and rows.are_disjoint_from(make_not_true_condition(_make_found_condition(name, table)))


def _is_never_found(name: str, rows: ConditionRows, table: Table) -> bool:
    """Return True if a column is looked up and not found in any of the rows."""
    return isinstance(table.get_column(name).derivation, Lookup) and rows.are_disjoint_from(
        _make_found_condition(name, table)
    )


def make_not_true_condition(condition: Condition) -> Condition:
    """Return a condition that holds exactly if the given one is false or unknown."""
    return condition.fold_literals(_make_not_false, every=join_all, some=join_any, wanted=False)


def may_be_nan(name: str, table: Table) -> bool:
    """Return True if a column may hold NaN, which counts as missing although it is not NULL."""
    return table.get_column(name).sql_type in (SqlType.DOUBLE, SqlType.NUMERIC)


def _make_not_false(literal: Leaf | Not) -> Condition:
    match literal:
        case IsNull() | Not(IsNull()):
            return literal
        case _:
            return join_any((literal, *(IsNull(leaf.column) for leaf in literal.walk_leaves())))


def _list_possible_condition_sets(
    conditions: Mapping[str, Condition], among: Condition
) -> Iterator[tuple[frozenset[str], Condition, ConditionRows]]:
    """Yield the sets of conditions that a row may satisfy while it fails all others, also if that is unknown.

    Each set comes with a condition for all known facts about these rows, and with the rows themselves.
    """
    texts = sorted(conditions)
    for size in range(1, len(texts) + 1):
        for held in combinations(texts, size):
            positive = And((among, *(conditions[text] for text in held)))
            rows = ConditionRows.from_condition(positive)
            if rows.are_disjoint_from(ALWAYS):
                continue
            failed = [make_not_true_condition(conditions[text]) for text in texts if text not in held]
            if not any(rows.are_disjoint_from(condition) for condition in failed):
                yield frozenset(held), positive, rows


def _make_box(term: Term, among: Sequence[Condition], ranges: Mapping[str, Range], table: Table) -> dict[str, Range]:
    if term.column is None or not term.power:
        return {}
    return {term.column: narrow_range(term.column, ranges[term.column], among=among, table=table)}


def _list_columns(terms: Sequence[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term.column for term in terms if term.column is not None))


def find_sum_range(terms: Sequence[Term], ranges: Mapping[str, Range], always: frozenset[str]) -> Range:
    """Return the range of the sum of terms that all count in one row.

    A term may be missing if its column may be NULL.
    """
    low = high = sum(term.coefficient for term in terms if term.column is None)
    for name in _list_columns(terms):
        square, slope, constant = (
            sum(term.coefficient for term in terms if term.column == name and term.power == power)
            for power in (2, 1, 0)
        )
        edges = _list_edges(square, slope, ranges[name]) if square or slope else (0,)
        ends = [(square * edge + slope) * edge + constant for edge in edges]
        if name not in always:
            ends.append(0)
        low, high = low + min(ends), high + max(ends)
    return low, high


def _list_edges(square: int, slope: int, steps: Range) -> tuple[int, ...]:
    """Return steps of a range among which `square * x^2 + slope * x` has its least and its largest value."""
    if not square:
        return steps
    turn = -slope // (2 * square)  # the vertex, rounded down
    return (*steps, *(edge for edge in (turn, turn + 1) if steps[0] < edge < steps[1]))


def find_bound(comparison: Comparison, *, min_rows: int) -> Fraction:
    """Return the most that the larger side of a comparison can be within the declared bounds, in the analyst's unit.

    For a sum or count, it is the most in a group of `min_rows` rows. For a mean or ratio it is the most in any group.
    For a share of rows it is 100.
    """
    if comparison.slack is not Slack.THRESHOLD:
        return Fraction(100)
    most = max(map(max, map(find_row_effect, comparison.every_part)), default=Fraction(0))
    return most * min_rows if comparison.per_row is None else most / comparison.per_row


def find_row_effect(part: SumPart) -> tuple[Fraction, Fraction]:
    """Return how far one row can lower, and how far it can raise, the sum of the rows' values of a summand.

    Both are at least 0.
    """
    if not part.power or part.column is None:
        return max(-part.coefficient, Fraction(0)), max(part.coefficient, Fraction(0))
    ends = [part.coefficient * Fraction(end) ** part.power for end in part.column.bounds or (0, 0)]
    return max(-min(ends), Fraction(0)), max(*ends, Fraction(0))
