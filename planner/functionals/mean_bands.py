"""Means over different rows compared with each other, as bands of public thresholds.

`A > B` holds exactly if some threshold lies between the two. So `A > l AND B < l'` holds for one of finitely many pairs
of neighbouring thresholds. If such a pair holds, A is above B, or below it by less than the distance of the two. The
bands use up a part of the tolerance, and the noise of each threshold has the rest. All thresholds of one mean are
computed from its sum and its count (`common_sums`). So a mean takes noise once, however many bands there are.

Guarantee: on exact values the literals hold in every group with values on both sides in which SQL's comparison holds.
With their tolerances they hold in no group that passes its guards and misses the comparison by more than the tolerance.

Proof: docs/proofs/mean_bands.md.

| symbol | name | meaning |
|---|---|---|
| H, L | `high`, `low` | the side that has to be above, and the other one |
| T | `_Tolerance` | the tolerance by the place of L: a part of it, at least `least`, or an amount |
| q | `share` | the part of T that the noise of a threshold has |
| N' | `rows` | the group size for which a mean's tolerance is meant |
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from planner.aggregates.comparison import HOLDS, Comparison, Conjunction, Disjunction, Having, SpreadComparison
from planner.catalog.catalog import Table
from planner.catalog.tolerance import Amount, Tolerances, quote_literal, set_amount
from planner.errors import KeyholeError
from planner.functionals.added_guards import GuardAdder, flatten, list_complemented_comparisons
from planner.functionals.functional import find_grid, make_functional
from planner.functionals.group_sizes import GroupSize, find_group_sizes, identify_mean, is_divisor_at_least
from planner.functionals.guard_remedy import WORTH, find_next_round, find_remedy
from planner.functionals.row_range import find_row_range
from planner.question.condition import Condition
from planner.question.key_cells import OWN_GROUP_ALONE
from planner.question.question import BANDED, Accuracy
from planner.values.decimals import convert_to_decimal, round_up_to_two_digits
from planner.values.operators import FLIPPED_OPERATORS

MOST_BANDS = 29  # of one comparison: two literals each, which leaves four of the 64 for guards and what else is asked
_SHARES = (Fraction(1, 3), Fraction(1, 4), Fraction(1, 5), Fraction(1, 6), Fraction(1, 8))
"""The parts of the tolerance that the noise of a threshold may get. A larger part needs closer bands. The first that
fits is taken, since the price falls with the part and rises only with the logarithm of the number of bands."""
_LEAST_PART = Fraction(1, 10)
"""The least tolerance as a part of the range of the means, if Keyhole chooses the group size."""
_MOST_TIMES = 20  # the least tolerance that noise needs, where a percentage would need too many bands
_MEAN = re.compile(r"avg\((\w+)\)(| FILTER .*)")  # of one column, over which rows
_ROUNDED = 20  # thresholds are rounded to a step of which so many make a tolerance


@dataclass(frozen=True, slots=True)
class _Tolerance:
    """The tolerance of a comparison: `share` of the lower side's value, at least `least`."""

    share: Fraction
    least: Fraction

    def compute_amount_at(self, value: Fraction) -> Fraction:
        """Return the tolerance of a comparison with this value."""
        return max(self.share * abs(value), self.least)


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison of means: `factor * mean + constant`, between `least` and `most`.

    `rows` is the group size for which the mean is meant. `grid_step` is a step of the mean.
    """

    mean: Comparison
    factor: Fraction
    constant: Fraction
    rows: int
    least: Fraction
    most: Fraction
    grid_step: Fraction

    def find_cut(self, operator: str, value: Fraction, *, within: Fraction) -> tuple[str, Fraction, Fraction]:
        """Return the comparison of the mean with a threshold. `allowed` is its tolerance in the unit of the side.

        The threshold is rounded by `within` at most, in the direction that keeps every group that passed.
        """
        found = FLIPPED_OPERATORS[operator] if self.factor < 0 else operator
        step = _round_step(within / abs(self.factor), self.grid_step)
        exact = (value - self.constant) / self.factor / step
        at = (floor(exact) if found in (">", ">=") else ceil(exact)) * step
        return found, at, self.factor * at + self.constant

    def make_literal(self, cut: tuple[str, Fraction, Fraction], allowed: Fraction, whole: Comparison) -> Comparison:
        """Return the comparison of the mean with a threshold. `allowed` is its tolerance in the unit of the side."""
        operator, at, _ = cut
        assert self.mean.divisor_rows is not None
        assert self.mean.per_row is not None
        off = () if at == 0 else (replace(self.mean.divisor_rows, coefficient=-at * self.mean.per_row),)
        return replace(
            self.mean,
            text=f"{self.mean.left_text} {operator} {convert_to_decimal(at)}",
            operator=operator,
            summands=(*self.mean.summands, *off),
            origin=at,
            threshold=at,
            position=whole.position,
            fixed_tolerance=allowed / abs(self.factor) * self.rows * self.mean.per_row,
            whole_text=whole.text,
            other_mean=None,
        )


def _round_step(most: Fraction, fine: Fraction) -> Fraction:
    """Return the largest step up to `most`: 1, 2 or 5 times a power of ten, or `fine` times these."""
    step = fine if most >= fine else Fraction(1)
    while step > most:
        step /= 10
    while step * 10 <= most:
        step *= 10
    return next(step * times for times in (5, 2, 1) if step * times <= most)


@dataclass(frozen=True, slots=True)
class MeanBands:
    """The table, filter, accuracy and tolerances from which bands are made."""

    table: Table
    where: Condition
    accuracy: Accuracy
    tolerances: Tolerances

    def add_bands(self, formula: Having, *, warn: Callable[[str], None]) -> Having:
        """Return the formula with each comparison of means over different rows replaced by bands and guards.

        Raises KH204 in complements and for ratios over other rows, KH206 if guards may not be added, KH211, KH304.
        """
        if not any(_is_pair(leaf) for leaf in formula.list_comparisons()):
            return formula
        for leaf in list_complemented_comparisons(formula):
            if _is_pair(leaf):
                raise KeyholeError(
                    "KH204",
                    f"{leaf.text} compares means over different rows, where the complement counts",
                    hint="Ask for the groups that pass, and compare around the question.",
                    position=leaf.position,
                )
        sizes = self.find_sizes(formula)
        guarded = flatten(formula.map_comparisons(lambda leaf: self._add_guards(leaf, sizes, warn)))
        sizes = self.find_sizes(guarded)
        return flatten(guarded.map_comparisons(lambda leaf: self._make_bands(leaf, sizes, warn)))

    def find_sizes(self, formula: Having) -> Mapping[object, GroupSize]:
        """Return the group size for which each mean's tolerance is meant, by the counts beside the comparisons."""

        def separate_means(leaf: Comparison | SpreadComparison) -> Having:
            if not isinstance(leaf, Comparison) or leaf.other_mean is None:
                return leaf
            if leaf.compares_ratios:
                return HOLDS
            if leaf.other_mean.reads_groups:
                return replace(leaf, other_mean=None)
            return Conjunction((replace(leaf, other_mean=None), leaf.other_mean.mean))

        return find_group_sizes(
            flatten(formula.map_comparisons(separate_means)),
            table=self.table,
            where=self.where,
            tolerances=self.tolerances,
            min_rows=self.accuracy.min_rows,
        )

    def find_rows(self, mean: Comparison, sizes: Mapping[object, GroupSize]) -> int:
        """Return the group size for which a mean's tolerance is meant."""
        size = sizes.get(identify_mean(mean))
        least = self.accuracy.min_rows
        return least if size is None or self.accuracy.is_min_rows_set else max(size.rows, least)

    def _add_guards(
        self, leaf: Comparison | SpreadComparison, sizes: Mapping[object, GroupSize], warn: Callable[[str], None]
    ) -> Having:
        """Return the comparison with a count beside it for each mean that has no typed count."""
        if not isinstance(leaf, Comparison) or leaf.other_mean is None or leaf.compares_ratios:
            return leaf
        adding = GuardAdder(self.table, self.accuracy, self.tolerances)
        added: list[Comparison] = []
        for mean, cells in ((leaf, leaf.other_mean.own_cells), (leaf.other_mean.mean, leaf.other_mean.cells)):
            if cells != OWN_GROUP_ALONE or identify_mean(mean) in sizes:
                continue
            alone = replace(mean, other_mean=None, required_values=mean.required_values[:1])
            known = find_remedy(alone, table=self.table, accuracy=self.accuracy, tolerances=self.tolerances)
            known = replace(known, least_count=max(known.least_count, self.find_wanted_rows(leaf, mean)))
            added.append(adding.make_guard(alone, alone.required_values[0], known)[0])
        if not added:
            return leaf
        texts = " AND ".join(dict.fromkeys(guard.text for guard in added))
        if not self.accuracy.adds_guards:
            raise KeyholeError(
                "KH206",
                f"{leaf.text} compares means over different rows",
                detail="The mean of few rows has relatively large noise, so groups need enough rows on both sides.",
                hint=f"Add: AND {texts}",
                position=leaf.position,
            )
        warn(
            f"{leaf.text}: AND {texts} was added, since the mean of a few values drowns in noise; smaller groups "
            "count as false (SET keyhole.guard = 'refuse'; adds nothing)"
        )
        return Conjunction((leaf, *dict.fromkeys(added)))

    def measure_overlap(self, leaf: Comparison) -> Fraction:
        """Return the width of the range that both sides of a comparison share.

        Raise KH204 if their ranges do not overlap.
        """
        high, low = self.make_sides(leaf, {})
        width = min(high.most, low.most) - max(high.least, low.least)
        if width <= 0:
            raise KeyholeError(
                "KH204",
                f"{leaf.text} has the same truth whatever the data",
                detail="By their declared bounds, the possible values of both sides do not overlap.",
                hint="Compare each with a number of its own.",
                position=leaf.position,
            )
        return width

    def find_wanted_rows(self, leaf: Comparison, mean: Comparison) -> int:
        """Return the group size at which a tolerance suits the noise: the tolerance is worth `WORTH` units."""
        first, second = self.make_sides(leaf, {})
        side = first if mean is leaf else second
        ends = max(first.least, second.least), min(first.most, second.most)
        amount, width = self.find_amount(leaf), self.measure_overlap(leaf)
        part = Fraction(amount.number) / 100 if amount.is_percent else Fraction(0)
        least = amount.compute_size(threshold=Fraction(0), bounds=width) or width * _LEAST_PART
        if not least:
            return 1
        allowed = _Tolerance(part, Fraction(least))
        return find_next_round(
            ceil(max(self.estimate_noise(side, end) / allowed.compute_amount_at(end) for end in ends) / _SHARES[1])
        )

    def estimate_noise(self, side: Side, at: Fraction) -> Fraction:
        """Return the smallest useful tolerance at a threshold: the amount that `WORTH` units add.

        It is in the side's unit, for groups of one row.
        """
        literal = side.make_literal(side.find_cut(">", at, within=side.most - side.least), Fraction(0), side.mean)
        made, step = make_functional(literal, table=self.table, min_rows=1, where=self.where)
        both = 1 if self.table.is_row_unit else 2  # a unit with several rows may move both sides in full
        return WORTH * both * made.sensitivity * step * abs(side.factor) / (side.mean.per_row or 1)

    def make_sides(self, leaf: Comparison, sizes: Mapping[object, GroupSize]) -> tuple[Side, Side]:
        """Return the left and the right side of a comparison of means."""
        assert leaf.other_mean is not None
        other = leaf.other_mean
        left = replace(leaf, other_mean=None, required_values=leaf.required_values[:1])
        low = self.make_side(other.mean, other.factor + other.quantile_factor, other.constant, sizes)
        if other.deviation_factor:
            plain = self.make_side(other.mean, Fraction(1), Fraction(0), sizes)
            end = other.deviation_factor * (plain.most - plain.least) / 2
            none = Fraction(0)
            low = replace(low, least=low.least + min(end, none), most=low.most + max(end, none))
        return self.make_side(left, Fraction(1), Fraction(0), sizes), low

    def make_side(
        self, mean: Comparison, factor: Fraction, constant: Fraction, sizes: Mapping[object, GroupSize]
    ) -> Side:
        """Return one side of a comparison.

        Raise KH204 if the mean is not a sum over its own rows divided by their number.
        """
        if not all(is_divisor_at_least(part, mean.divisor_rows, self.table, self.where) for part in mean.summands):
            raise KeyholeError(
                "KH204",
                f"{mean.left_text} is no mean of the rows that it divides by",
                detail="Ratios are compared as means, which needs a numerator over the rows that the divisor counts.",
                hint="Compare each with a number of its own.",
                position=mean.position,
            )
        made, step = make_functional(mean, table=self.table, min_rows=1, where=self.where)
        step /= mean.per_row or 1
        ranges = {
            name: find_grid(self.table.get_column(name), self.table, position=mean.position)[1:] for name in made.summed
        }
        low, high = find_row_range(made.terms, ranges=ranges, table=self.table, among=self.where)
        ends = sorted(factor * end * step + constant for end in (low, high))
        return Side(mean, factor, constant, self.find_rows(mean, sizes), ends[0], ends[1], step)

    def _make_bands(
        self, leaf: Comparison | SpreadComparison, sizes: Mapping[object, GroupSize], warn: Callable[[str], None]
    ) -> Having:
        if not isinstance(leaf, Comparison) or leaf.other_mean is None or leaf.other_mean.reads_groups:
            return leaf
        high, low = self.make_sides(leaf, sizes)
        below = leaf.operator in ("<", "<=")
        if below:
            high, low = low, high
        strict = leaf.operator in ("<", ">")
        width = self.measure_overlap(leaf)
        for share, least in self._list_choices(leaf):
            allowed = self._find_tolerance(leaf, share, width, high, low, below=below, times=least)
            bands = _Bands(leaf, high, low, allowed, share, is_strict=strict).make()
            if bands is not None:
                warn(self._describe(leaf, allowed, len(bands), below=below))
                return Disjunction(tuple(Conjunction(one) if len(one) > 1 else one[0] for one in bands))
        raise KeyholeError(
            "KH211",
            f"{leaf.text} needs more than {MOST_BANDS} bands",
            detail="Means over different rows are compared in bands of public thresholds. A tolerance that is small "
            "against the range of values needs more bands.",
            hint=self._suggest_coarser(leaf, width),
            position=leaf.position,
        )

    def find_amount(self, leaf: Comparison) -> Amount:
        """Return the tolerance of a comparison of means. Raise KH304 if none is set."""
        assert leaf.other_mean is not None
        amount = self.tolerances.find_amount((*leaf.names, *leaf.other_mean.mean.names))
        if amount is None:
            wanted = set_amount(self.accuracy.tolerance, leaf.left_text, "10%")
            raise KeyholeError(
                "KH304",
                f"keyhole.tolerance says nothing about {leaf.left_text}",
                hint=f"SET keyhole.tolerance = '{quote_literal(wanted)}';",
                position=leaf.position,
            )
        return amount

    def _list_choices(self, leaf: Comparison) -> Iterator[tuple[Fraction, int]]:
        """Yield the noise's share of the tolerance, and the multiple of the least tolerance, the best choice first."""
        yield from ((share, 1) for share in _SHARES)
        if self.find_amount(leaf).is_percent:
            yield from ((_SHARES[1], times) for times in range(2, _MOST_TIMES))

    def _suggest_coarser(self, leaf: Comparison, width: Fraction) -> str:
        """Return a setting with a tolerance that needs few enough bands."""
        amount = find_next_round(ceil(width * 1000 / (MOST_BANDS / 2)))
        wanted = set_amount(self.accuracy.tolerance, leaf.left_text, convert_to_decimal(Fraction(amount, 1000)))
        return f"SET keyhole.tolerance = '{quote_literal(wanted)}';"

    def _find_tolerance(
        self, leaf: Comparison, share: Fraction, width: Fraction, high: Side, low: Side, *, below: bool, times: int
    ) -> _Tolerance:
        """Return the tolerance of the comparison.

        A percentage is a part of the right side, and at least as large as the noise of its groups needs.
        """
        amount = self.find_amount(leaf)
        number = Fraction(amount.number)
        if amount.refers_to_bounds:
            return _Tolerance(Fraction(0), width * number / 100)
        if not amount.is_percent:
            return _Tolerance(Fraction(0), number)
        part = number / 100
        part = part / (1 + part) if below else part
        noise = max(self.estimate_noise(side, max(high.least, low.least)) / side.rows for side in (high, low))
        return _Tolerance(part, min(noise / share, width / 4) * times)

    def _describe(self, leaf: Comparison, allowed: _Tolerance, number: int, *, below: bool) -> str:
        assert leaf.other_mean is not None
        least = convert_to_decimal(round_up_to_two_digits(allowed.least))
        slack = f"{least}"
        if allowed.share:
            part = allowed.share / (1 - allowed.share) if below else allowed.share
            slack = f"{convert_to_decimal(part * 100)} % of the right side, and {least} at the least"
        sharper = "" if not allowed.share else "; larger groups make that less (a count of your own beside it by AND)"
        return (
            f"{leaf.text} may err within {slack}, since it is compared in {number} {BANDED}: groups that near may "
            f"all be returned{sharper}{self._suggest_difference(leaf)}"
        )

    def _suggest_difference(self, leaf: Comparison) -> str:
        """Return a suggestion to ask for the mean of the difference, or "".

        That is sharper, and possible if both means are over the same rows.
        """
        assert leaf.other_mean is not None
        other = leaf.other_mean
        left, right = _MEAN.fullmatch(leaf.left_text), _MEAN.fullmatch(other.mean.left_text)
        alike = leaf.divisor_rows is not None and other.mean.divisor_rows is not None
        if not (alike and left and right and left[2] == right[2] and left[1] != right[1]):
            return ""
        if not other.constant:
            return ""  # a percentage of 0 is no tolerance
        times = "" if other.factor == 1 else f"{convert_to_decimal(other.factor)} * "
        asked = f"avg({left[1]} - {times}{right[1]}){left[2]} {leaf.operator} {convert_to_decimal(other.constant)}"
        return f". Instead you can ask, about the rows that have both values and with less error: {asked}"


def _is_pair(leaf: Comparison | SpreadComparison) -> bool:
    return isinstance(leaf, Comparison) and leaf.other_mean is not None


@dataclass(frozen=True, slots=True)
class _Bands:
    """The bands of one comparison, from the highest to the lowest."""

    comparison: Comparison
    high: Side
    low: Side
    tolerance: _Tolerance
    share: Fraction
    is_strict: bool

    def make(self) -> list[tuple[Comparison, ...]] | None:
        """Return the literals of each band.

        Return None if there are too many bands, or none that excludes any group.
        """
        if self.tolerance.share == self.tolerance.least == 0:
            return None  # infinitely many
        below = "<" if self.is_strict else "<="
        upper = None
        if self.low.most > self.high.most:
            upper = self._find_cut(self.low, below, self.high.most)
        made: list[tuple[Comparison, ...]] = []
        while len(made) < MOST_BANDS:
            bound = self.low.most if upper is None else min(upper[2] + self._find_noise(upper[2]), self.low.most)
            reached = bound - self.tolerance.compute_amount_at(bound)  # what the high side must be above in this band
            last = () if upper is None else (self._make_literal(self.low, upper),)
            if reached < self.high.least:
                return [*made, last] if last else None
            lower = self._find_cut_above(reached)
            if upper is not None and lower[2] >= upper[2]:
                return None
            made.append((self._make_literal(self.high, lower), *last))
            upper = self._find_cut(self.low, below, lower[2])
            if upper[2] <= self.low.least and (self.is_strict or upper[2] < self.low.least):
                return made
        return None

    def _find_noise(self, value: Fraction) -> Fraction:
        return self.share * self.tolerance.compute_amount_at(value)

    def _find_cut(self, side: Side, operator: str, value: Fraction) -> tuple[str, Fraction, Fraction]:
        return side.find_cut(operator, value, within=self.tolerance.compute_amount_at(value) / _ROUNDED)

    def _find_cut_above(self, reached: Fraction) -> tuple[str, Fraction, Fraction]:
        """Return the threshold of the high side that is above `reached` even with its tolerance."""
        above, part = ">" if self.is_strict else ">=", self.share * self.tolerance.share
        value = max(reached + self.share * self.tolerance.least, reached / (1 - part if reached >= 0 else 1 + part))
        found = self._find_cut(self.high, above, value)
        while found[2] - self._find_noise(found[2]) < reached:  # it was rounded down
            value += self.tolerance.compute_amount_at(value) / _ROUNDED
            found = self._find_cut(self.high, above, value)
        return found

    def _make_literal(self, side: Side, cut: tuple[str, Fraction, Fraction]) -> Comparison:
        return side.make_literal(cut, self._find_noise(cut[2]), self.comparison)
