"""Gradual tests or arc looks: what is chosen, what is said of it, and that as many questions fit as is said."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.protocol import Outcome
from mechanisms.threshold.renyi import NO_CURVE
from planner.errors import KeyholeError
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_question
from proxy.pipeline.claim import find_run_loss, make_current_claim
from proxy.pipeline.messages import read_bare_question
from tests.proxy.pipeline.test_unit_delta import (
    POLICY,
    WITH_DELTA,
    Open,
    ask,
    explained_further,
    opened,
    put,
    simulated_fit,
)

__all__ = ["opened"]
SENTENCE = r"Tests: arc looks, since at least (\d+) such questions fit \(gradual tests: (\d+)\)"


def find_mechanism(service: Service, number: int = 1, threshold: int = 700, /, **settings: str) -> str:
    asked = put(service, number, threshold, **settings)
    return pipeline.plan_asked_question(service, asked).calibration.mechanism


def test_arc_looks_are_chosen_where_more_fit_and_as_many_fit_as_is_said(opened: Open, tmp_path: Path) -> None:
    with opened(WITH_DELTA) as service:
        asked = put(service, 1, test="auto")
        told = re.search(SENTENCE, "\n".join(explain_question(service, asked, form="verbose")))
        assert told is not None
        arc, gradual = int(told[1]), int(told[2])
        assert gradual == explained_further(service, put(service, 1, test="gradual"))
        assert arc == explained_further(service, asked) == simulated_fit(tmp_path, "auto") >= 2 * gradual
        for number in range(1, arc + 1):
            ask(service, put(service, number, test="auto"))


def test_without_a_setting_the_choice_is_made(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        assert find_mechanism(service, test="") == "arc_looks"


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("", {"test": "auto"}),
        (WITH_DELTA, {"test": "gradual"}),
        (WITH_DELTA, {"test": "auto", "tolerance": "10"}),
        (WITH_DELTA, {"test": "auto", "tolerance": "35"}),
    ],
    ids=["no delta", "not wanted", "below twelve units", "as many fit"],
)
def test_gradual_tests_stay_where_arc_looks_leave_no_more(opened: Open, line: str, settings: dict[str, str]) -> None:
    with opened(line) as service:
        assert find_mechanism(service, **settings) == "progressive"


@pytest.mark.parametrize("mechanism", ["keyhole", "tslm", "naive"])
def test_another_mechanism_stays(opened: Open, mechanism: str) -> None:
    with opened(WITH_DELTA) as service:
        assert find_mechanism(service, mechanism=mechanism, test="arc") == mechanism


def test_a_policy_that_does_not_allow_arc_looks_has_none(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = POLICY.replace("[accuracy]\n", '[accuracy]\nmechanisms = ["progressive", "keyhole"]\n')
    monkeypatch.setattr("tests.proxy.pipeline.test_unit_delta.POLICY", allowed)
    with opened(WITH_DELTA) as service:
        assert {find_mechanism(service, test=test) for test in ("auto", "arc", "gradual")} == {"progressive"}


def test_what_gradual_tests_answered_or_can_read_costs_nothing_again(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        first = ask(service, put(service, 1, test="gradual"))
        before = service.report_balances(None).unit_loss
        assert ask(service, put(service, 1, test="auto")).keys.keys == first.keys.keys
        ask(service, put(service, 1, 600, test="auto"))  # reads the same noise
        assert service.report_balances(None).unit_loss == before
        assert find_mechanism(service, 2, test="auto") == "arc_looks"
        assert find_mechanism(service, 1, test="arc") == "arc_looks"


def test_what_arc_looks_answered_is_stored(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        first = ask(service, put(service, 1, test="auto"))
        before = service.report_balances(None).unit_loss
        assert ask(service, put(service, 1, test="auto")).keys.keys == first.keys.keys
        assert ask(service, put(service, 1, mechanism="arc_looks")).keys.keys == first.keys.keys
        assert service.report_balances(None).unit_loss == before


def test_an_answer_of_arc_looks_stays_the_answer_beside_noise_of_gradual_tests(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        first = ask(service, put(service, 1, test="auto"))
        ask(service, put(service, 1, 600, test="gradual"))
        before = service.report_balances(None).unit_loss
        assert find_mechanism(service, 1, 650, test="auto") == "progressive"
        for analyst in ("ada", "bob"):
            again = ask(service, put(service, 1, test="auto", analyst=analyst))
            assert (again.is_reused, again.reservation) == (True, first.reservation)
        assert service.report_balances(None).unit_loss == before


def test_of_two_answers_the_one_that_was_paid_for_is_given(opened: Open) -> None:
    with opened(WITH_DELTA) as service:
        of_ada = ask(service, put(service, 1, test="gradual"))
        of_bob = ask(service, put(service, 1, test="arc", analyst="bob"))
        for analyst, stored in (("ada", of_ada), ("bob", of_bob)):
            assert ask(service, put(service, 1, test="auto", analyst=analyst)).reservation == stored.reservation


def test_who_pays_for_reading_is_not_sent_to_an_answer_of_arc_looks(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = POLICY.replace("[analysts.ada]\n", "[analysts.ada]\nepsilon_per_unit = 3.0\n")
    monkeypatch.setattr("tests.proxy.pipeline.test_unit_delta.POLICY", own)
    with opened(WITH_DELTA) as service:
        ask(service, put(service, 1, test="arc", analyst="bob"))
        ask(service, put(service, 1, 600, test="gradual", tolerance="50"))
        assert find_mechanism(service, 1, test="auto") == "progressive"


def test_gradual_tests_are_taken_if_they_alone_still_fit(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """One group has .05 left: less than arc looks need, which are charged their pure loss there."""
    policy = POLICY.replace("epsilon_per_predicate = 4.0", "epsilon_per_predicate = 1.0")
    monkeypatch.setattr("tests.proxy.pipeline.test_unit_delta.POLICY", policy)
    with opened(WITH_DELTA) as service:
        assert find_mechanism(service, test="auto") == "arc"
        for tolerance in ("5", "150"):
            text = "SELECT week FROM baskets WHERE week = 1 AND kind <> 9 GROUP BY week HAVING count(*) > 700"
            asked = put(service, 9, mechanism="tslm", tolerance=tolerance, reuse="off")
            ask(service, replace(asked, question=read_bare_question(text, service.catalog)))
        with pytest.raises(KeyholeError, match="not enough budget"):
            ask(service, put(service, 2, test="arc"))
        assert find_mechanism(service, 2, test="auto") == "progressive"
        ask(service, put(service, 2, test="auto"))


@pytest.mark.parametrize("mechanism", ["arc", "arc_looks"])
@pytest.mark.parametrize(
    ("ending", "returned"),
    [
        ("GROUP BY week HAVING count(*) > -5", 24),
        ("GROUP BY week HAVING count(*) < 0", 0),
        ("WHERE week = 99 GROUP BY week HAVING count(*) > 700", 0),
        ("GROUP BY week ORDER BY count(*) DESC LIMIT 24", 24),
    ],
    ids=["always true", "never true", "no group", "a ranking"],
)
def test_questions_without_a_threshold_are_answered_by_arc_looks(
    opened: Open, mechanism: str, ending: str, returned: int
) -> None:
    with opened(f"{WITH_DELTA}\ndelta_per_cell = 1e-9") as service:
        question = read_bare_question(f"SELECT week FROM baskets {ending}", service.catalog)
        answer = ask(service, replace(put(service, 1, mechanism=mechanism), question=question))
        assert len(answer.keys.keys) == returned


def test_looks_that_did_not_run_come_back_and_the_ledger_replays_it(opened: Open) -> None:
    """All groups are far above the threshold, where one look of three settles them."""
    with opened(f"{WITH_DELTA}\ndelta_per_cell = 1e-9") as service:
        asked = put(service, 1, test="auto")
        told = explained_further(service, asked)
        assert "Looks that do not run are refunded" in "\n".join(explain_question(service, asked, form="verbose"))
        for number in range(1, 2 * told):
            ask(service, put(service, number, test="auto"))
        history = service.ledger.read_history()
        assert {one.charge.is_by_curve for one in history} == {True}
        for one in history:
            assert one.spent is not None
            assert one.spent.renyi is not None
            assert one.charge.renyi is not None
            assert all(ran < most for ran, most in zip(one.spent.renyi, one.charge.renyi, strict=True))
            assert one.spent.epsilon_nano in [look.epsilon_nano for look in one.charge.looks]
        assert service.ledger.verify_everything() == 2 * len(history)
        before = service.report_balances(None).unit_loss
    with opened(f"{WITH_DELTA}\ndelta_per_cell = 1e-9") as service:
        assert service.report_balances(None).unit_loss == before


def test_a_unit_is_charged_for_the_groups_with_the_most_looks(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit in 12 of 24 groups, half of which take all looks with what a biased draw says."""
    policy = POLICY.replace("max_groups_per_unit = 24", "max_groups_per_unit = 12")
    monkeypatch.setattr("tests.proxy.pipeline.test_unit_delta.POLICY", policy)
    with opened(f"{WITH_DELTA}\ndelta_per_cell = 1e-9") as service:
        asked = put(service, 1, mechanism="arc_looks")
        plan = pipeline.plan_asked_question(service, asked)
        claim = make_current_claim(service, plan, asked)
        after = [0.0, *(one.epsilon for one in plan.calibration.after_looks)]
        taken = np.array([3] * 5 + [2] * 4 + [1] * 15)
        outcome = Outcome(passed=np.ones(24, dtype=np.bool_), epsilon=np.array(after)[taken])
        spent = find_run_loss(claim, outcome)
        assert spent.renyi is not None
        curves = [NO_CURVE, *(one.cell_renyi or NO_CURVE for one in claim.charge.looks)]
        for order, nano in enumerate(spent.renyi):
            whole = 5 * curves[3][order] + 4 * curves[2][order] + 3 * curves[1][order]
            assert whole - 12 <= nano <= whole
        assert spent.unit_epsilon_nano == sum(
            number * claim.charge.looks[look].epsilon_nano for number, look in ((5, 2), (4, 1), (3, 0))
        )
        everything = find_run_loss(claim, replace(outcome, epsilon=np.full(24, after[3])))
        assert everything.renyi == claim.charge.renyi
