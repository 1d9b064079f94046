"""The benchmark's data, policies and questions: deterministic, at any size."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg

from deploy.demo import build
from proxy.security.scram import make_verifier

ANALYST = PASSWORD = "bench"
SHOPS, DAYS = 20, 25
NUMBER, SHARE, TREND = "a number", "a share of the total", "a trend"  # what one sum is compared with
SCORECARD = "scorecard"  # what the names of workloads with predicates in the select list begin with

# Row i's numbers come from integer hashes of i: large and small groups, in no order.
_ROWS = f"""
SELECT
    format('shop {{:02d}}', CAST(floor(pow((i * 7919 % 1000003) / 1000003.0, 1.5) * {SHOPS}) AS INTEGER)) AS shop,
    DATE '2026-01-01' + CAST(i * 104729 % 999983 % {DAYS} AS INTEGER) AS day,
    CAST(i * 15485863 % 999979 % 12 AS INTEGER) AS quantity,
    CAST(i * 32452843 % 999961 % 10000 / 100 AS DECIMAL(10, 2)) AS amount,
    i * 49979687 % 999959 % 3 = 0 AS online
FROM range(1, ? + 1) AS numbers(i)
"""

POLICY = f"""\
[source]
url = "{{url}}"

[accuracy]
tolerance = "10%"

[server.limits]
connections = 300
connections_per_analyst = 300

[budget]
epsilon_per_predicate = 1000.0
epsilon_per_query = 1000.0

[tables.lines]
privacy_unit = "row"
refresh = "static"
immutable = ["shop", "day"]

[tables.lines.columns.shop]
key = {{{{ values = {[f"shop {shop:02}" for shop in range(SHOPS)]} }}}}

[tables.lines.columns.day]
key = {{{{ range = ["2026-01-01", "2026-01-{DAYS:02}"], step = "1 day" }}}}

[tables.lines.columns.quantity]
bounds = [0, 20]

[tables.lines.columns.amount]
bounds = [0, 100]
grid = 0.01

[tables.lines.columns.online]

[analysts.{ANALYST}]
password = "{{verifier}}"
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """A question in numbered variants, so that each is asked for the first time.

    `plain` is the same SQL where the engine lacks what the policy derives. `parameters` go with both.
    """

    name: str
    question: str
    plain: str
    thresholds: tuple[float, ...]
    parametrised: bool = False

    def list_variants(self) -> Iterator[tuple[str, str, tuple[object, ...] | None]]:
        """(question, plain SQL, parameters), each with thresholds of its own."""
        number = 0
        while True:
            number += 1
            moved = tuple(int(threshold) + number for threshold in self.thresholds)
            if self.parametrised:
                yield self.question, self.plain, moved
            else:
                yield self.question.format(*moved), self.plain.format(*moved), None


def make_row_workloads(rows: int) -> tuple[Workload, ...]:
    """500 keys, three atoms over three functionals, unit row. The thresholds lie amid the groups."""
    average = rows / (SHOPS * DAYS)

    def workload(name: str, measure: str, per_row: float, *, marks: str = "{}", parametrised: bool = False) -> Workload:
        sql = (
            f"SELECT shop, day FROM lines GROUP BY shop, day HAVING count(*) > {marks} "
            f"AND (sum({measure}) > {marks} OR count(*) FILTER (WHERE online) > {marks})"
        )
        least = 0.75 if parametrised else 0.7  # what was asked before would be answered from the ledger
        thresholds = (least * average, 0.9 * average * per_row, 0.4 * average)
        return Workload(name, sql, sql, thresholds, parametrised)

    return (
        workload("integer measure", "quantity", 5.5),
        workload("numeric measure", "amount", 50.0),
        workload("integer measure, parameters", "quantity", 5.5, marks="%s", parametrised=True),
    )


def make_comparison_workloads(rows: int) -> tuple[Workload, ...]:
    """500 keys, one sum, unit row: compared with a number, with a part of the total, and with the day before."""
    each = 5.5 * rows / (SHOPS * DAYS)
    grouped = "SELECT shop, day FROM lines GROUP BY shop, day HAVING sum(quantity) >"
    total = f"{0.5 / (SHOPS * DAYS)} * (SELECT sum(quantity) FROM lines)"
    before = "lag(sum(quantity)) OVER (PARTITION BY shop ORDER BY day) AS before"
    days = f"SELECT shop, day, sum(quantity) AS pieces, {before} FROM lines GROUP BY shop, day"
    asked = (
        (NUMBER, f"{grouped} {{}}", 0.9 * each),
        (SHARE, f"{grouped} {total} + {{}}", 0.4 * each),
        (TREND, f"SELECT shop, day FROM ({days}) AS days WHERE pieces > 0.5 * before + {{}}", 0.4 * each),
    )
    return tuple(Workload(name, sql, sql, (threshold,)) for name, sql, threshold in asked)


def make_scorecard_workloads(rows: int) -> tuple[Workload, ...]:
    """500 keys, six predicates over three functionals in the select list, unit row: every key comes back."""
    average = rows / (SHOPS * DAYS)

    def workload(name: str, measure: str, per_row: float) -> Workload:
        orders, total, online = "count(*)", f"sum({measure})", "count(*) FILTER (WHERE online)"
        sql = (
            f"SELECT shop, day, {orders} > {{}} AS busy, {orders} > {{}} AS crowded, {total} > {{}} AS high, "
            f"{total} > {{}} AND {orders} > {{}} AS odd, {online} > {{}} AS online, "
            f"{online} > {{}} OR {total} > {{}} AS either FROM lines GROUP BY shop, day"
        )
        of_average = (0.7, 1.5, 0.9 * per_row, 1.8 * per_row, 0.8, 0.4, 0.6, 1.4 * per_row)
        return Workload(name, sql, sql, tuple(part * average for part in of_average))

    return (
        workload(f"{SCORECARD}, integer measure", "quantity", 5.5),
        workload(f"{SCORECARD}, numeric measure", "amount", 50.0),
    )


def make_unit_workload() -> Workload:
    """The demo's first question: 494 keys, the unit is a customer's month."""
    having = "HAVING count(DISTINCT customer_id) > {} OR sum(amount) > {}"
    month = "CAST(date_trunc('month', invoice_date) AS date)"
    return Workload(
        name="demo, unit customer-month",
        question=f"SELECT country, month FROM sales GROUP BY country, month {having}",
        plain=f"SELECT country, {month} AS month FROM sales GROUP BY 1, 2 {having}",
        thresholds=(20, 20_000),
    )


def write_duckdb_policy(directory: Path, *, rows: int) -> tuple[Path, str]:
    """`lines` as a DuckDB file with its policy; the policy's path and the client's URL for the engine."""
    database = directory / "lines.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE lines AS {_ROWS}", [rows])
    return _write_policy(directory, url="duckdb:///lines.duckdb"), f"duckdb://{database}"


def write_postgres_policy(directory: Path, url: str, *, rows: int) -> Path:
    """The same rows in the PostgreSQL at `url`, analysed; the policy's path."""
    exported = directory / "lines.csv"
    with duckdb.connect() as engine:
        engine.execute(f"COPY ({_ROWS.replace('?', str(rows))}) TO '{exported}' (FORMAT csv, HEADER false)")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS lines")
        connection.execute(
            "CREATE TABLE lines (shop text, day date, quantity integer, amount numeric(10, 2), online boolean)"
        )
        with exported.open("rb") as file, connection.cursor().copy("COPY lines FROM STDIN (FORMAT csv)") as copy:
            while chunk := file.read(1 << 20):
                copy.write(chunk)
        connection.execute("VACUUM (ANALYZE, FREEZE) lines")
        connection.execute("CHECKPOINT")
    exported.unlink()
    return _write_policy(directory, url=url)


def write_demo_policy(directory: Path) -> tuple[Path, str]:
    """The demo with a budget that a benchmark does not exhaust."""
    policy = build.install_demo(directory)
    text = policy.read_text(encoding="utf-8")
    for name, value in (("predicate", "4.0"), ("unit", "8.0"), ("query", "2.0")):
        text = text.replace(f"epsilon_per_{name} = {value}", f"epsilon_per_{name} = 1000.0")
    text += f'\n[analysts.{ANALYST}]\npassword = "{make_verifier(PASSWORD)}"\n'
    policy.write_text(text, encoding="utf-8")
    return policy, f"duckdb://{directory / 'retail.duckdb'}"


def _write_policy(directory: Path, *, url: str) -> Path:
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(url=url, verifier=make_verifier(PASSWORD)), encoding="utf-8")
    return path
