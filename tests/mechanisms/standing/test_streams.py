"""Published streams that watch a standing question: their estimates, their loss, and that they promise nothing else."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import AllOf, Cut
from mechanisms.protocol import Unachievable
from mechanisms.standing.standing_streams import NO_BOUND, StandingStream, watch_by_stream
from mechanisms.standing.standing_task import StandingTask
from mechanisms.streams.stream_names import HIERARCHIES, WATCHING
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise

LOOKS = 8
MANY = Cut(0, 400, above=True, tolerance=40)
TASK = StandingTask(MANY, (1,), expose_all_functionals(1), (Regime.GROWING,), (0,), looks=LOOKS, fnr=0.05, fpr=0.1)
SHARP = Fraction(8)
"""A loss at which estimates are off by less than ten in a window of eight looks."""


def watch(stream: StandingStream, steps: list[int], *, looks: range = range(1, LOOKS + 1)) -> list[list[bool]]:
    """Who is in the answer at each look, of keys that grow by so much with each."""
    noise, per_look = SeededNoise(3), np.array([steps], dtype=np.int64)
    state, seen = stream.draw_state(keys=len(steps), noise=noise), []
    assert stream.compute_spent_losses(state).tolist() == [0.0] * len(steps)
    for look in looks:
        looked = stream.take_look(state, per_look * look, look=look, noise=noise)
        assert stream.compute_spent_losses(looked.state).tolist() == [stream.worst_case_epsilon] * len(steps)
        state = looked.state
        seen.append(looked.alerted.tolist())
    return seen


@pytest.mark.parametrize("name", [name for name in WATCHING if name not in ("zeros", "backward_smoothing")])
def test_a_stream_with_little_noise_alerts_where_the_lowered_threshold_is_passed(name: str) -> None:
    """360 is passed by none of 35 a look, at look 8 by 50, at look 6 by 70 and at look 4 by 100; looks may be left out,
    and then what came since the last one is one tick."""
    stream = watch_by_stream(TASK, name=name, epsilon=SHARP)
    seen = watch(stream, [0, 35, 50, 70, 100])
    for look, expected in ((3, [False] * 5), (4, [False] * 4 + [True]), (6, [False] * 3 + [True] * 2)):
        assert seen[look - 1] == expected
    assert seen[-1] == [False, False, True, True, True]
    assert watch(stream, [0, 35, 50, 70, 100], looks=range(2, LOOKS + 1, 2))[-1] == seen[-1]


def test_backward_smoothing_lags_behind_what_grows_faster() -> None:
    """With means of up to eleven ticks a window of eight equal ones is summed up right."""
    stream = watch_by_stream(TASK, name="backward_smoothing", epsilon=SHARP)
    assert watch(stream, [30, 70])[-1] == [False, True]


def test_zeros_never_alert_and_cost_nothing() -> None:
    stream = watch_by_stream(TASK, name="zeros", epsilon=SHARP)
    assert not np.any(watch(stream, [0, 1000]))
    assert stream.worst_case_epsilon == 0.0


@pytest.mark.parametrize("name", WATCHING)
def test_no_rate_is_promised_and_what_is_in_the_answer_stays(name: str) -> None:
    stream = watch_by_stream(TASK, name=name, epsilon=Fraction(1, 20))
    assert (stream.fnr, stream.fpr) == (None, None)
    assert "No bound" in NO_BOUND
    seen = np.array(watch(stream, list(range(0, 120, 3))))
    assert not np.any(seen[:-1] & ~seen[1:])


def test_the_loss_is_that_of_all_a_unit_changes() -> None:
    """Where values grow all changes of a window come to one sensitivity; where they come and go, each look has one."""
    both = replace(
        TASK,
        formula=AllOf((MANY, Cut(1, 9, above=True, tolerance=1), Cut(1, 5, above=True, tolerance=1))),
        sensitivities=(1, 7),
        exposures=expose_all_functionals(2),
        regimes=(Regime.GROWING,) * 2,
        least_values=(0, 0),
    )
    for task, lost in (
        (both, 1.0),
        (replace(both, exposures=expose_functional_sets([[0], [1]], functionals=2)), 0.5),
        (replace(both, regimes=(Regime.GROWING, Regime.COMING_AND_GOING)), 4.5),
        (replace(both, regimes=(Regime.SIGNED, Regime.GROWING)), 8.0),
    ):
        assert watch_by_stream(task, name="tick_laplace", epsilon=Fraction(1, 2)).worst_case_epsilon == lost


@pytest.mark.parametrize("name", HIERARCHIES)
def test_a_hierarchy_is_refused(name: str) -> None:
    with pytest.raises(Unachievable, match="hierarchy"):
        watch_by_stream(TASK, name=name, epsilon=SHARP)


def test_what_streams_do_not_watch_is_refused() -> None:
    with pytest.raises(Unachievable, match="above"):
        watch_by_stream(replace(TASK, formula=Cut(0, 5, above=False, tolerance=1)), name="pegasus", epsilon=SHARP)
    with pytest.raises(Unachievable, match="sliding"):
        watch_by_stream(replace(TASK, regimes=(Regime.SLIDING,)), name="pegasus", epsilon=SHARP)
    with pytest.raises(ValueError, match="name"):
        watch_by_stream(TASK, name="pegasos", epsilon=SHARP)


@in_turn("name", WATCHING)
def test_states_are_of_one_calibration_and_checked(name: str) -> None:
    stream = watch_by_stream(TASK, name=name, epsilon=SHARP)
    values = np.array([[5, 0, 900]], dtype=np.int64)
    state = stream.take_look(
        stream.draw_state(keys=3, noise=SeededNoise(1)), values, look=3, noise=SeededNoise(1)
    ).state
    for spoilt in (b"", state[:-1], state + b"\x00", state[:40] + bytes([state[40] ^ 1]) + state[41:]):
        with pytest.raises(ValueError, match="states of"):
            stream.compute_spent_losses(spoilt)
    with pytest.raises(ValueError, match="states of"):
        watch_by_stream(TASK, name=name, epsilon=SHARP / 2).compute_spent_losses(state)
    for look in (0, 3, LOOKS + 1):
        with pytest.raises(ValueError, match="order"):
            stream.take_look(state, values, look=look, noise=SeededNoise(1))
    with pytest.raises(ValueError, match="functional"):
        stream.take_look(state, values[:, :2], look=4, noise=SeededNoise(1))
