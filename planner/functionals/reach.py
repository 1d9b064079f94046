"""How far the declared bounds let an aggregate come: what a tolerance in percent of bounds is one of."""

from fractions import Fraction

from planner.aggregates.comparison import Comparison, Slack
from planner.aggregates.row_expression import Part


def within_bounds(comparison: Comparison, *, min_rows: int) -> Fraction:
    """What the larger side of a comparison can come to by the declared bounds: a sum or count in a group of `min_rows`
    rows, a mean or ratio in any. In the analyst's unit; a share of rows is 100."""
    if comparison.slack is not Slack.THRESHOLD:
        return Fraction(100)
    most = max(map(max, map(reach, comparison.parts)), default=Fraction(0))
    return most * min_rows if comparison.per_row is None else most / comparison.per_row


def reach(part: Part) -> tuple[Fraction, Fraction]:
    """How far a row can move one side of a comparison down and up."""
    if not part.power or part.column is None:
        return max(-part.coefficient, Fraction(0)), max(part.coefficient, Fraction(0))
    ends = [part.coefficient * Fraction(end) ** part.power for end in part.column.bounds or (0, 0)]
    return max(-min(ends), Fraction(0)), max(*ends, Fraction(0))
