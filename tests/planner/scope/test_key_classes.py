"""Keys that are expressions of declared keys: real PostgreSQL, asked the statement as typed, says the same."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from typing import Any

import numpy as np
import psycopg
import pytest

from accountant.charges import NANO, Cells
from mechanisms.protocol import Outcome
from planner.bind.bind_question import bind_question
from planner.catalog.key_space import format_value
from planner.extract.outer_query import write_outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.statements.settings import read_accuracy
from proxy.pipeline.claim import Claim, find_run_loss, make_claim
from proxy.pipeline.messages import Asked
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import TODAY, asked, asking, refusal
from tests.worlds.retail import retail

VISITS = [
    "CAST(ward AS text)",
    "ward::varchar",
    "coalesce(ward, 'Unknown')",
    "lower(ward)",
    "CASE WHEN ward = 'A' THEN 'x' WHEN ward IN ('B') THEN 'x' ELSE ward END",
    "CASE ward WHEN 'A' THEN 1 WHEN 'B' THEN 2 END",
    "nullif(ward, 'B')",
    "ward || '-' || hour",
    "ward <> 'A'",
    "CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END",
    "CASE WHEN hour BETWEEN 6 AND 17 THEN 'day' ELSE 'night' END",
    "CASE WHEN hour >= 20 OR hour < 6 THEN NULL ELSE hour / 4 END",
    "hour / 6",
    "hour % 5",
    "-hour / 7",
    "(hour - 12) / 5",
    "(hour - 12) % 5",
    "hour * 2 + 1",
    "hour::text",
    "hour > 11 AND NOT hour = 13",
    "coalesce(nullif(hour, 0), 24) / 8",
    "CASE WHEN hour < 100 THEN hour ELSE 1.5 END / 6",
    "extract(hour FROM arrived)::int",
    "CAST(EXTRACT(HOUR FROM arrived) AS integer) / 6",
    "extract(hour FROM CAST(arrived AS timestamp))",
    "extract(hour FROM arrived::timestamp(6))",
    "floor(extract(hour FROM arrived) / 6)",
    "floor(hour / 6)",
    "ceil(hour / 6.0)",
    "date_part('hour', arrived)",
    "date_trunc('day', arrived)",
    "date_trunc('day', arrived)::date",
    "date_trunc('week', arrived)",
    "date_trunc('week', day)",
    "date_trunc('day'::varchar, CAST(arrived AS timestamp without time zone))",
    "extract(dow FROM arrived)",
    "extract(isodow FROM day)",
    "extract(week FROM day)::integer",
    "extract(doy FROM day) - 1",
    "to_char(arrived, 'YYYY-MM-DD')",
    "to_char(day, 'DD.MM.YYYY')",
    "arrived::timestamp::date",
    "day::timestamp",
    "day::text",
    "CASE WHEN day < '2026-01-05' THEN 'first' ELSE 'later' END",
    "CASE WHEN day IN (date '2026-01-03', date '2026-01-04') THEN 'weekend' ELSE 'week' END",
]
SALES = [
    "country::text",
    "upper(country)",
    "CASE WHEN country IN ('France', 'Germany') THEN 'EU' ELSE country END",
    "date_trunc('month', month)",
    "date_trunc('month', month)::date",
    "date_trunc('quarter', month)",
    "date_trunc('year', month)",
    "date_trunc('quarter', public.sales.invoice_date)",
    "date_trunc('month', CAST(invoice_date AS timestamp))",
    "date_trunc('month', invoice_date::timestamp(6))",
    "DATE(DATE_TRUNC('month', invoice_date))",
    "CAST(DATE_TRUNC('MONTH', CAST(invoice_date AS DATE)) AS DATE)",
    "CAST(EXTRACT(YEAR FROM sales.invoice_date) AS INTEGER)",
    "extract(year FROM month)",
    "extract(year FROM invoice_date)::int * 100 + extract(month FROM invoice_date)::int",
    "extract(quarter FROM month)",
    "to_char(month, 'YYYY-MM')",
    "to_char(invoice_date, 'YYYY')",
    """to_char(month, 'YYYY"-Q"Q')""",
    "extract(year FROM month)::int::text || '/' || extract(month FROM month)",
    "month::timestamp",
    "month::text",
]
SEVERAL = [
    "SELECT extract(year FROM month) AS y, extract(month FROM month) AS m FROM sales GROUP BY 1, 2",
    "SELECT hour / 6, hour % 2 FROM visits GROUP BY hour / 6, hour % 2",
    "SELECT hour, hour / 6 FROM visits GROUP BY hour, 2",
    "SELECT ward, CASE WHEN hour < 12 THEN 'am' END AS half FROM visits GROUP BY half, ward",
    "SELECT hour / 6 + 1 AS quarter FROM visits WHERE hour > 13 GROUP BY hour / 6",
    "SELECT v.hour < 12 AS early, v.ward || 'x', ward FROM visits v GROUP BY v.hour < 12, 2, ward",
    "SELECT CASE WHEN s.country = 'France' THEN 1 ELSE 2 END, r.region FROM sales s JOIN regions r "
    "ON r.name = s.country GROUP BY 1, 2",
    "SELECT lower(r.region) FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1",
    "SELECT m::text FROM (SELECT date_trunc('month', CAST(invoice_date AS timestamp)) AS m FROM sales GROUP BY 1",
    "SELECT half::varchar FROM (SELECT CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END AS half FROM visits GROUP BY 1",
]
STATEMENTS = [
    *(f"SELECT {expression} FROM visits GROUP BY 1" for expression in VISITS),
    *(f"SELECT {expression} AS x FROM visits GROUP BY {expression}" for expression in VISITS),
    *(f"SELECT {expression} FROM sales GROUP BY 1" for expression in SALES),
    *SEVERAL,
]


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Tables with a row for every value of every key's domain."""
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute("DROP SCHEMA IF EXISTS key_classes CASCADE")
        opened.execute("CREATE SCHEMA key_classes")
        opened.execute("SET search_path = key_classes")
        opened.execute("SET TimeZone = 'America/New_York'")
        for table in retail().tables[:2]:
            columns = ", ".join(f"{one.name} {one.declared}" for one in table.columns if one.derivation is None)
            opened.execute(f"CREATE TABLE stored_{table.name} ({columns})")
        opened.execute(
            "CREATE VIEW visits AS SELECT *, arrived::date AS day, extract(hour FROM arrived)::integer AS hour "
            "FROM stored_visits"
        )
        opened.execute(
            "CREATE VIEW sales AS SELECT *, date_trunc('month', invoice_date)::date AS month FROM stored_sales"
        )
        opened.execute("CREATE TABLE regions (name text, region text)")
        with opened.cursor() as cursor:
            cursor.executemany("INSERT INTO regions VALUES (%s, %s)", retail().public_tables[0].rows)
            day, ward = retail().tables[1].get_column("day"), retail().tables[1].get_column("ward")
            month, country = retail().tables[0].get_column("month"), retail().tables[0].get_column("country")
            places = product(ward.domain or (), day.domain or (), range(24))
            visits = [(i, w, f"{d} {hour:02}:30") for i, (w, d, hour) in enumerate(places)]
            months = product(country.domain or (), month.domain or (), (timedelta(0), timedelta(13), timedelta(27)))
            sales = [(i, c, m + later) for i, (c, m, later) in enumerate(months) if isinstance(m, date)]
            cursor.executemany("INSERT INTO stored_visits (visit_id, ward, arrived) VALUES (%s, %s, %s)", visits)
            cursor.executemany(
                "INSERT INTO stored_sales (customer_id, country, invoice_date) VALUES (%s, %s, %s)", sales
            )
        yield opened
        opened.execute("DROP SCHEMA key_classes CASCADE")


WANTED = read_accuracy({"keyhole.tolerance": "1"}, retail().defaults)


def _shape(cursor: psycopg.Cursor[Any]) -> tuple[list[tuple[str, int]], list[str]]:
    described = [(column.name, column.type_code) for column in cursor.description or ()]
    return described, sorted(map(repr, cursor.fetchall()))


@in_turn("statement", STATEMENTS)
def test_postgresql_says_the_same(statement: str, connection: psycopg.Connection[Any]) -> None:
    """Names, types, groups and counts of what PostgreSQL answers, for thresholds that some groups cross, at quick one
    of them."""
    for most in (35, 0, 70)[: rounds(3, quick=1)]:
        having = f" HAVING count(*) > {most}"
        sql = f"{statement}{having}" + (") q" if statement.count("(") > statement.count(")") else "")
        theirs = _shape(connection.execute(sql.replace("public.sales", "sales")))
        found = asking(sql)
        (question,) = found.questions
        what = bind_question(question, retail(), accuracy=WANTED, parameters={}, today=TODAY)
        counted = connection.execute(plan_question(what, dialect=POSTGRES).rewritten.sql).fetchall()
        width = len(what.keys.columns)
        texts = {tuple(map(format_value, what.keys.get_key(i))) for i in range(what.keys.size)}
        held = [
            tuple(map(format_value, row[:width]))
            for row in counted
            if tuple(map(format_value, row[:width])) in texts and row[width] > most
        ]
        outer = write_outer_sql(found, first_parameter=1)
        arrays = [[key[array.column] for key in held] for array in outer.arrays]
        cursor = psycopg.RawCursor(connection)
        ours = _shape(cursor.execute(outer.sql.replace("public.", ""), arrays))
        assert ours == theirs, outer.sql


def test_an_injective_expression_is_the_question_of_its_key() -> None:
    for expression in ("ward::text", "lower(ward)", "coalesce(ward, 'x')", "ward || '!'"):
        found = asked(f"SELECT {expression} FROM visits GROUP BY 1 HAVING count(*) > 40")
        assert replace(found, warnings=()) == asked("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40")
        assert bool(found.warnings) is expression.startswith("coalesce")


def test_classes_are_charged_to_every_value_of_their_key() -> None:
    """However values are put together, what is told about them comes off one budget, that of the key's own groups."""
    by_hour = _charged("SELECT hour FROM visits GROUP BY hour HAVING count(*) > 40")
    halves = _charged("SELECT hour < 12 FROM visits GROUP BY 1 HAVING count(*) > 40")
    assert halves == by_hour
    narrow = _charged("SELECT hour < 12 FROM visits WHERE hour < 6 GROUP BY 1 HAVING count(*) > 40")
    assert narrow.columns[0][0] == by_hour.columns[0][0]
    assert {str(hour) for hour in range(6)} <= set(narrow.columns[0][1])


def test_what_was_spent_on_a_class_is_spent_on_each_of_its_values() -> None:
    losses = np.array([[10 * place + ward for ward in range(3)] for place in range(4)], dtype=np.float64).reshape(-1)
    what = _claim("SELECT hour / 6, ward FROM visits GROUP BY 1, 2 HAVING count(*) > 40")
    told = find_run_loss(what, Outcome(passed=np.zeros(12, dtype=np.bool_), epsilon=losses)).read_amounts(
        what.charge.cells
    )
    (first, hours), (second, wards) = what.charge.cells.columns
    assert (first.partition("=")[0], second) == ("hour", "ward")
    expected = [[(10 * (int(hour) // 6) + "ABC".index(ward)) * NANO for ward in wards] for hour in hours]
    assert np.array_equal(told, expected)


def _charged(sql: str) -> Cells:
    return _claim(sql).charge.cells


def _claim(sql: str) -> Claim:
    question, *_ = asking(sql).questions
    wanted = Asked(question=question, analyst=retail().analysts[0], settings={}, parameters={}, today=TODAY)
    return make_claim(plan_question(asked(sql), dialect=DUCKDB), retail(), asked=wanted, version="1")


def test_what_is_not_exact_is_refused() -> None:
    for expression in (
        "CASE WHEN ward < 'B' THEN 1 END",
        "hour / 0",
        "(hour / 7.0)::int",
        "ward || day",
        "to_char(day, 'RM')",
        "day::timestamptz < now()",
        "date_trunc('day', arrived::timestamp(0))",
        "random()",
        "(SELECT 1)",
    ):
        error = refusal(f"SELECT {expression} FROM visits GROUP BY 1 HAVING count(*) > 40")
        assert error is not None, expression
        assert error.code in ("KH202", "KH107", "KH106", "KH402"), (expression, error)


def test_what_is_shown_is_what_is_grouped() -> None:
    for shown, grouped in (("hour", "hour / 6"), ("hour / 3", "hour / 6"), ("day", "extract(dow FROM day)")):
        error = refusal(f"SELECT {shown} FROM visits GROUP BY {grouped} HAVING count(*) > 40")
        assert error is not None
        assert error.code == "KH101"
