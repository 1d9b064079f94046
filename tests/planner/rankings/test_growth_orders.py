"""Rankings by growth in percent: refused, with what can be asked instead of the same groups."""

import pytest

from planner.errors import KeyholeError
from tests.in_turn import in_turn
from tests.planner.asked import asked

NEIGHBOUR = "lag(count(*)) OVER (ORDER BY month)"


@in_turn(
    "growth",
    [
        f"(count(*) - {NEIGHBOUR})::numeric / {NEIGHBOUR}",
        f"100.0 * (count(*) - {NEIGHBOUR}) / nullif({NEIGHBOUR}, 0)",
        f"round(count(*)::numeric / {NEIGHBOUR} - 1, 3)",
        f"count(*) / {NEIGHBOUR}",
    ],
)
def test_the_hint_shows_an_order_and_a_comparison_that_are_answered(growth: str) -> None:
    with pytest.raises(KeyholeError, match="KH204: groups cannot be ranked by the quotient") as raised:
        asked(f"SELECT month FROM sales GROUP BY month ORDER BY {growth} DESC NULLS LAST LIMIT 5")
    order, _, compared = (raised.value.hint or "").removesuffix(".").partition(". Or compare: ")
    order = order.removeprefix("Rank by the difference: ")
    assert order == f"ORDER BY count(*) - {NEIGHBOUR} DESC NULLS LAST"
    assert asked(f"SELECT month FROM sales GROUP BY month {order} LIMIT 5").ranked is not None
    grown = asked(f"SELECT month FROM (SELECT month, {compared} AS grows FROM sales GROUP BY month) q WHERE grows")
    assert len(grown.functionals) == 2


def test_a_difference_divided_by_a_number_is_ranked() -> None:
    order = f"(count(*) - {NEIGHBOUR}) / 2.0 DESC NULLS LAST"
    assert asked(f"SELECT month FROM sales GROUP BY month ORDER BY {order} LIMIT 5").ranked is not None
