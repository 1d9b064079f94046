"""`keyhole risk --attacker --prior`: from given files alone, in classes of confidence; wrong files are told."""

from pathlib import Path
from typing import Any

import pytest

from mechanisms.risk.posterior import bound_belief_in_place
from tests.proxy.cli.risk.hospital import QUESTION, SHARE, install, write_prior
from tests.proxy.cli.risk.test_risk import sections


@pytest.fixture
def prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEYHOLE_POLICY", str(install(tmp_path)))
    monkeypatch.setenv("NO_COLOR", "1")
    return write_prior(tmp_path)


def porter(directory: Path) -> str:
    path = directory / "open.csv"
    path.write_text("room\nER\n", encoding="utf-8")
    return f"porter={path}"


def test_attackers_are_held_against_a_question(prior: Path, run: Any, tmp_path: Path) -> None:
    (tmp_path / "stays.csv").unlink()
    found = sections(run, SHARE, QUESTION, "--prior", str(prior), "--attacker", porter(tmp_path))["attackers"]
    figures = found["figures"]
    assert (figures["question"], figures["private"], figures["places"], figures["times"]) == ("question 2", False, 3, 2)
    outsider, knowing = figures["attackers"]
    assert (outsider["name"], outsider["known_counts"], knowing["name"], knowing["known_counts"]) == (
        "outsider",
        0,
        "porter",
        2,
    )
    assert outsider["people"] == pytest.approx(160, abs=1)
    assert 0 < knowing["people"] < outsider["people"]
    for attacker in figures["attackers"]:
        shown = {one["view"]: one for one in attacker["shown"]}
        assert list(shown) == ["nothing", "key set", "patient analyst", "exact key set", "exact counts"]
        assert all(sum(one["people_by_class"]) == pytest.approx(attacker["people"]) for one in shown.values())
        assert shown["nothing"]["found_better"] == 0
        assert shown["patient analyst"]["mean_belief"] > shown["nothing"]["mean_belief"] - 0.01
        assert all(one["highest_belief"] <= 1 for one in shown.values())
    assert bound_belief_in_place(figures["epsilon"], prior=0.5) < 1
    assert any("two presences" in text for text in found["sentences"])
    assert any("Nothing was read" in text for text in found["sentences"])


def test_contracts_match_the_noise_to_the_answer(prior: Path, run: Any) -> None:
    """Wrong less often means more epsilon, for key set and noisy counts alike."""
    strict = f"SET keyhole.fpr = 0.02; {QUESTION}"
    usual, narrow = (
        sections(run, sql, "--prior", str(prior))["attackers"]["figures"]["epsilon"] for sql in (QUESTION, strict)
    )
    assert narrow > usual


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("room,hour,people\n", "has no group"),
        ("room,hour,people\nER,9\n", "line 2: 2 values"),
        ("room,hour,people\nER,9,many\n", "line 2: 'many' is no number"),
        ("room,hour,people\nER,9,-1\n", "line 2: '-1' is no number"),
        ("room,hour,people\nER,9,inf\n", "line 2: 'inf' is no number"),
        ("room,hour,people\nER,9,1\nER,9,2\n", "line 3: the same group"),
        ("people\n3\n", "has to name a place"),
        ("ward,people\nA,3\n", "give a question that compares one count"),
        ('room,hour,people\n"ER,9,1\n', "is no CSV file"),
        ("room,hour,people\nER,9,90000000\nICU,9,9\n", "more places, people and times"),
    ],
)
def test_a_prior_that_cannot_be_used_is_told(prior: Path, run: Any, text: str, told: str) -> None:
    prior.write_text(text, encoding="utf-8")
    ran = run("risk", QUESTION, "--prior", str(prior))
    assert ran.status == 2
    assert told in ran.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ward\nA\n", "columns are some of room,hour"),
        ("room\nER\nKitchen\n", "line 3: 'Kitchen' does not stand in the prior"),
        ("room\nER,9\n", "line 2: 2 values"),
    ],
)
def test_open_keys_that_cannot_be_used_are_told(prior: Path, run: Any, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "open.csv").write_text(text, encoding="utf-8")
    ran = run("risk", QUESTION, "--prior", str(prior), "--attacker", f"porter={tmp_path / 'open.csv'}")
    assert ran.status == 2
    assert told in " ".join(ran.err.split())


@pytest.mark.parametrize("typed", ["porter", "=open.csv", "porter=", "outsider={}", "porter=nowhere.csv"])
def test_an_attacker_without_name_or_file_is_told(prior: Path, run: Any, typed: str, tmp_path: Path) -> None:
    file = porter(tmp_path).partition("=")[2]
    ran = run("risk", QUESTION, "--prior", str(prior), "--attacker", typed.format(file))
    assert ran.status == 2
    assert "--attacker" in ran.err


def test_an_attacker_needs_a_prior(prior: Path, run: Any, tmp_path: Path) -> None:
    ran = run("risk", QUESTION, "--attacker", porter(tmp_path))
    assert ran.status == 2
    assert "--prior" in ran.err


@pytest.mark.parametrize(
    "having",
    ["count(*) > 20", "count(DISTINCT patient) < 20", "count(DISTINCT patient) > 20 OR count(DISTINCT patient) > 40"],
)
def test_only_one_count_of_people_is_held(prior: Path, run: Any, having: str) -> None:
    """A patient has several rows, so that rows are no people."""
    sql = f"SELECT room, hour FROM stays GROUP BY room, hour HAVING {having}"
    ran = run("risk", sql, "--prior", str(prior))
    assert (ran.status == 2) == ("OR" not in having)  # the canonical form of the last is one threshold
