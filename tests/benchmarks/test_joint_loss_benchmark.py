"""The joint loss of questions with regional filters is what the documentation says of it."""

from benchmarks.joint_loss import KINDS, MOST, list_sub_queries, price_both_ways


def test_regional_filters_cost_half_of_the_plain_sum_or_less() -> None:
    for kind, least in zip(KINDS, (5.0, 2.5, 1.0), strict=True):
        for both in ("AND", "OR"):
            joint, plain = price_both_ways(list_sub_queries(kind)[:MOST], both=both)
            assert plain >= least * joint * 0.999
