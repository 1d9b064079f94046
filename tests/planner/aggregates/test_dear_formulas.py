"""Formulas and select lists that are dear to read are refused, or read, before anybody has waited for them."""

import pytest

from planner.errors import KeyholeError
from tests.effort import rounds
from tests.planner.asked import asked, asking
from tests.worlds.retail import retail

_COUNTED = "count(*) FILTER (WHERE age > {}) > {}"


def _nested(operator: str, levels: int) -> str:
    made = "sum(age) > 1"
    for level in range(levels):
        made = f"({made}) {operator} ({_COUNTED.format(level, level)})"
    return made


@pytest.mark.parametrize("operator", ["=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
def test_predicates_compared_level_by_level_are_not_written_out(operator: str) -> None:
    """Each level reads both sides true and false, so forty would take Python longer than anybody lives."""
    with pytest.raises(KeyholeError) as refused:
        asked(f"SELECT ward FROM visits GROUP BY ward HAVING {_nested(operator, 40)}", tolerance="1")
    assert refused.value.code == "KH211"


def test_unknown_of_unknown_is_not_read_again_and_again() -> None:
    made = "sum(age) > 1"
    for _ in range(30):
        made = f"({made}) IS UNKNOWN"
    with pytest.raises(KeyholeError, match="KH211"):
        asked(f"SELECT ward FROM visits GROUP BY ward HAVING {made}", tolerance="1")


def test_a_few_levels_are_answered() -> None:
    counted = f"(({_COUNTED.format(1, 2)}) = ({_COUNTED.format(2, 3)})) <> ({_COUNTED.format(3, 4)})"
    assert len(asked(f"SELECT ward FROM visits GROUP BY ward HAVING {counted}", tolerance="1").functionals) == 3


def test_a_sum_of_very_many_cases_is_refused() -> None:
    """Each has the conditions of all before it: three thousand take a quarter of a minute."""
    cases = " ".join(f"WHEN age = {number} THEN 0" for number in range(3000))
    with pytest.raises(KeyholeError) as refused:
        asked(f"SELECT ward FROM visits GROUP BY ward HAVING sum(CASE {cases} ELSE age END) > 50", tolerance="1")
    assert refused.value.code == "KH204"


def test_very_many_windows_are_found_in_one_pass() -> None:
    """At one pass for each window a thousand take a quarter of a minute. At quick they are 300."""
    windows = rounds(1000, quick=300)
    items = ", ".join(f"lag(count(*) > {number}) OVER (ORDER BY ward)" for number in range(windows))
    (question,) = asking(f"SELECT ward, {items} FROM visits GROUP BY ward", retail()).questions
    assert len(question.predicates) == windows
