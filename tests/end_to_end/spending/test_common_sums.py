"""Two thresholds of one mean, asked of a real policy: what is charged, told again for nothing, and charged again."""

from pathlib import Path

import duckdb
import pytest

from proxy.cli.check import check
from tests.worlds.house import VERIFIER, command, most_spent

ROWS = """
[tables.sales]
privacy_unit = "row"
refresh = "explicit"
[tables.sales.columns.shop]
key = { values = ["dear", "cheap", "usual", "small"] }
[tables.sales.columns.price]
bounds = [0, 100]
grid = 1
"""
PEOPLE = (
    ROWS.replace('privacy_unit = "row"', 'privacy_unit = "person"\nmax_groups_per_unit = 2\nrows_per_unit = 3')
    .replace("grid = 1", "grid = 1\nper_unit = [0, 300]")
    .replace("[tables.sales.columns.shop]", "[tables.sales.columns.person]\n[tables.sales.columns.shop]")
)
OUTSIDE = "SELECT shop FROM sales GROUP BY shop HAVING count(price) > 1000 AND (avg(price) > 60 OR avg(price) < 40)"
ACCURACY = ("--tolerance", "avg=5, count=500", "--min-rows", "1000")


@pytest.fixture(params=["row", "person"])
def policy(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Shops of 6,000 sales at 90, 10 and 50, and one of twenty; every person bought three times in each of two."""
    with duckdb.connect(str(tmp_path / "sales.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE sales AS SELECT 'dear' AS shop, n // 3 AS person, 90 AS price FROM range(6000) AS t(n)"
            " UNION ALL SELECT 'cheap', n // 3, 10 FROM range(6000) AS t(n)"
            " UNION ALL SELECT 'usual', 5000 + n // 3, 50 FROM range(6000) AS t(n)"
            " UNION ALL SELECT 'small', 9000 + n, 90 FROM range(20) AS t(n)"
        )
    path = tmp_path / "keyhole.toml"
    source = f'[source]\nurl = "duckdb:///{tmp_path}/sales.duckdb"\n'
    budget = "[budget]\nepsilon_per_predicate = 4.0\nepsilon_per_query = 3.0\n"
    if request.param == "person":
        budget += "epsilon_per_unit = 8.0\n"
    tables = ROWS if request.param == "row" else PEOPLE
    path.write_text(f'{source}{budget}{tables}[analysts.ada]\npassword = "{VERIFIER}"\n', encoding="utf-8")
    check(path, confirm=False)
    return path


def test_it_is_answered_charged_and_told_again(policy: Path) -> None:
    """All shops lie five tolerances or more from every threshold: another answer has a probability below 1e-6."""
    explained = command("explain", policy, *ACCURACY, OUTSIDE)
    assert explained["worst_case_epsilon"] < 0.9 * explained["apart_epsilon"]
    assert sorted(len(one["read_by"]) for one in explained["common_sums"]) == [2, 3]
    first = command("query", policy, *ACCURACY, OUTSIDE)
    assert {tuple(key) for key in first["keys"]} == {("dear",), ("cheap",)}
    spent = most_spent(command("budget", policy), "sales")
    assert 0 < spent <= explained["worst_case_epsilon"]
    again = command("query", policy, *ACCURACY, OUTSIDE)
    assert again["keys"] == first["keys"]
    assert most_spent(command("budget", policy), "sales") == spent


def test_another_threshold_is_charged_in_full(policy: Path) -> None:
    """Nothing of the first question's noise serves the second, or a question about the count alone."""
    command("query", policy, *ACCURACY, "--mechanism", "keyhole", OUTSIDE)
    spent = most_spent(command("budget", policy), "sales")
    other = OUTSIDE.replace("> 60", "> 61")
    count = "SELECT shop FROM sales GROUP BY shop HAVING count(price) > 1000"
    for asked in (other, count):
        price = command("explain", policy, *ACCURACY, "--mechanism", "keyhole", asked)["worst_case_epsilon"]
        command("query", policy, *ACCURACY, "--mechanism", "keyhole", asked)
        before, spent = spent, most_spent(command("budget", policy), "sales")
        assert spent == pytest.approx(before + price, abs=1e-8)
