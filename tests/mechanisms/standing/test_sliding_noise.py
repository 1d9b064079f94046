"""Sliding windows under noise on ticks and blocks: prices, rates at the worst case, and no more loss than claimed.

20,000 keys a look at full size; a count leaves its binomial quantile at 1e-8, so that all tests together raise a false
alarm with probability 1e-6 at most. The seeds are fixed.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import AllOf, Cut
from mechanisms.protocol import DecisionTask, Unachievable
from mechanisms.standing import window_noise
from mechanisms.standing.sliding_noise import calibrate_sliding
from mechanisms.standing.window_noise import NoiseShape, find_edges, find_tails, shape_window
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.effort import rounds
from tests.seeded_noise import SeededNoise

MANY = Cut(0, 900, above=True, tolerance=199)
TASK = DecisionTask(MANY, (1,), expose_all_functionals(1), fnr=0.05, fpr=0.1)


@pytest.mark.parametrize(
    ("window", "price", "block"),
    [(1, 3.91, 1), (2, 5.66, 1), (7, 10.8, 1), (24, 20.2, 1), (60, 28, 7), (168, 35.8, 16)],
)
def test_what_a_window_costs(window: int, price: float, block: int) -> None:
    found = calibrate_sliding(TASK, window=window, looks=1000)
    assert found.worst_case_epsilon * 200 == pytest.approx(price, rel=0.005)
    assert found.shape.block_ticks == block
    assert found.fnr is not None
    assert found.fpr is not None
    assert 0.04 < found.fnr <= 0.05
    assert 0.08 < found.fpr <= 0.1


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 200))
def test_blocks_and_ticks_make_up_the_window(window: int, block: int, tick: int) -> None:
    """Ticks outside of the window are those of its blocks that are taken away."""
    shape = NoiseShape(
        window_looks=window, block_ticks=min(block, window), loss_share_of_ticks=Fraction(1, 2), term_counts=()
    )
    edges, inside = find_edges(shape, tick), set(range(tick - window + 1, tick + 1))
    blocks = (
        list(range(edges.first * shape.block_ticks, edges.last * shape.block_ticks)) if shape.block_ticks > 1 else []
    )
    added = [one for one in edges.ticks if one in inside]
    taken = {one for one in edges.ticks if one not in inside}
    assert sorted([*added, *(one for one in blocks if one not in taken)]) == sorted(inside)
    assert taken <= set(blocks)


@pytest.mark.parametrize("window", [5, 60])
def test_both_rates_are_kept_at_the_worst_case_wherever_a_window_ends(window: int) -> None:
    """Values just above the cut, and just within the tolerance, at the first look and at the next ones but some."""
    found, keys = calibrate_sliding(TASK, window=window, looks=100), rounds(20_000, quick=1_000)
    noise, values = SeededNoise(61), np.tile(np.array([[901], [701]], dtype=np.int64), (1, keys)).reshape(1, -1)
    state = found.draw_state(keys=2 * keys, noise=noise)
    for look in (1, 2, 4, 9):
        looked = found.take_look(state, values, look=look, noise=noise)
        state = looked.state
        missed, wrong = np.count_nonzero(~looked.alerted[:keys]), np.count_nonzero(looked.alerted[keys:])
        assert missed <= stats.binom.isf(1e-8, keys, found.fnr)
        assert wrong <= stats.binom.isf(1e-8, keys, found.fpr)
        assert min(missed, wrong) > 0


def test_any_formula_is_watched_and_clears_at_once() -> None:
    both = AllOf((MANY, Cut(1, 50, above=False, tolerance=49)))
    task = replace(TASK, formula=both, sensitivities=(1, 1), exposures=expose_all_functionals(2))
    found, noise = calibrate_sliding(task, window=3, looks=9), SeededNoise(5)
    state, seen = found.draw_state(keys=2, noise=noise), []
    for look, (count, low) in enumerate([(0, 0), (5000, 0), (5000, 5000), (5000, 0)], 1):
        looked = found.take_look(state, np.array([[count, 0], [low, 0]], dtype=np.int64), look=look, noise=noise)
        state = looked.state
        seen.append(looked.alerted.tolist())
        assert found.compute_spent_losses(state).tolist() == [found.worst_case_epsilon] * 2
    assert seen == [[False, False], [True, False], [False, False], [True, False]]


def test_other_states_and_looks_are_refused() -> None:
    found, noise = calibrate_sliding(TASK, window=3, looks=9), SeededNoise(5)
    values = np.zeros((1, 4), dtype=np.int64)
    state = found.take_look(found.draw_state(keys=4, noise=noise), values, look=3, noise=noise).state
    for spoilt in (b"", state[:-1], state + b"\x00", state[:40] + bytes([state[40] ^ 1]) + state[41:]):
        with pytest.raises(ValueError, match="states of"):
            found.compute_spent_losses(spoilt)
    with pytest.raises(ValueError, match="states of"):
        calibrate_sliding(TASK, window=4, looks=9).compute_spent_losses(state)
    for look in (0, 3, 10):
        with pytest.raises(ValueError, match="order"):
            found.take_look(state, values, look=look, noise=noise)
    with pytest.raises(ValueError, match="functional"):
        found.take_look(state, values[:, :2], look=4, noise=noise)
    assert found.take_look(state, values, look=9, noise=noise).alerted.size == 4


def test_what_noise_cannot_keep_is_refused() -> None:
    with pytest.raises(Unachievable, match="error rate"):
        calibrate_sliding(replace(TASK, fnr=1e-14), window=3, looks=9)
    with pytest.raises(ValueError, match="sliding window"):
        calibrate_sliding(TASK, window=0, looks=9)
    assert shape_window(365, fnr=0.05, fpr=0.1).block_ticks > 1


@pytest.mark.parametrize("tolerance", [10**5, 10**9])
def test_noise_that_spreads_far_is_known_by_its_steps_and_costs_the_same(tolerance: int) -> None:
    """Sums in small units: the law is that of rounded noise, and at most .3 % is lost for it."""
    wide = replace(MANY, cut=10 * tolerance, tolerance=tolerance)
    found = calibrate_sliding(replace(TASK, formula=wide, sensitivities=(1000,)), window=24, looks=9)
    assert found.worst_case_epsilon * (tolerance + 1) / 1000 == pytest.approx(20.208, rel=0.003)


def test_rounded_noise_bounds_the_noise_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chances by steps of three against those by single units, from below and from above."""
    shape, rate = shape_window(5, fnr=0.05, fpr=0.1), Fraction(1, 10)
    exact = find_tails.__wrapped__(shape, rate)
    monkeypatch.setattr(window_noise, "_MOST_POINTS", 1 << 9)
    rounded = find_tails.__wrapped__(shape, rate)
    assert (exact.step, rounded.step) == (1, 5)
    for distance in range(-300, 300):
        assert rounded.bound_reach_chance(distance) >= exact.bound_reach_chance(distance) - 1e-9
    assert all(rounded.find_upper_quantile(chance) >= exact.find_upper_quantile(chance) for chance in (0.3, 0.05, 1e-6))


@given(
    st.integers(1, 14), st.integers(1, 5), st.sets(st.integers(1, 40), min_size=2, max_size=12), st.integers(0, 2**32)
)
def test_noise_that_a_look_has_seen_is_that_of_all_later_ones(
    window: int, block: int, looks: set[int], seed: int
) -> None:
    """Of each tick and block, by its place in time, whichever looks are made; a look sees its window's and no other."""
    shape = NoiseShape(
        window_looks=window,
        block_ticks=min(block, window),
        loss_share_of_ticks=Fraction(1, min(block, window) or 1),
        term_counts=(),
    )
    found = replace(calibrate_sliding(TASK, window=2, looks=40), shape=shape)  # of which the noise is as good as any
    noise, known = SeededNoise(seed), dict[tuple[str, int], list[int]]()
    state = found.draw_state(keys=2, noise=noise)
    for look in sorted(looks):
        state = found.take_look(state, np.zeros((1, 2), dtype=np.int64), look=look, noise=noise).state
        drawn = found._read(state)
        for kind, first, one in (("tick", drawn.first_tick, drawn.ticks), ("block", drawn.first_block, drawn.blocks)):
            for place, own in enumerate(one[0].tolist(), first):
                assert known.setdefault((kind, place), own) == own
        edges = find_edges(shape, look - 1)
        inside = range(look - window, look)
        total = np.zeros(2, dtype=np.int64)
        for tick in edges.ticks:
            total += (1 if tick in inside else -1) * np.array(known["tick", tick])
        for place in range(edges.first, edges.last):
            total += np.array(known["block", place])
        assert found._sum_window_noise(drawn, look)[0].tolist() == total.tolist()
