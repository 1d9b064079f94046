"""What bounding is expected to cut is what it cuts of drawn units."""

from dataclasses import replace
from math import log, sqrt

import numpy as np

from planner.catalog.catalog import Table
from planner.explain.expected_bounding import list_expected_cuts
from tests.in_turn import in_turn
from tests.planner.explain.test_render import planned
from tests.worlds.questions import CAPPED, CLIPPED, ROWS

UNITS = 40_000


@in_turn("mean", [1.0, 3.0, 15.0, 60.0])
@in_turn(
    ("having", "table", "most", "each"),
    [
        ("count(*) > 500", CLIPPED, 20, 1),
        ("avg(amount) > 20", CLIPPED, 20, 1),
        ("sum(amount) > 5000", CLIPPED, 500, 50),
        ("sum(amount) > 5000", replace(CLIPPED, rows_per_unit=3), 500, 50),
        ("count(*) > 500", CAPPED, 5, 1),
        ("sum(amount) > 5000", CAPPED, 250, 50),
    ],
)
def test_the_share_that_is_cut_of_geometric_units(having: str, table: Table, most: int, each: int, mean: float) -> None:
    """40,000 units; what is kept per unit lies in 0..most, what there is has the mean itself in its denominator: the
    mean of what is kept differs from its expectation by more than most * sqrt(ln(2 / 1e-6) / (2 n)) with probability
    below 1e-6 (Hoeffding); 24 cases, seeded."""
    (cut,) = list_expected_cuts(planned(having, table=table), mean_rows=mean)
    rows = np.random.default_rng(3).geometric(1 / mean, size=UNITS)
    kept = np.minimum(rows * each, most).mean()
    assert abs(kept - (1 - cut.share) * mean * each) < most * sqrt(log(2 / 1e-6) / (2 * UNITS))
    assert 0 <= cut.share <= 1


def test_nothing_is_cut_of_rows_and_of_counted_units() -> None:
    assert list_expected_cuts(planned("count(*) > 500", table=ROWS), mean_rows=10.0) == ()
    (cut,) = list_expected_cuts(planned("count(DISTINCT customer_id) > 30", table=CLIPPED), mean_rows=10.0)
    assert cut.share == 0
