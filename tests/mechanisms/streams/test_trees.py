"""Sums by trees: exact without noise, no look ahead, and the loss that the trees claim, by linear programming."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from mechanisms.streams.binary_tree import BinaryTree
from mechanisms.streams.block_tree import BlockTree
from mechanisms.streams.signed_tree import SignedTree
from mechanisms.streams.stream import StreamMechanism
from tests.effort import examples
from tests.in_turn import in_turn
from tests.mechanisms.streams.given_noise import GivenNoise, run_stream

Tree = Callable[[int], StreamMechanism[Any]]

TICKS = 14
TREES: dict[str, Tree] = {
    "block of 4": lambda _: BlockTree(epsilon=Fraction(1), sensitivity=1, window=4),
    "block of 5": lambda _: BlockTree(epsilon=Fraction(1), sensitivity=1, window=5),
    "binary": lambda ticks: BinaryTree(epsilon=Fraction(1), sensitivity=1, horizon=ticks),
    "signed, of three": lambda ticks: SignedTree(epsilon=Fraction(1), sensitivity=1, horizon=ticks, branching=3),
    "signed, of five": lambda ticks: SignedTree(epsilon=Fraction(1), sensitivity=1, horizon=ticks, branching=5),
}
LEVELS = {"block of 4": 3, "block of 5": 4, "binary": 4, "signed, of three": 4, "signed, of five": 3}


def noise_matrix(tree: StreamMechanism[Any], ticks: int) -> npt.NDArray[np.float64]:
    """What each draw adds to each estimate: the estimates are the true sums and this matrix times the draws."""
    counted = GivenNoise()
    run_stream(tree, [0] * ticks, noise=counted)
    draws = len(counted.rates)
    columns = [run_stream(tree, [0] * ticks, noise=GivenNoise([0] * draw + [1])) for draw in range(draws)]
    return np.array(columns, dtype=np.float64).T


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=60), st.integers(1, 9), st.sampled_from([3, 5, 7]))
@examples(200)
def test_sums_are_exact_without_noise(counts: list[int], window: int, branching: int) -> None:
    running = [sum(counts[: tick + 1]) for tick in range(len(counts))]
    windows = [sum(counts[max(0, tick + 1 - window) : tick + 1]) for tick in range(len(counts))]
    one, ticks = Fraction(1), len(counts)
    blocks = BlockTree(epsilon=one, sensitivity=1, window=window)
    assert run_stream(blocks, counts, noise=GivenNoise()) == windows
    binary = BinaryTree(epsilon=one, sensitivity=1, horizon=ticks)
    assert run_stream(binary, counts, noise=GivenNoise()) == running
    signed = SignedTree(epsilon=one, sensitivity=1, horizon=ticks, branching=branching)
    assert run_stream(signed, counts, noise=GivenNoise()) == running


@pytest.mark.parametrize("name", TREES)
def test_a_changed_count_is_hidden_by_moving_as_many_draws_as_there_are_levels(name: str) -> None:
    """Deterministic: for each tick, the least total by which draws must move so that all estimates stay as they are
    where that tick's count is one larger. Times the rate it is the loss: the claim, and no less at some tick."""
    tree = TREES[name](TICKS)
    # blocks that are complete: what a block has begun may be hidden for less
    ticks = TICKS - TICKS % getattr(tree, "window", 1)
    matrix = noise_matrix(tree, ticks)
    window = getattr(tree, "window", ticks)
    least = []
    for changed in range(ticks):
        moved = np.array([float(changed <= tick < changed + window) for tick in range(ticks)])
        found = linprog(np.ones(2 * matrix.shape[1]), A_eq=np.hstack((matrix, -matrix)), b_eq=moved)
        assert found.success
        least.append(found.fun)
    assert max(least) <= LEVELS[name] + 1e-7
    assert max(least) > LEVELS[name] - 1.01
    assert isinstance(tree, BlockTree | BinaryTree | SignedTree)
    assert tree.rate == Fraction(1, LEVELS[name])


@in_turn("window", [2, 8, 24, 168, 512, 1024, 2048])
def test_noise_at_each_tick_makes_better_window_sums_than_trees_up_to_a_thousand_ticks(window: int) -> None:
    """By the variance of the nodes of each window: noise at each tick errs less up to 512 ticks, by a twelfth at 1,024
    (.03 by logarithm to ten), and more from 2,048 on."""
    tree = BlockTree(epsilon=Fraction(1), sensitivity=1, window=window)
    nodes = []
    for ticks in range(1, window + 1):
        parts = [*tree._list_nodes(0, ticks), *tree._list_nodes(ticks, window)]
        nodes.append(len(parts))
        lengths = [min(1 << level, window - (place << level)) for level, place in parts]
        assert sum(lengths) == window
    assert nodes[-1] == 1
    ratio = tree.levels * np.mean(np.sqrt(2.0 * np.array(nodes))) / math.sqrt(2.0 * window)
    assert (ratio > 1.1) == (window <= 512)
    assert (ratio < 1.0) == (window >= 2048)


def test_signed_digits_need_few_nodes() -> None:
    """Among 40 ticks the most nodes of a sum, base 3: one for each digit that is not zero, four at most."""
    tree = SignedTree(epsilon=Fraction(1), sensitivity=1, horizon=40, branching=3)
    assert tree.levels == 4
    used = np.abs(noise_matrix(tree, 40)).sum(axis=1)
    expected = []
    for ticks in range(1, 41):
        digits, rest = 0, ticks
        while rest:
            digits += rest % 3 != 0
            rest = (rest + 1) // 3
        expected.append(digits)
    assert used.tolist() == expected


def test_trees_end_with_their_horizon() -> None:
    for name in ("binary", "signed, of three"):
        with pytest.raises(ValueError, match="horizon is over"):
            run_stream(TREES[name](5), [0] * 6, noise=GivenNoise())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: BlockTree(epsilon=Fraction(1), sensitivity=1, window=0), "window"),
        (lambda: BinaryTree(epsilon=Fraction(1), sensitivity=1, horizon=0), "horizon"),
        (lambda: SignedTree(epsilon=Fraction(1), sensitivity=1, horizon=9, branching=4), "odd branching"),
        (lambda: SignedTree(epsilon=Fraction(1), sensitivity=0, horizon=9, branching=3), "sensitivity"),
    ],
)
def test_parameters_are_checked(wrong: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wrong()
