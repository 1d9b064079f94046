"""MiM's equation 7: no first level is within its bounds as printed, and with them exchanged some are."""

import math

import pytest

from mechanisms.protocol import Knowledge
from mechanisms.published.mim import expect_false_positives_of_one_look, expect_false_positives_of_two_looks
from tests.in_turn import in_turn

SHARE = 0.05
DATA = {  # table 1, of a threshold of 100: keys at 10, and keys at 25 or 40
    "D1": (Knowledge(far_keys=240, far_distance=90, near_keys=28, near_distance=75), 0.0347, 0.0399),
    "D2": (Knowledge(far_keys=300, far_distance=90, near_keys=60, near_distance=60), 0.0358, 0.0499),
    "D3": (Knowledge(far_keys=400, far_distance=90, near_keys=103, near_distance=60), 0.0366, 0.0499),
}


def bounds(known: Knowledge, epsilon: float) -> tuple[float, float]:
    """The two bounds of equation 7 on the first level: the one from equation 6 and the one from equation 5."""
    log_share = math.log(1.0 / SHARE)
    one = (2.0 * SHARE) ** (known.near_distance * epsilon / math.log(1.0 / (2.0 * SHARE)))
    two = SHARE ** (known.near_distance * epsilon / log_share)
    ratio = ((known.far_keys + known.near_keys) * one - 2.0 * known.near_keys * two) / (known.far_keys * two)
    return log_share * (1.0 + math.log(ratio) / math.log(SHARE)) / known.far_distance, log_share / known.near_distance


@in_turn("data", DATA)
@in_turn("epsilon", [0.06, 0.08, 0.10, 0.15])
def test_the_interval_is_empty_as_printed_and_not_with_its_bounds_exchanged(data: str, epsilon: float) -> None:
    """From the lower bound on two looks are expected to err less than one, by the equations that choose a mechanism."""
    known, low, high = DATA[data]
    least, most = bounds(known, epsilon)
    assert (least, most) == pytest.approx((low, high), abs=5e-5)
    assert least < most, "so that no level is above the upper and below the lower one, as equation 7 has it"
    once = expect_false_positives_of_one_look(known, rate=epsilon, share=SHARE)
    twice = [
        expect_false_positives_of_two_looks(known, first_rate=rate, rate=epsilon, share=SHARE)
        for rate in (0.99 * least, least, 1.01 * least, most)
    ]
    assert twice[1] == pytest.approx(once, rel=1e-9)
    assert twice[0] > once > twice[2] > twice[3]
