"""Calendars joined from the left: what is refused says what to type instead, which is then answered."""

from datetime import date

import pytest

from planner.bind.bind_question import bind_question
from planner.errors import KeyholeError
from planner.functionals.cell_readings import GROUPS_COUNTED
from planner.statements.settings import read_accuracy
from tests.planner.asked import TODAY, asked, asking
from tests.worlds.retail import retail

_MONTHS = "generate_series(DATE '2010-12-01', DATE '2011-12-01', interval '1 month') AS c(month)"
_GROUPED = "(SELECT month, count(*) AS n FROM sales GROUP BY month)"
_JOINED = f"SELECT c.month FROM {_MONTHS} LEFT JOIN sales s ON s.month = c.month"


@pytest.mark.parametrize(
    ("refused", "hint", "instead"),
    [
        (
            f"{_JOINED} GROUP BY c.month HAVING count(*) < 1",
            "Write count(s.month), which is 0 there.",
            f"{_JOINED} GROUP BY c.month HAVING count(s.month) < 1",
        ),
        (
            f"SELECT month FROM (SELECT c.month, p.n, avg(p.n) OVER () AS b FROM {_MONTHS} LEFT JOIN {_GROUPED} p "
            "ON p.month = c.month) q WHERE n > b",
            "Write coalesce(p.n, 0), also within the window.",
            "SELECT month FROM (SELECT c.month, coalesce(p.n, 0) AS n, avg(coalesce(p.n, 0)) OVER () AS b FROM "
            f"{_MONTHS} LEFT JOIN {_GROUPED} p ON p.month = c.month) q WHERE n > b",
        ),
        (
            f"{_JOINED} GROUP BY c.month HAVING sum(coalesce(s.quantity, 1)) > 5000",
            "Write coalesce around the aggregate, as coalesce(sum(x), 0), with columns of the table alone in it.",
            f"{_JOINED} GROUP BY c.month HAVING coalesce(sum(s.quantity), 0) > 5000",
        ),
        (
            f"{_JOINED.replace('2011-12', '2012-12')} GROUP BY c.month HAVING count(s.gift) < 400",
            "Write generate_series from DATE '2010-12-01' to DATE '2011-12-01', in the step of the key; or ask the "
            "owner to list more of them.",
            f"{_JOINED} GROUP BY c.month HAVING count(s.gift) < 400",
        ),
        (
            f"{_JOINED} GROUP BY c.month, s.country HAVING count(s.gift) < 400",
            "CROSS JOIN a list of the values of s.country with the calendar, and compare both in ON.",
            f"SELECT c.month, r.name FROM {_MONTHS} CROSS JOIN regions r LEFT JOIN sales s ON s.month = c.month "
            "AND s.country = r.name GROUP BY c.month, r.name HAVING count(s.gift) < 400",
        ),
        (
            f"{_JOINED.replace('SELECT', 'SELECT s.country,')} GROUP BY 1, 2 HAVING count(s.gift) < 400",
            "CROSS JOIN a list of the values of s.country with the calendar, and compare both in ON.",
            f"{_JOINED} AND s.country = 'France' GROUP BY 1 HAVING count(s.gift) < 400",
        ),
        (
            f"{_JOINED.replace('SELECT', 'SELECT s.country AS p,')} GROUP BY p, c.month HAVING count(s.gift) < 40",
            "CROSS JOIN a list of the values of s.country with the calendar, and compare both in ON.",
            f"{_JOINED} AND s.country = 'France' GROUP BY c.month HAVING count(s.gift) < 40",
        ),
        (
            f"{_JOINED} AND s.country IN (SELECT name FROM regions) GROUP BY c.month HAVING count(s.gift) < 400",
            "Write the values of the subquery as a list.",
            f"{_JOINED} AND s.country IN ('France', 'Germany') GROUP BY c.month HAVING count(s.gift) < 400",
        ),
        (
            f"{_JOINED} WHERE s.gift IS NULL GROUP BY c.month HAVING count(s.amount) < 400",
            "Write it as a FILTER: count(s.month) FILTER (WHERE s.gift IS NULL).",
            f"{_JOINED} GROUP BY c.month HAVING count(s.month) FILTER (WHERE s.gift IS NULL) < 400",
        ),
        (
            f"{_JOINED.replace('s.month =', 's.stock_code =')} GROUP BY c.month HAVING count(s.gift) < 400",
            "Write LEFT JOIN ... ON key = c.month, of a key that the policy lists.",
            f"{_JOINED} GROUP BY c.month HAVING count(s.gift) < 400",
        ),
        (
            f"{_JOINED.replace('DATE', 'current_date -', 1)} GROUP BY c.month HAVING count(s.gift) < 400",
            "Write generate_series(DATE '2025-01-01', DATE '2025-12-01', interval '1 month'): constants, forward, in "
            "days or months. Or leave the calendar out: each listed group counts, with rows or without.",
            "SELECT month FROM sales s GROUP BY month HAVING count(gift) < 400",
        ),
        (
            "SELECT y.y, m.m FROM generate_series(2010, 2011) AS y(y) CROSS JOIN generate_series(1, 12) AS m(m) "
            "LEFT JOIN sales s ON extract(year FROM s.month) = y.y AND extract(month FROM s.month) = m.m "
            "GROUP BY y.y, m.m HAVING count(s.gift) < 400",
            "List the times in one generate_series, and compare it with one key.",
            f"{_JOINED} GROUP BY c.month HAVING count(s.gift) < 400",
        ),
        (
            f"{_JOINED} WHERE c.month < current_date GROUP BY c.month HAVING count(s.gift) < 400",
            "Compare the calendar's column with constants, or write other ends of generate_series.",
            f"{_JOINED} WHERE c.month < '2011-06-15' GROUP BY c.month HAVING count(s.gift) < 400",
        ),
    ],
)
def test_a_refused_calendar_says_what_to_type(refused: str, hint: str, instead: str) -> None:
    with pytest.raises(KeyholeError) as error:
        asked(refused)
    assert (error.value.code, error.value.hint) == ("KH107", hint)
    assert error.value.position is not None
    assert asked(instead).keys.size


def test_using_compares_the_calendar_with_the_key() -> None:
    grouped = "GROUP BY month HAVING count(s.gift) < 400 ORDER BY month"
    using = asked(f"SELECT month FROM {_MONTHS} LEFT JOIN sales s USING (month) WHERE month < '2011-06-01' {grouped}")
    written = asked(f"{_JOINED} WHERE c.month < '2011-06-01' {grouped.replace('BY month', 'BY c.month')}")
    assert using.keys.size == 6
    assert (using.keys, using.formula, using.functionals) == (written.keys, written.formula, written.functionals)


def test_a_count_of_a_hidden_column_names_another() -> None:
    """Most people count the primary key, which many policies do not expose."""
    with pytest.raises(KeyholeError, match="sale_id") as error:
        asked(f"{_JOINED} GROUP BY c.month HAVING count(s.sale_id) < 400")
    assert (error.value.code, error.value.hint) == (
        "KH201",
        "Write count(s.month), which counts the rows that the calendar finds.",
    )


def test_a_window_in_the_order_of_two_keys_names_its_parts() -> None:
    windows = "SELECT country, month, count(*) AS n, lag(count(*)) OVER ({}) AS b FROM sales GROUP BY 1, 2"
    compared = f"SELECT country, month FROM ({windows}) q WHERE n > b"
    with pytest.raises(KeyholeError) as error:
        asked(compared.format("ORDER BY month, country"))
    assert error.value.hint is not None
    assert "PARTITION BY country ORDER BY month" in error.value.hint
    assert asked(compared.format("PARTITION BY country ORDER BY month")).keys.size


def test_a_calendar_is_no_reason_to_say_that_postgresql_leaves_out_groups() -> None:
    compared = "SELECT month FROM ({groups}) q WHERE n > b"
    windows = "count(s.gift) AS n, lag(count(s.gift)) OVER (ORDER BY {month}) AS b"
    listed = f"SELECT s.month, {windows.format(month='s.month')} FROM sales s GROUP BY s.month"
    told = asked(compared.format(groups=listed)).warnings
    joined = f"{_JOINED} GROUP BY c.month".replace("c.month FROM", f"c.month, {windows.format(month='c.month')} FROM")
    spared = asked(compared.format(groups=joined)).warnings
    assert [one for one in told if "where PostgreSQL leaves it out" in one]
    assert not [one for one in spared if "where PostgreSQL leaves it out" in one]


@pytest.mark.parametrize(
    ("series", "size"),
    [
        ("generate_series('2011-01-01'::timestamp, '2011-12-31', '1 month') AS c(month)", 12),
        ("generate_series(date_trunc('month', DATE '2011-01-20'), '2011-12-01', '1 month') AS c(month)", 12),
        ("generate_series(DATE '2010-12-01' + interval '1 month', DATE '2011-12-01', '3 months') AS c(month)", 4),
        ("(SELECT generate_series(DATE '2011-01-01', '2011-03-01', '1 month')::date) AS c(month)", 3),
        ("(SELECT d::date AS month FROM generate_series(DATE '2011-01-01', '2011-03-01', '1 month') d) c", 3),
        ("(SELECT DISTINCT date_trunc('month', d) FROM generate_series(DATE '2011-01-01', '2011-03-09', '1 day') d) "
         "c(month)", 3),
        ("(SELECT date_trunc('month', d) FROM generate_series(DATE '2011-01-01', '2011-03-09', '1 day') d) "
         "c(month)", 0),
        ("generate_series(DATE '2011-03-01', '2011-01-01', interval '-1 month') AS c(month)", 0),
        ("generate_series(DATE '2011-01-31', '2011-03-31', interval '1 month') AS c(month)", 0),
        ("generate_series(TIMESTAMPTZ '2011-01-01', '2011-03-01', interval '1 month') AS c(month)", 0),
        ("generate_series('2011-01-01 00:00+01', '2011-03-01', interval '1 month') AS c(month)", 0),
        ("generate_series(DATE '2011-01-01', '2011-03-01', interval '0 days') AS c(month)", 0),
        ("generate_series(DATE '0001-01-01', '9999-12-31', interval '1 day') AS c(month)", 0),
    ],
)  # fmt: skip
def test_a_series_has_the_values_that_postgresql_gives_it(series: str, size: int) -> None:
    """A series that lists a value twice, runs backward, ends never or depends on the time zone is refused."""
    sql = f"SELECT c.month FROM {series} LEFT JOIN sales s ON s.month = c.month GROUP BY c.month HAVING count(gift) < 4"
    if size:
        assert asked(sql).keys.size == size
        return
    with pytest.raises(KeyholeError, match="KH107"):
        asked(sql)


@pytest.mark.parametrize(
    ("asks", "is_told"),
    [
        (
            "SELECT month FROM (SELECT c.month, {n} AS n, avg({n}) OVER () AS b {joined} GROUP BY 1) q WHERE n > b",
            False,
        ),
        (
            "SELECT month FROM (SELECT c.month, {n} AS n, avg({n}) OVER () AS b {joined} WHERE s.gift GROUP BY 1) q "
            "WHERE n > b",
            True,
        ),
        ("SELECT c.month {joined} GROUP BY c.month HAVING {n} > (SELECT avg(n) FROM {grouped} q)", True),
    ],
)
def test_a_notice_tells_where_postgresql_has_fewer_groups(asks: str, is_told: bool) -> None:
    """WHERE leaves out the rows of empty values, and a query of its own has none."""
    joined = _JOINED.removeprefix("SELECT c.month ")
    question = asked(asks.format(n="count(s.gift)", joined=joined, grouped=_GROUPED))
    assert (GROUPS_COUNTED in question.warnings) == is_told


@pytest.mark.parametrize(
    ("skipped", "series", "told"),
    [
        (date(2011, 3, 1), _MONTHS, True),
        (date(2011, 3, 2), _MONTHS, False),
        (date(2011, 3, 1), _MONTHS.replace("DATE", "timestamp"), False),
        (date(2011, 3, 1), _MONTHS.replace("DATE", "date_trunc('month', DATE").replace("01',", "01'),"), True),
    ],
)
def test_a_calendar_tells_where_clocks_skip_midnight(skipped: date, series: str, told: bool) -> None:
    """PostgreSQL's series then goes on beside midnight. `tests/proxy/shadow/test_midnights.py` asks PostgreSQL."""
    calendar = f"SELECT c.month FROM {series} LEFT JOIN sales s ON s.month = c.month GROUP BY 1"
    told_of = list_warnings(f"{calendar} HAVING count(s.month) < 400", skipped)
    assert any("no midnight on 2011-03-01" in one for one in told_of) is told


def test_questions_without_a_calendar_tell_of_no_midnight() -> None:
    told = list_warnings("SELECT month FROM sales GROUP BY month HAVING count(*) < 9", date(2011, 3, 1))
    assert not any("midnight" in one for one in told)


def list_warnings(sql: str, skipped: date) -> tuple[str, ...]:
    """The warnings of a question in a session whose clocks skip the midnight of a day."""
    (embedded,) = asking(sql, retail()).questions
    accuracy = read_accuracy({}, retail().defaults)
    made = bind_question(
        embedded, retail(), accuracy=accuracy, parameters={}, today=TODAY, skipped_midnights=(skipped,)
    )
    return made.warnings
