"""Whether one row with a value that nobody else has changes what an engine does: asked of the plans of both engines.

Two tables differ in such a row. DuckDB knows the least and the greatest value of each column and block, BRIN of each
range of pages: unless the owner lets them skip blocks, both plan and read the same for both tables.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import psycopg
import pytest

from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.policy.file import Policy
from proxy.sources.duckdb_source import DuckDBSource
from proxy.sources.postgres_source import PostgresSource
from proxy.sources.shared import open_policy_source
from tests.planner.asked import asked
from tests.proxy.sources.test_work_of_a_row import TABLES
from tests.worlds.house import new_database
from tests.worlds.retail import retail

ROWS = 250_000  # three blocks of DuckDB's
FILL = f"""
SELECT CAST(i AS integer) AS id, 'p' || CAST(i % 2000 AS text) AS person, 'ward ' || CAST(i % 2 AS text) AS ward,
  CAST(i * 7919 % 90 AS integer) AS age, 'note ' || CAST(i AS text) AS note
FROM generate_series(1, {ROWS}) AS t(i)
"""
TABLES_APART = ("visits", "visits_and_one")
ALONE = "(0, 'p2000', 'ward 9', 150, 'z')"
QUESTIONS: Mapping[str, str] = {
    "WHERE": "SELECT ward FROM noted WHERE age > 100 GROUP BY ward HAVING count(*) > 5",
    "FILTER": "SELECT ward FROM noted GROUP BY ward HAVING count(*) FILTER (WHERE age > 100) > 5",
    "a text": "SELECT ward FROM noted WHERE note = 'z' GROUP BY ward HAVING count(*) > 5",
    "what is summed": "SELECT ward FROM noted GROUP BY ward HAVING avg(age) > 5",
    "a key": "SELECT ward FROM noted WHERE ward = 'ward without anybody' GROUP BY ward HAVING count(*) > 5",
}
SKIPS = QUESTIONS.keys() - {"a key"}  # where DuckDB shows a row alone


POLICY = """
[source]
url = "{url}"
{more}
[budget]
epsilon_per_predicate = 1.0
epsilon_per_query = 1.0
[tables.noted]
privacy_unit = "row"
refresh = "static"
[tables.noted.columns.ward]
key = {{ values = ["ward 0", "ward 1"] }}
"""


def policy(directory: Path, url: str, *, skip_blocks: bool) -> Policy:
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(url=url, more="skip_blocks = true" if skip_blocks else ""), encoding="utf-8")
    return Policy.load(path)


@contextmanager
def on_duckdb(directory: Path, *, skip_blocks: bool) -> Iterator[DuckDBSource]:
    with duckdb.connect(str(directory / "shop.duckdb")) as writer:
        for table in TABLES_APART:
            writer.execute(f"CREATE TABLE {table} AS {FILL}")
        writer.execute(f"INSERT INTO visits_and_one VALUES {ALONE}")
    loaded = policy(directory, "duckdb:///shop.duckdb", skip_blocks=skip_blocks)
    with closing(open_policy_source(loaded)) as source:
        assert isinstance(source, DuckDBSource)
        yield source


def read_plan(source: DuckDBSource, sql: str) -> str:
    """What the engine does, without how many rows it expects, and with steps, whose names follow from the table's."""
    told = dict(source._run(f"EXPLAIN (FORMAT JSON) {sql}"))["physical_plan"]
    for place, name in enumerate(dict.fromkeys(re.findall(r"keyhole_step_\w+", sql))):
        told = told.replace(name, f"step {place}")
    return re.sub(r'"Estimated Cardinality": "\d+"', "", json.dumps(json.loads(told), sort_keys=True))


def compare(source: DuckDBSource) -> dict[tuple[str, str], tuple[str, str]]:
    """By table and question, the plans without and with the row."""
    found = {}
    for unit, table in TABLES.items():
        for name, sql in QUESTIONS.items():
            written = [
                plan_question(
                    asked(sql, catalog=replace(retail(), tables=(replace(table, relation=one),))), dialect=DUCKDB
                )
                for one in TABLES_APART
            ]
            without, with_row = (read_plan(source, one.rewritten.sql) for one in written)
            found[unit, name] = without, with_row.replace(TABLES_APART[1], TABLES_APART[0])
    return found


def test_duckdb_does_the_same_whatever_values_one_row_has(tmp_path: Path) -> None:
    with on_duckdb(tmp_path, skip_blocks=False) as source:
        for asked_as, (without, with_row) in compare(source).items():
            assert without == with_row, asked_as


def test_duckdb_skips_blocks_where_the_owner_lets_it(tmp_path: Path) -> None:
    with on_duckdb(tmp_path, skip_blocks=True) as source:
        plans = compare(source)
    apart = {name for (unit, name), (without, with_row) in plans.items() if without != with_row}
    assert apart == SKIPS


@pytest.mark.parametrize("skip_blocks", [False, True])
def test_postgresql_knows_nothing_of_ranges_of_pages(postgres_url: str, tmp_path: Path, *, skip_blocks: bool) -> None:
    with new_database(postgres_url) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute(f"CREATE TABLE noted AS {FILL} ORDER BY age".encode())
            owner.execute("CREATE INDEX ON noted USING brin (age); ANALYZE noted")
        loaded = policy(tmp_path, url, skip_blocks=skip_blocks)
        with closing(open_policy_source(loaded)) as source:
            assert isinstance(source, PostgresSource)
            with source._pool.connection() as connection:
                told = connection.execute("EXPLAIN SELECT count(*) FROM noted WHERE age > 88").fetchall()
    assert any("Bitmap" in str(line) for line in told) == skip_blocks
