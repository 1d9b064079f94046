"""What every client is shown: a public table with a value of each type, and questions with keys of each type.

Visits of the private table: wards A 3000 and B 2000, C 30, D none; 2500 on 2026-01-01 and on 2026-01-02, 30 on
2026-01-03, none on 2026-01-04; floors 1 and 2 like A and B, floor 3 like C; urgent
is true for A and false for the others.
"""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import psycopg

from proxy.cli.check import check
from tests.worlds.house import VERIFIER

STATEMENTS = (
    """CREATE TABLE kinds (id integer, flag boolean, small smallint, big bigint, price numeric(10, 2),
        ratio double precision, part real, word text, code varchar(10), day date, at timestamp, badge uuid)""",
    """INSERT INTO kinds VALUES
        (1, true, 2, 9007199254740993, 12.30, 0.1, 1.5, 'Ärzte; "a" ''b'' \\n', 'x1', '2026-02-28',
         '2026-02-28 12:34:56.789', '11111111-2222-3333-4444-555555555555'),
        (2, false, -2, -1, -0.01, 1e300, -0.25, '', '', '0001-01-01', '1999-12-31 23:59:59',
         '00000000-0000-0000-0000-000000000000'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)""",
    "CREATE TABLE wards (name text PRIMARY KEY, beds integer)",
    "INSERT INTO wards VALUES ('A', 40), ('B', 30), ('C', 3), ('D', NULL)",
    """CREATE TABLE visits (visit_id integer, ward text, floor integer, urgent boolean, day date, hour timestamp,
        age integer, cost numeric(10, 2), note text)""",
    """INSERT INTO visits SELECT g, CASE WHEN g <= 3000 THEN 'A' WHEN g <= 5000 THEN 'B' ELSE 'C' END,
        CASE WHEN g <= 3000 THEN 1 WHEN g <= 5000 THEN 2 ELSE 3 END, g <= 3000,
        CASE WHEN g > 5000 THEN DATE '2026-01-03' ELSE DATE '2026-01-01' + g % 2 END,
        TIMESTAMP '2026-01-01 00:00:00' + (g % 2) * INTERVAL '1 hour', g % 100, 50, NULL
        FROM generate_series(1, 5030) s(g)""",
)

POLICY = """\
[source]
url = "{source}"

[accuracy]
mechanism = "keyhole"  # far groups are certain

[budget]
epsilon_per_predicate = 900
epsilon_per_query = 100

[limits]
statement_timeout_ms = 30000

[server]
database = "clinic"

[tables.kinds]
public = true
comment = "one row of each kind"

[tables.wards]
public = true

[tables.visits]
privacy_unit = "row"
refresh = "static"
comment = "one row per visit"

[tables.visits.columns.ward]
key = {{ values_from = "wards.name" }}

[tables.visits.columns.floor]
key = {{ range = [1, 4] }}

[tables.visits.columns.urgent]
key = {{ values = [true, false] }}

[tables.visits.columns.day]
key = {{ range = ["2026-01-01", "2026-01-04"], step = "1 day" }}

[tables.visits.columns.hour]
key = {{ range = ["2026-01-01 00:00:00", "2026-01-01 03:00:00"], step = "1 hour" }}

[tables.visits.columns.age]
bounds = [0, 120]

[tables.visits.columns.cost]
bounds = [0, 100]
grid = 0.01

[tables.visits.columns.note]

[views.crowded]
sql = "SELECT ward FROM visits WHERE age >= :least GROUP BY ward HAVING count(*) > :threshold"
parameters = {{ threshold = 1000, least = 0 }}
comment = "wards with more visits than a threshold"

[views.busy_days]
sql = "SELECT day, floor FROM visits GROUP BY day, floor HAVING count(*) > 500"

[analysts.ada]
password = "{verifier}"
"""

KINDS = """SELECT k.*, at AT TIME ZONE 'UTC' AS moment, at - TIMESTAMP '2026-02-27 10:32:53' AS span,
    at::time(0) AS hour, '\\x00ff10'::bytea AS raw, jsonb_build_object('a', jsonb_build_array(k.id, NULL)) AS doc,
    ARRAY[word, 'b,c', NULL] AS tags, ARRAY[id, 2, 3] AS numbers, ARRAY[day, day + 1] AS days, ARRAY[price, 2] AS prices
    FROM kinds k WHERE id = 1"""
"""Every column of `kinds`, and types that public tables cannot have but queries over them can."""

WORD = "Ärzte; \"a\" 'b' \\n"
FULL_ROW: dict[str, object] = {
    "id": 1,
    "flag": True,
    "small": 2,
    "big": 9007199254740993,
    "price": Decimal("12.30"),
    "ratio": 0.1,
    "part": 1.5,
    "word": WORD,
    "code": "x1",
    "day": date(2026, 2, 28),
    "at": datetime(2026, 2, 28, 12, 34, 56, 789000),
    "badge": UUID("11111111-2222-3333-4444-555555555555"),
    "moment": datetime(2026, 2, 28, 12, 34, 56, 789000, tzinfo=UTC),
    "span": timedelta(days=1, hours=2, minutes=2, seconds=3, milliseconds=789),
    "hour": time(12, 34, 57),
    "raw": b"\x00\xff\x10",
    "doc": {"a": [1, None]},
    "tags": [WORD, "b,c", None],
    "numbers": [1, 2, 3],
    "days": [date(2026, 2, 28), date(2026, 3, 1)],
    "prices": [Decimal("12.30"), Decimal("2")],
}
"""The row of `KINDS` as Python has it."""

TABLES = ("kinds", "visits", "wards")
VIEWS = ("busy_days", "crowded")
PRIVATE_COLUMNS = ("ward", "floor", "urgent", "day", "hour", "age", "cost", "note")

QUESTION = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000 ORDER BY ward"
WARDS = ["A", "B"]
TYPED: dict[str, tuple[object, ...]] = {
    "ward": ("A", "B"),
    "floor": (1, 2),
    "urgent": (False, True),
    "day": (date(2026, 1, 1), date(2026, 1, 2)),
    "hour": (datetime(2026, 1, 1, 0), datetime(2026, 1, 1, 1)),
}
"""The answer about each key, in order."""

AGGREGATE = "SELECT ward, count(*) FROM visits GROUP BY ward"
REFUSED = "SELECT age FROM visits"
REFUSED_CODE = "42501"
REFUSED_MESSAGE = 'KH103: the private table "visits" is used outside a question'
REFUSED_DETAIL = "Only a question may read a private table: GROUP BY keys HAVING a threshold is crossed."
REFUSED_HINT = "Instead you can ask: SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000;"
REFUSED_POSITION = 17
GUARANTEE = "guarantee: a group that truly qualifies is missed"


def about(key: str, *, threshold: str = "1000") -> str:
    """The question whose answer is `TYPED[key]`."""
    return f"SELECT {key} FROM visits GROUP BY {key} HAVING count(*) > {threshold} ORDER BY {key}"


def installed(directory: Path, url: str, *, more: str = "") -> Path:
    """The gallery in an empty PostgreSQL database, and its policy with `more` at the end, checked and pinned."""
    with psycopg.connect(url) as connection:
        for statement in STATEMENTS:
            connection.execute(statement.encode())
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(source=url, verifier=VERIFIER) + more, encoding="utf-8")
    check(path, confirm=False)
    return path
