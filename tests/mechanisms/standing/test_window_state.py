"""A window's state as bytes: read as it was written, without secrets nobody needs, and refused if it is another."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.alarm.run import FIRST_DIGITS, FURTHER_DIGITS, AlarmState
from mechanisms.formula import Cut
from mechanisms.standing.alarms import calibrate_standing_alarms
from mechanisms.standing.window_state import AlarmWindow, RungState, find_watched_keys, read_window, write_window
from tests.effort import examples
from tests.mechanisms.standing.test_alarms import BOTH, MIXED, watched
from tests.seeded_noise import SeededNoise

DIGEST = bytes(range(16))
LOOKS = 24


@st.composite
def windows(draw: st.DrawFn) -> AlarmWindow:
    """Windows of up to four keys and three rungs, with numbers that were extended and totals of any size."""
    last = draw(st.integers(0, LOOKS))
    keys = draw(st.integers(0, 4))
    times = st.lists(st.integers(0, last), min_size=keys, max_size=keys).map(lambda at: np.array(at, dtype=np.int64))
    alerted_at, over, rungs = draw(times), last == LOOKS, []
    for _ in range(draw(st.integers(0, 3))):
        rang_at, watches = draw(times), []
        for _ in range(np.count_nonzero(find_watched_keys(alerted_at, rang_at, is_over=over))):
            digits = FIRST_DIGITS + FURTHER_DIGITS * draw(st.integers(0, 3))
            number = draw(st.integers(0, (1 << digits) - 1))
            total = draw(st.integers(0, 1 << draw(st.sampled_from([0, 1, 127, 300, 6000]))))
            watches.append(AlarmState(number, digits, total, draw(st.integers(0, 2**63 - 1)), last, 0))
        rungs.append(RungState(rang_at=rang_at, watched=tuple(watches)))
    return AlarmWindow(last_look=last, alerted_at=alerted_at, rungs=tuple(rungs), is_over=over)


@given(windows())
@examples(300)
def test_states_are_read_as_they_were_written(window: AlarmWindow) -> None:
    body = write_window(window, digest=DIGEST)
    read = read_window(body, digest=DIGEST, rungs=len(window.rungs), looks=LOOKS)
    assert (read.last_look, read.is_over) == (window.last_look, window.is_over)
    assert read.alerted_at.tolist() == window.alerted_at.tolist()
    for ours, theirs in zip(read.rungs, window.rungs, strict=True):
        assert ours.rang_at.tolist() == theirs.rang_at.tolist()
        assert ours.watched == theirs.watched
    assert write_window(read, digest=DIGEST) == body


@given(windows(), st.data())
@examples(200)
def test_states_that_were_cut_off_or_changed_are_refused(window: AlarmWindow, data: st.DataObject) -> None:
    body = bytearray(write_window(window, digest=DIGEST))
    if data.draw(st.booleans()):
        del body[data.draw(st.integers(0, len(body) - 1)) :]
    else:
        body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match="states of"):
        read_window(bytes(body), digest=DIGEST, rungs=len(window.rungs), looks=LOOKS)


@pytest.mark.parametrize(("rungs", "looks"), [(1, LOOKS), (3, LOOKS), (2, 5)])
def test_states_of_other_rungs_or_looks_are_refused(rungs: int, looks: int) -> None:
    rung = RungState(rang_at=np.array([3, 7], dtype=np.int64), watched=())
    window = AlarmWindow(last_look=9, alerted_at=np.array([7, 7], dtype=np.int64), rungs=(rung, rung), is_over=False)
    with pytest.raises(ValueError, match="states of"):
        read_window(write_window(window, digest=DIGEST), digest=DIGEST, rungs=rungs, looks=looks)


def test_states_of_another_calibration_are_refused() -> None:
    task = watched(BOTH)
    state = calibrate_standing_alarms(task).draw_state(keys=3, noise=SeededNoise(1))
    for other in (replace(task, fnr=0.04), replace(task, progressive=True), watched(MIXED)):
        with pytest.raises(ValueError, match="states of"):
            calibrate_standing_alarms(other).compute_spent_losses(state)


def test_who_is_in_the_answer_and_what_is_over_has_no_secrets() -> None:
    found = calibrate_standing_alarms(watched(Cut(0, 400, above=True, tolerance=39), progressive=True))
    drawn = found.draw_state(keys=100, noise=SeededNoise(3))
    all_in = found.take_look(drawn, np.full((2, 100), 10_000, dtype=np.int64), look=1, noise=SeededNoise(4))
    over = found.take_look(drawn, np.zeros((2, 100), dtype=np.int64), look=24, noise=SeededNoise(4))
    assert all_in.alerted.all()
    assert not over.alerted.any()
    for state in (all_in.state, over.state):
        assert len(state) == 1 + 16 + 8 + 4 * 100 * 3 + 4
    assert len(drawn) > 2 * 100 * 16


def test_states_print_no_secret() -> None:
    secret = AlarmState(
        secret_digits=123456789, digit_count=128, total_weight=987654321, highest_steps=5, last_look=0, rang_at=0
    )
    rung = RungState(rang_at=np.array([0], dtype=np.int64), watched=(secret,))
    assert not {"123456789", "987654321"} & set(repr(rung).replace("=", " ").replace(",", " ").split())
