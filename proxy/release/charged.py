"""The way of a release that is no question: reserve, read counts, decide, commit; then it is told.

    spec -> stored release -> reservation -> counts -> mechanism -> commit -> what is told

Guarantee: data are touched in one line, and only after the whole cost is durably reserved; what fails after that stays
spent, unless a column is gone, so that no row was read; nothing is told before the commit. The same release on the same
data version is told again from the ledger, free. It is charged to the groups that it is about, or to the whole
table as one, to nobody's own cap, under the name `RELEASED_BY`, which no analyst has.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from hashlib import sha256
from math import ceil
from typing import Generic, Protocol, TypeVar

from accountant.charges import NANO, ROW_UNIT, Cells, Charge, Family, Reservation, Spent, Wording
from accountant.errors import BalanceScope, LedgerError, OverBudget
from accountant.ledger import Ledger
from accountant.limits import Limits
from accountant.verbs.in_flight import Repeated
from planner.catalog.catalog import RELEASED_BY, Analyst, Catalog, Table
from planner.errors import KeyholeError
from planner.functionals.cells import OWN_GROUP, find_cell_reach
from planner.question.plan import ReadRelation
from planner.question.question import Question
from planner.question.unit_groups import groups_of_one_unit
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.claim import find_charged_keys
from proxy.pipeline.ledger_verbs import release_if_unread
from proxy.pipeline.question_refusals import refuse_changed_data
from proxy.release.release_refusals import (
    StoppedRelease,
    refuse_open_release,
    refuse_over_budget,
    say_stopped,
    say_stopped_unknown,
)
from proxy.sources.protocol import Counts

LONGEST_MS = 600_000
"""How long a release may read: nobody waits for it but the owner, and a stopped one is paid."""
_LONGEST_MINUTES = LONGEST_MS // 60_000


class CountingStatement(Protocol):
    """A statement that gives counts alone, as `Source.read_counts` reads them, over one state of a table."""

    @property
    def table(self) -> Table:
        """The table that is read."""

    @property
    def sql(self) -> str:
        """The statement."""

    @property
    def relations(self) -> tuple[ReadRelation, ...]:
        """Return the relations that it reads, as the policy knows them."""


class Accounts(Protocol):
    """The accounts that decide if a release can be charged: no source is needed for that. A `Service` is one."""

    @property
    def catalog(self) -> Catalog:
        """The tables and caps."""

    @property
    def ledger(self) -> Ledger:
        """Return the ledger of charges and releases."""

    def find_version(self, table: Table) -> str:
        """Return the public data version of a table now."""


CountsT = TypeVar("CountsT", bound=CountingStatement, covariant=True)


@dataclass(frozen=True, slots=True)
class Release(Generic[CountsT]):
    """The reads and the cost of a release, all public.

    Parameters:
        terms: what decides beside the counts, as text: the same counts under other terms are another release.
        epsilon: of one unit in one group, all counts together; without a question, in the table.
        text: how it was asked for, and why.
        promise: what it guarantees, in a sentence.
        question: whose groups it is about, and charged to; None: the whole table as one group.
    """

    counts: CountsT
    terms: str
    epsilon: Fraction
    text: str
    promise: str
    question: Question | None = None

    @property
    def identity(self) -> str:
        """Return its identity in the ledger."""
        return sha256(f"release:{self.terms}:{self.counts.sql}".encode()).hexdigest()

    @property
    def table(self) -> Table:
        """The table that is read."""
        return self.counts.table


@dataclass(frozen=True, slots=True)
class PaidRelease:
    """The released values; `again` if they were released before and cost nothing now."""

    body: bytes
    version: str
    is_repeated: bool


def make_release(
    service: Service, release: Release[CountingStatement], decide: Callable[[Counts], bytes]
) -> PaidRelease:
    """Pay for a release, read its counts and decide, or tell what was released before.

    Parameters:
        decide: from the counts to what is released; the one step that may use the noise. It must not fail.

    Raises:
        KeyholeError: KH310 and KH313, nothing spent; KH501, which says whether what was reserved stays spent; KH502.
        StoppedRelease: at Ctrl-C, with what stays spent.
    """
    version = service.find_version(release.table)
    charge = make_charge(release, version)
    stored = find_release(service, release)
    if stored is not None:
        return stored
    with ExitStack() as working:
        working.enter_context(_report_interruption(service, release, version))
        working.enter_context(service.hold_open())
        working.enter_context(service.take_turn(analyst=RELEASED_BY, timeout_ms=LONGEST_MS))
        check_version(service, release, version, is_paid=False)
        with refuse_ledger_errors():
            reservation = service.ledger.reserve(
                charge,
                find_release_limits(service),
                once_within=timedelta(milliseconds=LONGEST_MS),
                wording=Wording(text=release.text, guarantee=release.promise, fnr=None, fpr=None),
            )
        working.enter_context(service.ledger.hold_in_flight(reservation))
        counts = release.counts
        with release_if_unread(service, reservation):
            found = service.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=LONGEST_MS)
        check_version(service, release, version, is_paid=True)
        body = decide(found)
        _commit(service, reservation, body)
    return PaidRelease(body, version, is_repeated=False)


@contextmanager
def _report_interruption(service: Service, release: Release[CountingStatement], version: str) -> Iterator[None]:
    """Tell anybody who presses Ctrl-C what the ledger has of the release. Raise StoppedRelease then."""
    try:
        yield
    except KeyboardInterrupt:
        raise _describe_stopped(service.ledger, release, make_charge(release, version)) from None


def _describe_stopped(ledger: Ledger, release: Release[CountingStatement], charge: Charge) -> StoppedRelease:
    version = charge.family.version
    try:
        is_made = ledger.find_answer(release.identity, version, analyst=RELEASED_BY) is not None
        left_open = [one.id for one in ledger.list_open_reservations() if _is_for(one.charge, release, version)]
    except LedgerError:
        return say_stopped_unknown()
    return say_stopped(
        left_open[-1] if left_open else None,
        is_made=is_made,
        epsilon=charge.epsilon_nano / NANO,
        unit_epsilon=charge.unit_epsilon_nano / NANO,
        minutes=_LONGEST_MINUTES,
    )


def _is_for(charge: Charge, release: Release[CountingStatement], version: str) -> bool:
    return (charge.question, charge.analyst, charge.family.version) == (release.identity, RELEASED_BY, version)


def find_release(service: Accounts, release: Release[CountingStatement]) -> PaidRelease | None:
    """Return the same release on the data version of now, if it was charged before. Raise KH502."""
    version = service.find_version(release.table)
    with refuse_ledger_errors():
        found = service.ledger.find_answer(release.identity, version, analyst=RELEASED_BY)
    return None if found is None else PaidRelease(found.answer, version, is_repeated=True)


def check_affordable(service: Accounts, release: Release[CountingStatement]) -> None:
    """Refuse what the balances do not cover now, spending nothing. Raise KH310, KH502."""
    with refuse_ledger_errors():
        short = service.ledger.find_shortage(
            make_charge(release, service.find_version(release.table)), find_release_limits(service)
        )
        if short is not None:
            raise short


def make_charge(release: Release[CountingStatement], version: str) -> Charge:
    """Return the charge to the ledger: of the release's groups, or the whole table as one, and of a unit in all."""
    root = release.table.ledger_root
    amount = ceil(release.epsilon * NANO)
    whole = Family(
        table=root.table,
        unit=",".join(root.unit) or ROW_UNIT,
        columns=(),
        filter="",
        version=version,
        immutable=frozenset(),
    )
    question = release.question
    family, cells = (whole, Cells(())) if question is None else find_charged_keys(question, version=version)
    groups = 1 if question is None else groups_of_one_unit(question)
    reach = OWN_GROUP if question is None else find_cell_reach(question)
    return Charge(
        question=release.identity,
        analyst=RELEASED_BY,
        family=family,
        cells=cells,
        epsilon_nano=reach.count_losses(groups) * amount,
        unit_epsilon_nano=groups * amount if root.unit else 0,
        shared=True,
    )


def find_release_limits(service: Accounts) -> Limits:
    """Return the policy's caps: the owner needs nobody's approval, and one release may cost what all questions may."""
    nobody = Analyst(name=RELEASED_BY, verifier="", token_hash=None, per_predicate=None, per_unit=None)
    return replace(find_limits(service.catalog, nobody), approval_above_nano=None, per_query_nano=None)


def _commit(service: Service, reservation: Reservation, body: bytes) -> None:
    charge = reservation.charge
    with refuse_ledger_errors():
        spent = Spent.from_uniform(charge.epsilon_nano, unit_epsilon_nano=charge.unit_epsilon_nano)
        service.ledger.commit(reservation, spent, body)


def check_version(service: Service, release: Release[CountingStatement], version: str, *, is_paid: bool) -> None:
    """Refuse where the data version is another one by now. Raise KH502 or KH5xx as a question does."""
    if not service.can_read(release.table, version):
        raise refuse_changed_data(is_paid=is_paid)


@contextmanager
def refuse_ledger_errors() -> Iterator[None]:
    """Put the ledger's refusals into words. Raise KH310, KH313, KH502."""
    try:
        yield
    except OverBudget as over:
        refusal: KeyholeError = refuse_over_budget(
            _SCOPES[over.scope], needed=over.needed_nano / NANO, left=over.left_nano / NANO
        )
    except Repeated as repeated:
        refusal = refuse_open_release(repeated.reservation, minutes=_LONGEST_MINUTES)
    except LedgerError:
        refusal = report_unavailable_ledger()
    else:
        return
    raise refusal


_SCOPES = {
    BalanceScope.PER_QUERY: "one question",
    BalanceScope.PER_PREDICATE: "a group",
    BalanceScope.ANALYST_PER_PREDICATE: "a group",
    BalanceScope.PER_UNIT: "the privacy unit",
    BalanceScope.ANALYST_PER_UNIT: "the privacy unit",
    BalanceScope.PER_TABLE: "the table",
}
