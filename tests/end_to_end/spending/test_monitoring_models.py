"""What docs/monitoring-models.md says of models is policy that runs, at the costs that stand there."""

import re
from math import ceil
from pathlib import Path

import duckdb
import pytest

from proxy.cli.check import check
from tests.worlds.house import VERIFIER, command

PAGE = (Path(__file__).parents[3] / "docs" / "monitoring-models.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
MISCALIBRATED = """
SELECT model, bin FROM scored GROUP BY model, bin
HAVING count(score) > 200 AND (sum(y - score) > 20 OR sum(y - score) < -20)"""
BY_MEANS = """
SELECT model, bin FROM scored GROUP BY model, bin HAVING avg(y - score) > 0.05 OR avg(y - score) < -0.05"""
COUNTED_MEANS = BY_MEANS.replace("HAVING", "HAVING count(y - score) > 200 AND (") + ")"
SEPARATES = """
SELECT model FROM scored GROUP BY model
HAVING 1.0 * count(*) FILTER (WHERE y = 1 AND score > 0.5) / count(*) FILTER (WHERE y = 1) > 0.5"""
GUARDED = f"{SEPARATES} AND count(*) FILTER (WHERE y = 1) >= 50"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """400 people in each of 16 bins; the second model's scores are .25 too low in bins up to 3, as it happened."""
    with duckdb.connect(str(tmp_path / "scores.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE scored AS SELECT model, person // 400 AS bin, person, (person // 400 + 0.5) / 16 AS score,"
            " CAST(person % 400 < 400 * least(1, (person // 400 + 0.5) / 16"
            " + CASE WHEN model = 'overconfident' AND person // 400 <= 3 THEN 0.25 ELSE 0 END) AS integer) AS y"
            " FROM range(6400) AS people(person), (VALUES ('fitted'), ('overconfident')) AS models(model)"
        )
    path = tmp_path / "keyhole.toml"
    source = f'[source]\nurl = "duckdb:///{tmp_path}/scores.duckdb"\n'
    budget = "[budget]\nepsilon_per_predicate = 4.0\nepsilon_per_unit = 8.0\nepsilon_per_query = 2.0\n"
    recipes = "\n".join(BLOCKS)
    path.write_text(f'{source}{budget}{recipes}\n[analysts.ada]\npassword = "{VERIFIER}"\n', encoding="utf-8")
    return path


def test_the_recipes_are_a_policy_whose_questions_a_budget_pays_for(policy: Path) -> None:
    lines = check(policy, confirm=False).lines()
    assert [line for line in lines if "views." in line] == []


@pytest.mark.parametrize(
    ("sql", "settings", "written"),
    [
        (MISCALIBRATED, (), "0.42 epsilon"),
        (BY_MEANS, ("--min-rows", "400", "--tolerance", "0.03"), "0.48"),
        (COUNTED_MEANS, ("--min-rows", "400", "--tolerance", "0.03, count=100"), "0.50"),
        (SEPARATES, ("--min-rows", "500", "--tolerance", "20%"), "0.04 epsilon"),
        (GUARDED, ("--min-rows", "500", "--tolerance", "20%"), "0.44 in all"),
    ],
)
def test_a_recipe_costs_what_is_written(policy: Path, sql: str, settings: tuple[str, ...], written: str) -> None:
    check(policy, confirm=False)
    cost = command("explain", policy, *settings, sql)["worst_case_epsilon"]
    assert written in " ".join(PAGE.split())
    assert f"{ceil(100 * cost) / 100:.2f}" == written[:4]  # EXPLAIN rounds up, and so does the page


def test_explain_says_what_both_sides_of_a_mean_cost(policy: Path) -> None:
    """Read off one sum and one count; by a published mechanism each side is a sum of its own, as EXPLAIN warns."""
    check(policy, confirm=False)
    settings = ("--min-rows", "400", "--tolerance", "0.03, sum=12, count=100")

    def advice(sql: str, *others: str) -> list[str]:
        warnings: list[str] = command("explain", policy, *settings, *others, sql)["warnings"]
        return [one for one in warnings if one.startswith("avg(y - score) against 0.05 and against -0.05 is two sums")]

    told = command("explain", policy, *settings, BY_MEANS)
    assert told["apart_epsilon"] > 1.7 * told["worst_case_epsilon"]
    assert f"{ceil(100 * told['apart_epsilon']) / 100:.2f}" in PAGE
    assert [one["name"] for one in told["common_sums"]] == ["the sum of avg(y - score)", "the count of avg(y - score)"]
    assert advice(BY_MEANS) == []
    (by_hand,) = advice(BY_MEANS, "--mechanism", "tslm")
    assert "sum(y - score) > 20 OR sum(y - score) < -20, which is the same for a group of 400 rows" in by_hand
    assert advice(BY_MEANS.replace("-0.05", "-0.06"), "--mechanism", "tslm") == []
    assert advice(MISCALIBRATED, "--mechanism", "tslm") == []


def test_what_is_off_is_found(policy: Path) -> None:
    """Four bins are off by 100, five times the line, all others by three at most. The noise is the test's own in every
    run; with other noise one of the four is missed with a probability below 1 in 50."""
    check(policy, confirm=False)
    found = command("query", policy, MISCALIBRATED)["keys"]
    assert {("overconfident", bin_) for bin_ in "0123"} <= {tuple(key) for key in found}
