"""Computed keys that are dear to read are refused before anybody has waited for them."""

import pytest

from planner.errors import KeyholeError
from tests.planner.asked import asking
from tests.planner.groups.test_truth import CATALOG

LINES_OF = "greatest({}) + greatest({})".format(
    ", ".join(f"price * {2 * i + 1}.5 - {i * i}" for i in range(60)),
    ", ".join(f"price * {3 * i + 1}.25 + {7 * i * i}" for i in range(60)),
)
MIRRORED = "price"
for depth in range(14):
    MIRRORED = f"abs({MIRRORED} - {3**depth}.1)"
DEAR = {
    "pairs of lines": f"{LINES_OF} > 5",
    "compared lines": f"{LINES_OF.replace(') + g', ') > g')}",
    "lines that double with each level": f"{MIRRORED} > 3",
    "steps of several expressions": ", ".join(f"floor(price * {i + 1}.7)" for i in range(100)),
    "values of several expressions": ", ".join(f"floor(n * {i + 1} / 7.0)" for i in range(100)),
}


@pytest.mark.parametrize("keys", DEAR.values(), ids=DEAR)
def test_a_key_that_is_dear_to_read_is_refused(keys: str) -> None:
    """Without bounds on lines, cuts and values each of these takes from seconds to minutes."""
    with pytest.raises(KeyholeError) as refused:
        asking(f"SELECT 1 FROM lines GROUP BY {keys} HAVING count(*) > 3", CATALOG)
    assert refused.value.code == "KH202"
