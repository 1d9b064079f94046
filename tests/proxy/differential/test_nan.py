"""NaN in aggregates: what docs/asking.md says of it, asked on both engines, beside what PostgreSQL makes of it.

Each group has 600 rows, and what is asked is sure but for a probability below 1e-9 a question.
"""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest

from proxy.cli.check import check
from tests.effort import rounds
from tests.worlds.house import VERIFIER, House, new_database, opened

ROWS = """
SELECT g, CASE WHEN i <= 300 THEN CAST(first AS {double}) ELSE CAST(second AS {double}) END AS x,
  CASE WHEN i <= 300 THEN CAST(first AS {numeric}) ELSE CAST(second AS {numeric}) END AS m
FROM (VALUES ('ten', '10', '10'), ('half', '10', 'NaN'), ('none', 'NaN', 'NaN'), ('null', '10', NULL))
  AS v(g, first, second), generate_series(1, 600) AS s(i)
"""
POLICY = """
[source]
url = "{url}"
[ledger]
url = "sqlite:///keyhole.db"
[accuracy]
fnr = 0.00001
fpr = 0.00001
mechanism = "keyhole"
[budget]
epsilon_per_predicate = 900.0
epsilon_per_query = 100.0
[server]
database = "lab"
[tables.lab]
privacy_unit = "row"
refresh = "explicit"
[tables.lab.columns.g]
key = {{ values = ["ten", "half", "none", "null"] }}
[tables.lab.columns.x]
bounds = [0, 100]
grid = 1
[tables.lab.columns.m]
bounds = [0, 100]
grid = 1
[analysts.ada]
password = "{verifier}"
"""
# the groups that Keyhole returns, and those that PostgreSQL does
ASKED = (
    ("count(*) > 450", "half none null ten", "half none null ten"),
    ("count({x}) > 450", "ten", "half none ten"),
    ("sum({x}) > 1500", "half null ten", "half none null ten"),
    ("avg({x}) < 50 AND count({x}) > 100", "half null ten", "null ten"),
    ("var_pop({x}) < 500 AND count({x}) > 100", "half null ten", "null ten"),
    ("count(DISTINCT {x}) >= 1", "half null ten", "half none null ten"),
    ("max({x}) > 50", "half none", "half none"),
    ("min({x}) < 50", "half null ten", "half null ten"),
    ("percentile_disc(0.9) WITHIN GROUP (ORDER BY {x}) > 50", "half none", "half none"),
    ("count(*) FILTER (WHERE {x} > 50) > 100", "half none", "half none"),
)


@pytest.fixture(params=["duckdb", "postgresql"])
def house(request: pytest.FixtureRequest, postgres_url: str, tmp_path: Path) -> Iterator[House]:
    policy = tmp_path / "keyhole.toml"

    def write(url: str) -> Path:
        policy.write_text(POLICY.format(url=url, verifier=VERIFIER), encoding="utf-8")
        check(policy, confirm=False)
        return policy

    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "lab.duckdb")) as source:
            rows = ROWS.format(double="DOUBLE", numeric="DOUBLE")
            source.execute(f"CREATE TABLE lab AS {rows}")
        with opened(write(f"duckdb:///{tmp_path}/lab.duckdb")) as house:
            yield house
        return
    with new_database(postgres_url) as url:
        with psycopg.connect(url) as owner:
            owner.execute(f"CREATE TABLE lab AS {ROWS.format(double='float8', numeric='numeric')}".encode())
            for having, _, theirs in ASKED:
                for x in ("x", "m"):
                    sql = f"SELECT g FROM lab GROUP BY g HAVING {having.format(x=x)} ORDER BY g".encode()
                    assert " ".join(g for (g,) in owner.execute(sql).fetchall()) == theirs, sql
        with opened(write(url)) as house:
            yield house


def test_nan_is_no_value_to_what_counts_or_sums_and_above_all_numbers_to_all_else(house: House) -> None:
    share = rounds(1, quick=2)  # at quick every other question of doubles, and those between of the other type
    with house.connect() as ada:
        for number, (having, ours, _) in enumerate(ASKED):
            for x in ("x", "m")[number % share :: share]:
                ada.execute("SET keyhole.tolerance = '20%'")
                sql = f"SELECT g FROM lab GROUP BY g HAVING {having.format(x=x)} ORDER BY g".encode()
                assert " ".join(g for (g,) in ada.execute(sql).fetchall()) == ours, sql
