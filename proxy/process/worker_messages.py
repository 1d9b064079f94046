"""The messages between the parent of several processes and its workers over a pipe: orders down, words up."""

from dataclasses import dataclass
from pathlib import Path

from planner.policy.file import Policy
from proxy.process.addresses import Addresses, ListenAddress, Sockets
from proxy.security.mock_users import MockUsers
from proxy.shadow.address import ShadowAddress


@dataclass(frozen=True, slots=True)
class SharedGeneration:
    """A generation as the parent process describes it to its workers.

    It has a number, the accepted policy (even if the file has changed since), the digest of its catalog, and the shadow
    that shows that catalog.
    """

    number: int
    policy: Policy
    digest: str
    shadow: ShadowAddress


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """The input of a worker's start."""

    worker: int
    workers: int
    generation: SharedGeneration
    accepting: Sockets
    metrics: ListenAddress | None
    folder: Path
    mock_users: MockUsers


@dataclass(frozen=True, slots=True)
class ReloadOrder:
    """The order to a worker to use another policy over the same shadow."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class OpenOrder:
    """The order to a worker to open another generation while it still uses the present one.

    The worker reports if that succeeded.
    """

    generation: SharedGeneration


@dataclass(frozen=True, slots=True)
class TakeOrder:
    """The order to a worker to answer with the generation that all workers have opened.

    The worker ends the sessions on generations before `oldest`. If `oldest` is None, it closes the opened generation
    instead.
    """

    number: int
    oldest: int | None


@dataclass(frozen=True, slots=True)
class StopOrder:
    """The order to a worker to end, as gracefully as a single process would."""


@dataclass(frozen=True, slots=True)
class ReadyReport:
    """The report of a worker that it serves."""

    addresses: Addresses


@dataclass(frozen=True, slots=True)
class FailedReport:
    """The report of a worker that it could not start."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class OpenedReport:
    """The report of a worker that a generation is open. If it cannot be opened, `why` has the reason for the log."""

    number: int
    why: dict[str, object] | None


@dataclass(frozen=True, slots=True)
class UnusedReport:
    """The report of a worker that none of its sessions uses that generation's shadow any more."""

    number: int


Order = ReloadOrder | OpenOrder | TakeOrder | StopOrder
Word = ReadyReport | FailedReport | OpenedReport | UnusedReport
