"""States as whole numbers: every mechanism goes on from a stored state as if nothing had happened, and looks at nothing
that has not come yet."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.streams.binary_tree import BinaryTree
from mechanisms.streams.block_tree import BlockTree
from mechanisms.streams.event_monitors import JumpMonitor, LowSignalMonitor
from mechanisms.streams.grouper import GrouperState
from mechanisms.streams.hierarchy import HierarchyMechanism, make_balanced_hierarchy
from mechanisms.streams.hs_pegasus import HsLaplace, HsPegasus
from mechanisms.streams.pegasus import Pegasus, PegasusState
from mechanisms.streams.phs_pegasus import PhsPegasus, PhsPegasusFree
from mechanisms.streams.signed_tree import SignedTree
from mechanisms.streams.state_integers import from_integers, to_integers
from mechanisms.streams.stream import StreamMechanism
from mechanisms.streams.stream_names import COUNTS, HIERARCHIES, SMOOTHERS, STREAMS, SUMS
from mechanisms.streams.tick_laplace import BackwardSmoothing, TickLaplace
from mechanisms.streams.window_sum import WindowSumSmoother
from mechanisms.streams.zeros import Zeros
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise

Mechanism = StreamMechanism[Any] | HierarchyMechanism[Any]

TICKS = 20
HALF = Fraction(1, 2)
TREE = make_balanced_hierarchy(branching=2, levels=3)
MECHANISMS: tuple[Mechanism, ...] = (
    *(Pegasus(epsilon=HALF, sensitivity=1, smooth=smooth, name=name) for name, smooth in SMOOTHERS.items()),
    TickLaplace(epsilon=HALF, sensitivity=1),
    BackwardSmoothing(epsilon=HALF, sensitivity=1, ticks_back=3),
    Zeros(),
    BlockTree(epsilon=HALF, sensitivity=1, window=6),
    BinaryTree(epsilon=HALF, sensitivity=1, horizon=TICKS),
    SignedTree(epsilon=HALF, sensitivity=1, horizon=TICKS, branching=3),
    HsLaplace(hierarchy=TREE, epsilon=HALF, sensitivity=1),
    HsPegasus(hierarchy=TREE, epsilon=HALF, sensitivity=1),
    PhsPegasus(hierarchy=TREE, epsilon=HALF, sensitivity=1, prune_epsilon=Fraction(1, 10), prune_below=4),
    PhsPegasusFree(hierarchy=TREE, epsilon=HALF, sensitivity=1, prune_below=4),
)


def counts_for(mechanism: Mechanism, *, seed: int) -> Any:
    shape = (TICKS, 2) if mechanism.name not in HIERARCHIES else (TICKS, 2, len(TREE.leaves))
    return np.random.default_rng(seed).poisson(2.0, shape).astype(np.int64)


def run(mechanism: Mechanism, counts: Any, *, store: Callable[[Any], Any] = lambda state: state) -> list[Any]:
    """All estimates; after each tick every state goes through `store`."""
    noise, states = SeededNoise(91), (mechanism.start(),) * 2
    found: list[Any] = []
    for now in counts:
        tick = mechanism.advance(states, now, noise=noise)
        states = tuple(store(state) for state in tick.states)
        found.append(tick.estimates)
    return found


def test_every_name_is_a_mechanism() -> None:
    assert {mechanism.name for mechanism in MECHANISMS} == set(STREAMS)
    assert {**COUNTS, **SUMS, **HIERARCHIES} == STREAMS
    for mechanism in MECHANISMS:
        assert mechanism.sensitivity == 1
        assert mechanism.epsilon == (0 if mechanism.name == "zeros" else HALF)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_a_stored_state_goes_on_as_if_nothing_had_happened(mechanism: Mechanism) -> None:
    counts = counts_for(mechanism, seed=92)

    def store(state: Any) -> Any:
        written = to_integers(state)
        assert all(type(number) is int for number in written)
        read = from_integers(type(state), written)
        assert read == state
        return read

    assert run(mechanism, counts, store=store) == run(mechanism, counts)


@in_turn("mechanism", MECHANISMS)
def test_nothing_looks_ahead(mechanism: Mechanism) -> None:
    """Counts that differ from tick 12 on leave all estimates before it as they are, noise being the same."""
    counts = counts_for(mechanism, seed=93)
    changed = counts.copy()
    changed[12:] += 50
    first, second = run(mechanism, counts), run(mechanism, changed)
    assert first[:12] == second[:12]
    assert (first[12:] == second[12:]) == (mechanism.name == "zeros")


def test_windows_and_monitors_are_stored_too() -> None:
    pegasus, noise = Pegasus(epsilon=HALF, sensitivity=1), SeededNoise(94)
    smoother = WindowSumSmoother(window=5)
    jump, low = JumpMonitor(window=3, delta=Fraction(2)), LowSignalMonitor(window=5, delta=Fraction(9))
    states: tuple[PegasusState, ...] = (pegasus.start(),)
    kept: Sequence[Any] = [smoother.start(), jump.start(), low.start()]
    for count in range(12):
        tick = pegasus.advance(states, np.array([count]), noise=noise)
        states = tick.states
        sums = smoother.advance([kept[0]], tick)
        after = [
            *sums.states,
            *jump.advance([kept[1]], tick.estimates).states,
            *low.advance([kept[2]], sums.estimates).states,
        ]
        kept = [from_integers(type(state), to_integers(state)) for state in after]
        assert kept == after


@pytest.mark.parametrize("numbers", [(), (1, 5), (1, 5, 1, 1, 0, 0), (-1, 0, 0), (2, 5, 6, 1, 1)])
def test_what_is_no_state_is_refused_without_naming_it(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="stored state") as refused:
        from_integers(GrouperState, numbers)
    assert not any(character.isdigit() for character in str(refused.value))


@pytest.mark.parametrize("numbers", [(1, 2, 4), (1, 1, -2), (1, 1, 0)])
def test_fractions_are_written_in_lowest_terms(numbers: tuple[int, ...]) -> None:
    kind = type(JumpMonitor(window=2, delta=HALF).start())
    with pytest.raises(ValueError, match="stored"):
        from_integers(kind, numbers)
    assert from_integers(kind, (1, 1, 2)).estimates == (HALF,)


def test_what_is_no_state_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="made of"):
        to_integers("a text")


def test_a_tick_has_a_count_for_each_stream() -> None:
    for mechanism in MECHANISMS[3:9]:
        with pytest.raises(ValueError, match="one 64-bit count"):
            mechanism.advance((mechanism.start(),), np.array([1, 2]), noise=SeededNoise(1))
