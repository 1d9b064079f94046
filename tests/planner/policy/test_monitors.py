"""`[monitors.NAME]` in a policy, and what tables say of how rows arrive: what is read, and what is refused (KH601)."""

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.fault import Fault
from planner.catalog.monitor import MECHANISMS, Alert, Monitor, Windows
from planner.errors import KeyholeError
from planner.policy.durations import find_nearest_divisor, parse_duration, parse_moment, write_duration
from tests.in_turn import in_turn
from tests.worlds.policies import BASE, changed, compiled, parsed

HOUR = timedelta(hours=1)
SQL = "SELECT ward, month FROM visits GROUP BY ward, month HAVING count(*) > 400"
_SLIDING = '{ column = "admitted", length = "24 hours", sliding = true }'
WRITTEN = {
    "sql": f'"{SQL}"',
    "window": '{ column = "admitted", length = "24 hours" }',
    "every": '"1 hour"',
    "from": '"2026-01-01"',
    "until": '"2026-12-31"',
}


def _with(name: str = "filling", /, **keys: str | None) -> str:
    """The base policy with a monitor, some of whose keys are others, or absent."""
    written = {key: value for key, value in {**WRITTEN, **keys}.items() if value is not None}
    section = "\n".join(f"{key} = {value}" for key, value in written.items())
    return f"{BASE}\n[monitors.{name}]\n{section}\n"


def _monitor(**keys: str | None) -> Monitor:
    (made,) = compiled(_with(**keys)).monitors
    return made


def _refused(text: str) -> KeyholeError:
    with pytest.raises(KeyholeError) as caught:
        compiled(text)
    return caught.value


def test_a_monitor_is_read() -> None:
    assert _monitor(comment='"Wards over 400"', tolerance='"5%"', fnr="0.01", alert='"close"') == Monitor(
        name="filling",
        sql=SQL,
        windows=Windows("admitted", length=24 * HOUR),
        every=HOUR,
        lateness=timedelta(0),
        begins=datetime(2026, 1, 1),
        ends=datetime(2027, 1, 1),
        mechanism="alarm",
        fnr=0.01,
        tolerance="5%",
        alert=Alert.CLOSE,
        comment="Wards over 400",
    )


def test_its_readers_are_analysts() -> None:
    assert _monitor(analysts='["dashboard"]').analysts == ("dashboard",)
    assert _monitor().analysts == ()
    error = _refused(_with(analysts='["dashbord"]'))
    assert 'names "dashbord", who is no analyst' in error.message
    assert error.hint == "Did you mean dashboard?"


@pytest.mark.parametrize(
    ("window", "windows"),
    [
        ('"month"', Windows("month")),
        ('{ column = "month" }', Windows("month")),
        ('{ column = "admitted", length = "1 day", hop = "6 hours" }', Windows("admitted", 24 * HOUR, 6 * HOUR)),
        ('{ column = "admitted", length = "1 day", sliding = true }', Windows("admitted", 24 * HOUR, sliding=True)),
    ],
)
def test_windows_are_a_key_or_have_a_length(window: str, windows: Windows) -> None:
    assert _monitor(window=window).windows == windows


@pytest.mark.parametrize(
    ("until", "ends"),
    [
        ('"2026-12-31"', datetime(2027, 1, 1)),
        ("2026-12-31", datetime(2027, 1, 1)),
        ('"2026-12-31 00:00"', datetime(2026, 12, 31)),
        ("2026-12-31T18:00:00Z", datetime(2026, 12, 31, 18)),
        ('"2026-12-31 18:00:00"', datetime(2026, 12, 31, 18)),
        ('"9999-12-31"', datetime(9999, 12, 31)),
    ],
)
def test_a_day_that_the_horizon_ends_with_belongs_to_it(until: str, ends: datetime) -> None:
    assert _monitor(until=until).ends == ends


@in_turn(
    ("text", "seconds"),
    [
        ("1 hour", 3600),
        ("hour", 3600),
        ("90 minutes", 5400),
        ("90min", 5400),
        ("1.5 hours", 5400),
        ("1h 30m", 5400),
        ("1 hour, 30 minutes", 5400),
        ("1 hour and 30 minutes", 5400),
        ("  1 DAY ", 86_400),
        ("7 days", 604_800),
        ("1 week", 604_800),
        ("00:15:00", 900),
        ("24:00", 86_400),
        ("30 s", 30),
        ("0 minutes", 0),
    ],
)
def test_lengths_of_time_are_read_as_people_write_them(text: str, seconds: int) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@in_turn(
    ("raw", "problem"),
    [
        ("1 month", "of unequal length"),
        ("2 quarters", "of unequal length"),
        ("1 year", "of unequal length"),
        ("", "is empty"),
        ("soon", "soon is not a unit of time"),
        ("1 fortnight", "fortnight is not a unit"),
        ("-1 hour", "is not a length of time"),
        ("1", "is not a length of time"),
        ("1 hour -", "is not a length of time"),
        ("0.5 s", "no whole number of seconds"),
        ("10 ms", "ms is not a unit of time"),
        ("200 years ", "of unequal length"),
        ("99999999999999999999999 days", "longer than a century"),
        (3600, "in quotes"),
        (True, "in quotes"),
        ("1:75", "is not a length of time"),
    ],
)
def test_other_lengths_are_refused(raw: object, problem: str) -> None:
    with pytest.raises(Fault, match=problem):
        parse_duration(raw)


@given(st.integers(min_value=0, max_value=3_000_000_000))
def test_a_length_that_is_written_is_read_again(seconds: int) -> None:
    length = timedelta(seconds=seconds)
    assert parse_duration(write_duration(length).replace(",", "")) == length


def test_moments_are_dates_or_utc() -> None:
    assert parse_moment("2026-01-01") == date(2026, 1, 1)
    assert type(parse_moment("2026-01-01")) is date
    assert parse_moment("2026-01-01T06:00+00:00") == datetime(2026, 1, 1, 6)
    with pytest.raises(Fault, match="not in UTC") as caught:
        parse_moment("2026-01-01T06:00+02:00")
    assert caught.value.hint == 'Write it in UTC: "2026-01-01 04:00:00".'
    for raw in ("January", 20260101, True, "2026-02-30"):
        with pytest.raises(Fault, match="neither a date nor a moment"):
            parse_moment(raw)
    with pytest.raises(Fault, match="parts of a second"):
        parse_moment("2026-01-01 00:00:00.5")


@given(st.integers(1, 3 * 10**9), st.integers(0, 3 * 10**9))
def test_the_part_that_a_hint_names_divides(whole: int, part: int) -> None:
    found = find_nearest_divisor(timedelta(seconds=whole), timedelta(seconds=part))
    assert timedelta(0) < found <= timedelta(seconds=whole)
    assert timedelta(seconds=whole) % found == timedelta(0)


REFUSED: list[tuple[dict[str, str | None], str, str]] = [
    ({"every": '"5 hours"'}, "KH601", 'every = "5 hours": does not divide 1 day, after which windows begin'),
    ({"every": '"0 hours"'}, "KH601", "every"),
    ({"every": None}, "KH002", "every: is missing"),
    ({"every": '"1 month"'}, "KH002", "months are of unequal length"),
    ({"window": '{ column = "admitted", length = "1 month" }'}, "KH002", "months are of unequal length"),
    ({"window": '{ column = "admitted", length = "0 s" }'}, "KH601", "must be above zero"),
    ({"window": '{ column = "admitted", length = "1 day", hop = "5 hours" }'}, "KH601", "does not divide the window"),
    ({"window": '{ column = "admitted", length = "1 day", hop = "2 days" }'}, "KH601", "does not divide the window"),
    ({"window": '{ column = "month", hop = "5 hours" }'}, "KH601", "has no meaning without a length"),
    ({"window": '{ column = "month", sliding = true }'}, "KH601", "has no meaning without a length"),
    ({"clears": '"at once"'}, "KH601", "has no meaning in windows that do not slide"),
    ({"clears": '"at once"', "window": _SLIDING, "alert": '"early"'}, "KH002", 'beside clears = "at once"'),
    ({"clears": '"at once"', "window": _SLIDING, "early_any": "true"}, "KH002", 'beside clears = "at once"'),
    ({"clears": '"at once"', "window": _SLIDING, "progressive": "true"}, "KH002", 'beside clears = "at once"'),
    ({"clears": '"at once"', "window": _SLIDING, "mechanism": '"zeros"'}, "KH002", 'beside mechanism = "zeros"'),
    ({"clears": '"sometimes"', "window": _SLIDING}, "KH002", "clears"),
    ({"window": '{ column = "a", length = "1 day", hop = "1 hour", sliding = true }'}, "KH601", "sliding window"),
    ({"window": '{ column = "a", lenght = "1 day" }'}, "KH002", "Did you mean length?"),
    ({"window": "7"}, "KH002", "window"),
    ({"until": '"2025-12-30"'}, "KH601", "is not later than from"),
    ({"until": '"2026-01-01T00:00"'}, "KH601", "is not later than from"),
    ({"until": None}, "KH002", "until: is missing"),
    ({"from": None}, "KH002", "from: is missing"),
    ({"from": '"2026-01-01T00:00+01:00"'}, "KH002", "is not in UTC"),
    ({"mechanism": '"alrm"'}, "KH002", "Write one of alarm, pegasus, "),
    ({"mechanism": '"pegasus"'}, "KH002", "such as epsilon = 0.5"),
    ({"tolerance": '"ten"'}, "KH002", "is not a tolerance"),
    ({"fnr": "0.5"}, "KH002", "fnr"),
    ({"alert": '"soon"'}, "KH002", "alert"),
    ({"alert": '"close"', "early_any": "true"}, "KH002", "has no meaning beside"),
    ({"sql": '""'}, "KH002", "is empty"),
    ({"form": '"2026-01-01"'}, "KH002", "Did you mean from?"),
]


@in_turn(("keys", "code", "message"), REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(keys: dict[str, str | None], code: str, message: str) -> None:
    error = _refused(_with(**keys))
    assert error.code == code
    assert message in f"{error.message} {error.detail} {error.hint}"
    assert error.message.startswith("keyhole.toml, line ")
    assert "monitors.filling" in error.message
    assert error.hint


def test_faults_are_told_together() -> None:
    error = _refused(_with(every='"5 hours"', until='"2025-12-30"', tolerance='"ten"'))
    assert error.message.count("line") == 1
    assert error.detail is not None
    assert error.detail.count("monitors.filling") == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("visits", "has the name of a table"),
        ("diseases", "has the name of a table"),
        ("crowded", "has the name of a stored question"),
        ("keyhole", "is not a name that PostgreSQL clients can use"),
        ("Filling", "is not a name that PostgreSQL clients can use"),
    ],
)
def test_a_monitor_has_a_name_of_its_own(name: str, message: str) -> None:
    assert message in _refused(_with(name)).message


def test_what_is_said_of_arrival_is_the_tables() -> None:
    lines = 'append_only = true\narrived = "admitted"\nrefresh = "live"'
    (table,) = compiled(changed(('refresh = "daily 02:00"', lines))).tables
    assert (table.append_only, table.arrival_column) == (True, "admitted")
    assert table.get_column("admitted").sql_type.value == "timestamp"


def test_arrival_and_monitors_leave_a_catalogs_identity() -> None:
    """What was answered and paid for is there when the owner declares them."""
    arrives = ('refresh = "daily 02:00"', 'refresh = "daily 02:00"\nappend_only = true')
    assert compiled().digest == compiled(changed(arrives)).digest == compiled(_with()).digest


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ('arrived = "ward"', "KH004", 'column "ward" of type character varying(10) tells no time'),
        ('arrived = "admited"', "KH006", "arrived"),
        ('append_only = "yes"', "KH002", "append_only"),
    ],
)
def test_what_tells_no_arrival_is_refused(change: str, code: str, message: str) -> None:
    error = _refused(changed(('refresh = "daily 02:00"', f'refresh = "live"\n{change}')))
    assert error.code == code
    assert message in error.message


def test_public_tables_have_no_arrival() -> None:
    with pytest.raises(KeyholeError, match="has no meaning in a public table"):
        parsed(changed(("public = true", 'public = true\narrived = "name"')))
    with pytest.raises(KeyholeError, match="has no meaning in a public table"):
        parsed(changed(("public = true", "public = true\nappend_only = true")))


def test_a_stream_is_named_with_what_it_may_lose_of_an_event() -> None:
    made = _monitor(mechanism='"pegasus_average"', epsilon="0.5")
    assert (made.mechanism, made.epsilon, made.is_stream) == ("pegasus_average", 0.5, True)
    assert (_monitor().epsilon, _monitor().is_stream) == (None, False)
    assert _monitor(mechanism='"zeros"').epsilon is None


@in_turn(
    ("keys", "at_fault", "problem"),
    [
        ({"mechanism": '"pegasus"'}, "epsilon", 'is missing beside mechanism = "pegasus"'),
        ({"mechanism": '"zeros"', "epsilon": "0.5"}, "epsilon", "has no meaning"),
        ({"epsilon": "0.5"}, "epsilon", 'has no meaning beside mechanism = "alarm"'),
        ({"mechanism": '"pegasus"', "epsilon": "0"}, "epsilon", ""),
        ({"mechanism": '"pegasus"', "epsilon": "1", "fnr": "0.01"}, "fnr", "has no meaning"),
        ({"mechanism": '"pegasus"', "epsilon": "1", "fpr": "0.01"}, "fpr", "has no meaning"),
        ({"mechanism": '"pegasus"', "epsilon": "1", "progressive": "true"}, "progressive", "has no meaning"),
        ({"mechanism": '"pegasus"', "epsilon": "1", "early_any": "true"}, "early_any", "has no meaning"),
        ({"mechanism": '"pegasus"', "epsilon": "1", "alert": '"close"'}, "alert", "has no meaning"),
        (
            {
                "mechanism": '"pegasus"',
                "epsilon": "1",
                "window": '{ column = "admitted", length = "1 day", sliding = true }',
            },
            "window.sliding",
            "has no meaning",
        ),
    ],
)
def test_what_a_stream_has_no_use_for_is_refused(keys: dict[str, str], at_fault: str, problem: str) -> None:
    error = _refused(_with(**keys))
    assert f"monitors.filling.{at_fault}" in error.message
    assert problem in error.message
    assert error.hint


@pytest.mark.parametrize("name", ["pegasos", "hs_pegasus", "three_zone"])
def test_another_mechanism_is_refused_with_the_list_of_those_there_are(name: str) -> None:
    error = _refused(_with(mechanism=f'"{name}"', epsilon="0.5"))
    assert error.code == "KH002"
    assert error.hint == f"Write one of {', '.join(MECHANISMS)}."
