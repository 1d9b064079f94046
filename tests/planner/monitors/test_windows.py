"""Windows, looks and horizons: which there are, and what does not fit together (KH601)."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import KeyholeError
from tests.in_turn import in_turn
from tests.worlds.monitored import BY_WARD, OF_A_DAY, SQL, TABLES, at, planned

BY_REPORT = "SELECT ward, reported FROM visits GROUP BY ward, reported HAVING count(*) > 400"


def _refused(sql: str = SQL, *, tables: str = TABLES, **keys: str) -> KeyholeError:
    with pytest.raises(KeyholeError) as caught:
        planned(sql, tables=tables, **keys)
    assert caught.value.hint
    assert "[monitors.crowded]" in caught.value.message or "monitors.crowded." in caught.value.message
    return caught.value


def test_a_day_has_24_looks_of_which_the_last_is_its_close() -> None:
    windows = planned(lateness='"10 minutes"').windows
    assert (windows.looks, windows.every, windows.lateness) == (24, timedelta(hours=1), timedelta(minutes=10))
    assert windows.starts[:2] == (at("2026-01-01"), at("2026-01-02"))
    assert windows.first_looks[:2] == (at("2026-01-01 01:00"), at("2026-01-02 01:00"))
    assert windows.find_close(0) == at("2026-01-02")
    assert (len(windows.starts), windows.starts[-1]) == (365, at("2026-12-31"))


@pytest.mark.parametrize(
    ("until", "last"),
    [
        ('"2026-02-03"', "2026-02-03"),
        ('"2026-02-03 00:00"', "2026-02-02"),
        ('"2026-02-03 00:00:01"', "2026-02-03"),
        ('"2026-02-03 12:00"', "2026-02-03"),
    ],
)
def test_windows_that_begin_before_until_are_watched_to_their_end(until: str, last: str) -> None:
    assert planned(until=until).windows.starts[-1] == at(last)
    assert planned(BY_WARD, window=OF_A_DAY, until=until).windows.starts[-1] == at(last)


def test_the_first_window_is_the_first_that_begins_in_the_horizon() -> None:
    assert planned(**{"from": '"2026-03-05 06:00"'}).windows.starts[0] == at("2026-03-06")
    assert planned(BY_WARD, window=OF_A_DAY, **{"from": '"2026-03-05 06:00"'}).windows.starts[0] == at(
        "2026-03-05 06:00"
    )


def test_where_may_leave_windows_out() -> None:
    sql = SQL.replace("GROUP BY", "WHERE day IN ('2026-02-01', '2026-02-03', '2027-05-05') GROUP BY")
    assert planned(sql).windows.starts == (at("2026-02-01"), at("2026-02-03"))


def test_a_window_that_hops_is_looked_at_in_its_last_hop() -> None:
    windows = planned(BY_WARD, window='{ column = "seen_at", length = "24 hours", hop = "6 hours" }').windows
    assert windows.looks == 6
    assert windows.starts[:2] == (at("2026-01-01"), at("2026-01-01 06:00"))
    assert windows.first_looks[:2] == (at("2026-01-01 19:00"), at("2026-01-02 01:00"))
    assert windows.find_close(0) == at("2026-01-02")
    assert windows.find_close(0) < windows.first_looks[1]


@settings(max_examples=15)
@given(st.sampled_from([1, 2, 3, 6]), st.integers(1, 4), st.sampled_from([15, 20, 30, 60]))
def test_windows_are_looked_at_one_after_the_other(hop: int, hops: int, every: int) -> None:
    window = f'{{ column = "seen_at", length = "{hop * hops} hours", hop = "{hop} hours" }}'
    windows = planned(BY_WARD, window=window, every=f'"{every} minutes"', until='"2026-01-02"').windows
    moments = [first + look * windows.every for first in windows.first_looks for look in range(windows.looks)]
    assert moments == sorted(set(moments))
    assert windows.looks * windows.every == timedelta(hours=hop)
    assert all(windows.find_close(place) == start + windows.length for place, start in enumerate(windows.starts))


def test_stored_days_and_quarter_hours_are_windows() -> None:
    by_report = planned(BY_REPORT, window='"reported"')
    assert (by_report.time_column, by_report.windows.looks) == ("reported", 24)
    sql = "SELECT ward, quarter_hour FROM visits GROUP BY 1, 2 HAVING count(*) > 400"
    plan = planned(sql, window='"quarter_hour"', every='"5 minutes"', until='"2026-01-03"')
    assert (plan.windows.length, plan.windows.looks, len(plan.windows.starts)) == (timedelta(minutes=15), 3, 3 * 96)


def test_stored_times_that_lie_further_apart_last_until_the_next() -> None:
    weekly = TABLES.replace(
        '[tables.visits.columns.reported]\nkey = { range = ["2026-01-01", "2026-12-31"] }',
        '[tables.visits.columns.reported]\nkey = { range = ["2026-01-05", "2026-12-28"], step = "1 week" }',
    )
    plan = planned(BY_REPORT, window='"reported"', every='"1 day"', tables=weekly, **{"from": '"2026-01-05"'})
    assert (plan.windows.length, plan.windows.looks) == (timedelta(days=7), 7)


MISFITS: list[tuple[str, dict[str, str], str, str]] = [
    (SQL, {"every": '"5 hours"'}, "every = 5 hours does not divide the 1 day", 'every = "4 hours"'),
    (SQL, {"every": '"2 days"'}, "every = 2 days does not divide", 'every = "1 day"'),
    (BY_WARD, {}, "sql does not group by day", "Add day to SELECT and GROUP BY"),
    (SQL, {"window": '"month"'}, "sql does not group by month", "Add month"),
    (SQL, {"window": '"dya"'}, 'exposes no column "dya"', "seen_at"),
    (SQL, {"window": '"ward"'}, "has no range of times", "key = { range"),
    (SQL, {"window": OF_A_DAY}, "sql groups by day, which is made of the windows' column seen_at", 'window = "day"'),
    (
        BY_WARD,
        {"window": '{ column = "cost", length = "1 day" }'},
        "is no stored date or timestamp",
        "date or timestamp",
    ),
    (BY_WARD, {"window": '{ column = "day", length = "1 day" }'}, "is no stored date or timestamp", "of the source"),
    (BY_WARD, {"window": '{ column = "reported", length = "1 day" }'}, "has only days", "timestamp column"),
    (
        BY_WARD,
        {"window": '{ column = "seen_at", length = "3 days" }', "until": '"2026-01-02"'},
        "longer than the time",
        "",
    ),
    (SQL, {"from": '"2025-12-01"'}, "reaches beyond the values of day", "longer range of day"),
    (SQL, {"until": '"2027-01-02"'}, "reaches beyond the values of day", "2026-12-31"),
    (SQL, {"from": '"2026-12-31 06:00"'}, "no window begins between from and until", "earlier from"),
    (
        "SELECT ward, month FROM visits GROUP BY ward, month HAVING count(*) > 400",
        {"window": '"month"', "every": '"1 day"'},
        "no windows of equal length",
        'length = "28 days"',
    ),
    (
        BY_WARD,
        {"window": '{ column = "seen_at", length = "365 days" }', "every": '"5 minutes"'},
        "a window has 105,120 looks, more than 100,000",
        'every = "10 minutes"',
    ),
    (
        BY_WARD,
        {"window": '{ column = "seen_at", length = "1 minute" }', "every": '"1 minute"', "until": '"2029-12-31"'},
        "windows, more than 1,000,000",
        "longer windows",
    ),
    (
        BY_WARD,
        {"window": OF_A_DAY, "until": '"9999-12-31"'},
        "windows, more than",
        "",
    ),
]


@in_turn(("sql", "keys", "message", "hint"), MISFITS)
def test_what_does_not_fit_together_is_refused(sql: str, keys: dict[str, str], message: str, hint: str) -> None:
    error = _refused(sql, **keys)
    assert error.code == "KH601"
    assert message in error.message
    assert hint in (error.hint or "")


def test_windows_at_the_ends_of_the_calendar_are_refused() -> None:
    late = {"from": '"9999-12-30"', "until": '"9999-12-31 23:00"', "window": OF_A_DAY}
    assert "before the year 1" in _refused(BY_WARD, **late).message
    early = {"from": '"0001-01-01"', "until": '"0001-01-05"'}
    sliding = '{ column = "seen_at", length = "1 day", sliding = true }'
    assert "before the year 1" in _refused(BY_WARD, window=sliding, **early).message


def _with_many_wards(count: int) -> str:
    listed = ", ".join(f'"w{number}"' for number in range(count))
    return TABLES.replace('key = { values = ["A", "B", "C"] }', f"key = {{ values = [{listed}] }}", 1)


def test_more_groups_and_windows_than_the_ledger_charges_are_refused() -> None:
    error = _refused(BY_WARD, tables=_with_many_wards(5000), window=OF_A_DAY, until='"2036-01-01"')
    assert error.code == "KH601"
    assert "5,000 groups times 3,653 windows are more than 16,777,216" in error.message
    hinted = (error.hint or "").split('"')[1]
    plan = planned(BY_WARD, tables=_with_many_wards(5000), window=OF_A_DAY, until=f'"{hinted}"')
    assert plan.question.keys.size <= 2**24


def test_more_open_windows_than_are_kept_are_refused() -> None:
    error = _refused(BY_WARD, tables=_with_many_wards(5000), window=OF_A_DAY, lateness='"250 days"')
    assert error.code == "KH601"
    assert "5,000 groups with 251 windows open at once" in error.message
