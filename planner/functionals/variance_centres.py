"""A variance compared with a constant, as sums of squares around finitely many centres.

The mean of the squares around a centre m is the variance plus the square of the mean's distance from m. So a variance
is above v exactly if the squares around *every* centre are on average above v. Take finitely many centres, with
neighbours at most 2 r apart. One of them is within r of the mean, so if all of their averages are above v, the variance
is above `v - r^2`. A variance up to v is the opposite: around *some* centre the squares are on average at most `v +
r^2`.

Either way the centres use up `r^2` of the tolerance, and the noise has the rest. More centres leave more of it and
share it among more functionals. The number with the least product is taken, which is near `r^2 = tolerance / 3`.

Guarantee: on exact values the literals hold in every group in which SQL's comparison does. With their tolerances they
hold in no group of at least `min_rows` values that misses the threshold by more than the tolerance. For `>` and `<`
they also hold in none that misses it by exactly the tolerance.

Proof: docs/proofs/variance.md.

| symbol | name | meaning |
|---|---|---|
| v, t | `level`, `slack` | threshold and tolerance of the variance, in squares of grid steps |
| m | `points` | centres, in half grid steps |
| r | `radius` | half the largest distance of neighbours, in half grid steps |
| h | `half_range` | half of the range of values, in half grid steps |
| n | `rows` | the group size for which the tolerance is meant |
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import floor, isqrt, log

from planner.aggregates.comparison import (
    FAILS,
    Comparison,
    Complement,
    Conjunction,
    Disjunction,
    Having,
    Slack,
    SpreadComparison,
    require_count,
)
from planner.aggregates.row_expression import RequiredValues, SumPart
from planner.catalog.catalog import Table
from planner.catalog.tolerance import Amount, Tolerances, parse_tolerances, squeeze_name
from planner.errors import KeyholeError
from planner.functionals.functional import find_grid
from planner.parser.lexer import spell_name
from planner.question.question import Accuracy, Measure
from planner.question.range_inference import narrow_range
from planner.values.decimals import convert_to_decimal
from planner.values.operators import OPPOSITE_OPERATORS

MOST_CENTRES = 60  # for one comparison, so that four of the 64 literals are left for what it is joined with
_ABOVE = (">", ">=")


def replace_variances(
    formula: Having,
    *,
    table: Table,
    accuracy: Accuracy,
    warn: Callable[[str], None],
    rows_of: Callable[[SpreadComparison], int],
    is_complement: bool = False,
) -> Having:
    """Return the formula with every variance replaced by comparisons of means of squares around several centres.

    Parameters:
        rows_of: the group size for which the tolerance of a variance is meant.
        is_complement: True if the complement of the formula decides, so that the rounding of the centres goes the
            other way.

    Raises:
        KeyholeError: KH203, KH204, KH211 if the tolerance needs too many centres, KH304.
    """
    match formula:
        case SpreadComparison():
            settled = _BoundedSpread.from_spread(formula, table, replace(accuracy, min_rows=rows_of(formula)))
            return settled.make_test(is_complement=is_complement, warn=warn)
        case Complement(inner):
            made = replace_variances(
                inner, table=table, accuracy=accuracy, warn=warn, rows_of=rows_of, is_complement=not is_complement
            )
            return Complement(made)
        case Conjunction(children) | Disjunction(children):
            parts = tuple(
                replace_variances(
                    child, table=table, accuracy=accuracy, warn=warn, rows_of=rows_of, is_complement=is_complement
                )
                for child in children
            )
            return Conjunction(parts) if isinstance(formula, Conjunction) else Disjunction(parts)
        case _:
            return formula


@dataclass(frozen=True, slots=True)
class _Centres:
    points: tuple[int, ...]
    radius: Fraction
    slack_left: Fraction  # what is left of the tolerance for the noise, as a sum over `rows` rows

    @property
    def used_slack(self) -> Fraction:
        """The part of the variance's tolerance that the centres use, in squares of grid steps."""
        return self.radius**2 / 4


@dataclass(frozen=True, slots=True)
class _BoundedSpread:
    """A comparison of a variance with its range of values. `size` is a grid step of the values."""

    spread: SpreadComparison
    accuracy: Accuracy
    tolerances: Tolerances
    low: int
    high: int
    size: Fraction

    @staticmethod
    def from_spread(spread: SpreadComparison, table: Table, accuracy: Accuracy) -> "_BoundedSpread":
        step, low, high = find_grid(spread.column, table, position=spread.position)
        low, high = narrow_range(spread.column.name, (low, high), among=(spread.where, spread.condition), table=table)
        return _BoundedSpread(
            spread, accuracy, parse_tolerances(accuracy.tolerance), low, high, step * abs(spread.scale)
        )

    @property
    def level(self) -> Fraction:
        threshold = self.spread.threshold
        return (threshold**2 if self.spread.is_deviation else threshold) / self.size**2

    @property
    def rows(self) -> int:
        return max(self.accuracy.min_rows, 2 if self.spread.is_sample else 1)

    @property
    def half_range(self) -> int:
        return self.high - self.low

    def make_test(self, *, is_complement: bool, warn: Callable[[str], None]) -> Having:
        constant = self._find_constant()
        if constant is not None:
            held = "true for every group with enough values" if constant != FAILS else "false for every group"
            warn(f"{self.spread.text} is {held}")
            return constant
        operator = OPPOSITE_OPERATORS[self.spread.operator] if is_complement else self.spread.operator
        if operator == ">" and not self.level:
            raise KeyholeError(
                "KH204",
                f"{self.spread.text} asks whether there are two different values",
                hint=f"Ask count(DISTINCT {spell_name(self.spread.column.name)}){self.spread.suffix} > 1.",
                position=self.spread.position,
            )
        slack = self._find_slack(self._find_amount(), operator)
        centres = self._choose_centres(operator, slack)
        if centres is None:
            raise self._refuse_too_fine(operator)
        warn(self._describe(operator, slack, centres))
        literals = tuple(
            self._make_literal(centre, operator, centres, is_complement=is_complement) for centre in centres.points
        )
        if len(literals) == 1:
            return literals[0]
        return Conjunction(literals) if (operator in _ABOVE) is not is_complement else Disjunction(literals)

    def _find_constant(self) -> Having | None:
        """Return a constant if the threshold is below 0 or above the largest possible variance, else None."""
        operator, threshold = self.spread.operator, self.spread.threshold
        if threshold < 0 or (threshold == 0 and operator in (">=", "<")):
            return self._make_existence() if operator in _ABOVE else FAILS
        largest = Fraction(self.half_range**2, 4) * (2 if self.spread.is_sample else 1)
        if self.level > largest or (self.level == largest and operator in (">", "<=")):
            return FAILS if operator in _ABOVE else self._make_existence()
        return None

    @property
    def _values(self) -> RequiredValues:
        return RequiredValues(self.spread.column.name, self.spread.condition, 2 if self.spread.is_sample else 1)

    def _make_existence(self) -> Comparison:
        """Return a comparison that is true if there are enough values for SQL not to give NULL."""
        spread, least = self.spread, self._values.least_rows
        counted = f"count({spread.column.name}){spread.suffix}"
        made = require_count(
            counted,
            least,
            measure=Measure.ROWS,
            parts=(SumPart(Fraction(1), spread.column, spread.condition, 0),),
            tolerance=Fraction(0),
            position=spread.position,
        )
        return replace(
            made,
            text=spread.text,
            names=(counted,),
            warnings=(
                f"{spread.text} depends on one record, which is expensive. Instead you can ask: {counted} >= 10",
            ),
        )

    def _find_amount(self) -> Amount:
        amount = self.tolerances.find_amount(self.spread.names)
        if amount is None:
            raise KeyholeError(
                "KH304",
                f"keyhole.tolerance says nothing about {self.spread.left_text}",
                hint=f"SET keyhole.tolerance = '30%, {self.accuracy.tolerance}';",
                position=self.spread.position,
            )
        if amount.is_percent and not self.spread.threshold:
            raise KeyholeError(
                "KH304",
                f"{self.spread.text}: a percentage of the threshold 0 is no tolerance",
                detail="A tolerance in percent is a part of the threshold itself.",
                hint=f"Set an absolute tolerance for it: {self._suggest_coarser(self.spread.operator)}",
                position=self.spread.position,
            )
        return amount

    def _find_edge(self, amount: Amount, operator: str) -> Fraction:
        """Return the value up to which a group near the threshold may be misjudged, in the analyst's unit."""
        threshold, most = self.spread.threshold, self.half_range * self.size / 2  # the largest standard deviation
        allowed = amount.compute_size(threshold=threshold, bounds=most if self.spread.is_deviation else most**2)
        return max(Fraction(0), threshold - allowed) if operator in _ABOVE else threshold + allowed

    def _find_slack(self, amount: Amount, operator: str) -> Fraction:
        edge = self._find_edge(amount, operator)
        return abs(self.level - (edge**2 if self.spread.is_deviation else edge) / self.size**2)

    def _choose_centres(self, operator: str, slack: Fraction) -> _Centres | None:
        """Return the centres that are estimated to cost least, or None if no number of centres is enough."""
        return min(
            self._list_near_enough(operator, slack), key=lambda made: self._estimate_price(made, operator), default=None
        )

    def _list_near_enough(self, operator: str, slack: Fraction) -> Iterator[_Centres]:
        """Yield the centres of each number that are near enough to one another for the tolerance."""
        reach = self._find_largest_distance(operator, slack)
        made = (self._space_centres(number, reach, slack) for number in range(1, MOST_CENTRES + 1))
        return (centres for centres in made if centres is not None)

    @property
    def _sample_factor(self) -> Fraction:
        return Fraction(self.rows - 1, self.rows) if self.spread.is_sample else Fraction(1)

    def _find_largest_distance(self, operator: str, slack: Fraction) -> int:
        """Return the largest distance of a mean from the middle of the range, in half steps."""
        if operator in _ABOVE:
            near = (self.level - slack) * self._sample_factor
        else:
            near = self.level / 2 if self.spread.is_sample else self.level
        # means near the ends of the range leave no room for so large a variance, so the outermost centres do there
        room = max(Fraction(0), Fraction(self.half_range**2) - 4 * near)
        reach = isqrt(floor(room))
        # just there, all values at the ends of the range have one sum of squares: `<` would miss them, `>=` return them
        return reach + (reach**2 < room or (operator in ("<", ">=") and reach**2 == room))

    def _space_centres(self, number: int, reach: int, slack: Fraction) -> _Centres | None:
        """Return that number of centres at equal distances, or None if they are too far apart for the tolerance."""
        middle = self.low + self.high
        # in whole numbers, which fractions are twenty times slower than; halves are rounded away from the middle
        farther = [(2 * reach * place + number) // (2 * number) for place in range((number + 1) % 2, number, 2)]
        points = [*(middle - far for far in reversed(farther) if far), *(middle + far for far in farther)]
        if len(set(points)) < number:
            return None
        gaps = (after - before for before, after in pairwise(points))
        diameter = max(2 * (reach - farther[-1]), *gaps, 0)
        left = self.rows * (slack * self._sample_factor - Fraction(diameter**2, 16))
        return _Centres(tuple(points), Fraction(diameter, 2), left) if left > 0 else None

    def _estimate_price(self, made: _Centres, operator: str) -> float:
        """Return the cost up to a factor: the sum of sensitivities, divided by the tolerance left for noise."""
        level = self.level if operator in _ABOVE else self.level + made.used_slack
        farthest = (max(abs(2 * end - point) for end in (self.low, self.high)) for point in made.points)
        changes = sum(max(float(Fraction(far**2, 4) - level), float(level)) for far in farthest)
        shared, whole = self.accuracy.fnr, self.accuracy.fpr
        if operator not in _ABOVE:
            shared, whole = whole, shared
        return changes * (log(len(made.points) / shared) + log(1 / whole)) / float(made.slack_left)

    def _make_literal(self, point: int, operator: str, centres: _Centres, *, is_complement: bool) -> Comparison:
        """Return the squares around one centre compared with the threshold, or the negation if `is_complement`."""
        spread, size = self.spread, self.size
        above = operator in _ABOVE
        level = (self.level if above else self.level + centres.used_slack) * size**2
        at = -self.level * size**2 if spread.is_sample else Fraction(0)
        operator = OPPOSITE_OPERATORS[operator] if is_complement else operator
        centre = Fraction(point, 2) * (size / abs(spread.scale))  # in the column's unit
        called = spread.scale * centre + spread.shift
        away = f"{spread.argument} {'-' if called >= 0 else '+'} {convert_to_decimal(abs(called))}"
        away = spread.argument if called == 0 else f"({away})"
        left = f"avg({away}^2){spread.suffix}"
        less = f" - {convert_to_decimal(-at)} / count({spread.column.name}){spread.suffix}" if at else ""
        square = spread.scale**2
        return Comparison(
            text=f"{left} {operator} {convert_to_decimal(level)}{less}",
            left_text=left,
            names=(left,),
            measure=Measure.TOTAL,
            summands=(
                SumPart(square, spread.column, spread.condition, 2),
                SumPart(-2 * square * centre, spread.column, spread.condition, 1),
                SumPart(square * centre**2 - level, spread.column, spread.condition, 0),
            ),
            operator=operator,
            right_value=at,
            threshold=level,
            origin=level,
            per_row=Fraction(1),
            required_values=(self._values,),
            slack=Slack.THRESHOLD,
            position=spread.position,
            fixed_tolerance=centres.slack_left * size**2,
            whole_text=spread.text,
            divisor_rows=SumPart(Fraction(1), spread.column, spread.condition, 0),
        )

    def _describe(self, operator: str, slack: Fraction, centres: _Centres) -> str:
        spread, number = self.spread, len(centres.points)
        edge = self._find_edge(self._find_amount(), operator)
        low, high = sorted((edge, spread.threshold))
        what = "one mean of squares" if number == 1 else f"{number} means of squares around {number} centres"
        share = round(100 * centres.used_slack / slack)
        dear = "" if number == 1 else ", each with separate noise (a wider tolerance or a narrower range needs fewer)"
        return (
            f"{spread.text} is tested by {what}{dear}; it may err between {convert_to_decimal(low)} and "
            f"{convert_to_decimal(high)} for "
            f"groups of at least {self.rows} values. The distance of the centres uses {share} % of that tolerance"
        )

    def _refuse_too_fine(self, operator: str) -> KeyholeError:
        spread = self.spread
        return KeyholeError(
            "KH211",
            f"{spread.text} needs more than {MOST_CENTRES} means of squares",
            detail="A variance is tested around many centres, one of which is near a group's mean. A small tolerance "
            "and a wide range of values need more of them.",
            hint=self._suggest_coarser(operator),
            position=spread.position,
        )

    def _suggest_coarser(self, operator: str) -> str:
        """Return a tolerance, or else a range of values, for which `MOST_CENTRES` are enough.

        Both are found by trying.
        """
        percent = bool(self.spread.threshold)
        for number in range(1, 101) if percent else (2**doublings for doublings in range(-10, 30)):
            amount = Amount(convert_to_decimal(Fraction(number)), is_percent=percent)
            if any(self._list_near_enough(operator, self._find_slack(amount, operator))):
                return self._suggest_setting(f"{convert_to_decimal(Fraction(number))}{'%' if percent else ''}")
        width = self.half_range
        while width > 1:
            width //= 2
            nearer = replace(self, high=self.low + width)
            slack = nearer._find_slack(Amount(convert_to_decimal(Fraction(50)), is_percent=True), operator)
            if slack and any(nearer._list_near_enough(operator, slack)):
                step = self.size / abs(self.spread.scale)
                low, high = convert_to_decimal(self.low * step), convert_to_decimal((self.low + width) * step)
                name = self.spread.column.name
                return (
                    f"{self._suggest_setting('50%')} and ask about a narrower range, "
                    f"FILTER (WHERE {name} BETWEEN {low} AND {high})."
                )
        return "Set a wider tolerance, or have the owner declare a coarser grid."

    def _suggest_setting(self, amount: str) -> str:
        text = self.accuracy.tolerance.replace("'", "''")
        name = self.spread.left_text.replace("'", "''")
        if squeeze_name(self.spread.left_text) in (known for known, _ in self.tolerances.named_tolerances):
            return f"SET keyhole.tolerance = '{amount}';"
        return f"SET keyhole.tolerance = '{text}, {name}={amount}';"
