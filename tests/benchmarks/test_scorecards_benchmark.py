"""Several predicates in one question cost what the documentation says."""

from benchmarks.scorecards import HAVING, SCORECARDS, draw_orders, measure_bands, measure_scorecards, price_mean


def test_bands_cost_what_the_sharpest_threshold_costs() -> None:
    for _, _, together, sharpest, apart in measure_bands():
        assert together <= 1.02 * sharpest
        assert together < 0.7 * apart


def test_six_predicates_over_three_aggregates_cost_half_of_the_six_asked_apart_or_less() -> None:
    for _, kind, together, apart in measure_scorecards():
        assert together <= (0.5 if kind != "two bands of each aggregate" else 0.67) * apart


def test_groups_that_having_leaves_out_cost_little() -> None:
    """Most groups are empty and stop at their first looks: the bound is three times what a mean over 3,000 comes to."""
    predicates = SCORECARDS["bands and pairs of both kinds"]
    with_it, without, returned = price_mean(HAVING["count(*) > 1000"], predicates, draw_orders())
    assert returned < 0.3
    assert with_it < 0.75 * without
