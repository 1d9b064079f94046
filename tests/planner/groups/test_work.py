"""Computed keys that are dear to read are refused before anybody has waited for them."""

from dataclasses import replace

import pytest

from planner.bind.bind_question import bind_question
from planner.errors import KeyholeError
from planner.statements.settings import read_accuracy
from tests.planner.asked import TODAY, asking
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


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM lines GROUP BY price > {} HAVING count(*) > 3",
        "SELECT 1 FROM lines GROUP BY floor(n * {}) HAVING count(*) > 3",
        "SELECT city, count(*) FROM lines GROUP BY city HAVING count(*) > {}",
    ],
)
@pytest.mark.parametrize("constant", ["1e200000000", "1e-200000000"])
def test_a_constant_of_many_digits_is_never_written_out(text: str, constant: str) -> None:
    """Python would compute it for minutes, and no other session of the process could do anything meanwhile."""
    catalog = replace(CATALOG, defaults=replace(CATALOG.defaults, numbers="threshold"))
    with pytest.raises(KeyholeError) as refused:
        bind_question(
            asking(text.format(constant), catalog).questions[0],
            catalog,
            accuracy=read_accuracy({"keyhole.tolerance": "1"}, CATALOG.defaults),
            parameters={},
            today=TODAY,
        )
    assert refused.value.code == "KH212"
