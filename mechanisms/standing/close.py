"""The decision at the close of a window that no alarm watches, by a mechanism for ordinary questions.

Proof: docs/proofs/standing.md.
"""

from dataclasses import dataclass, field

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, Mechanism, Noise, Unachievable
from mechanisms.standing.sealed import compute_digest, seal_state, unseal_state, write_number
from mechanisms.standing.standing_protocol import LookResult

_LOOK = 1  # the only one, which is the close
_PASSED = np.dtype("u1")
_LOSS = np.dtype("<f8")


@dataclass(frozen=True, slots=True)
class StandingDecision:
    """A mechanism's calibration as a `Standing` with one look.

    Guarantee: at the close, the contract and the loss of the calibration hold. `compute_spent_losses` is the ex-post
    loss of each key's decision (docs/proofs/standing.md). Noise is drawn at the look, so nothing may be shown before
    the look is committed.
    """

    mechanism: Mechanism
    calibration: Calibration
    digest: bytes = field(repr=False)

    @property
    def worst_case_epsilon(self) -> float:
        """The loss bound of one key and window: the calibration's worst case."""
        return self.calibration.worst_case_epsilon

    @property
    def fnr(self) -> float | None:
        """A bound on the probability that a key is missing at the close, or None if the mechanism has none."""
        return self.calibration.fnr

    @property
    def fpr(self) -> float | None:
        """A bound on the probability that a key is in the answer wrongly, or None if the mechanism has none."""
        return self.calibration.fpr

    def draw_state(self, *, keys: int, noise: Noise) -> bytes:
        """Return the state before the only look. Nothing is drawn."""
        del noise
        return self._write(_CloseState(has_looked=False, passed=np.zeros(keys, dtype=np.bool_), loss=np.zeros(keys)))

    def take_look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> LookResult:
        """Decide all keys at the only look, and return the new state with the answer."""
        before = self._read(state)
        if values.shape != (len(self.calibration.task.sensitivities), before.passed.size):
            raise ValueError("a look has a value of each functional for each key")
        if look != _LOOK or before.has_looked:
            raise ValueError("what is decided when a window closes has one look")
        outcome = self.mechanism.decide(self.calibration, values, noise=noise)
        after = _CloseState(has_looked=True, passed=outcome.passed, loss=outcome.epsilon)
        return LookResult(state=self._write(after), alerted=outcome.passed)

    def compute_spent_losses(self, state: bytes) -> Epsilons:
        """Return each key's loss so far: zero before the look, then the ex-post loss of its decision."""
        return self._read(state).loss

    def _write(self, closed: "_CloseState") -> bytes:
        parts = [write_number(number) for number in (closed.passed.size, int(closed.has_looked))]
        arrays = [closed.passed.astype(_PASSED).tobytes(), closed.loss.astype(_LOSS).tobytes()]
        return seal_state(b"".join(parts + arrays), digest=self.digest)

    def _read(self, state: bytes) -> "_CloseState":
        reader = unseal_state(state, digest=self.digest)
        keys, made = reader.read_number(), reader.read_number()
        passed = reader.read_array(keys, _PASSED).astype(np.bool_)
        loss = np.frombuffer(reader.read_bytes(keys * _LOSS.itemsize), dtype=_LOSS).astype(np.float64)
        reader.check_end()
        return _CloseState(has_looked=made > 0, passed=passed, loss=loss)


@dataclass(frozen=True, slots=True)
class _CloseState:
    """The state: True once the look was made, the keys that passed, and each key's loss, shape (keys,)."""

    has_looked: bool
    passed: Booleans
    loss: Epsilons


def decide_at_close(mechanism: Mechanism, task: DecisionTask) -> StandingDecision:
    """Calibrate a standing question that is decided once, when its window closes.

    Parameters:
        task: the window's values at its last look. Its `keys` is the number of keys that are decided together.

    Raises:
        Unachievable: as the mechanism raises it. Also for a mechanism whose loss covers all keys together, or that may
            stop without an answer, and for predicates, which a standing question cannot have.

    >>> from mechanisms.formula import Cut
    >>> from mechanisms.keyhole.progressive import Progressive
    >>> from mechanisms.threshold.joint_loss import expose_all_functionals
    >>> few = DecisionTask(Cut(0, 99, above=False, tolerance=9), (1,), expose_all_functionals(1), fnr=0.05, fpr=0.1)
    >>> round(decide_at_close(Progressive(), few).worst_case_epsilon, 2)
    0.4
    """
    if task.predicates:
        raise Unachievable("a standing question decides one formula")
    calibration = mechanism.calibrate(task)
    if calibration.whole_question or calibration.deniable:
        raise Unachievable(
            "a monitor decides each key by itself when a window closes; this mechanism decides all together, or may "
            "decide none"
        )
    return StandingDecision(mechanism=mechanism, calibration=calibration, digest=compute_digest(calibration))
