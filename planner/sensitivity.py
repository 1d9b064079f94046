"""Joint sensitivity: which functionals one privacy unit can change at once in one key."""

from planner.condition import And, Condition, IsNull, Not, disjoint
from planner.question import Functional, Measure, Question

MOST_FUNCTIONALS = 16


def affected_together(question: Question) -> tuple[frozenset[int], ...]:
    """The maximal sets of functionals that one privacy unit can change at once in one key.

    Guarantee: if functional v has noise of scale `Delta_v / eps_v`, adding or removing one unit costs a key at most the
    maximum over the sets of the sum of `eps_v`. Every functional is in at least one set; the order is deterministic.
    Beyond `MOST_FUNCTIONALS` functionals there is one set with all of them (the plain sum).

    **Row sums** (COUNT, SUM and linear forms whose rows are added as they are: the row is the unit, or rows are
    capped). Two of them are *apart* when no row can count for both: their filters, with "the measure's column is not
    NULL", are provably disjoint under the WHERE. A unit has rows `r_1 ... r_m` in the key, m <= M (M = 1 for row
    units), and `Delta_v = M * max|f_v|`. Its loss is

        sum_v eps_v * |sum_r f_v(r)| / Delta_v  <=  sum_r sum_v eps_v * |f_v(r)| / (M * max|f_v|)
                                                <=  sum_r (1/M) * sum of eps_v over the v that count r.

    The functionals that count one row are pairwise not apart, a clique of the compatibility graph, so the inner sum is
    at most its maximum over the maximal cliques; adding up at most M rows, each weighted 1/M, gives the claim.

    **Everything else** (units counted, totals clipped per unit) is charged in full: one unit with a row in each of two
    disjoint filters changes both by up to their whole sensitivity. Such a functional is apart from nothing, is hence in
    every maximal clique, and adds its epsilon to the bound above.

    References: MATHS M6; Bron and Kerbosch 1973.
    """
    count = len(question.functionals)
    if count == 0:
        return ()
    if count > MOST_FUNCTIONALS:
        return (frozenset(range(count)),)
    rows = [_counted_rows(question, functional) for functional in question.functionals]
    together = [
        sum(1 << other for other in range(count) if other != one and not _apart(rows[one], rows[other]))
        for one in range(count)
    ]
    cliques = (
        frozenset(index for index in range(count) if clique >> index & 1)
        for clique in _maximal_cliques(together, grown=0, open_=(1 << count) - 1, closed=0)
    )
    return tuple(sorted(cliques, key=sorted))


def _counted_rows(question: Question, functional: Functional) -> Condition | None:
    """Which rows a row sum counts; None for a functional that is not a sum of rows as they are."""
    if functional.measure is Measure.UNITS or functional.unit_range is not None:
        return None
    if not question.table.row_unit and question.table.row_cap is None:
        return None
    present: tuple[Condition, ...] = () if functional.column is None else (Not(IsNull(functional.column)),)
    return And((question.where, functional.condition, *present))


def _apart(one: Condition | None, other: Condition | None) -> bool:
    return one is not None and other is not None and disjoint(one, other)


def _maximal_cliques(neighbours: list[int], *, grown: int, open_: int, closed: int) -> list[int]:
    """All maximal cliques that extend `grown` by `open_` vertices and by none of `closed`, as bit sets."""
    if not open_:
        return [] if closed else [grown]
    pivot = max(_members(open_ | closed), key=lambda vertex: (neighbours[vertex] & open_).bit_count())
    cliques: list[int] = []
    for vertex in _members(open_ & ~neighbours[pivot]):
        near = neighbours[vertex]
        cliques += _maximal_cliques(neighbours, grown=grown | 1 << vertex, open_=open_ & near, closed=closed & near)
        open_ &= ~(1 << vertex)
        closed |= 1 << vertex
    return cliques


def _members(vertices: int) -> list[int]:
    return [index for index in range(vertices.bit_length()) if vertices >> index & 1]
