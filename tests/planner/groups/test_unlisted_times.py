"""A key of times that has no list of groups is refused with the reason, and with groups that are planned."""

import re

import pytest

from planner.bind.bind_question import bind_question
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from tests.in_turn import in_turn
from tests.planner.asked import TODAY, asking
from tests.planner.groups.test_truth import CATALOG, WANTED


@in_turn(
    ("key", "reason"),
    [
        ("met::time", "A time of the day has too many values."),
        ("(paid - met::date) / 7", "Nothing public says how far the times lie apart."),
        ("extract(year FROM age(met, paid))", "Nothing public says how far the times lie apart."),
        ("extract(decade FROM met)", "Keyhole makes no groups of decade."),
        ("extract(hour FROM paid)", "paid is a date, which has no hour."),
        ("date_bin('1 month', met, '2026-01-01')", "Nothing public says which values it has."),
        ("paid < current_date", "Its groups would change from day to day."),
        ("extract(year FROM age(paid)) >= 18", "Its groups would change from day to day."),
        ("extract(year FROM age(current_date, paid)) >= 18", "Its groups would change from day to day."),
    ],
)
def test_a_refused_key_of_times_says_why_and_shows_another(key: str, reason: str) -> None:
    with pytest.raises(KeyholeError, match="KH202") as refused:
        asking(f"SELECT {key} FROM lines GROUP BY 1 HAVING count(*) > 5", CATALOG)
    assert refused.value.detail == reason
    shown = re.search(r"GROUP BY (.*)\.$", refused.value.hint or "")
    assert shown is not None
    (question,) = asking(f"SELECT 1 FROM lines GROUP BY {shown[1]} HAVING count(*) > 5", CATALOG).questions
    assert plan_question(
        bind_question(question, CATALOG, accuracy=WANTED, parameters={}, today=TODAY, is_utc=True), dialect=DUCKDB
    )
