"""Stream mechanisms as subjects of an audit, on a few ticks of two streams, or hierarchies, that differ by one event.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from mechanisms.audit.auditor import AuditReport, Neighbours, audit_subject, claim_always
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.streams.binary_tree import BinaryTree
from mechanisms.streams.block_tree import BlockTree
from mechanisms.streams.hierarchy import Hierarchy, HierarchyMechanism
from mechanisms.streams.hs_pegasus import HierarchyState, HsLaplace, HsPegasus
from mechanisms.streams.pegasus import Pegasus, PegasusState
from mechanisms.streams.phs_pegasus import FreePruningState, PhsPegasus, PhsPegasusFree
from mechanisms.streams.signed_tree import SignedTree
from mechanisms.streams.stream import StreamMechanism
from mechanisms.streams.stream_names import SMOOTHERS, SUMS
from mechanisms.streams.tick_laplace import BackwardSmoothing, TickLaplace

AnyStream: TypeAlias = StreamMechanism[Any] | HierarchyMechanism[Any]
Counts: TypeAlias = tuple[int, ...]

_CHAIN = Hierarchy(parents=(-1, 0, 1))
_PAIR = Hierarchy(parents=(-1, 0))  # fewer outcomes: two ticks in groups are enough to learn from few draws
_EVEN = Fraction(1, 2)  # of the loss for groups: both parts are large enough to be seen


@dataclass(frozen=True, slots=True)
class StreamTwins:
    """A mechanism, the counts of one stream, and the tick at which the neighbouring stream has one more.

    If the mechanism works on a hierarchy, that is a chain, and `counts` are those of its leaf.
    """

    mechanism: AnyStream
    counts: Counts
    changed_tick: int


def list_twins() -> dict[str, tuple[StreamTwins, ...]]:
    """Return the worst-case pairs of streams of each mechanism, by name.

    `zeros` is left out, since it reveals nothing.
    """
    one, two = Fraction(1), Fraction(2)
    found: dict[str, tuple[StreamTwins, ...]] = {}
    for name, smooth in SMOOTHERS.items():
        pegasus = Pegasus(epsilon=two, sensitivity=1, smooth=smooth, grouper_share=_EVEN, theta_factor=one, name=name)
        found[name] = (StreamTwins(pegasus, (0, 0, 0), 0), StreamTwins(pegasus, (0, 8, 0, 1), 1))
    budget: dict[str, Any] = {"epsilon": one, "sensitivity": 1}
    for plain, ticks in (
        (TickLaplace(**budget), 2),
        (BackwardSmoothing(**budget, ticks_back=1), 2),
        (BlockTree(**budget, window=4), 4),
        (BinaryTree(**budget, horizon=7), 4),
        (SignedTree(**budget, horizon=4, branching=3), 3),
    ):
        found[plain.name] = (StreamTwins(plain, (0,) * ticks, 0),)
    budget = {"epsilon": two, "sensitivity": 1}
    for chain, counts, changed in (
        (HsLaplace(**budget, hierarchy=_CHAIN), (0,), 0),
        (HsPegasus(**budget, hierarchy=_PAIR, grouper_share=_EVEN), (0, 0), 0),
        (PhsPegasus(**budget, hierarchy=_CHAIN, grouper_share=_EVEN, prune_epsilon=one, prune_below=1), (0,), 0),
        # small at first, so that all parts are pruned; then so different that no group hides it
        (PhsPegasusFree(**budget, hierarchy=_CHAIN, grouper_share=_EVEN, prune_below=1), (0, 30), 1),
    ):
        found[chain.name] = (StreamTwins(chain, counts, changed),)
    return found


def audit_stream(
    name: str,
    *,
    samples: int,
    noise: Noise,
    subject: str = "",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit one stream mechanism on the streams of `list_twins`.

    Parameters:
        name: as in `list_twins`.
        samples: as for `audit`.
    """
    pairs = [pair_streams(twins, noise=noise) for twins in list_twins()[name]]
    return audit_subject(subject or name, pairs, samples=samples, progress=progress)


def pair_streams(twins: StreamTwins, *, noise: Noise) -> Neighbours:
    """Return both streams as neighbours.

    At each tick a transcript has True for each estimate that is at least the larger stream's true answer. It also has
    the number of ticks of each group, or nothing for a pruned node.
    """
    mechanism, counts = twins.mechanism, twins.counts
    larger = tuple(count + (tick == twins.changed_tick) for tick, count in enumerate(counts))
    # running sums, and sums of windows no shorter than the stream, are of all ticks so far
    answers = tuple(np.cumsum(larger).tolist()) if mechanism.name in SUMS else larger
    first, second = (
        claim_always(_make_draw(mechanism, own, answers, noise), epsilon=float(mechanism.epsilon))
        for own in (larger, counts)
    )
    return Neighbours(description=f"{counts} and one more at tick {twins.changed_tick + 1}", first=first, second=second)


def _make_draw(mechanism: AnyStream, counts: Counts, answers: Counts, noise: Noise) -> Callable[[int], Integers]:
    def draw(samples: int) -> Integers:
        states: tuple[Any, ...] = (mechanism.start(),) * samples
        columns = []
        for count, answer in zip(counts, answers, strict=True):
            tick = mechanism.advance(states, _repeat_count(mechanism, count, samples), noise=noise)
            states = tick.states
            estimates: Any = tick.estimates
            rows = [row if isinstance(row, tuple) else (row,) for row in estimates]
            columns.append(np.array([[estimate >= answer for estimate in row] for row in rows], dtype=np.int64))
            columns.append(np.array([_count_groups(state) for state in states], dtype=np.int64))
        return np.column_stack(columns)

    return draw


def _repeat_count(mechanism: AnyStream, count: int, samples: int) -> Integers:
    shape: tuple[int, ...] = (samples, 1) if hasattr(mechanism, "hierarchy") else (samples,)
    return np.full(shape, count, dtype=np.int64)


def _count_groups(state: object) -> tuple[int, ...]:
    """Return the number of ticks of the latest group of each PeGaSus in a state."""
    if isinstance(state, PegasusState):
        return (len(state.noisy_counts),)
    if isinstance(state, HierarchyState):
        return tuple(len(node.noisy_counts) for node in state.nodes)
    if isinstance(state, FreePruningState):
        return _count_groups(state.nodes)
    return ()
