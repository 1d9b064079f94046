"""Days without a midnight in a TimeZone, as PostgreSQL has them, and what its calendars do from there."""

from datetime import date

import psycopg

from proxy.shadow.findings import find_skipped_midnights

ZONES = (
    "America/Sao_Paulo",
    "America/Santiago",
    "Asia/Beirut",
    "Africa/Cairo",
    "America/Havana",
    "Europe/Berlin",
    "UTC",
)
_SKIPPED = """
    SELECT d::date FROM generate_series(timestamp '1990-01-01', '2025-12-31', '1 day') AS d
    WHERE d AT TIME ZONE %(zone)s AT TIME ZONE %(zone)s <> d ORDER BY 1"""
_SERIES = "SELECT d::text FROM generate_series(DATE '2018-11-03', '2018-11-06', interval '1 day') AS d"


def test_skipped_midnights_are_those_of_postgresql(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        for zone in ZONES:
            skipped = [day for (day,) in connection.execute(_SKIPPED, {"zone": zone})]
            known = [one for one in find_skipped_midnights(zone.encode()) if date(1990, 1, 1) <= one < date(2026, 1, 1)]
            assert known == skipped, zone
            assert bool(skipped) is (zone not in ("Europe/Berlin", "UTC"))


def test_a_calendar_of_postgresql_goes_on_beside_midnight(postgres_url: str) -> None:
    """From the day without a midnight its series are at 01:00, and lose the last day. Keyhole has all four days."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET TimeZone TO 'America/Sao_Paulo'")
        assert [text for (text,) in connection.execute(_SERIES)] == [
            "2018-11-03 00:00:00-03",
            "2018-11-04 01:00:00-02",
            "2018-11-05 01:00:00-02",
        ]
        naive = _SERIES.replace("DATE", "timestamp")
        assert len(connection.execute(naive).fetchall()) == 4


def test_a_zone_without_a_history_skips_nothing() -> None:
    assert find_skipped_midnights(b"<+03>-03") == find_skipped_midnights(None) == ()
