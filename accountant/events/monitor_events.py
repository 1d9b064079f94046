"""The events of a monitor, with digests of its secret states.

Each digest covers a state and a stored salt of 128 bits. Without the salt a state could be guessed, as some are only an
exact count or a little noise.

A run has the id of its reservation. The subject of an event that can repeat has the run and a number. So no look of a
moment, and no beginning or close of a window, can be written twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accountant.charges import Amounts, Spent
from accountant.events.payloads import Payload, make_loss_payload, parse_loss
from accountant.monitor_model import WindowAxis


@dataclass(frozen=True, slots=True)
class MonitorStarted:
    """The start of a monitor. The reservation `run`, written just before, pays for all its windows until the end.

    If `is_restarted`, it also pays for windows that earlier runs of the fingerprint had begun, and draws new noise for
    them.
    """

    run: str
    at: datetime
    monitor: str
    fingerprint: str
    windows: WindowAxis | None
    by: str
    why: str
    is_restarted: bool = False


@dataclass(frozen=True, slots=True)
class MonitorWindowBegun:
    """The beginning of a window: its secret draw is stored before data are read. `state` is its SHA-256."""

    run: str
    at: datetime
    window: int
    state: str


@dataclass(frozen=True, slots=True)
class LookOfWindow:
    """The result of a look in one window: the SHA-256 of the new state, and the changes of the answer.

    `keys` entered the answer, and `cleared` left it.
    """

    window: int
    look: int
    state: str
    keys: tuple[int, ...]
    cleared: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MonitorLooked:
    """One look at the moment `at`, recorded by `holder`. `number` counts looks over the horizon."""

    run: str
    at: datetime
    number: int
    holder: str
    windows: tuple[LookOfWindow, ...]


@dataclass(frozen=True, slots=True)
class MonitorWindowClosed:
    """The close of a window: no look is made in it again, and its state is deleted.

    `spent` is its cost, by key in the C order of the charge's cells without the window's column. None means all that
    was reserved.
    """

    run: str
    at: datetime
    window: int
    spent: Spent | None


@dataclass(frozen=True, slots=True)
class MonitorPaused:
    """The event that pauses a monitor. The monitor makes no look until a `MonitorResumed` event."""

    pause: str
    at: datetime
    run: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class MonitorResumed:
    """The resumption of a paused monitor: looks are made again."""

    pause: str
    at: datetime
    run: str
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class MonitorEnded:
    """The end of a monitor: no look is ever made again.

    The reservation is closed at `spent`, the cost to the key that lost most, and to a unit. Windows that never began
    are given back. Windows that were still open cost all that was reserved.
    """

    run: str
    at: datetime
    spent: Amounts
    by: str
    why: str


MonitorEvent = (
    MonitorStarted
    | MonitorWindowBegun
    | MonitorLooked
    | MonitorWindowClosed
    | MonitorPaused
    | MonitorResumed
    | MonitorEnded
)


def find_monitor_subject(event: MonitorEvent) -> str:
    """Return the subject of an event. There is one event of a kind for each subject."""
    match event:
        case MonitorStarted(run=run) | MonitorEnded(run=run):
            return run
        case MonitorWindowBegun(run=run, window=number) | MonitorWindowClosed(run=run, window=number):
            return f"{run} {number}"
        case MonitorLooked(run=run, number=number):
            return f"{run} {number}"
        case MonitorPaused(pause=pause) | MonitorResumed(pause=pause):
            return pause


def make_monitor_payload(event: MonitorEvent) -> tuple[Payload, bytes | None]:
    """Return an event's payload, and its losses per key, which are stored in a column of their own."""
    payload: Payload = {"v": _choose_version(event)}
    match event:
        case MonitorStarted(monitor=monitor, fingerprint=fingerprint, windows=axis):
            payload |= {"monitor": monitor, "fingerprint": fingerprint, "by": event.by, "why": event.why}
            payload["windows"] = None if axis is None else [axis.column, axis.overlap, axis.first]
            payload |= {"anew": True} if event.is_restarted else {}
        case MonitorWindowBegun(run=run, window=window, state=state):
            payload |= {"run": run, "window": window, "state": state}
        case MonitorLooked(run=run, number=number, holder=holder):
            looks = [_make_look_payload(one) for one in event.windows]
            payload |= {"run": run, "number": number, "holder": holder, "windows": looks}
        case MonitorWindowClosed(run=run, window=window, spent=spent):
            payload |= {"run": run, "window": window, "spent": None if spent is None else make_loss_payload(spent)}
            return payload, None if spent is None else spent.keys
        case MonitorPaused(run=run) | MonitorResumed(run=run):
            payload |= {"run": run, "by": event.by, "why": event.why}
        case MonitorEnded(spent=spent):
            amounts = [spent.epsilon_nano, spent.unit_epsilon_nano]
            payload |= {"spent": amounts, "by": event.by, "why": event.why}
    return payload, None


def _choose_version(event: MonitorEvent) -> int:
    """Return the payload's version.

    Cleared keys and restarted runs need version 2. Everything else has version 1.
    """
    match event:
        case MonitorStarted(is_restarted=True):
            return 2
        case MonitorLooked(windows=windows) if any(one.cleared for one in windows):
            return 2
    return 1


def _make_look_payload(look: LookOfWindow) -> list[Any]:
    cleared = [list(look.cleared)] if look.cleared else []
    return [look.window, look.look, look.state, list(look.keys), *cleared]


def _parse_look(window: int, look: int, state: str, keys: list[int], cleared: list[int] | None = None) -> LookOfWindow:
    return LookOfWindow(window, look, state, tuple(keys), tuple(cleared or ()))


def parse_monitor_event(
    kind: str, about: str, payload: Mapping[str, Any], at: datetime, spent_keys: bytes | None
) -> MonitorEvent | None:
    """Parse a payload of `make_monitor_payload`.

    Return None if the event is not a monitor's, or its losses differ from the digest.

    Raise `KeyError`, `TypeError`, `ValueError`, `LedgerMisuse` for a payload that no version wrote.
    """
    event = _parse(kind, about, payload, at, spent_keys)
    if event is None or find_monitor_subject(event) != about or _choose_version(event) != payload["v"]:
        return None
    return event


def _parse(
    kind: str, about: str, payload: Mapping[str, Any], at: datetime, spent_keys: bytes | None
) -> MonitorEvent | None:
    match kind:
        case "MonitorStarted":
            axis = None if payload["windows"] is None else WindowAxis(*payload["windows"])
            told = (payload["monitor"], payload["fingerprint"], axis, payload["by"], payload["why"])
            return MonitorStarted(about, at, *told, is_restarted=payload.get("anew", False))
        case "MonitorWindowBegun":
            return MonitorWindowBegun(payload["run"], at, payload["window"], payload["state"])
        case "MonitorLooked":
            windows = tuple(_parse_look(*told) for told in payload["windows"])
            return MonitorLooked(payload["run"], at, payload["number"], payload["holder"], windows)
        case "MonitorWindowClosed":
            spent = None if payload["spent"] is None else parse_loss(payload["spent"], spent_keys)
            if payload["spent"] is not None and spent is None:
                return None
            return MonitorWindowClosed(payload["run"], at, payload["window"], spent)
        case "MonitorPaused":
            return MonitorPaused(about, at, payload["run"], payload["by"], payload["why"])
        case "MonitorResumed":
            return MonitorResumed(about, at, payload["run"], payload["by"], payload["why"])
        case "MonitorEnded":
            return MonitorEnded(about, at, Amounts(*payload["spent"]), payload["by"], payload["why"])
    return None
