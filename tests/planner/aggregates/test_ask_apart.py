"""Two thresholds instead of a comparison of two aggregates: it follows from them, whatever the values are."""

import re
from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean, pstdev

from tests.planner.statements.test_analysts import outcome, refusal

_AGGREGATES: dict[str, Callable[[Sequence[int]], float]] = {
    "max": max,
    "min": min,
    "avg": fmean,
    "stddev_pop": pstdev,
    "distinct": lambda values: len(set(values)),
    "count": len,
}
# as asked, with the largest of the values: of batteries from 0 to 100, and of the riders' two types
_ASKED = {
    "max(battery) - min(battery) > 60": 100,
    "max(battery) - min(battery) <= 25": 100,
    "(max(battery) - min(battery)) / 2.0 >= 30": 100,
    "40 < max(battery) - min(battery)": 100,
    "max(battery) > 1.5 * min(battery) + 10": 100,
    "max(battery) / min(battery) >= 2": 100,
    "min(battery) > max(battery) - 20": 100,
    "max(battery) - avg(battery) > 35": 100,
    "avg(battery) < max(battery) - 30": 100,
    "stddev_pop(battery) / avg(battery) > 0.5": 100,
    "stddev_pop(battery) > 0.25 * avg(battery)": 100,
    "count(*) * 1.0 / count(DISTINCT rider_type) > 4": 2,
}


def _holds(condition: str, values: Sequence[int]) -> bool:
    """A condition of aggregates, read as Python's."""
    text = re.sub(r"count\(DISTINCT \w+\)", "distinct(_)", condition).replace("count(*)", "count(_)")
    text = re.sub(r"(\w+)\(\w+\)", r"\1(values)", text).replace(" AND ", " and ")
    return bool(eval(text, {**_AGGREGATES, "values": values}))


def _instead(asked: str) -> str:
    sql = f"SELECT bike_type FROM rides GROUP BY bike_type HAVING {asked}"
    error = refusal("rides", sql, is_planned=False)
    assert error is not None
    hint = error.hint or ""
    assert hint.startswith("Instead you can ask: SELECT bike_type FROM rides GROUP BY bike_type HAVING "), hint
    assert outcome("rides", hint.removeprefix("Instead you can ask: ").rstrip(";")) == "planned"
    return hint.partition("HAVING ")[2].rstrip(";")


def test_what_was_asked_follows_from_what_a_hint_asks_instead() -> None:
    """And some groups satisfy what is asked instead: of each comparison 300 groups are tried."""
    coins = Random(33)
    instead = {asked: _instead(asked) for asked in _ASKED}
    assert "max(battery) > 20 + 60 AND min(battery) <= 20" in instead.values()
    assert "count(*) * 1.0 > 4 * 2" in instead.values()  # whoever has riders of both types is asked exactly
    for asked, most in _ASKED.items():
        met = 0
        for _ in range(300):
            low, high = sorted(coins.randint(1, most) for _ in range(2))
            values = [coins.randint(low, high) for _ in range(coins.choice((1, 3, 30)))]
            values += coins.choice(((), (1,), (most,), (1, most)))
            if _holds(instead[asked], values):
                assert _holds(asked, values), (asked, instead[asked], values)
                met += 1
        assert met, asked


def test_lengths_of_time_keep_their_own_unit() -> None:
    day = "timestamp '2024-06-17'"
    for asked, instead in {
        "max(started_at) - min(started_at) > interval '30 days'": f"max(started_at) > {day} + INTERVAL '30 DAYS' AND "
        f"min(started_at) <= {day}",
        "max(started_at) - min(started_at) < '30 days'": f"max(started_at) < {day} + interval '30 days' AND "
        f"min(started_at) >= {day}",
        "max(started_at)::date - min(started_at)::date > 30": "max(started_at) >= date '2024-06-17' + 30 AND "
        "min(started_at) < date '2024-06-17'",
        "extract(epoch FROM max(started_at) - min(started_at)) / 3600 >= 12": "max(started_at) >= timestamp "
        "'2024-07-01' + interval '12 hours' AND min(started_at) <= timestamp '2024-07-01'",
        "date_part('day', max(started_at) - min(started_at)) > 29": f"max(started_at) >= {day} + interval '30 days' "
        f"AND min(started_at) < {day}",
    }.items():
        assert _instead(asked) == instead


def test_no_number_is_made_up_where_public_facts_give_none() -> None:
    for asked in (
        "max(battery) - min(battery) > 200",
        "max(battery) - min(battery) BETWEEN 10 AND 20",
        "NOT max(battery) - min(battery) > 60",
        "max(started_at) - min(started_at) > interval '2 years'",
        "max(ride_id) - min(ride_id) > 5",
        "max(battery) = min(battery)",
        "max(battery) > -2 * min(battery)",
        "max(battery) * 2 > 3 / min(battery)",
    ):
        error = refusal("rides", f"SELECT bike_type FROM rides GROUP BY bike_type HAVING {asked}", is_planned=False)
        assert error is not None
        assert (error.hint or "").endswith("with constants of your own."), error.hint
