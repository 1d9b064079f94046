"""The state of alarms on many keys between the looks of one window, as canonical bytes that are checked when read.

Keys in the answer, and alarms that have rung, keep no secret. The bytes begin with the number of keys, the last look,
and the look at which each key alerted. For each rung of each alarm there follow the look at which it rang, by key, and
the states of the keys that it still watches. These states are written column by column: how often the secret number was
extended, the number, the most steps counted, and the total.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mechanisms.alarm.run import FIRST_DIGITS, FURTHER_DIGITS, AlarmState
from mechanisms.formula import Booleans, Integers
from mechanisms.standing.sealed import StateReader, seal_state, unseal_state, write_number

_LOOK = np.dtype("<u4")
_STEPS = np.dtype("<i8")
_EXTENDED = np.dtype("u1")
_FIRST_BYTES, _FURTHER_BYTES = FIRST_DIGITS // 8, FURTHER_DIGITS // 8


@dataclass(frozen=True, slots=True)
class RungState:
    """The state of one alarm for all keys.

    `rang_at` is the look at which it rang for each key, or 0, shape (keys,). `watched` has the states of the keys that
    it still watches, in their order.
    """

    rang_at: Integers
    watched: tuple[AlarmState, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class AlarmWindow:
    """The state of one window for all keys after `last_look`.

    `alerted_at` is the look at which each key entered the answer, or 0.

    A rung watches the keys that are not in the answer and for which it has not rung. After the window's last look
    (`is_over`) it watches none.
    """

    last_look: int
    alerted_at: Integers
    rungs: tuple[RungState, ...]
    is_over: bool

    def find_watched_keys(self, rung: RungState) -> Booleans:
        """Return True for each key that a rung still watches."""
        return find_watched_keys(self.alerted_at, rung.rang_at, is_over=self.is_over)


def find_watched_keys(alerted_at: Integers, rang_at: Integers, *, is_over: bool) -> Booleans:
    """Return True for each key that an alarm still watches, shape (keys,)."""
    found: Booleans = (alerted_at == 0) & (rang_at == 0) & (not is_over)
    return found


def write_window(state: AlarmWindow, *, digest: bytes) -> bytes:
    """Encode the state as bytes. Equal states of equal calibrations have equal bytes."""
    parts = [
        *map(write_number, (state.alerted_at.size, state.last_look)),
        state.alerted_at.astype(_LOOK).tobytes(),
    ]
    for rung in state.rungs:
        parts.append(rung.rang_at.astype(_LOOK).tobytes())
        parts += _write_watched_states(rung.watched)
    return seal_state(b"".join(parts), digest=digest)


def read_window(body: bytes, *, digest: bytes, rungs: int, looks: int) -> AlarmWindow:
    """Decode a window's state that was made with this calibration digest and these numbers of rungs and looks.

    Raises:
        ValueError: the bytes are no such state, or belong to another calibration.
    """
    reader = unseal_state(body, digest=digest)
    keys, last_look = reader.read_number(), reader.read_number()
    alerted_at = reader.read_array(keys, _LOOK)
    over = last_look == looks
    found = []
    for _ in range(rungs):
        rang_at = reader.read_array(keys, _LOOK)
        watched = int(np.count_nonzero(find_watched_keys(alerted_at, rang_at, is_over=over)))
        found.append(RungState(rang_at=rang_at, watched=_read_watched_states(reader, watched, last_look)))
    latest = max((int(times.max(initial=0)) for times in (alerted_at, *(rung.rang_at for rung in found))), default=0)
    reader.check_end()
    if not latest <= last_look <= looks:
        raise ValueError("the states of a window do not belong together")
    return AlarmWindow(last_look=last_look, alerted_at=alerted_at, rungs=tuple(found), is_over=over)


def _write_watched_states(states: Sequence[AlarmState]) -> list[bytes]:
    """Encode the states of the keys that a rung watches, column by column."""
    if not states:
        return []
    extended = [(state.digit_count - FIRST_DIGITS) // FURTHER_DIGITS for state in states]
    digits = _FIRST_BYTES + _FURTHER_BYTES * max(extended)
    width = max(1, (max(state.total_weight for state in states).bit_length() + 7) // 8)
    return [
        np.array(extended, dtype=_EXTENDED).tobytes(),
        b"".join([state.secret_digits.to_bytes(digits, "little") for state in states]),
        np.array([state.highest_steps for state in states], dtype=_STEPS).tobytes(),
        write_number(width),
        b"".join([state.total_weight.to_bytes(width, "little") for state in states]),
    ]


def _read_watched_states(reader: StateReader, watched: int, last_look: int) -> tuple[AlarmState, ...]:
    if not watched:
        return ()
    extended = reader.read_array(watched, _EXTENDED)
    uniforms = reader.read_integers(watched, _FIRST_BYTES + _FURTHER_BYTES * int(extended.max()))
    highest = reader.read_array(watched, _STEPS).tolist()
    totals = reader.read_integers(watched, reader.read_number())
    digits = (FIRST_DIGITS + FURTHER_DIGITS * extended).tolist()
    if min(highest) < 0 or any(uniform >> known for uniform, known in zip(uniforms, digits, strict=True)):
        raise ValueError("an alarm's number has more digits than were drawn, or its steps are negative")
    return tuple(
        AlarmState(uniform, known, total, steps, last_look, 0)
        for uniform, known, total, steps in zip(uniforms, digits, totals, highest, strict=True)
    )
