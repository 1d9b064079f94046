"""`keyhole simulate`: what a question would cost, without data."""

from pathlib import Path
from typing import Any

import pytest


def test_a_simulation_holds_the_question_against_a_cap_of_its_own(policy: Path, run: Any) -> None:
    sized = ("simulate", SIMULATED, "--units", "3000")
    free = run(*sized, "--json").document
    tight = run(*sized, "--json", "--max-epsilon", "0.05").document
    assert (free["first_cap"], tight["first_cap"]) == ("epsilon_per_predicate", "max_epsilon")
    assert tight["questions_that_fit"] == 0
    assert tight["epsilon_per_group"] == free["epsilon_per_group"] > 0.05
    assert "it would be refused (keyhole.max_epsilon)" in run(*sized, "--max-epsilon", "0.05").out
    assert run(*sized, "--json", "--max-epsilon", "9").document == free


SIMULATED = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1500 OR sum(age) > 90000"


def test_a_simulation_needs_neither_source_nor_pins_nor_ledger(policy: Path, run: Any, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").unlink()
    files = {path.name for path in tmp_path.iterdir()}
    told = run("simulate", SIMULATED, "--units", "3000")
    assert told.status == 0
    assert told.out.startswith("Simulated: 3 groups of visits (ward), 3,000 privacy units (row); no data, no source")
    assert "Bounding: nothing is cut, each row is its own unit" in told.out
    assert " such questions fit (budget.epsilon_per_predicate is reached first)" in told.out
    assert {path.name for path in tmp_path.iterdir()} == files


def test_a_simulation_costs_what_the_question_costs(policy: Path, run: Any) -> None:
    simulated = run("simulate", SIMULATED, "--units", "3000", "--json", "--tolerance", "7%").document
    run("check")
    explained = run("explain", SIMULATED, "--json", "--tolerance", "7%").document
    assert simulated["epsilon_per_group"] == explained["worst_case_epsilon"]
    assert simulated["plan"]["formula"] == explained["formula"]
    assert simulated["plan"]["sql"].replace('"', "").count("count(") == explained["sql"].count("count(")
    assert simulated["stand_ins"] == []
    assert simulated["questions_that_fit"] == int(4.0 / simulated["epsilon_per_group"])
    assert simulated["units_per_group"] == 1000


def bounded(policy: Path) -> None:
    text = policy.read_text().replace(
        'privacy_unit = "row"', 'privacy_unit = "id"\nmax_groups_per_unit = 2\nrows_per_unit = 5'
    )
    text = text.replace("bounds = [0, 110]", "bounds = [0, 110]\nper_unit = [0, 200]")
    text = text.replace("epsilon_per_query = 0.5", "epsilon_per_query = 0.5\nepsilon_per_unit = 6.0")
    policy.write_text(text.replace('key = { values = ["A", "B", "[bold]C"] }', ""))


def test_what_a_simulation_proposes_fits_as_often_as_it_says(policy: Path, run: Any) -> None:
    bounded(policy)
    sizes = ("--units", "20000", "--keys", "60", "--rows", "60000")
    sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 300"
    first = run("simulate", sql, *sizes, "--json", "--tolerance", "1%").document
    assert first["questions_that_fit"] == 0
    assert first["first_cap"] == "epsilon_per_query"
    assert first["epsilon_per_unit"] == 2 * first["epsilon_per_group"]
    assert first["stand_ins"] == ["ward has 60 public values"]
    (cut,) = first["bounding"]["cut"]
    assert 0 < cut["spread"] < cut["together"] < 1
    proposals = [(one["questions"], text) for one in first["affordable"] for text in one["settings"]]
    assert {questions for questions, _ in proposals} >= {1, 5}
    for questions, setting in proposals:
        name, _, value = setting.removeprefix("keyhole.").partition(" = ")
        given = ["--tolerance", "1%"] if name == "fnr" else []
        again = run("simulate", sql, *sizes, "--json", *given, f"--{name}", value.strip("'")).document
        assert again["questions_that_fit"] >= questions
    printed = run("simulate", sql, *sizes, "--tolerance", "1%").out
    assert "The caps: it would be refused (budget.epsilon_per_query)" in printed
    assert "Bounding cuts about " in printed
    assert "    - every row adds the middle of its column's bounds to a sum" in printed


def test_a_simulation_assumes_no_number_of_groups(policy: Path, run: Any) -> None:
    """With 2 of 60 groups counting, most of whoever is in 20 is left out: that is said, or asked for."""
    bounded(policy)
    told = (
        "simulate",
        "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 300",
        "--units",
        "20000",
        "--keys",
        "60",
    )
    unknown = run(*told)
    assert "Groups: a (id) counts in 2 of 60; what it has in others is left out." in unknown.out
    assert run(*told, "--json").document["bounding"]["groups_left_out"] is None
    many = run(*told, "--rows", "800000", "--groups", "20")
    assert "Groups: a (id) in 20 groups counts in 2: 90 % of it is left out" in many.out
    assert "it is in exactly so many groups, and its rows in each are geometric" in many.out
    assert run(*told, "--groups", "20", "--json").document["bounding"]["groups_left_out"] == 0.9
    assert "Groups:" not in run(*told, "--groups", "2").out


def test_a_simulation_asks_for_the_sizes_it_needs_and_refuses_as_a_question_does(policy: Path, run: Any) -> None:
    bounded(policy)
    sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 300"
    missing = run("simulate", sql, "--units", "20000")
    assert missing.status == 2
    assert "--keys: the policy lists no values of ward" in missing.err
    assert run("simulate", sql).status == 2
    told = run("simulate", "SELECT ward, count(*) FROM visits GROUP BY ward", "--units", "9", "--keys", "2", "--json")
    assert (told.status, told.document["code"]) == (1, "KH101")
    assert run("simulate", sql, "--units", "9", "--keys", "2", "--policy", "nowhere.toml").status == 1


def test_a_constant_question_costs_nothing_in_a_simulation(policy: Path, run: Any) -> None:
    always = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 OR count(*) <= 5"
    document = run("simulate", always, "--units", "10", "--json").document
    assert (document["epsilon_per_group"], document["questions_that_fit"], document["affordable"]) == (0, None, [])
    assert "the answer is exact and nothing was spent" in run("simulate", always, "--units", "10").out


def test_a_simulation_of_the_example_policy_needs_none_of_its_secrets(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KEYHOLE_SOURCE_PASSWORD", "KEYHOLE_LEDGER_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    example = Path(__file__).resolve().parents[3] / "deploy" / "policies" / "hospital.toml"
    sql = "SELECT disease FROM visits GROUP BY disease HAVING count(*) > 400"
    told = run("simulate", sql, "--policy", str(example), "--units", "20000", "--keys", "60", "--rows", "50000")
    assert told.status == 0
    assert "disease has 60 public values" in told.out
