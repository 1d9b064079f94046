"""Bounds by grouping, through the endpoint: what they let through, what they say, and what a unit pays."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from proxy.cli.check import check
from proxy.owner.measure import measure
from tests.worlds.house import VERIFIER, House, new_database, notices, opened

# 2,000 households, each in all of six weeks and in one of four stores; 500 in a second store as well.
STATEMENTS = (
    "CREATE TABLE baskets (household integer, bought date, store text, amount integer)",
    "INSERT INTO baskets SELECT g, DATE '2026-01-05' + (7 * w)::integer, 's' || (g % 4), 10"
    " FROM generate_series(1, 2000) AS s(g), generate_series(0, 5) AS t(w)",
    "INSERT INTO baskets SELECT g, DATE '2026-01-05', 's' || ((g + 1) % 4), 10 FROM generate_series(1, 500) AS s(g)",
)
POLICY = """\
[source]
url = "{source}"

[accuracy]
tolerance = "20%"
mechanism = "keyhole"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 40
epsilon_per_query = 4

[server]
database = "grocer"

[tables.baskets]
privacy_unit = "household"
refresh = "explicit"
max_groups_per_unit = 2
rows_per_unit = 4

[tables.baskets.groupings]
{groupings}

[tables.baskets.columns.week]
expression = "date_trunc('week', bought)"
key = {{ range = ["2026-01-05", "2026-02-09"], step = "7 days" }}

[tables.baskets.columns.store]
key = {{ values = ["s0", "s1", "s2", "s3"] }}

[tables.baskets.columns.amount]
bounds = [0, 50]
per_unit = [0, 100]

[analysts.ada]
password = "{verifier}"
"""
GROUPINGS = "week = { max_groups = 6 }\nstore = { max_groups = 2 }"
WEEKS = "SELECT week FROM baskets GROUP BY week HAVING count(DISTINCT household) > 1200"


def _serve(directory: Path, source: str, groupings: str) -> Path:
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(source=source, verifier=VERIFIER, groupings=groupings))
    check(path, confirm=False)
    return path


@pytest.fixture(params=["duckdb", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
            for statement in STATEMENTS:
                connection.execute(statement)
        yield "duckdb:///grocer.duckdb"
        return
    import psycopg

    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url) as connection:
            for statement in STATEMENTS:
                connection.execute(statement.encode())
        yield url


def _spent(house: House) -> tuple[float, float]:
    return house.most_spent("baskets"), (house.service.report_balances(None).unit_spent_nano or 0) / 1e9


def test_a_household_counts_in_as_many_weeks_as_is_declared_of_weeks(source: str, tmp_path: Path) -> None:
    """All 2,000 households are in each week, far more than 1,200; bounded to two of six weeks about 667 count."""
    with opened(_serve(tmp_path, source, GROUPINGS)) as house, house.connect() as connection:
        told = notices(connection)
        assert len(connection.execute(WEEKS).fetchall()) == 6
        assert "of 6 groups" not in " ".join(told)
        group, unit = _spent(house)
        assert unit == pytest.approx(6 * group)
        by_store = "SELECT store FROM baskets GROUP BY store HAVING count(DISTINCT household) > 400"
        assert len(connection.execute(by_store).fetchall()) == 4
        assert "each (household), which counts in at most 2 of 4 groups;" in " ".join(told)
        stores = _spent(house)
        both = "SELECT week, store FROM baskets GROUP BY week, store HAVING count(*) > 300"
        assert len(connection.execute(both).fetchall()) == 24
        dearest = _spent(house)[1] - stores[1]
        assert dearest > 0
        (plan,) = [
            "\n".join(line for (line,) in connection.execute(f"EXPLAIN VERBOSE {both}").fetchall()),
        ]
        assert "one (household) is in at most 12 of 24 groups, and its rows in others do not count" in plan


def test_without_a_bound_of_its_own_the_answer_says_what_is_left_out(source: str, tmp_path: Path) -> None:
    with opened(_serve(tmp_path, source, "store = { max_groups = 2 }")) as house, house.connect() as connection:
        told = notices(connection)
        assert connection.execute(WEEKS).fetchall() == []
        assert "each (household), which counts in at most 2 of 6 groups;" in " ".join(told)
        group, unit = _spent(house)
        assert unit == pytest.approx(2 * group)


def test_an_owner_tells_analysts_how_many_rows_bounds_leave_out(source: str, tmp_path: Path) -> None:
    """Of six weeks of a household two count: two thirds of the rows are left out, and analysts hear what is told."""
    said = "bounds leave out 67 % of the table's rows over all groups by week"
    silent = "store = { max_groups = 2 }"
    path = _serve(tmp_path, source, silent)
    with opened(path) as house, house.connect() as connection:
        heard = notices(connection)
        connection.execute(WEEKS)
        plan = connection.execute(f"EXPLAIN {WEEKS}").fetchall()
        assert "the owner says" not in f"{heard} {plan}".lower()
    (table,) = measure(path, check(path, confirm=False).pinning.catalog)
    # Of a household's six rows in its store four count: 8,500 of 12,500 rows are left, exactly 32 % are not.
    by_store, pasted = (line.partition(": ")[2] for line in table.write_lines() if "cut_rows" in line)
    assert (by_store, pasted) == ('cut_rows."store" = "32 %"', 'cut_rows."week" = "67 %"')
    path = _serve(tmp_path, source, silent)
    path.write_text(path.read_text().replace("rows_per_unit = 4\n", f"rows_per_unit = 4\n{pasted}\n"))
    (table,) = measure(path, check(path, confirm=False).pinning.catalog)
    assert 'cut_rows."week"' not in "".join(table.write_lines())
    with opened(path) as house, house.connect() as connection:
        heard = notices(connection)
        connection.execute(WEEKS)
        assert f"rows without household are left out. The owner says: {said}" in " ".join(heard)
        plan = [one for (one,) in connection.execute(f"EXPLAIN {WEEKS}").fetchall()]
        assert any(line.startswith("  Bounds: ") and line.endswith(f"; the owner says: {said}") for line in plan)
        plan = [one for (one,) in connection.execute(f"EXPLAIN VERBOSE {WEEKS}").fetchall()]
        assert f"  Bounding: the owner says: {said}" in plan
        heard.clear()
        connection.execute("SELECT store FROM baskets GROUP BY store HAVING count(DISTINCT household) > 400")
        assert heard
        assert "owner says" not in " ".join(heard)


def test_check_lists_what_is_declared_by_grouping(source: str, tmp_path: Path) -> None:
    lines = check(_serve(tmp_path, source, '"week, store" = { max_groups = 9, rows = 1 }'), confirm=False).lines()
    assert "  by week, store: in at most 9 groups, at most 1 row in one" in lines
