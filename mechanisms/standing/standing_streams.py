"""Published stream mechanisms as monitors that release only keys: estimates of a window's value against thresholds.

The looks of a window are the ticks of a stream. At each, the count is the growth of a functional since the look before.
Estimates are not released. A key is in the answer from the first look at which the formula, with thresholds lowered by
their tolerances, holds for the estimates. The error rates are not bounded.

Proof: docs/proofs/standing.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Integers, evaluate_formula, list_literals
from mechanisms.protocol import Epsilons, Noise, Unachievable
from mechanisms.standing.sealed import StateReader, compute_digest, seal_state, unseal_state, write_number
from mechanisms.standing.standing_protocol import LookResult
from mechanisms.standing.standing_task import StandingTask
from mechanisms.streams.binary_tree import BinaryTree
from mechanisms.streams.block_tree import BlockTree
from mechanisms.streams.pegasus import Pegasus, PegasusState
from mechanisms.streams.signed_tree import SignedTree
from mechanisms.streams.state_integers import from_integers, to_integers
from mechanisms.streams.stream import StreamMechanism, Tick
from mechanisms.streams.stream_names import HIERARCHIES, SMOOTHERS, SUMMING, WATCHING
from mechanisms.streams.tick_laplace import BackwardSmoothing, TickLaplace
from mechanisms.streams.window_sum import WindowGroups, WindowSumSmoother
from mechanisms.streams.zeros import Zeros
from mechanisms.threshold.joint_loss import compute_joint_loss, expose_all_functionals
from mechanisms.threshold.one_shot import round_up_to_float

NO_BOUND = "No bound on missed or wrong: the estimates that are compared with the thresholds promise no accuracy."
"""The remark that is needed wherever one of these is named."""

_LONG = np.dtype("<i8")
_SHORT = np.dtype("<u4")
_GRAIN = 1 << 10  # parts of a unit that estimates are rounded to before they are added up: less than any is right by
_MOST = 1 << 62  # of these parts: what an estimate counts as at most, so that it can be stored
_TICKS_BACK = 10  # of backward smoothing: the middle one of the thesis's three
_BRANCHING = 3  # of a signed tree: the least, which is best for the few looks that windows have

AnyStream = StreamMechanism[Any]


@dataclass(frozen=True, slots=True)
class PegasusSumState:
    """The state of a PeGaSus and the groups of its window."""

    pegasus: PegasusState
    groups: WindowGroups


@dataclass(frozen=True, slots=True)
class PegasusSums:
    """PeGaSus with its Window Sum Smoother over a whole window.

    Guarantee: that of PeGaSus (docs/proofs/standing.md).
    """

    pegasus: Pegasus
    smoother: WindowSumSmoother
    name: str = "pegasus_window_sum"

    @property
    def epsilon(self) -> Fraction:
        """The loss of one event, as in `StreamMechanism.epsilon`."""
        return self.pegasus.epsilon

    @property
    def sensitivity(self) -> int:
        """The largest change of one tick's count by one event, as in `StreamMechanism.sensitivity`."""
        return self.pegasus.sensitivity

    def start(self) -> PegasusSumState:
        """Return a state without groups."""
        return PegasusSumState(pegasus=self.pegasus.start(), groups=self.smoother.start())

    def advance(self, states: Sequence[PegasusSumState], counts: Integers, *, noise: Noise) -> Tick[PegasusSumState]:
        """Advance PeGaSus by one tick, and return the sums of the window."""
        tick = self.pegasus.advance([state.pegasus for state in states], counts, noise=noise)
        sums = self.smoother.advance([state.groups for state in states], tick)
        after = tuple(map(PegasusSumState, tick.states, sums.states))
        return Tick(states=after, estimates=sums.estimates)


def _make_stream(name: str, epsilon: Fraction, sensitivity: int, looks: int) -> AnyStream:
    """Return the stream mechanism of a name, for one functional."""
    match name:
        case "pegasus_window_sum":
            return PegasusSums(Pegasus(epsilon, sensitivity), WindowSumSmoother(looks))
        case "tick_laplace":
            return TickLaplace(epsilon, sensitivity)
        case "backward_smoothing":
            return BackwardSmoothing(epsilon, sensitivity, _TICKS_BACK)
        case "zeros":
            return Zeros(sensitivity=sensitivity)
        case "block_tree":
            return BlockTree(epsilon, sensitivity, looks)
        case "binary_tree":
            return BinaryTree(epsilon, sensitivity, looks)
        case "signed_tree":
            return SignedTree(epsilon, sensitivity, looks, _BRANCHING)
        case _:
            return Pegasus(epsilon, sensitivity, smooth=SMOOTHERS[name], name=name)


@dataclass(frozen=True, slots=True)
class StandingStream:
    """A standing question watched by a published stream for each functional. It is a `Standing`.

    Guarantee: `worst_case_epsilon` for one key's window (docs/proofs/standing.md). Neither of the rates is bounded.
    """

    task: StandingTask
    name: str
    used: tuple[int, ...]
    streams: tuple[AnyStream, ...]
    worst_case_epsilon: float
    digest: bytes = field(repr=False)
    fnr: None = None
    fpr: None = None

    def draw_state(self, *, keys: int, noise: Noise) -> bytes:
        """Return the state before the first look. Noise is drawn look by look."""
        del noise
        nothing = np.zeros(keys, dtype=np.int64)
        begun = [
            _WatchedFunctional(nothing, (Fraction(0),) * keys, (stream.start(),) * keys) for stream in self.streams
        ]
        return self._write(_WindowState(last_look=0, alerted_at=nothing, watched=tuple(begun)))

    def take_look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> LookResult:
        """Return the state of a window before its first look. Noise is drawn later, at each look.

        All ticks since the last look count as one tick.
        """
        before = self._read(state)
        if values.shape != (len(self.task.sensitivities), before.alerted_at.size):
            raise ValueError("a look has a value of each functional for each key")
        if not before.last_look < look <= self.task.looks:
            raise ValueError("a window's looks are made in order, and no more than it was calibrated for")
        after = []
        for functional, stream, watched in zip(self.used, self.streams, before.watched, strict=True):
            tick = stream.advance(watched.states, values[functional] - watched.values, noise=noise)
            estimates = tuple(map(_round_estimate, tick.estimates))
            if self.name not in SUMMING:
                estimates = tuple(
                    _round_estimate(total + own) for total, own in zip(watched.estimates, estimates, strict=True)
                )
            after.append(_WatchedFunctional(values[functional], estimates, tuple(tick.states)))
        alerted_at = before.alerted_at.copy()
        estimated = {functional: watched.estimates for functional, watched in zip(self.used, after, strict=True)}
        held = evaluate_formula(
            self.task.formula,
            lambda one: np.array(
                [value > one.cut - one.tolerance for value in estimated[one.functional]], dtype=np.bool_
            ),
            keys=alerted_at.size,
        )
        alerted_at[held & (alerted_at == 0)] = look
        stage = _WindowState(last_look=look, alerted_at=alerted_at, watched=tuple(after))
        return LookResult(state=self._write(stage), alerted=alerted_at > 0)

    def compute_spent_losses(self, state: bytes) -> Epsilons:
        """Return the state after one look, and the keys in the answer. All ticks since the last look count as one."""
        stage = self._read(state)
        return np.full(stage.alerted_at.size, self.worst_case_epsilon if stage.last_look else 0.0)

    def _write(self, stage: "_WindowState") -> bytes:
        parts = [write_number(stage.alerted_at.size), write_number(stage.last_look)]
        parts.append(stage.alerted_at.astype(_SHORT).tobytes())
        for watched in stage.watched:
            parts += [watched.values.astype(_LONG).tobytes()]
            parts += [np.array([int(one * _GRAIN) for one in watched.estimates], dtype=_LONG).tobytes()]
            numbers = [to_integers(state) for state in watched.states]
            parts += [np.array([len(own) for own in numbers], dtype=_SHORT).tobytes()]
            parts += [np.array([number for own in numbers for number in own], dtype=_LONG).tobytes()]
        return seal_state(b"".join(parts), digest=self.digest)

    def _read(self, state: bytes) -> "_WindowState":
        reader = unseal_state(state, digest=self.digest)
        keys, last_look = reader.read_number(), reader.read_number()
        alerted_at = reader.read_array(keys, _SHORT)
        watched = tuple(_read_watched_functional(reader, keys, type(stream.start())) for stream in self.streams)
        reader.check_end()
        if last_look > self.task.looks or alerted_at.max(initial=0) > last_look:
            raise ValueError("the states of a window do not belong together")
        return _WindowState(last_look=last_look, alerted_at=alerted_at, watched=watched)


def watch_by_stream(task: StandingTask, *, name: str, epsilon: Fraction) -> StandingStream:
    """Calibrate a standing question that is watched by a published stream for each functional of the formula.

    Parameters:
        task: every literal is `S > cut`. Its tolerances lower the thresholds, and its error rates are not used.
        name: one of `WATCHING`.
        epsilon: the loss of one event by a stream. `zeros` loses nothing.

    Raises:
        Unachievable: a literal is not `S > cut`; the mechanism needs a hierarchy, which a standing question does not
            have; or the noise is outside the range of exact sampling.
        ValueError: no stream has this name.

    >>> from mechanisms.formula import Cut
    >>> many = Cut(0, 400, above=True, tolerance=40)
    >>> task = StandingTask(many, (1,), expose_all_functionals(1), (Regime.GROWING,), (0,), looks=24, fnr=0.05, fpr=0.1)
    >>> found = watch_by_stream(task, name="pegasus", epsilon=Fraction(1, 2))
    >>> found.worst_case_epsilon, found.fnr, found.fpr
    (0.5, None, None)
    """
    if name in HIERARCHIES:
        raise Unachievable("this mechanism releases the counts of a hierarchy, and a standing question has none")
    if name not in WATCHING:
        raise ValueError("no stream has this name")
    if any(not literal.above for literal in list_literals(task.formula)):
        raise Unachievable("streams watch values above their thresholds alone")
    used = tuple(sorted({literal.functional for literal in list_literals(task.formula)}))
    streams = tuple(_make_stream(name, epsilon, task.sensitivities[functional], task.looks) for functional in used)
    losses = [Fraction(0)] * len(task.sensitivities)
    for functional, stream in zip(used, streams, strict=True):
        losses[functional] = stream.epsilon * _count_most_changes(task.regimes[functional], task.looks)
    growing = all(task.regimes[functional] is Regime.GROWING for functional in used)
    exposures = task.exposures if growing else expose_all_functionals(len(losses))
    return StandingStream(
        task=task,
        name=name,
        used=used,
        streams=streams,
        worst_case_epsilon=round_up_to_float(compute_joint_loss(losses, exposures)),
        digest=compute_digest((task, name, epsilon)),
    )


def _count_most_changes(regime: Regime, looks: int) -> int:
    """Return how many sensitivities one unit may change the counts of a window's looks in all."""
    if regime is Regime.SLIDING:
        raise Unachievable("streams watch what is added between looks, and a sliding window loses as much again")
    return {Regime.GROWING: 1, Regime.COMING_AND_GOING: looks, Regime.SIGNED: 2 * looks - 1}[regime]


def _round_estimate(estimate: Fraction) -> Fraction:
    """Round an estimate to whole parts of a unit, so that sums of estimates have short numbers."""
    return Fraction(max(-_MOST, min(_MOST, round(estimate * _GRAIN))), _GRAIN)


@dataclass(frozen=True, slots=True)
class _WatchedFunctional:
    """One functional for all keys: its values and estimates at the last look, and the states of its streams."""

    values: Integers
    estimates: tuple[Fraction, ...]
    states: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _WindowState:
    """The state of one window for all keys after `last_look`, with the look at which each key entered the answer."""

    last_look: int
    alerted_at: Integers
    watched: tuple[_WatchedFunctional, ...]


def _read_watched_functional(reader: StateReader, keys: int, kind: type[Any]) -> _WatchedFunctional:
    values, estimates = reader.read_array(keys, _LONG), reader.read_array(keys, _LONG)
    lengths = reader.read_array(keys, _SHORT).tolist()
    numbers = reader.read_array(sum(lengths), _LONG).tolist()
    ends = list(accumulate(lengths))
    states = tuple(from_integers(kind, numbers[end - size : end]) for end, size in zip(ends, lengths, strict=True))
    return _WatchedFunctional(values, tuple(Fraction(one, _GRAIN) for one in estimates.tolist()), states)
