"""`keyhole risk`: from the policy alone, with presence apart from which group, and nothing that runs on its page."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from proxy.owner.risk.targets import parse_target

SHARE = "SELECT ward FROM visits GROUP BY ward HAVING 1.0 * count(*) FILTER (WHERE age > 60) / count(*) > 0.5"
PLAIN = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1500"


def sections(run: Any, *arguments: str) -> dict[str, Any]:
    document = run("risk", *arguments, "--json").document
    return {one["section"]: one for one in document["sections"]}


def test_it_opens_neither_source_nor_ledger(policy: Path, run: Any, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").unlink()
    files = {path.name for path in tmp_path.iterdir()}
    told = run("risk", PLAIN)
    assert told.status == 0
    assert {path.name for path in tmp_path.iterdir()} == files
    assert "No private row was read" in told.out


def test_presence_has_epsilon_and_which_group_twice_that(policy: Path, run: Any) -> None:
    promised = sections(run)["promised"]
    cell = promised["figures"]["group"]
    assert (cell["presence"]["epsilon"], cell["which_group"]["epsilon"]) == (4.0, 8.0)
    assert cell["presence"]["odds"] == pytest.approx(math.exp(4))
    assert cell["which_group"]["odds"] == pytest.approx(math.exp(8))
    said = " ".join(promised["sentences"])
    assert "Presence: whether" in said
    assert "Which group: of a unit that is surely there" in said
    assert "twice the epsilon counts: 8" in said


def test_a_fixed_list_is_told_apart_from_an_analyst_at_work(policy: Path, run: Any) -> None:
    found = sections(run, PLAIN, PLAIN.replace("1500", "1900"))["questions"]
    figures = found["figures"]
    assert figures["epsilon"] == pytest.approx(sum(one["epsilon"] for one in figures["questions"]))
    assert figures["adaptive"]["advantage"] == pytest.approx(math.tanh(figures["epsilon"] / 2))
    assert figures["fixed_list_only"]["advantage"] < figures["adaptive"]["advantage"]
    assert any("Only if this list was fixed beforehand" in text for text in found["sentences"])
    assert any("an analyst at work never is" in text for text in found["sentences"])


def test_shares_that_a_question_says_are_flagged(policy: Path, run: Any) -> None:
    found = sections(run, SHARE, PLAIN)["questions"]
    first, second = found["figures"]["questions"]
    ((said),) = first["said_outright"]
    assert (said["share"], said["above"], said["columns"]) == (0.5, True, ["age"])
    assert second["said_outright"] == []
    assert any(text.startswith("Said outright by question 1: ") for text in found["sentences"])


def test_stored_questions_are_held_against_it(policy: Path, run: Any) -> None:
    policy.write_text(policy.read_text() + f'\n[views.busy]\nsql = "{PLAIN}"\n')
    (one,) = sections(run, "--views")["questions"]["figures"]["questions"]
    assert one["name"] == "busy"


@pytest.mark.parametrize("pinned", [False, True])
def test_a_stored_question_with_parameters_is_held_against_it(policy: Path, run: Any, *, pinned: bool) -> None:
    """Also where only a parameter is compared with a column of which the policy says nothing."""
    sql = "SELECT ward FROM visits WHERE id >= :least GROUP BY ward HAVING count(*) > :many"
    more = f"[views.some]\nsql = '{sql}'\nparameters = {{ least = 5, many = 1000 }}\n"
    policy.write_text(f"{policy.read_text()}\n{more}")
    if pinned:
        assert run("check").status == 0
    (one,) = sections(run, "--views")["questions"]["figures"]["questions"]
    assert one["name"] == "some"


def test_least_groups_are_those_of_the_cap(policy: Path, run: Any) -> None:
    policy.write_text(policy.read_text().replace("epsilon_per_predicate = 4.0", "epsilon_per_predicate = 2.0"))
    groups = sections(run)["groups"]["figures"]
    least = {(one["within"], one["share"]): one["least_group"] for one in groups["least"]}
    assert (least[0.2, 0.3], least[0.2, 0.5], least[0.2, 0.8]) == (6, 4, 2)


def test_what_was_spent_is_the_odometers(policy: Path, run: Any) -> None:
    assert run("check").status == 0
    nothing = sections(run, "--from", "ledger")
    assert "Nothing was told" in nothing["spent"]["sentences"][0]
    assert run("query", PLAIN).status == 0
    (read,) = run("odometer", "--json").document["tables"]
    (spent,) = sections(run, "--from", "ledger")["spent"]["figures"]["tables"]
    assert spent["presence"]["epsilon"] == read["epsilon"]
    assert spent["which_group"]["epsilon"] == 2 * read["epsilon"]


def test_the_page_has_no_script_and_no_address(policy: Path, run: Any, tmp_path: Path) -> None:
    page = tmp_path / "risk.html"
    assert run("risk", SHARE, "--simulate", "1", "--html", str(page)).status == 0
    text = page.read_text()
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert "(WHERE age &gt; 60)" in text
    assert "<svg" in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize(
    ("wish", "epsilon", "which"),
    [
        ("advantage 0.1", 0.2006, None),
        ("posterior 0.01 -> 0.05", 1.6506, 0.8253),
        ("guess 100 0.05", 1.6094, 1.6094),
        ("Advantage .5", 1.0986, None),
        ("advantage 10%", 0.2006, None),
        ("posterior 1 % -> 5%", 1.6506, 0.8253),
        ("guess 100 5%", 1.6094, 1.6094),
    ],
)
def test_wishes_are_budgets_rounded_down(wish: str, epsilon: float, which: float | None) -> None:
    target = parse_target(wish)
    assert target.epsilon == pytest.approx(epsilon, abs=1.01e-4)
    assert target.which_epsilon == (None if which is None else pytest.approx(which, abs=1.01e-4))


@pytest.mark.parametrize("wish", ["advantage 1", "posterior 0.5 -> 0.4", "guess 10 0.1", "safe", "guess 1 0.5"])
def test_a_wish_that_nothing_keeps_is_refused(policy: Path, run: Any, wish: str) -> None:
    told = run("risk", "--target", wish)
    assert told.status == 2
    assert "Traceback" not in told.err


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ("advantage 0,1", 'say "advantage 0.1"'),
        ("advantage=10 percent", 'say "advantage 10%"'),
        ("advantage 10", "10 is no share between 0 and 1: write 10%"),
        ("advantage", 'say "advantage 0.1"'),
        ("posterior 1% to 5%", 'say "posterior 1% -> 5%"'),
        ("posterior 0.01", 'say "posterior 0.01 -> 0.05"'),
        ("guess 1,000 0,05", 'say "guess 1000 0.05"'),
        ("guess 0.05", 'say "guess 100 0.05": of 100 values'),
        ("10%", 'say "advantage 0.1", "posterior 0.01 -> 0.05" or "guess 100 0.05"'),
    ],
)
def test_a_wish_in_other_words_is_told_the_form_that_is_read(wish: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        parse_target(wish)


def test_a_wish_stands_in_the_report(policy: Path, run: Any) -> None:
    assert "epsilon_per_predicate = 0.2006" in run("risk", "--target", "advantage 0.1").out


@pytest.mark.parametrize("text", ["", "SELECT 1", "SET keyhole.fnr = 0.1"])
def test_a_text_without_a_question_is_told(policy: Path, run: Any, text: str) -> None:
    told = run("risk", PLAIN, text)
    assert (told.status, told.out) == (2, "")
    assert "question 2 asks nothing of a private table" in told.err


def test_a_refused_question_is_a_refusal(policy: Path, run: Any) -> None:
    told = run("risk", "SELECT ward, count(*) FROM visits GROUP BY ward")
    assert (told.status, told.out) == (1, "")
    assert told.err.startswith("ERROR:  KH101")
