"""RANGE frames against PostgreSQL's own, and windows ordered by periods whose first day is not listed."""

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction

import psycopg
import pytest

from planner.catalog.catalog import Value
from planner.values.constant import Constant, Interval, Number
from planner.values.range_frames import CURRENT_ROW, RangeEdge, RangeFrame
from tests.effort import rounds
from tests.planner.asked import asked


@pytest.fixture(scope="module")
def server(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def _draw_values(drawn: random.Random) -> tuple[str, list[Value]]:
    match drawn.randrange(4):
        case 0:
            return "integer", sorted(drawn.sample(range(-20, 40), 9))
        case 1:
            begin = datetime(2024, 2, 27, 22, 30)
            return "timestamp", [begin + timedelta(hours=hour) for hour in sorted(drawn.sample(range(200), 9))]
        case 2:
            days = drawn.sample(range(1, 3_000_000), 3)
            return "date", [date.fromordinal(day) for day in sorted({*days, 1, date.max.toordinal()})]
    days = drawn.sample(range(420), 12)
    return "date", [date(2023, 12, 25) + timedelta(days=day) for day in sorted(days)]


def _draw_edge(drawn: random.Random, kind: str) -> tuple[RangeEdge, str]:
    is_following = drawn.random() < 0.5
    word = "FOLLOWING" if is_following else "PRECEDING"
    distance: Constant
    if kind == "integer":
        steps = drawn.randint(0, 12)
        distance, written = Number(Fraction(steps), is_integral=True), str(steps)
    else:
        months, days, hours = (
            drawn.choice((0, 0, 1, 2, 12)),
            drawn.choice((0, 0, 1, 7, 30)),
            drawn.choice((0, 0, 5, 36)),
        )
        distance = Interval(months, days, hours * 3_600_000_000)
        written = f"interval '{months} months {days} days {hours} hours'"
    return RangeEdge(is_following, distance), f"{written} {word}"


def test_frames_hold_what_postgresql_s_hold(server: psycopg.Connection) -> None:
    """Frames run over numbers, dates at the ends of months and of the calendar, and times, in both directions."""
    drawn = random.Random(20261130)
    held = refused = 0
    for _ in range(rounds(400, quick=60)):
        kind, values = _draw_values(drawn)
        start = drawn.choice([_draw_edge(drawn, kind), (RangeEdge(False, None), "UNBOUNDED PRECEDING")])
        end = drawn.choice(
            [_draw_edge(drawn, kind), (CURRENT_ROW, "CURRENT ROW"), (RangeEdge(True, None), "UNBOUNDED FOLLOWING")]
        )
        if start[0].is_following and not end[0].is_following:
            continue  # which PostgreSQL calls an error
        descending = drawn.random() < 0.4
        sql = (
            f"SELECT array_agg(v) OVER (ORDER BY v {'DESC' * descending} RANGE BETWEEN {start[1]} AND {end[1]}) "
            f"FROM unnest(%s::{kind}[]) AS v ORDER BY v"
        )
        with server.cursor() as cursor:
            expected = [row[0] or [] for row in cursor.execute(sql.encode(), [values]).fetchall()]
        try:
            frame = RangeFrame(values, start[0], end[0], descending=descending)
        except ValueError:
            assert kind == "timestamp"
            refused += 1
            continue
        line = range(len(values))[:: -1 if descending else 1]
        found = [[values[place] for place in line[slice(*frame.find_places(own, line))]] for own in range(len(values))]
        assert found == expected, (sql, values)
        held += sum(map(len, found))
    assert held > 500
    assert refused < 20


@pytest.mark.parametrize(
    "distance", [Interval(1, -1, 0), Number(Fraction(7), is_integral=True), Interval(0, 0, -1)], ids=str
)
def test_other_distances_of_dates_are_no_frames(distance: Constant) -> None:
    """A negative part, and a number of days, which PostgreSQL does not add in a frame."""
    with pytest.raises(ValueError, match="no distance"):
        RangeFrame([date(2024, 1, 1)], RangeEdge(False, distance), CURRENT_ROW, descending=False)


def test_ends_that_fall_while_values_rise_are_no_frames(server: psycopg.Connection) -> None:
    """A month after 30 January 13:00 is later than a month after 31 January. PostgreSQL never moves an end back."""
    values: list[Value] = [datetime(2023, 1, 30, 13), datetime(2023, 1, 31), datetime(2023, 2, 28, 9)]
    month = Interval(1, 0, 0)
    sql = (
        "SELECT count(*) OVER (ORDER BY v RANGE BETWEEN CURRENT ROW AND interval '1 month' FOLLOWING) "
        "FROM unnest(%s::timestamp[]) AS v ORDER BY v"
    )
    found = [count for (count,) in server.execute(sql.encode(), [values]).fetchall()]
    assert found[1] == 2, "the last value is later than a month after 31 January"
    with pytest.raises(ValueError, match="fall"):
        RangeFrame(values, CURRENT_ROW, RangeEdge(True, month), descending=False)


@pytest.mark.parametrize(
    ("key", "frame", "taken"),
    [
        ("date_trunc('quarter', month)", "RANGE BETWEEN interval '3 months' PRECEDING AND CURRENT ROW", (0, 1)),
        ("date_trunc('quarter', month)::date", "RANGE BETWEEN interval '91 days' PRECEDING AND CURRENT ROW", (1,)),
        ("extract(year FROM month)", "RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING", (0,)),
    ],
)
def test_a_period_stands_where_it_begins(key: str, frame: str, taken: tuple[int, ...]) -> None:
    """The first listed month is December, in a quarter that begins in October and is 92 days long."""
    window = f"sum(count(*)) OVER (ORDER BY {key} {frame})"
    sql = f"SELECT k FROM (SELECT {key} AS k, {window} AS n FROM sales GROUP BY 1) q WHERE n > 5000"
    (read,) = asked(sql).functionals[0].cell_reads
    assert read.cells.used_places[1] == taken
