"""The messages between the parent of several processes and its workers over a pipe: orders down, words up."""

from dataclasses import dataclass
from pathlib import Path

from planner.policy.file import Policy
from proxy.process.addresses import Addresses, ListenAddress, Sockets
from proxy.security.mock_users import Strangers
from proxy.shadow.address import ShadowAddress


@dataclass(frozen=True, slots=True)
class Shown:
    """A generation as the parent made it.

    It has its number, the accepted policy (whatever its file says now), the digest of its catalog, and the shadow that
    shows that.
    """

    number: int
    policy: Policy
    digest: str
    shadow: ShadowAddress


@dataclass(frozen=True, slots=True)
class Task:
    """The input of a worker's start."""

    worker: int
    workers: int
    shown: Shown
    accepting: Sockets
    metrics: ListenAddress | None
    folder: Path
    strangers: Strangers


@dataclass(frozen=True, slots=True)
class Reload:
    """To a worker: go on with another policy over the same shadow."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class Open:
    """To a worker: open another generation beside the one that answers, and say whether that went well."""

    shown: Shown


@dataclass(frozen=True, slots=True)
class Take:
    """The order to a worker to let the opened generation answer, as all have opened it.

    It ends the sessions on those before `oldest`; or (None) the worker closes it again.
    """

    number: int
    oldest: int | None


@dataclass(frozen=True, slots=True)
class Stop:
    """To a worker: end, as gracefully as one process alone would."""


@dataclass(frozen=True, slots=True)
class Ready:
    """From a worker: it serves."""

    addresses: Addresses


@dataclass(frozen=True, slots=True)
class Failed:
    """From a worker: it could not start."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Opened:
    """From a worker: the generation is open, or (with `why`, as it is logged) cannot be opened."""

    number: int
    why: dict[str, object] | None


@dataclass(frozen=True, slots=True)
class GenerationLeft:
    """From a worker: nobody here uses that generation's shadow any more."""

    number: int


Order = Reload | Open | Take | Stop
Word = Ready | Failed | Opened | GenerationLeft
