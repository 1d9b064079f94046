"""The work of `keyhole check` and `keyhole refresh`: what the owner confirms and declares."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from accountant.store.witness import NOTHING
from planner.aggregates.known_ranges import list_unread_ranges
from planner.catalog.catalog import LONGEST_TEXT, Catalog, SqlType
from planner.catalog.pins import Pins
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.rules.document import describe_warnings
from planner.policy.rules.doubts import describe_size_doubts, describe_source_doubts
from planner.policy.rules.relation_rules import describe_shared_relations
from planner.policy.rules.unit_paths import find_unproved_paths
from planner.policy.sections import ServerLimitsSection
from proxy.open_policy.accounts import separates_analysts
from proxy.open_policy.broken_tables import BrokenTable, PartlyPinnedSource
from proxy.open_policy.known_ledger import accept_ledger, can_be_new, describe_lost_events, find_witness
from proxy.open_policy.moved_data import pin_states
from proxy.open_policy.pins import PinChange, Pinning, find_pins_path, pin, read_source_schema, write_pins
from proxy.open_policy.pins import refresh as declare_new
from proxy.open_policy.policy_relations import check_names, identify_tables, remember_names
from proxy.open_policy.service import find_ledger_url, open_ledger
from proxy.open_policy.service_refusals import report_unreadable_ledger
from proxy.open_policy.serving_folder import find_serving_folder, identify_pins, wait_for_processes
from proxy.owner.fitting_questions import describe_fitting_questions
from proxy.owner.pace import pin_pace
from proxy.owner.policy_words import describe_budget, describe_table
from proxy.report.analyst_shares import describe_changed_shares
from proxy.report.cap_arithmetic import describe_odds, list_costliest_questions
from proxy.report.monitor_prices import PricedMonitor, describe_doubtful_monitors, price_monitors
from proxy.report.proposal_prices import describe_expensive_proposals
from proxy.security.file_modes import describe_exposed_files
from proxy.security.tls import Tls, list_exposure_warnings
from proxy.shadow.binaries import PostgresPrograms, find_own_programs
from proxy.shadow.wheel import describe_older_release, read_wheel_release
from proxy.sources.protocol import Source
from proxy.sources.shared import open_policy_source


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings and new pins of a check."""

    policy: Path
    pin_file: Path
    pinning: Pinning
    binaries: PostgresPrograms | None
    monitors: tuple[PricedMonitor, ...]
    warnings: tuple[str, ...]
    broken: tuple[BrokenTable, ...] = ()
    fitting: tuple[str, ...] = ()

    def make_document(self) -> dict[str, Any]:
        """Return the findings as a JSON document."""
        catalog = self.pinning.catalog
        return {
            "policy": self.policy.name,
            "pins": self.pin_file.name,
            "digest": catalog.digest,
            "changes": [str(change) for change in self.pinning.changes],
            "tables": [
                {
                    "name": table.name,
                    "privacy_unit": list(table.unit) or "row",
                    "refresh": table.refresh,
                    "keys": {column.name: len(column.domain) for column in table.columns if column.domain is not None},
                    "measures": [column.name for column in table.columns if column.bounds is not None],
                }
                for table in catalog.tables
            ],
            "dearest_questions": [found.make_document() for found in list_costliest_questions(catalog)],
            "fitting_questions": list(self.fitting),
            "monitors": [monitor.make_document() for monitor in self.monitors],
            "public_tables": {table.name: len(table.rows) for table in catalog.public_tables},
            "shadow": {"postgresql": _describe_shadow_version(self.binaries), "own": self.binaries is not None},
            "warnings": list(self.warnings),
            "broken": {table.name: table.why for table in self.broken},
        }

    def lines(self) -> tuple[str, ...]:
        """Return the findings as lines of text for the owner."""
        catalog = self.pinning.catalog
        changes = [f"  {change}" for change in self.pinning.changes] or ["  nothing has changed"]
        return (
            *(f"BROKEN: {table}" for table in self.broken),
            f"{self.policy.name} is valid; pinned in {self.pin_file.name}:",
            *changes,
            *(line for table in catalog.tables for line in describe_table(table)),
            *(f"public table {table.name}: {len(table.rows):,} rows, copied" for table in catalog.public_tables),
            *describe_budget(catalog),
            *describe_odds(catalog),
            *(f"  {found.table}: {found.sentence}" for found in list_costliest_questions(catalog)),
            *(f"  {line}" for line in self.fitting),
            *(monitor.line for monitor in self.monitors),
            f"shadow: PostgreSQL {_describe_shadow_version(self.binaries)}, {_describe_origin(self.binaries)}",
            *(f"warning: {warning}" for warning in self.warnings),
        )


def _describe_shadow_version(binaries: PostgresPrograms | None) -> str:
    return "{}.{}".format(*(read_wheel_release() if binaries is None else binaries.release))


def _describe_origin(binaries: PostgresPrograms | None) -> str:
    return "which comes with Keyhole" if binaries is None else f"your own in {binaries.directory}"


def check(policy_path: Path, *, confirm: bool) -> Findings:
    """Validate a policy against its source, pin public tables and key domains, and open the ledger once.

    It reads the schema and the public tables, never a private row. A table whose relation cannot be read is reported.
    That table keeps its earlier pins, or is left out if it has none. Without `confirm`, a relation that was charged
    under another name and a change of public data are refused.

    A shadow is started once if PostgreSQL must read stored questions, or is the operator's own. Raises KH001 to
    KH013, and KH406.
    """
    policy, now = Policy.load(policy_path), datetime.now(UTC)
    said = (
        *describe_warnings(policy),
        *list_exposure_warnings(policy.server.host, Tls.open_from_policy(policy), now=now),
    )
    binaries = find_own_programs(policy)
    create = confirm or can_be_new(policy)
    with (
        open_ledger(policy, is_trusted=confirm, can_create=create) as ledger,
        closing(open_policy_source(policy)) as source,
    ):
        lost = describe_lost_events(policy, ledger) if confirm else None
        with source.hold_open():
            known = PartlyPinnedSource(source, policy)
            policy = known.leave_out(policy)
            with known.check_others(policy):
                identities = identify_tables(policy, known)
        broken = {table.name for table in known.broken}
        read = {name: one for name, one in identities.items() if name not in broken}
        for place, fault in find_unproved_paths(policy, read):
            raise policy.refuse(place, fault)
        with known.check_others(policy):
            if not confirm:
                check_names(policy, identities, ledger)
            accept = partial(_try_shadow, limits=policy.server.limits, binaries=binaries)
            pinning = pin(policy, known, confirm=confirm, now=now, accept=accept, broken=broken)
        monitors = price_monitors(pinning.catalog, dialect=source.dialect)
        remember_names(policy, pinning.pins, ledger)
        with source.hold_open():
            doubts = tuple(describe_source_doubts(policy, identities, read_source_schema(policy, known, pinning.pins)))
            sizes = tuple(describe_size_doubts(policy, _estimate_rows(pinning.catalog, source)))
            pins, moved = pin_states(pinning.catalog, source, pinning.pins, now=now, confirm=confirm)
        try:
            pins = pin_pace(policy, source, pins, confirm=confirm)
        except KeyholeError:
            said = (*said, "the source answers no generated questions, so no question has an expected time.")
        said = (*said, *_find_changed_shares(ledger, pinning))
        pins = replace(pins, has_analyst_caps=separates_analysts(pinning.catalog))
        if pins != pinning.pins:
            write_pins(find_pins_path(policy), pins)
        if confirm:
            accept_ledger(policy, ledger)
        elif not ledger.known_event_count:
            find_witness(policy).record_event(NOTHING)
    if lost is not None:
        pinning = replace(pinning, changes=(PinChange("changed", "the ledger", lost), *pinning.changes))
    doubts = (*doubts, *_find_quotes(pinning.pins))
    said = (*said, *doubts, *describe_shared_relations(policy, identities), *map(_describe_move, moved))
    said = (
        *said,
        *sizes,
        *_find_long_texts(pinning.catalog),
        *_find_unread_ranges(pinning.catalog),
        *describe_expensive_proposals(pinning.catalog, dialect=source.dialect),
    )
    said = (*said, *describe_doubtful_monitors(pinning.catalog, monitors))
    said = (*said, *describe_exposed_files(policy, ledger=find_ledger_url(policy)), *describe_older_release(binaries))
    return Findings(
        policy=policy_path,
        pin_file=find_pins_path(policy),
        pinning=pinning,
        binaries=binaries,
        monitors=monitors,
        fitting=tuple(describe_fitting_questions(pinning.catalog, dialect=source.dialect)),
        warnings=said,
        broken=known.broken,
    )


def _try_shadow(catalog: Catalog, *, limits: ServerLimitsSection, binaries: PostgresPrograms | None) -> None:
    """Check that PostgreSQL accepts the stored questions, and starts from the owner's programs."""
    if binaries is not None or catalog.stored_questions:
        from proxy.process.generations import try_shadow

        try_shadow(catalog, limits=limits, binaries=binaries)


def _find_changed_shares(ledger: Ledger, pinning: Pinning) -> tuple[str, ...]:
    """Return sentences on how an analyst's own new or removed cap changes the others' share, once.

    Raise KH502 if the ledger is not available.
    """
    if pinning.pins.has_analyst_caps is None:
        return ()
    try:
        return tuple(describe_changed_shares(ledger, pinning.catalog, were_apart=pinning.pins.has_analyst_caps))
    except LedgerUnavailable as error:
        raise report_unreadable_ledger(error) from None


def _estimate_rows(catalog: Catalog, source: Source) -> dict[str, int]:
    """Return an estimate of the number of rows of each private table. Tables that somebody has locked are left out."""
    found = {}
    for table in catalog.tables:
        with suppress(KeyholeError):
            found[table.name] = source.estimate_rows(table.relation)
    return found


def _describe_move(table: str) -> str:
    return (
        f"tables.{table} was changed or rewritten since its data version was first checked: noise that is refined on "
        'other data tells more than the ledger says, so write refresh = "explicit" and run keyhole refresh, or "live".'
    )


def _find_quotes(pins: Pins) -> Iterator[str]:
    """Yield warnings about CSV files in which one row can make other rows disappear."""
    for name, file in pins.files:
        if file.quote:
            yield (
                f"tables.{name} is a CSV file with quoted texts: one row whose quote is left open takes all rows "
                "behind it, so it decides answers about other people. Write parquet, or CSV without quotation marks."
            )


def _find_unread_ranges(catalog: Catalog) -> Iterator[str]:
    """Yield warnings about declared ranges of expressions that no question can read."""
    for table in catalog.tables:
        for expression in list_unread_ranges(table):
            yield f'tables.{table.name}.ranges: "{expression}" is no number computed of a row: nothing reads its range.'


def _find_long_texts(catalog: Catalog) -> Iterator[str]:
    """Yield warnings about texts so long that an answer's time may depend on whose they are.

    There are none if answers wait for public moments.
    """
    for table in () if catalog.release_every_ms else catalog.tables:
        for column in table.columns:
            if column.sql_type is SqlType.TEXT and column.longest_text > LONGEST_TEXT:
                yield (
                    f"tables.{table.name}.columns.{column.name} is a text of up to {column.longest_text:,} characters, "
                    "whose length the time of an answer may tell: set [server] release_every_ms, such as 1000, or a "
                    f"max_length of at most {LONGEST_TEXT:,}."
                )


def refresh(policy_path: Path, *tables: str) -> str:
    """Declare new data in tables whose refresh is explicit. Return the new data version.

    Servers are not asked, since a load may have locked the table. Raise KH002 to KH008 and KH014.
    """
    policy = Policy.load(policy_path)
    with ExitStack() as opened:
        source = None
        if policy.source.kind == "duckdb":
            source = opened.enter_context(closing(open_policy_source(policy)))
        return declare_new(policy, *tables, now=datetime.now(UTC), source=source)


def wait_for_servers(policy_path: Path, *, seconds: float) -> str:
    """Wait, for a limited time, until the serving processes use the present pins. Return a sentence on what they do."""
    policy = Policy.load(policy_path)
    heard = wait_for_processes(find_serving_folder(policy), pins=identify_pins(find_pins_path(policy)), seconds=seconds)
    if not heard.following_count + heard.silent_count:
        return "no running Keyhole has announced itself beside the policy"
    said = f"{_count_processes(heard.following_count)} the new data"
    if heard.silent_count:
        said += (
            f"; {heard.silent_count} did not answer within {seconds:g} s, and refuse questions until they read the "
            "new data"
        )
    if heard.unread_tables:
        said += (
            f"; questions on {', '.join(heard.unread_tables)} are refused, since the files differ from those of "
            'their version. Refresh these tables too, or run keyhole check --confirm if refresh is "static"'
        )
    return said


def _count_processes(processes: int) -> str:
    return f"{processes} serving process{'' if processes == 1 else 'es'} read{'s' if processes == 1 else ''}"
