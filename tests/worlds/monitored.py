"""A policy with monitors to plan: visits, each a unit by itself, that come in as they happen; stays of patients."""

from collections.abc import Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path

from planner.catalog.catalog import Catalog
from planner.catalog.monitor import Monitor
from planner.catalog.pins import Pins, pin_table
from planner.catalog.sql_types import SourceColumn
from planner.lower.dialects.duckdb import DUCKDB
from planner.monitors.build import plan_monitor
from planner.monitors.monitor_plan import MonitorPlan
from planner.policy.compile import compile_catalog, list_key_domains
from planner.policy.file import Policy
from tests.worlds.policies import VERIFIER

TABLES = f"""\
[source]
url = "postgresql://reader@db/hospital"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8.0
epsilon_per_query = 2.0

[tables.visits]
privacy_unit = "row"
refresh = "live"
append_only = true

[tables.visits.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[tables.visits.columns.day]
expression = "date_trunc('day', seen_at)"
key = {{ range = ["2026-01-01", "2026-12-31"] }}

[tables.visits.columns.month]
expression = "date_trunc('month', seen_at)"
key = {{ range = ["2026-01-01", "2026-12-01"], step = "1 month" }}

[tables.visits.columns.reported]
key = {{ range = ["2026-01-01", "2026-12-31"] }}

[tables.visits.columns.quarter_hour]
key = {{ range = ["2026-01-01 00:00", "2026-01-03 23:45"], step = "15 minutes" }}

[tables.visits.columns.cost]
bounds = [0, 5000]
grid = 0.01

[tables.visits.columns.change]
bounds = [-10, 10]

[tables.visits.columns.severity]

[tables.stays]
privacy_unit = "patient_id"
max_groups_per_unit = 20
rows_per_unit = 1
refresh = "live"
append_only = true
arrived = "recorded_at"

[tables.stays.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[tables.stays.columns.day]
expression = "recorded_at::date"
key = {{ range = ["2026-01-01", "2026-12-31"] }}

[tables.stays.columns.admitted]

[tables.stays.columns.cost]
bounds = [0, 5000]
per_unit = [0, 8000]
grid = 0.01

[tables.calendar]
public = true

[analysts.dashboard]
password = "{VERIFIER}"
"""

SCHEMA: Mapping[str, tuple[SourceColumn, ...]] = {
    "visits": (
        SourceColumn("ward", "text", True),
        SourceColumn("seen_at", "timestamp without time zone", True),
        SourceColumn("reported", "date", True),
        SourceColumn("quarter_hour", "timestamp without time zone", True),
        SourceColumn("arrived_at", "timestamp without time zone", False),
        SourceColumn("cost", "numeric(10,2)", True),
        SourceColumn("change", "integer", True),
        SourceColumn("severity", "integer", True),
    ),
    "calendar": (SourceColumn("day", "date", False), SourceColumn("target", "integer", False)),
    "stays": (
        SourceColumn("patient_id", "bigint", False),
        SourceColumn("ward", "text", True),
        SourceColumn("admitted", "timestamp without time zone", True),
        SourceColumn("recorded_at", "timestamp without time zone", False),
        SourceColumn("cost", "numeric(10,2)", True),
    ),
}

CALENDAR = tuple((date(2026, 1, day), 100 * day) for day in range(1, 6))
SQL = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 400"
BY_WARD = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 400"
OF_A_DAY = '{ column = "seen_at", length = "1 day" }'
WRITTEN = {"window": '"day"', "every": '"1 hour"', "from": '"2026-01-01"', "until": '"2026-12-31"'}


def declared(sql: str = SQL, *, name: str = "crowded", tables: str = TABLES, **keys: str) -> Catalog:
    """The catalog of the policy with one monitor; `keys` are its keys in TOML, instead of the usual ones."""
    section = "\n".join(f"{key} = {value}" for key, value in {**WRITTEN, **keys}.items())
    return _compile(f'{tables}\n[monitors.{name}]\nsql = """{sql}"""\n{section}\n', pins=_make_pins(tables))


@cache
def _make_pins(tables: str) -> Pins:
    """The pins that a check writes, which are the same whatever is watched."""
    pins = Pins(tables=(pin_table("calendar", SCHEMA["calendar"], CALENDAR),))
    policy = Policy.parse(tables, path=Path("keyhole.toml"), environment={})
    return Pins(tables=pins.tables, domains=tuple(pin for pin, _ in list_key_domains(policy, schema=SCHEMA, pins=pins)))


@cache
def _compile(text: str, *, pins: Pins) -> Catalog:
    policy = Policy.parse(text, path=Path("keyhole.toml"), environment={})
    return compile_catalog(policy, schema=SCHEMA, pins=pins, directory=Path("/data"))


def declared_monitor(sql: str = SQL, **keys: str) -> Monitor:
    """The monitor alone."""
    (made,) = declared(sql, **keys).monitors
    return made


def planned(sql: str = SQL, *, tables: str = TABLES, **keys: str) -> MonitorPlan:
    """The plan of one monitor."""
    catalog = declared(sql, tables=tables, **keys)
    return plan_monitor(catalog, catalog.monitors[0], dialect=DUCKDB)


def at(text: str) -> datetime:
    """A moment, from its ISO text."""
    return datetime.fromisoformat(text)
