"""The states of a window's alarms as bytes: canonical, of one length for equal states, and checked as they are read."""

from collections.abc import Sequence

_VERSION = b"\x01"  # of what follows; another form is another number
_COUNT = 4  # bytes of the number of alarms and of keys
_LENGTH = 2  # bytes of a number's length

States = Sequence[Sequence[Sequence[int]]]
"""By alarm and key, the whole numbers of a state, none negative."""


def write_states(states: States) -> bytes:
    """All of them, alarm by alarm and key by key.

    >>> read_states(write_states([[(0, 7), (300, 1)]]), alarms=1, keys=2)
    [[(0, 7), (300, 1)]]
    """
    keys, numbers = len(states[0]), len(states[0][0]) if states[0] else 0
    parts = [_VERSION, *(count.to_bytes(_COUNT, "big") for count in (len(states), keys))]
    for alarm in states:
        own = len(alarm[0]) if alarm else numbers
        parts.append(own.to_bytes(_LENGTH, "big"))
        for state in alarm:
            for number in state:
                size = (number.bit_length() + 7) >> 3
                parts.append(size.to_bytes(_LENGTH, "big") + number.to_bytes(size, "big"))
    return b"".join(parts)


def read_states(body: bytes, *, alarms: int, keys: int | None) -> list[list[tuple[int, ...]]]:
    """What was written, of so many alarms and (None: any number of) keys.

    Raises:
        ValueError: bytes that were not written by `write_states`, or for another number of alarms or keys.
    """
    counts = [int.from_bytes(body[1 + i * _COUNT : 1 + (i + 1) * _COUNT], "big") for i in (0, 1)]
    if body[:1] != _VERSION or counts[0] != alarms or keys not in (None, counts[1]):
        raise ValueError("these are not the states of such a window")
    at = 1 + 2 * _COUNT
    found = []
    for _ in range(alarms):
        own, at = int.from_bytes(body[at : at + _LENGTH], "big"), at + _LENGTH
        if own * counts[1] * _LENGTH > len(body):
            raise ValueError("the states of a window are cut off")
        alarm = []
        for _ in range(counts[1]):
            state = []
            for _ in range(own):
                size, at = int.from_bytes(body[at : at + _LENGTH], "big"), at + _LENGTH
                state.append(int.from_bytes(body[at : at + size], "big"))
                at += size
            alarm.append(tuple(state))
        found.append(alarm)
    if at != len(body) or write_states(found) != body:
        raise ValueError("the states of a window are cut off, or are followed by something else")
    return found
