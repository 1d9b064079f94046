"""Bins of equal width into which the rows of other groups are counted, and the quantile that is read off them.

`avg(x) > (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t)` counts the rows of every group by bin. Bins
follow from the column's declared bounds and the conditions alone. A row is in one bin, whatever its value is.

Proof: docs/proofs/row_quantiles.md.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, sqrt

from mechanisms.protocol import RowQuantile
from planner.aggregates.comparison import CellSum, Comparison
from planner.aggregates.row_expression import SumPart
from planner.catalog.catalog import Column, Product, SqlType
from planner.errors import KeyholeError
from planner.functionals.cell_readings import sum_cells
from planner.functionals.functional import find_grid
from planner.functionals.mean_bands import MeanBands
from planner.question.condition import Compare, Condition, IsNull, Not, join_all
from planner.question.key_cells import OWN_GROUP_ALONE
from planner.question.question import CellRead, Measure
from planner.question.range_inference import narrow_range
from planner.values.decimals import convert_to_decimal, round_up_to_two_digits

MOST_BINS = 64
"""More bins are narrower, but their noise is wider: 64 take 1.6 % of the range off the tolerance, and cost the least
for 3 to 50 groups of 4,000 rows."""
_WORTH_OF_RANKS = 46
"""Units by which a rank may err, times the root of all cells and bins: this costs about 0.2 epsilon."""

_MOST_SLACK = Fraction(1, 10)  # of the rows: added counts demand as many as keep a rank this near


@dataclass(frozen=True, slots=True)
class RowBins:
    """The bins of the values of `column`. `lows` are their lower ends, `middle` is that of the first one.

    A quantile of `scale * column + shift` is read at a `share` of the rows in order of the column.
    """

    column: Column
    condition: Condition
    scale: Fraction
    shift: Fraction
    share: Fraction
    lows: tuple[Fraction, ...]
    width: Fraction
    reach: Fraction

    @property
    def middle(self) -> Fraction:
        """The middle of the first bin."""
        return self.lows[0] + self.reach

    def list_conditions(self) -> list[Condition]:
        """Return the condition of each bin's rows: the first has all lower values, the last all higher ones.

        NaN is above all numbers, and NULL is in no bin.
        """
        ends: list[Decimal | int] = [
            int(low) if self.column.sql_type is SqlType.INTEGER else convert_to_decimal(low) for low in self.lows
        ]
        name = self.column.name
        found: list[Condition] = []
        for place in range(len(ends)):
            above = [Compare(name, ">=", ends[place])] if place else []
            below = [Compare(name, "<", ends[place + 1])] if place + 1 < len(ends) else []
            known = [] if above or below else [Not(IsNull(name))]
            found.append(join_all((self.condition, *above, *below, *known)))
        return found


def make_bins(leaf: Comparison, bands: MeanBands) -> RowBins:
    """Return the bins of the rows whose quantile a group's mean is compared with. Raise KH203, KH204."""
    other = leaf.other_mean
    assert other is not None
    assert other.quantile is not None
    if not bands.table.is_row_unit and bands.table.row_cap is None:
        raise KeyholeError(
            "KH204",
            f"{leaf.text} reads a quantile of rows of which one ({bands.table.unit_text}) may have any number",
            detail="Such a unit may change all bins that its rows are counted in, so that a quantile would cost much.",
            hint="Compare with the mean of the rows, or ask the owner to declare max_rows_per_group for the table.",
            position=leaf.position,
        )
    (scaled,) = (part for part in other.mean.summands if part.power)
    column = scaled.column
    assert column is not None
    if isinstance(column.derivation, Product) or not scaled.coefficient:
        raise KeyholeError(
            "KH204",
            f"{column.name} is a product, of which no quantile is read",
            hint="Ask the owner to expose the product as a column of a view, with bounds.",
            position=leaf.position,
        )
    grid, low, high = find_grid(column, bands.table, position=leaf.position)
    low, high = narrow_range(column.name, (low, high), among=(bands.where, scaled.condition), table=bands.table)
    whole = column.sql_type is SqlType.INTEGER
    least, most = low * grid, high * grid
    if whole:
        least, most = Fraction(ceil(least)), Fraction(int(most))
    values = most - least + (1 if whole else 0)
    unit = Fraction(1) if whole else grid
    width = max(unit, ceil(values / unit / MOST_BINS) * unit)
    while not whole and 0 < 2 * values <= MOST_BINS * width:  # values need not lie on the grid
        width /= 2
    number = max(1, ceil(values / width))
    return RowBins(
        column=column,
        condition=scaled.condition,
        scale=scaled.coefficient,
        shift=sum((part.coefficient for part in other.mean.summands if not part.power), Fraction(0)),
        share=other.quantile.share if scaled.coefficient > 0 else 1 - other.quantile.share,
        lows=tuple(least + place * width for place in range(number)),
        width=width,
        reach=(width - 1 if whole else width) / 2,
    )


def find_width(leaf: Comparison, bands: MeanBands) -> Fraction:
    """Return the width of a bin, times the quantile's factor, in the unit of the group's mean."""
    assert leaf.other_mean is not None
    bins = make_bins(leaf, bands)
    return abs(leaf.other_mean.quantile_factor * bins.scale) * 2 * bins.reach


def find_rank_slack(leaf: Comparison, bands: MeanBands) -> Fraction:
    """Return the share of the rows by which a quantile's rank may err: what noise in the bins needs."""
    other = leaf.other_mean
    assert other is not None
    share = make_bins(leaf, bands).share
    wanted = round_up_to_two_digits(_estimate_rank_noise(leaf, bands) / other.least_rows[1])
    return min(Fraction(wanted), min(share, 1 - share) / 2)


def find_least_rows(leaf: Comparison, bands: MeanBands) -> int:
    """Return how many rows a quantile should be read off, so that its rank errs by a tenth of them at most.

    Near the least and the largest it errs by less: by half of the rows that lie beyond.
    """
    share = make_bins(leaf, bands).share
    most = min(_MOST_SLACK, min(share, 1 - share) / 2)
    return int(round_up_to_two_digits(_estimate_rank_noise(leaf, bands) / most))


def _estimate_rank_noise(leaf: Comparison, bands: MeanBands) -> Fraction:
    assert leaf.other_mean is not None
    counts, share = read_bins(leaf, bands), make_bins(leaf, bands).share
    spread = Fraction(sqrt(len(counts) * leaf.other_mean.groups)) * max(share, 1 - share)
    return _WORTH_OF_RANKS * counts[0].summed.sensitivity * spread


def describe_quantile(leaf: Comparison, bands: MeanBands) -> str:
    """Return what a NOTICE tells of the quantile in a comparison."""
    assert leaf.other_mean is not None
    bins, slack = make_bins(leaf, bands), leaf.other_mean.rank_slack
    off = f"the quantile in {leaf.text} may be off by ranks of {convert_to_decimal(slack * 100)} % of the rows"
    if not bins.reach:
        return off
    return f"{off}, and is read off bins of {bins.column.name} that are {convert_to_decimal(bins.width)} wide"


def read_bins(leaf: Comparison, bands: MeanBands) -> tuple[CellRead, ...]:
    """Return the readings of all bins in the other groups, in ascending order. Raise KH203 to KH208."""
    other = leaf.other_mean
    assert other is not None
    bins = make_bins(leaf, bands)
    found: list[CellRead] = []
    for condition in bins.list_conditions():
        rows = (SumPart(Fraction(1), None, condition, 0),)
        counted = CellSum(f"rows by {bins.column.name}", Measure.ROWS, rows, OWN_GROUP_ALONE, Fraction(1))
        made, _ = sum_cells(counted, other.mean, table=bands.table, where=bands.where)
        found.append(CellRead(made, other.cells, 1))
    return tuple(found)


def make_row_quantile(leaf: Comparison, bands: MeanBands, *, step_value: Fraction) -> tuple[RowQuantile, Fraction]:
    """Return the quantile that a mean is compared with, in steps of the mean, and a constant beside it."""
    other = leaf.other_mean
    assert other is not None
    bins = make_bins(leaf, bands)
    made = RowQuantile(
        times=other.quantile_factor * bins.scale / step_value,
        share=bins.share,
        slack=other.rank_slack,
        first=bins.middle,
        width=bins.width,
        reach=bins.reach,
        bins=len(bins.lows),
    )
    return made, other.quantile_factor * bins.shift
