"""An open policy, for the pipeline: its catalog, source, ledger, data versions and noise."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol

from accountant.balances.dependencies import Knowledge, assume_nothing
from accountant.charges import is_lasting
from accountant.errors import DeclineReason, LedgerError, NoLedger
from accountant.ledger import Ledger
from accountant.reports.balance_report import BudgetReport
from accountant.reports.history import AskedQuestion
from accountant.store.journal import FaultHandler, ignore_fault
from mechanisms.noise.exact import make_system_noise
from mechanisms.protocol import Noise
from planner.catalog.catalog import Analyst, Catalog, Table
from planner.lower.dialects.dialect import Dialect
from planner.policy.file import Policy
from planner.policy.sections import KeptText
from proxy.concurrency.lease import GivenUp, UsageCount
from proxy.observe.telemetry import Stage, Telemetry
from proxy.open_policy.accounts import find_limits
from proxy.open_policy.broken_tables import make_catalog_of_pinned_tables
from proxy.open_policy.column_dependencies import find_all_dependencies
from proxy.open_policy.data_versions import DataVersions
from proxy.open_policy.known_ledger import find_witness, is_foreign
from proxy.open_policy.pins import find_pins_path, read_pinned_catalog, read_private_pins
from proxy.open_policy.policy_relations import remember_names
from proxy.open_policy.service_refusals import (
    refuse_superseded,
    refuse_unknown_analyst,
    report_unavailable_ledger,
    report_unopened_ledger,
)
from proxy.open_policy.serving_folder import find_serving_folder
from proxy.open_policy.version_files import VersionFiles
from proxy.sources.failures import SourceFailures
from proxy.sources.shared import SharedSource

OWNER = Analyst(name="owner", verifier="", token_hash=None, per_predicate=None, per_unit=None)


class Serving(Protocol):
    """The interface of an object that provides the current service."""

    @property
    def telemetry(self) -> Telemetry:
        """Return the operator's metrics and logs of all services."""

    def hold_open(self) -> "AbstractContextManager[Service]":
        """Yield the current service, which stays open while the block runs."""


class Service:
    """An open policy with its ledger, source and catalog: all that is needed to answer a question.

    Threads may share it. Close it, or use `with`. After a reload another service takes over (`open_successor`). The
    old one is then retired: it finishes running questions, and begins no new ones.
    """

    def __init__(
        self,
        *,
        policy: Policy,
        catalog: Catalog,
        source: SharedSource,
        ledger: Ledger,
        versions: DataVersions,
        noise: Noise,
        telemetry: Telemetry,
        failures: SourceFailures,
        ledger_open_s: float = 0.0,
        keep_text: KeptText = "redacted",
    ) -> None:
        self.policy = policy
        self.catalog = catalog
        self.source = source.source
        self.ledger = ledger
        self.noise = noise
        self.telemetry = telemetry
        self.ledger_open_s = ledger_open_s
        self.keep_text = keep_text
        self.failures = failures
        self._shared = source
        self._versions = versions
        self._files = VersionFiles(source.source, versions, folder=find_serving_folder(policy), watched=telemetry)
        self._usage = UsageCount()

    @classmethod
    def open(cls, policy_path: Path, *, telemetry: Telemetry | None = None) -> "Service":
        """Open the source and ledger that a policy file names, on the existing pins. Raise KH001 to KH010."""
        return cls.from_policy(Policy.load(policy_path), telemetry=telemetry)

    @classmethod
    def from_policy(cls, policy: Policy, *, telemetry: Telemetry | None = None, workers: int = 1) -> "Service":
        """Open a policy that was read already, in one of `workers` processes. Raise KH003 to KH010."""
        source = SharedSource(policy, workers=workers)
        try:
            return cls._from_source(
                source, policy, telemetry=telemetry or Telemetry(), failures=SourceFailures(workers=workers)
            )
        except BaseException:
            source.leave()
            raise

    @classmethod
    def open_for_reading(cls, policy_path: Path) -> "Service":
        """Open the ledger of a policy without its source, using the pins, to read the ledger and to price questions.

        Tables that were never pinned are left out. Raise KH001 to KH007, KH009, KH010 and KH016.
        """
        policy = Policy.load(policy_path)
        catalog = make_catalog_of_pinned_tables(policy)
        return cls(
            policy=policy,
            catalog=catalog,
            source=SharedSource(policy, is_opened=False),
            ledger=open_ledger(policy, knowledge=find_all_dependencies(catalog)),
            versions=DataVersions(find_pins_path(policy)),
            noise=make_system_noise(),
            telemetry=Telemetry(),
            failures=SourceFailures(),
        )

    @classmethod
    def _from_source(
        cls, source: SharedSource, policy: Policy, *, telemetry: Telemetry, failures: SourceFailures
    ) -> "Service":
        catalog = read_pinned_catalog(policy, source.source)
        started = time.monotonic()
        ledger = open_ledger(policy, knowledge=find_all_dependencies(catalog), on_fault=telemetry.log_ledger_failure)
        try:
            remember_names(policy, read_private_pins(find_pins_path(policy)), ledger)
        except BaseException:
            ledger.close()
            raise
        return cls(
            policy=policy,
            catalog=catalog,
            source=source,
            ledger=ledger,
            versions=DataVersions(find_pins_path(policy)),
            noise=make_system_noise(),
            telemetry=telemetry,
            failures=failures,
            ledger_open_s=time.monotonic() - started,
            keep_text=policy.ledger.keep_text,
        )

    def open_successor(self, policy: Policy) -> "Service":
        """Open the service of a reloaded policy over the same ledger. The caller closes both.

        Both services share the source if their policies name the same one, since an engine in this process can open a
        file only once. Earlier failures in the source still count. Raise KH003 to KH010.
        """
        source = self._shared.find_next_source(policy)
        try:
            return self._from_source(source, policy, telemetry=self.telemetry, failures=self.failures)
        except BaseException:
            source.leave()
            raise

    def clashes_with(self, policy: Policy) -> bool:
        """Return True if the source of `policy` can be opened only after this service's source is closed."""
        return self._shared.clashes_with(policy)

    def retire(self, then: Callable[[], None]) -> None:
        """Begin no new question in this service, because another service has taken over.

        `then` is called after the last use of this service, in the thread of its last user.

        A question that has its turn at the source is finished and committed. A question that waits for its turn is
        refused, and spends nothing.
        """
        self._usage.give_up(then)

    @contextmanager
    def hold_open(self) -> "Iterator[Service]":
        """Keep this service open during the block. Raise KH411 if another service has taken over."""
        with ExitStack() as holding:
            try:
                holding.enter_context(self._usage.use())
            except GivenUp:
                raise refuse_superseded() from None
            yield self

    def close(self) -> None:
        """Close the ledger, and the source unless another service uses it. Open reservations stay reserved."""
        self._shared.leave()
        self.ledger.close()

    def __enter__(self) -> "Service":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect of the source."""
        return self.source.dialect

    def find_version(self, table: Table) -> str:
        """Return the current public data version of `table`, for questions about it."""
        return self._versions.find_version(table, now=datetime.now(UTC))

    def can_read(self, table: Table, version: str) -> bool:
        """Return True if this version is still current, or live, and the source reads the version's files."""
        return self._files.are_read(table) and (not is_lasting(version) or version == self.find_version(table))

    def follow_versions(self) -> tuple[str, ...]:
        """Let the source open the files of the current data versions. Return the tables for which this fails.

        Raise KH007.
        """
        return self._files.find_unread(self.catalog.tables)

    def find_pinned_state(self, table: Table, version: str) -> str | None:
        """Return the state of a table's data pinned for a data version, for the owner alone."""
        return self._versions.find_pinned_state(table, version)

    def measure_stage(self, stage: Stage) -> AbstractContextManager[None]:
        """Measure the block as one stage of a question."""
        return self.telemetry.measure_stage(stage)

    @contextmanager
    def take_turn(self, *, analyst: str, timeout_ms: int) -> Iterator[None]:
        """Hold a turn at the source during the block, and count waiting questions.

        Raise KH411, and as `Source.take_turn`.
        """
        with self.telemetry.count_turn(self.source.take_turn(analyst=analyst, timeout_ms=timeout_ms)):
            if self._usage.is_given_up:
                raise refuse_superseded()
            yield

    def find_analyst(self, name: str | None) -> Analyst:
        """Return the analyst of that name. Without a name, return the policy's first analyst, or the owner.

        Raise KH401 for an unknown name.
        """
        if name is None:
            return self.catalog.analysts[0] if self.catalog.analysts else OWNER
        found = self.catalog.find_analyst(name)
        if found is None:
            raise refuse_unknown_analyst(name, self.catalog)
        return found

    def report_balances(self, name: str | None) -> BudgetReport:
        """Return the spent and remaining budget, over all analysts or for one.

        Raise KH401 if there is no such analyst, and KH502 if the ledger is not available.
        """
        analyst = OWNER if name is None else self.find_analyst(name)
        try:
            return self.ledger.report_balances(find_limits(self.catalog, analyst), analyst=name)
        except LedgerError:
            raise report_unavailable_ledger() from None

    def is_approved(self, question: str) -> bool:
        """Return True if the owner has approved the question with this fingerprint.

        Raise KH502 if the ledger is not available.
        """
        try:
            return self.ledger.is_approved(question)
        except LedgerError:
            raise report_unavailable_ledger() from None

    def find_decline_reason(self, question: str) -> DeclineReason | None:
        """Return the owner's latest decision to decline the question with this fingerprint, or None.

        Raise KH502 if the ledger is not available.
        """
        try:
            return self.ledger.find_decline_reason(question)
        except LedgerError:
            raise report_unavailable_ledger() from None

    def read_questions(self, name: str) -> tuple[AskedQuestion, ...]:
        """Return the questions of an analyst, oldest first. Raise KH502 if the ledger is not available."""
        try:
            return self.ledger.read_history(analyst=name)
        except LedgerError:
            raise report_unavailable_ledger() from None


def open_ledger(
    policy: Policy,
    *,
    knowledge: Knowledge = assume_nothing,
    is_trusted: bool = False,
    can_create: bool = False,
    on_fault: FaultHandler = ignore_fault,
) -> Ledger:
    """Open the ledger of a policy. A relative SQLite file is beside the policy.

    `knowledge` finds the public dependencies between columns. If `is_trusted`, the ledger is not compared with its
    witness and the pins. A missing ledger is created only if `can_create`. Raise KH009 and KH016.
    """
    try:
        ledger = Ledger.open(
            find_ledger_url(policy),
            clock=lambda: datetime.now(UTC),
            knowledge=knowledge,
            timeout_ms=policy.ledger.timeout_ms,
            can_create=can_create,
            witness=find_witness(policy),
            is_trusted=is_trusted,
            on_fault=on_fault,
        )
        if not is_trusted and is_foreign(policy, ledger):
            ledger.close()
            raise NoLedger("the ledger is empty, and does not know the tables that are pinned: they had another one")
    except LedgerError as error:
        raise report_unopened_ledger(error) from None
    return ledger


def find_ledger_url(policy: Policy) -> str:
    """Return the address of a policy's ledger, as an SQLAlchemy URL with an absolute file."""
    url = policy.ledger.url
    prefix = "sqlite:///"
    if url.startswith(prefix) and not url.startswith("sqlite:////"):
        return f"{prefix}{(policy.directory / url.removeprefix(prefix)).resolve()}"
    return url
