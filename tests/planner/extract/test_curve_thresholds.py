"""Steps of logarithms, roots and powers: the hint's thresholds make the same groups, of every value of the column."""

import re
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal, localcontext
from math import floor, isqrt

from tests.planner.statements.test_analysts import outcome, refusal

# batteries are 0 to 100, distances 0 to 30,000, fares 0 to 40 in cents
_STEPS: dict[str, tuple[str, Callable[[Decimal], int]]] = {
    "floor(log(battery + 1))": ("battery", lambda x: len(str(int(x) + 1)) - 1),
    "floor(log(2, battery + 1))": ("battery", lambda x: (int(x) + 1).bit_length() - 1),
    "floor(ln(battery + 1))::int": ("battery", lambda x: floor((x + 1).ln())),
    "trunc(ln(fare + 1))": ("fare", lambda x: floor((x + 1).ln())),
    "floor(2 * ln(fare + 2))": ("fare", lambda x: floor(2 * (x + 2).ln())),
    "floor(sqrt(battery))": ("battery", lambda x: isqrt(int(x))),
    "round(sqrt(battery))": ("battery", lambda x: (isqrt(4 * int(x)) + 1) // 2),
    "floor(sqrt(fare + 7))": ("fare", lambda x: floor((x + 7).sqrt())),
    "floor(power(battery, 2) / 1000)": ("battery", lambda x: int(x) ** 2 // 1000),
    "trunc(battery ^ 3 / 50000.0)": ("battery", lambda x: int(x) ** 3 // 50_000),
    "power(10, floor(log(fare + 0.01)))": ("fare", lambda x: (x + Decimal("0.01")).adjusted()),
    "floor(log(distance_m + 1))": ("distance_m", lambda x: len(str(int(x) + 1)) - 1),
    "floor(sqrt(distance_m) / 10)": ("distance_m", lambda x: isqrt(int(x)) // 10),
}
_VALUES = {
    "battery": [Decimal(one) for one in range(101)],
    "fare": [Decimal(one).scaleb(-2) for one in range(4001)],
    "distance_m": [Decimal(one) for one in (*range(0, 30_001, 7), 9, 99, 999, 9999, 10_000, 99**2, 100**2, 10_200)],
}
_BUCKET = re.compile(r"width_bucket\((\w+)(?: \+ ([\d.]+))?, ARRAY\[([\d., ]+)\]\)(?: ([+-]) (\d+))?")


def test_thresholds_make_the_groups_of_the_steps() -> None:
    for steps, (column, plainly) in _STEPS.items():
        sql = f"SELECT {steps} AS d, month FROM rides GROUP BY 1, 2 HAVING count(*) > 100"
        error = refusal("rides", sql, is_planned=False)
        assert error is not None
        assert error.code == "KH202"
        instead = (error.hint or "").removeprefix("Instead you can ask: ").rstrip(";")
        found = _BUCKET.search(instead)
        assert found is not None, (steps, error.hint)
        assert found[1] == column
        assert outcome("rides", instead) == "planned", instead
        shift, thresholds = Decimal(found[2] or 0), [Decimal(one) for one in found[3].split(", ")]
        first = int(f"{found[4] or '+'}{found[5] or 0}")
        with localcontext(prec=50):
            for value in _VALUES[column]:
                assert first + bisect_right(thresholds, value + shift) == plainly(value), (steps, value)


def test_no_thresholds_are_shown_where_a_value_may_lie_between_them() -> None:
    for key in ("floor(ln(fare + 0.001))", "floor(log(ended_at))", "floor(sqrt(distance_m))", "floor(sqrt(ride_id))"):
        error = refusal("rides", f"SELECT {key} FROM rides GROUP BY 1 HAVING count(*) > 100", is_planned=False)
        assert error is not None
        assert "ARRAY" not in (error.hint or ""), key
