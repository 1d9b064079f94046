"""What a look reads, on rows in DuckDB: each window by itself, and no row before it was seen."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import duckdb
import pytest

from planner.monitors.monitor_looks import make_look
from planner.monitors.monitor_plan import MonitorPlan
from tests.worlds.monitored import BY_WARD, OF_A_DAY, TABLES, at, planned

Row = tuple[str, str, str]  # ward, seen, arrived
ROWS: tuple[Row, ...] = (
    ("A", "2026-01-01 00:30", "2026-01-01 00:30"),
    ("A", "2026-01-01 08:00", "2026-01-01 10:30"),  # late
    ("A", "2026-01-01 23:59", "2026-01-02 00:05"),  # within the lateness
    ("A", "2026-01-02 00:00", "2026-01-02 00:00"),
    ("B", "2026-01-01 12:00", "2026-01-01 12:00"),
    ("B", "2026-01-01 13:00", "2026-01-05 12:00"),  # later than its window's close
    ("B", "2026-01-02 11:00", "2026-01-02 11:00"),
)
LATE = '"10 minutes"'
ARRIVED = TABLES.replace("append_only = true\n", 'append_only = true\narrived = "arrived_at"\n', 1)


@pytest.fixture(scope="module")
def source() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE visits (ward text, seen_at timestamp, reported date, quarter_hour timestamp, "
            "arrived_at timestamp, cost decimal(10, 2), change integer, severity integer)"
        )
        connection.executemany(
            "INSERT INTO visits VALUES (?, ?, ?, NULL, ?, 10, 1, 1)",
            [(ward, seen, seen[:10], arrived) for ward, seen, arrived in ROWS],
        )
        yield connection


def _counts(source: duckdb.DuckDBPyConnection, plan: MonitorPlan, *, window: int, look: int) -> Mapping[str, int]:
    """By ward, what a look sees."""
    made = make_look(plan, window=window, look=look)
    assert made.functionals == 1
    assert made.keys.names == plan.keys.names or made.keys.size == plan.keys.size
    found = source.execute(made.rewritten.sql).fetchall()
    wards = made.keys.values[made.keys.names.index("ward")]
    return {str(row[0]): int(row[-1]) for row in found if row[0] in wards}


BY_KEY: dict[str, str] = {}
BY_LENGTH = {"window": OF_A_DAY}


@pytest.mark.parametrize(("sql", "keys"), [("", BY_KEY), (BY_WARD, BY_LENGTH)])
def test_a_look_sees_its_window_up_to_its_moment(
    source: duckdb.DuckDBPyConnection, sql: str, keys: dict[str, str]
) -> None:
    plan = planned(*([sql] if sql else []), **keys)
    assert _counts(source, plan, window=0, look=1) == {"A": 1}
    assert _counts(source, plan, window=0, look=8) == {"A": 1}, "a row at 08:00 is no row before 08:00"
    assert _counts(source, plan, window=0, look=9) == {"A": 2}
    assert _counts(source, plan, window=0, look=24) == {"A": 3, "B": 2}
    assert _counts(source, plan, window=1, look=1) == {"A": 1}
    assert _counts(source, plan, window=1, look=24) == {"A": 1, "B": 1}
    assert _counts(source, plan, window=2, look=24) == {}


@pytest.mark.parametrize(("sql", "keys"), [("", BY_KEY), (BY_WARD, BY_LENGTH)])
def test_what_arrives_late_counts_from_the_next_look_and_after_the_close_never(
    source: duckdb.DuckDBPyConnection, sql: str, keys: dict[str, str]
) -> None:
    plan = planned(*([sql] if sql else []), lateness=LATE, tables=ARRIVED, **keys)
    assert plan.counts_by_arrival
    assert _counts(source, plan, window=0, look=9) == {"A": 1}
    assert _counts(source, plan, window=0, look=10) == {"A": 1}, "arrived at 10:30, after the look for 10:00 at 10:10"
    assert _counts(source, plan, window=0, look=11) == {"A": 2}
    assert _counts(source, plan, window=0, look=24) == {"A": 3, "B": 1}, "arrived within the lateness of the close"


def test_windows_that_hop_count_a_row_in_each(source: duckdb.DuckDBPyConnection) -> None:
    plan = planned(BY_WARD, window='{ column = "seen_at", length = "24 hours", hop = "12 hours" }')
    assert _counts(source, plan, window=0, look=12) == {"A": 3, "B": 2}
    assert _counts(source, plan, window=1, look=1) == {"A": 2, "B": 2}, "from 12:00 to 01:00"
    assert _counts(source, plan, window=1, look=12) == {"A": 2, "B": 3}
    assert _counts(source, plan, window=2, look=12) == {"A": 1, "B": 1}


def test_a_sliding_window_is_as_long_as_it_is_at_every_look(source: duckdb.DuckDBPyConnection) -> None:
    plan = planned(BY_WARD, window='{ column = "seen_at", length = "12 hours", sliding = true }')
    assert plan.windows.looks == 12
    assert _counts(source, plan, window=0, look=1) == {"A": 1}
    assert _counts(source, plan, window=1, look=1) == {"A": 1, "B": 1}, "from 01:00 to 13:00"
    assert _counts(source, plan, window=1, look=2) == {"A": 1, "B": 2}
    assert _counts(source, plan, window=1, look=9) == {"B": 2}, "the row at 08:00 has left"
    assert _counts(source, plan, window=2, look=1) == {"A": 2, "B": 1}, "from 13:00 to 01:00"


def test_days_that_are_stored_are_seen_while_they_last(source: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT ward, reported FROM visits GROUP BY ward, reported HAVING count(*) > 400"
    plan = planned(sql, window='"reported"')
    assert _counts(source, plan, window=0, look=1) == {"A": 3, "B": 2}
    assert _counts(source, plan, window=1, look=24) == {"A": 1, "B": 1}


def test_of_one_unit_the_same_groups_count_whatever_comes_later() -> None:
    """A patient counts in two of the groups and windows; a third one, on a later day, takes neither's place."""
    tables = TABLES.replace("max_groups_per_unit = 20", "max_groups_per_unit = 2")
    plan = planned("SELECT ward, day FROM stays GROUP BY ward, day HAVING count(*) > 400", tables=tables)
    stays = [
        (1, "B", "2026-01-01 01:00"),
        (1, "A", "2026-01-01 02:00"),
        (1, "C", "2026-01-02 00:30"),
        (2, "C", "2026-01-02 00:30"),
    ]
    seen = []
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE stays "
            "(patient_id bigint, ward text, admitted timestamp, recorded_at timestamp, cost decimal(10, 2))"
        )
        for patient, ward, recorded in stays:
            connection.execute("INSERT INTO stays VALUES (?, ?, ?, ?, 10)", [patient, ward, recorded, recorded])
            made = [make_look(plan, window=window, look=24) for window in (0, 1)]
            seen.append(
                [sorted((r[0], r[-1]) for r in connection.execute(one.rewritten.sql).fetchall()) for one in made]
            )
    assert seen[0] == [[("B", 1)], []]
    assert seen[1] == [[("A", 1), ("B", 1)], []]
    assert seen[2] == seen[1]
    assert seen[3] == [[("A", 1), ("B", 1)], [("C", 1)]]


def test_units_are_bounded_over_windows_that_hop() -> None:
    """A stay is in two windows of a day that begin every twelve hours; of three groups and windows two count."""
    tables = TABLES.replace("max_groups_per_unit = 20", "max_groups_per_unit = 2")
    window = '{ column = "recorded_at", length = "24 hours", hop = "12 hours" }'
    plan = planned("SELECT ward FROM stays GROUP BY ward HAVING count(*) > 400", tables=tables, window=window)
    assert plan.epsilon_per_unit == pytest.approx(2 * plan.standing.worst_case_epsilon)
    assert plan.epsilon_per_cell == plan.epsilon_per_unit, "its two windows are those of one stay"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE stays "
            "(patient_id bigint, ward text, admitted timestamp, recorded_at timestamp, cost decimal(10, 2))"
        )
        for recorded in ("2026-01-01 15:00", "2026-01-02 15:00"):
            connection.execute("INSERT INTO stays VALUES (1, 'A', ?, ?, 10)", [recorded, recorded])
        seen = []
        for window_number in range(4):
            found = connection.execute(make_look(plan, window=window_number, look=12).rewritten.sql).fetchall()
            seen.append([row[-1] for row in found if row[0] == "A"])
    assert seen == [[1], [1], [], []], "from 00:00, 12:00 of the first day; what follows would be a third and a fourth"


def test_a_threshold_of_each_window_is_its_own() -> None:
    """What is taken off is the window's, where thresholds differ from day to day."""
    sql = (
        "SELECT v.ward, v.day FROM visits v JOIN calendar c ON v.day = c.day "
        "GROUP BY v.ward, v.day, c.target HAVING count(*) > c.target"
    )
    plan = planned(sql)
    assert len(plan.windows.starts) == 5
    assert [_taken_off(plan, window=window) for window in range(5)] == [0, 100, 200, 300, 400]
    later = planned(sql, **{"from": '"2026-01-03"'})
    assert [_taken_off(later, window=window) for window in range(3)] == [200, 300, 400]


def _taken_off(plan: MonitorPlan, *, window: int) -> int:
    (functional,) = make_look(plan, window=window, look=1).question.functionals
    assert functional.offsets is not None
    (steps,) = functional.offsets.steps
    return steps


def test_moments_of_looks_are_those_of_the_plan() -> None:
    plan = planned()
    for window, look in ((0, 1), (3, 24)):
        made = make_look(plan, window=window, look=look).question
        assert made.as_of is not None
        expected: datetime = at("2026-01-01") + timedelta(days=window, hours=look)
        assert made.as_of.before == expected
