"""The decisions of an owner as events: grants, settlements, windows, approvals, pruning, publications.

Each has its author and reason.
"""

from dataclasses import dataclass
from datetime import datetime

from accountant.charges import MOST_NANO_PER_CHARGE
from accountant.errors import BalanceScope, LedgerMisuse

GRANTABLE = (
    BalanceScope.PER_PREDICATE,
    BalanceScope.PER_UNIT,
    BalanceScope.PER_TABLE,
    BalanceScope.ANALYST_PER_PREDICATE,
    BalanceScope.ANALYST_PER_UNIT,
)

# a thousand of the largest charges
MOST_GRANT_NANO = 1000 * MOST_NANO_PER_CHARGE


@dataclass(frozen=True, slots=True)
class Grant:
    """A grant: a cap is raised by `amount_nano` above the policy's.

    `table` restricts a cap per predicate to one table (None: all), and names the table of a cap per table. `analyst`
    has the cap if it is an analyst's own. A cap that the policy does not set stays unset.
    """

    scope: BalanceScope
    amount_nano: int
    table: str | None
    analyst: str | None

    def __post_init__(self) -> None:
        if self.scope not in GRANTABLE or self.amount_nano <= 0:
            raise LedgerMisuse("a grant raises a balance's cap")
        if self.amount_nano > MOST_GRANT_NANO:
            raise LedgerMisuse(f"a grant is at most {MOST_GRANT_NANO}e-9 epsilon")
        if (self.analyst is not None) != (
            self.scope in (BalanceScope.ANALYST_PER_PREDICATE, BalanceScope.ANALYST_PER_UNIT)
        ):
            raise LedgerMisuse("a grant names an analyst when it is about that analyst's own cap")
        if self.scope is BalanceScope.PER_TABLE and self.table is None:
            raise LedgerMisuse("a grant on a cap per table names the table")
        if self.scope in (BalanceScope.PER_UNIT, BalanceScope.ANALYST_PER_UNIT) and self.table is not None:
            raise LedgerMisuse("the balance of a unit is one over all tables")


@dataclass(frozen=True, slots=True)
class Granted:
    """A grant, which raises a cap from here on. `grant_id` names it for its revocation."""

    grant_id: str
    at: datetime
    by: str
    why: str
    grant: Grant


@dataclass(frozen=True, slots=True)
class Revoked:
    """The revocation of a grant. Losses within it stay spent."""

    grant_id: str
    at: datetime
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The settlement of an open reservation by the owner: it is spent for good at its worst case.

    If `untouched`, the owner says that its question never touched data, and it counts as released.
    """

    reservation: str
    at: datetime
    by: str
    why: str
    untouched: bool


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """The opening of a budget window: the balances start again. Earlier losses stay in the log and in the odometer."""

    window: str
    at: datetime
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Approved:
    """The approval of a question whose worst case is above the threshold."""

    question: str
    at: datetime
    by: str
    why: str


@dataclass(frozen=True, slots=True)
class Declined:
    """The owner's decision against a question that waited for approval.

    It forbids nothing: an analyst who asks the question again waits for approval again. So a question may be declined
    often, and approved later. Until then, every analyst who asks it is told when and `why` it was declined.
    """

    declining: str
    at: datetime
    by: str
    why: str
    question: str


@dataclass(frozen=True, slots=True)
class Pruned:
    """The deletion of a table's noise paths on one data version. They can no longer be continued."""

    pruning: str
    at: datetime
    by: str
    why: str
    table: str
    version: str


@dataclass(frozen=True, slots=True)
class Published:
    """The publication of a file that no budget covers. Balances do not change. The file's disclosure is permanent.

    `publication` is a digest of the published data, the method and the data version. `file` is the file's name and
    `file_hash` its SHA-256. `statement` says what the file discloses, and is shown for ever.
    """

    publication: str
    at: datetime
    by: str
    why: str
    table: str
    version: str
    method: str
    file: str
    file_hash: str
    statement: str


OwnerEvent = Granted | Revoked | Settled | WindowOpened | Approved | Declined | Pruned | Published


def find_subject(event: OwnerEvent) -> str:
    """Return the subject of an event. There is one event of a kind for each subject."""
    match event:
        case Granted(grant_id=identity) | Revoked(grant_id=identity):
            return identity
        case Settled(reservation=identity) | WindowOpened(window=identity):
            return identity
        case Approved(question=identity) | Declined(declining=identity):
            return identity
        case Pruned(pruning=identity) | Published(publication=identity):
            return identity
