"""The report on ordinary questions: thresholds are relaxed rightly, and a world is asked and held against the truth."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.people.__main__ import relax, score_world
from benchmarks.people.many_groups import CONTRACTS, count_answered, count_peers, make_worlds
from benchmarks.people.worlds import WORLDS


def test_thresholds_are_relaxed_outward() -> None:
    question = "HAVING count(*) > {200} AND sum(x) < {-50} AND avg(y) > {0.5}"
    assert relax(question, 0.0) == "HAVING count(*) > 200 AND sum(x) < 50 AND avg(y) > 0.5"
    assert relax(question, 0.1) == "HAVING count(*) > 180 AND sum(x) < 55 AND avg(y) > 0.45"


def test_comparisons_with_other_groups_are_relaxed_by_an_amount() -> None:
    question = "HAVING sum(x) > 0.1 * (SELECT sum(x) FROM t){-} OR sum(x) < avg(sum(x)) OVER (){+}"
    assert relax(question, 0.1) == "HAVING sum(x) > 0.1 * (SELECT sum(x) FROM t) OR sum(x) < avg(sum(x)) OVER ()"
    assert relax(question, 0.0, 5000) == (
        "HAVING sum(x) > 0.1 * (SELECT sum(x) FROM t) - 5000 OR sum(x) < avg(sum(x)) OVER () + 5000"
    )


@pytest.mark.parametrize("world", WORLDS, ids=[world.name for world in WORLDS])
def test_every_world_has_40_questions_and_its_first_are_answered(world: object, tmp_path: Path) -> None:
    (found,) = [one for one in WORLDS if one is world]
    assert len(found.questions) == 40
    compared = [one for one in found.questions if one.form in ("data", "trend")]
    assert len(compared) == 10
    score = score_world(replace(found, questions=(*found.questions[:2], compared[0])), tmp_path)
    assert (score.asked, score.answered) == (3, 3)
    assert score.qualify > 0
    assert score.found <= min(score.qualify, score.returned)
    assert score.right <= score.returned


def test_peers_fit_as_many_as_their_formulas_say() -> None:
    found = count_peers(CONTRACTS[0])
    # 8 / (52 * ln(1 / .1) / 100 + ..): 2.03 a question; Gaussian noise of 34.2, rho .65 of 8 and 1e-9
    assert found["Laplace, pure"] == 3
    assert found["Gaussian, zCDP"] == 29
    assert found["Laplace, pure"] < found["Laplace, exact list"] < found["Gaussian, zCDP"]
    assert found["Gaussian, zCDP"] < found["Gaussian, Rényi"] < found["Gaussian, exact list"]


def test_questions_are_answered_until_the_most_that_are_asked(tmp_path: Path) -> None:
    contract = CONTRACTS[0]
    assert count_answered(make_worlds(contract[2])[0], contract, tmp_path, most=2) == 2
