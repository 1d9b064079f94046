"""Decided when the window closes: the answer, the loss and the refusals of the mechanism itself, once."""

from dataclasses import replace

import numpy as np
import pytest

from mechanisms.formula import AllOf, Cut
from mechanisms.protocol import DecisionTask, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.standing.close import decide_at_close
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.seeded_noise import SeededNoise

MANY_AND_CHEAP = AllOf((Cut(0, 100, above=True, tolerance=9), Cut(1, 50, above=False, tolerance=4)))
TASK = DecisionTask(MANY_AND_CHEAP, (1, 1), expose_all_functionals(2), fnr=0.05, fpr=0.1, keys=9)
VALUES = np.array([[0, 50, 99, 101, 105, 110, 150, 300, 1000], [0, 90, 50, 51, 45, 52, 20, 10, 90]], dtype=np.int64)


@pytest.mark.parametrize("name", ["progressive", "keyhole", "tslm", "naive"])
def test_it_answers_and_costs_what_the_mechanism_does(name: str) -> None:
    closes = decide_at_close(MECHANISMS[name], TASK)
    state = closes.draw_state(keys=9, noise=SeededNoise(1))
    assert closes.compute_spent_losses(state).tolist() == [0.0] * 9
    looked = closes.take_look(state, VALUES, look=1, noise=SeededNoise(2))
    outcome = MECHANISMS[name].decide(MECHANISMS[name].calibrate(TASK), VALUES, noise=SeededNoise(2))
    assert looked.alerted.tolist() == outcome.passed.tolist()
    assert closes.compute_spent_losses(looked.state).tolist() == outcome.epsilon.tolist()
    assert 0 < closes.compute_spent_losses(looked.state).max() <= closes.worst_case_epsilon
    assert (closes.fnr, closes.fpr) == (closes.calibration.fnr, closes.calibration.fpr)


def test_it_has_one_look() -> None:
    closes = decide_at_close(MECHANISMS["progressive"], TASK)
    state = closes.draw_state(keys=9, noise=SeededNoise(1))
    after = closes.take_look(state, VALUES, look=1, noise=SeededNoise(2)).state
    for states, look in ((state, 0), (state, 2), (after, 1), (after, 2)):
        with pytest.raises(ValueError, match="one look"):
            closes.take_look(states, VALUES, look=look, noise=SeededNoise(2))
    with pytest.raises(ValueError, match="functional"):
        closes.take_look(state, VALUES[:1], look=1, noise=SeededNoise(2))


def test_other_states_are_refused() -> None:
    closes = decide_at_close(MECHANISMS["progressive"], TASK)
    state = closes.draw_state(keys=9, noise=SeededNoise(1))
    other = decide_at_close(MECHANISMS["progressive"], replace(TASK, fnr=0.04))
    for spoilt in (b"", state[:-1], state + b"\x00", state[:30] + b"\x01" + state[31:]):
        with pytest.raises(ValueError, match="states of"):
            closes.compute_spent_losses(spoilt)
    with pytest.raises(ValueError, match="states of"):
        other.compute_spent_losses(state)


def test_what_has_no_loss_of_a_window_is_refused() -> None:
    limited = replace(TASK, most_positives=2)
    for name in ("svt_generalised", "probe"):
        with pytest.raises(Unachievable):
            decide_at_close(MECHANISMS[name], limited)
    with pytest.raises(Unachievable, match="one formula"):
        decide_at_close(MECHANISMS["progressive"], replace(TASK, predicates=(Cut(0, 5, above=True, tolerance=1),)))
