"""The stages of a charged release, such as `keyhole bounds`: reserve, read counts, decide, commit, return.

    spec -> stored release -> reservation -> counts -> mechanism -> commit -> released values

Guarantee: data is read in one line, and only after the whole cost is durably reserved. After a later failure the cost
stays spent, unless a column was missing, so that no row was read. Nothing is returned before the commit. The same
release on the same data version is returned again from the ledger, at no cost. A release is charged to its groups, or
to the whole table as one group. It is charged under the name `RELEASED_BY`, which no analyst has, and to no analyst's
cap.
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
from planner.question.unit_groups import count_unit_groups
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.claim import find_charged_keys
from proxy.pipeline.ledger_verbs import release_if_nothing_read
from proxy.pipeline.question_refusals import refuse_changed_data
from proxy.release.release_refusals import (
    StoppedRelease,
    make_stopped_release,
    make_unknown_stopped_release,
    refuse_open_release,
    refuse_over_budget,
)
from proxy.sources.protocol import Counts

LONGEST_MS = 600_000
"""How long a release may read: nobody waits for it but the owner, and a stopped one is paid."""
_LONGEST_MINUTES = LONGEST_MS // 60_000


class CountingStatement(Protocol):
    """A statement that returns only counts from one state of a table, for `Source.read_counts`."""

    @property
    def table(self) -> Table:
        """The table to read."""

    @property
    def sql(self) -> str:
        """The statement's SQL."""

    @property
    def relations(self) -> tuple[ReadRelation, ...]:
        """Return the relations that the statement reads, as the policy knows them."""


class Accounts(Protocol):
    """The catalog and ledger, which decide without a source if a release can be charged. `Service` implements it."""

    @property
    def catalog(self) -> Catalog:
        """The catalog of tables and caps."""

    @property
    def ledger(self) -> Ledger:
        """Return the ledger of charges and releases."""

    def find_version(self, table: Table) -> str:
        """Return the current public data version of a table."""


CountsT = TypeVar("CountsT", bound=CountingStatement, covariant=True)


@dataclass(frozen=True, slots=True)
class Release(Generic[CountsT]):
    """A planned release: what it reads and what it costs. All of it is public.

    Parameters:
        terms: everything that decides the result, except the counts, as text. Other terms make another release.
        epsilon: the cost to one unit in one group, or in the table if there is no question, for all counts together.
        text: the request and its reason.
        promise: the guarantee, in a sentence.
        question: a question with the groups to which the release is charged. If None, the whole table is one group.
    """

    counts: CountsT
    terms: str
    epsilon: Fraction
    text: str
    promise: str
    question: Question | None = None

    @property
    def identity(self) -> str:
        """Return the digest by which the ledger identifies the release."""
        return sha256(f"release:{self.terms}:{self.counts.sql}".encode()).hexdigest()

    @property
    def table(self) -> Table:
        """The table to read."""
        return self.counts.table


@dataclass(frozen=True, slots=True)
class PaidRelease:
    """The released values of a paid release. If `is_repeated`, they were released before, and cost nothing now."""

    body: bytes
    version: str
    is_repeated: bool


def make_release(
    service: Service, release: Release[CountingStatement], decide: Callable[[Counts], bytes]
) -> PaidRelease:
    """Charge a release, read its counts, compute the released values, store them in the ledger, and return them.

    If the same release was charged before, return its stored values instead.

    Parameters:
        decide: computes the released values from the counts. Only this step may use noise. It must not fail.

    Raises:
        KeyholeError: KH310 and KH313, with nothing spent. KH501, whose text says if the cost stays spent. KH502.
        StoppedRelease: at Ctrl-C. Its text says which loss stays spent.
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
        with release_if_nothing_read(service, reservation):
            found = service.source.read_counts(counts.sql, relations=counts.relations, timeout_ms=LONGEST_MS)
        check_version(service, release, version, is_paid=True)
        body = decide(found)
        _commit(service, reservation, body)
    return PaidRelease(body, version, is_repeated=False)


@contextmanager
def _report_interruption(service: Service, release: Release[CountingStatement], version: str) -> Iterator[None]:
    """Turn Ctrl-C in the block into `StoppedRelease`, whose text says what the ledger has charged."""
    try:
        yield
    except KeyboardInterrupt:
        raise _describe_stopped_release(service.ledger, release, make_charge(release, version)) from None


def _describe_stopped_release(ledger: Ledger, release: Release[CountingStatement], charge: Charge) -> StoppedRelease:
    version = charge.family.version
    try:
        is_made = ledger.find_answer(release.identity, version, analyst=RELEASED_BY) is not None
        left_open = [one.id for one in ledger.list_open_reservations() if _is_for(one.charge, release, version)]
    except LedgerError:
        return make_unknown_stopped_release()
    return make_stopped_release(
        left_open[-1] if left_open else None,
        is_made=is_made,
        epsilon=charge.epsilon_nano / NANO,
        unit_epsilon=charge.unit_epsilon_nano / NANO,
        minutes=_LONGEST_MINUTES,
    )


def _is_for(charge: Charge, release: Release[CountingStatement], version: str) -> bool:
    return (charge.question, charge.analyst, charge.family.version) == (release.identity, RELEASED_BY, version)


def find_release(service: Accounts, release: Release[CountingStatement]) -> PaidRelease | None:
    """Return the stored values of the same release on the current data version, or None.

    Raise KH502 if the ledger is not available.
    """
    version = service.find_version(release.table)
    with refuse_ledger_errors():
        found = service.ledger.find_answer(release.identity, version, analyst=RELEASED_BY)
    return None if found is None else PaidRelease(found.answer, version, is_repeated=True)


def check_affordable(service: Accounts, release: Release[CountingStatement]) -> None:
    """Raise KH310 if the balances do not cover a release now. Nothing is spent.

    Raise KH502 if the ledger is not available.
    """
    with refuse_ledger_errors():
        short = service.ledger.find_shortage(
            make_charge(release, service.find_version(release.table)), find_release_limits(service)
        )
        if short is not None:
            raise short


def make_charge(release: Release[CountingStatement], version: str) -> Charge:
    """Return the release's charge: the loss of each of its groups, and of one unit in all of them."""
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
    groups = 1 if question is None else count_unit_groups(question)
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
    """Return the policy's caps without the cap on one question and the approval limit, which do not apply."""
    nobody = Analyst(name=RELEASED_BY, verifier="", token_hash=None, per_predicate=None, per_unit=None)
    return replace(find_limits(service.catalog, nobody), approval_above_nano=None, per_query_nano=None)


def _commit(service: Service, reservation: Reservation, body: bytes) -> None:
    charge = reservation.charge
    with refuse_ledger_errors():
        spent = Spent.from_uniform(charge.epsilon_nano, unit_epsilon_nano=charge.unit_epsilon_nano)
        service.ledger.commit(reservation, spent, body)


def check_version(service: Service, release: Release[CountingStatement], version: str, *, is_paid: bool) -> None:
    """Refuse a release if its table's data version has changed since planning. Raise as for a question."""
    if not service.can_read(release.table, version):
        raise refuse_changed_data(is_paid=is_paid)


@contextmanager
def refuse_ledger_errors() -> Iterator[None]:
    """Turn the ledger's errors in the block into refusals. Raise KH310, KH313 and KH502."""
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
