"""Joint sensitivity: by which parts of their sensitivities one privacy unit can change several functionals of a key."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.protocol import Exposure
from mechanisms.threshold.joint_loss import drop_dominated_exposures, expose_functional_sets
from planner.functionals.functional import find_grid
from planner.functionals.row_corners import list_row_corners
from planner.question.condition import And, Condition, IsNull, Not, find_columns, join_all, join_any
from planner.question.disjoint import are_disjoint
from planner.question.question import Functional, Measure, Question

MOST_FUNCTIONALS = 16  # have at most 324 maximal cliques (Moon and Moser 1965); beyond, all count as changed at once
MOST_EXPOSURES_OF_BINS = 512  # every calibration looks at each; with more, all others count as changed at once
MOST_COMPARED = 64  # corners
MOST_SQUARES = 64  # where sums of squares are among them, which have few corners

_WHOLE = Fraction(1)  # the part of a functional that changes in full


@dataclass(frozen=True, slots=True)
class JointSensitivity:
    """The changes that one privacy unit can make at once in one key, as parts of the functionals' sensitivities.

    Guarantee: for every unit some mixture of `find_exposures(in_blocks)` covers `|change of v| / Delta_v` for all
    functionals v, and 1 for those of `in_blocks` that change at all. Let v have noise of scale `Delta_v / eps_v`. If v
    is of `in_blocks`, let it have noise of rate `eps_v` on its index in blocks of `Delta_v`. Then adding or removing
    one unit costs a key at most the maximum, over the exposures, of `sum_v part_v * eps_v`. Every functional has a
    positive part in one exposure. The order is deterministic.

    **Row sums** are COUNT, SUM and linear forms whose rows are added as they are: the row is the unit, or rows are
    capped. A unit has rows `r_1 ... r_m` in the key, m <= M (M = 1 for row units), and `Delta_v >= M * max|f_v|`:

        |sum_r f_v(r)| / Delta_v  <=  sum_r (1/M) * M |f_v(r)| / Delta_v,

    a mixture of the rows' own parts `M |f_v(r)| / Delta_v`. A row meets some conditions and has values in some
    columns, which leaves finitely many cases. In each case, `f_v` is an affine function of the values. So `sum_v eps_v
    * part_v` is convex, and its maximum over the columns' ranges in that case is at one of their corners. Take
    `AVG(age) > 65 OR AVG(age) < 5` with ages from 0 to 110. The row 0 moves `x - 65` by 65 of 65 but `x - 5` by 5 of
    105.

    **Blocks.** If some row of a case moves the sum, every row of the case is taken to move the index by a whole step.
    Rows of one unit may move several indices by a step each. If a unit has several rows, every exposure has the full
    part for these indices.

    A count of different values changes, with each row that comes or goes, by at most one row's part of a row count.

    **Everything else** is charged in full: units counted, totals clipped per unit, and different values of which a
    unit has one at most. One unit with a row in each of two disjoint filters changes both by up to their whole
    sensitivity, whether or not some row moves a row sum.

    Proof: docs/proofs/joint_loss.md.
    """

    affected_sets: tuple[frozenset[int], ...]
    functionals: int
    summed: frozenset[int]
    is_split_over_rows: bool
    corners: tuple[tuple[Exposure, frozenset[int]], ...] | None

    def find_exposures(self, in_blocks: frozenset[int] = frozenset()) -> tuple[Exposure, ...]:
        """Return the parts of the sensitivities by which one unit can change the functionals at once.

        Only the functionals of `in_blocks` have noise on block indices.
        """
        full = frozenset(range(self.functionals)) - self.summed
        if self.is_split_over_rows:
            full |= in_blocks
        if self.corners is None:
            sets = expose_functional_sets([one | full for one in self.affected_sets], functionals=self.functionals)
            return drop_dominated_exposures(sets) if self.is_split_over_rows and in_blocks else sets
        found: list[Exposure] = [tuple(Fraction(index in full) for index in range(self.functionals))]
        for parts, moved in self.corners:
            whole = full | (moved & in_blocks)
            found.append(tuple(Fraction(1) if index in whole else part for index, part in enumerate(parts)))
        unmoved = [index for index in range(self.functionals) if not any(parts[index] for parts in found)]
        return drop_dominated_exposures(
            (*found, *expose_functional_sets([[index] for index in unmoved], functionals=self.functionals))
        )

    def find_free_blocks(self, among: frozenset[int]) -> frozenset[int]:
        """Return the functionals of `among` whose noise can be on block indices without a larger exposure."""
        plain = self.find_exposures()
        free = frozenset(index for index in among if all(parts[index] == 1 for parts in plain))
        if self.corners is not None and len(self.corners) > MOST_COMPARED:
            return free
        for index in sorted(among - free):
            if self.find_exposures(free | {index}) == plain:
                free |= {index}
        return free


def find_exposures(question: Question) -> tuple[Exposure, ...]:
    """Return the parts of the sensitivities by which one unit can change the functionals at once.

    Each exposure has positive parts only within one of the sets of `find_affected_sets`.

    No noise is on block indices.
    """
    return find_joint_sensitivity(question).find_exposures()


def find_joint_sensitivity(question: Question) -> JointSensitivity:
    """Return the changes that one privacy unit can make at once in one key of the question."""
    functionals = question.functionals
    summed = [index for index, functional in enumerate(functionals) if _adds_rows(question, functional)]
    cap = question.table.row_cap
    whole = JointSensitivity(
        affected_sets=find_affected_sets(question),
        functionals=len(functionals),
        summed=frozenset(summed),
        is_split_over_rows=not question.table.is_row_unit and cap is not None and cap.rows > 1,
        corners=None,
    )
    squared = any(term.power == 2 for index in summed for term in functionals[index].terms)
    most = MOST_SQUARES if squared else MOST_FUNCTIONALS
    if (
        len(functionals) < 2
        or len(functionals) > most
        or not _have_unequal_parts([functionals[index] for index in summed])
    ):
        return whole
    ranges = {
        name: find_grid(question.table.get_column(name), question.table, position=None)[1:]
        for index in summed
        for name in functionals[index].summed
    }
    corners = list_row_corners(
        [functionals[index].terms for index in summed], ranges=ranges, table=question.table, among=question.where
    )
    if corners is None:
        return whole
    apart = _find_disjoint_pairs(question, summed) if len(functionals) <= MOST_FUNCTIONALS else []
    rows = 1 if cap is None else cap.rows
    found: list[tuple[Exposure, frozenset[int]]] = []
    for corner in corners:
        parts = [Fraction(1)] * len(functionals)
        for index, change in zip(summed, corner.amounts, strict=True):
            parts[index] = Fraction(rows * change, functionals[index].sensitivity)
        if max(parts) > 1:
            return replace(
                whole, affected_sets=(frozenset(range(len(functionals))),)
            )  # rewriting refuses such a question
        moved = frozenset(index for index, moves in zip(summed, corner.can_move, strict=True) if moves)
        if not any(one in moved and other in moved for one, other in apart):
            found.append((tuple(parts), moved))
    return replace(whole, corners=tuple(found))


def find_sensitivity_of_sums(question: Question, functionals: tuple[Functional, ...]) -> JointSensitivity:
    """Return the joint sensitivity of the given functionals, over the rows and keys of the question."""
    return find_joint_sensitivity(replace(question, functionals=functionals))


def find_exposures_of_bins(
    question: Question, functionals: tuple[Functional, ...], bins: Sequence[int]
) -> tuple[Exposure, ...]:
    """Return the exposures of functionals some of which count rows by bin. No row is in two bins.

    Guarantee: that of `JointSensitivity.find_exposures`. A row changes one bin at most, by its part of a row count, so
    each exposure of the others is joined by one bin in full, each in turn. Without a bound on a unit's rows, a unit is
    taken to change all bins. Proof: docs/proofs/row_quantiles.md.

    Parameters:
        bins: the places of counts of rows whose conditions exclude one another.
    """
    others = [index for index in range(len(functionals)) if index not in bins]
    joint = find_sensitivity_of_sums(question, tuple(functionals[index] for index in others)).find_exposures()
    if len(joint) * len(bins) > MOST_EXPOSURES_OF_BINS:
        joint = (tuple(map(max, zip(*joint, strict=True))),)
    added = replace(question, functionals=functionals)
    at_once = [[one] for one in bins] if all(_adds_rows(added, functionals[one]) for one in bins) else [list(bins)]
    found: list[Exposure] = []
    for parts in joint:
        placed = [Fraction(0)] * len(functionals)
        for index, part in zip(others, parts, strict=True):
            placed[index] = part
        for counted in at_once:
            known = placed.copy()
            for index in counted:
                known[index] = _WHOLE
            found.append(tuple(known))
    return tuple(found)


def find_affected_sets(question: Question) -> tuple[frozenset[int], ...]:
    """Return the maximal sets of functionals that one privacy unit can change at once in one key.

    Guarantee: the guarantee of `find_exposures` also holds for one exposure per set: the full part for its
    functionals, 0 for others. A single row, whatever the cap, changes functionals of one of the sets only. So if the
    row is the unit, the maximum over the sets holds for noise on block indices too. Every functional is in at least
    one set. The order is deterministic. Beyond `MOST_FUNCTIONALS` functionals there is one set with all of them (the
    plain sum).

    Two row sums are *apart* if no row can count for both: their filters, with "the measure's column is not NULL", are
    provably disjoint under the WHERE. The functionals that count one row are pairwise not apart, a clique of the
    compatibility graph. The sets are its maximal cliques. A functional that is no row sum is apart from none.

    References: Bron and Kerbosch 1973.
    """
    count = len(question.functionals)
    if count == 0:
        return ()
    if count > MOST_FUNCTIONALS:
        return (frozenset(range(count)),)
    together = [((1 << count) - 1) & ~(1 << one) for one in range(count)]
    summed = [index for index, functional in enumerate(question.functionals) if _adds_rows(question, functional)]
    for one, other in _find_disjoint_pairs(question, summed):
        together[one] &= ~(1 << other)
        together[other] &= ~(1 << one)
    cliques = (
        frozenset(index for index in range(count) if clique >> index & 1)
        for clique in _list_maximal_cliques(together, grown=0, open_=(1 << count) - 1, closed=0)
    )
    return tuple(sorted(cliques, key=sorted))


def _adds_rows(question: Question, functional: Functional) -> bool:
    """Return True if rows change the functional one by one, each by no more than it would add to a row sum."""
    if functional.measure in (Measure.UNITS, Measure.UNIT_PARTS) or functional.unit_range is not None:
        return False
    if question.table.is_row_unit:
        return True
    # a unit with one value at most changes a distinct count by it however many of its rows have it
    return question.table.row_cap is not None and functional.sensitivity >= question.table.row_cap.rows


def _have_unequal_parts(summed: Sequence[Functional]) -> bool:
    """Return True if rows may change some row sum by different parts of its sensitivity."""
    read = frozenset().union(*(find_columns(term.condition) for functional in summed for term in functional.terms))
    return any(len(functional.terms) > 1 or read & set(functional.summed) for functional in summed)


def _find_disjoint_pairs(question: Question, summed: Iterable[int]) -> list[tuple[int, int]]:
    """Return the pairs of row sums for which no row counts twice."""
    rows = {index: _find_counted_rows(question, question.functionals[index]) for index in summed}
    return [
        (one, other)
        for one, counted in rows.items()
        for other, further in rows.items()
        if one < other and are_disjoint(counted, further)
    ]


def _find_counted_rows(question: Question, functional: Functional) -> Condition:
    """Return the condition of the rows that a row sum counts."""
    counted = join_any(
        term.condition if term.column is None else join_all((term.condition, Not(IsNull(term.column))))
        for term in functional.terms
    )
    return And((question.where, counted))


def _list_maximal_cliques(neighbours: list[int], *, grown: int, open_: int, closed: int) -> list[int]:
    """Return all maximal cliques that extend `grown` by vertices of `open_` and by none of `closed`, as bit sets."""
    if not open_:
        return [] if closed else [grown]
    pivot = max(_list_members(open_ | closed), key=lambda vertex: (neighbours[vertex] & open_).bit_count())
    cliques: list[int] = []
    for vertex in _list_members(open_ & ~neighbours[pivot]):
        near = neighbours[vertex]
        cliques += _list_maximal_cliques(
            neighbours, grown=grown | 1 << vertex, open_=open_ & near, closed=closed & near
        )
        open_ &= ~(1 << vertex)
        closed |= 1 << vertex
    return cliques


def _list_members(vertices: int) -> list[int]:
    return [index for index in range(vertices.bit_length()) if vertices >> index & 1]
