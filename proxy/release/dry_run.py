"""The dry run of a release (`--dry-run`): what it would cost and read, from the policy, the pins and the ledger.

Guarantee: nothing is spent, and no row is read, as no source is opened.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accountant.ledger import Ledger
from planner.catalog.catalog import Catalog, Table
from planner.lower.dialects.dialect import Dialect
from planner.policy.file import Policy
from proxy.open_policy.column_dependencies import find_all_dependencies
from proxy.open_policy.data_versions import DataVersions
from proxy.open_policy.pins import find_pins_path, make_catalog_from_pins
from proxy.open_policy.service import open_ledger
from proxy.release.charged import CountingStatement, Release, check_affordable, find_release
from proxy.report.terminal import make_visible
from proxy.sources.open import choose_dialect

_FREE = "The same release was made before on these data. It would be printed again, which costs nothing."
_FITS = "The budgets have room for it. This is a dry run: no source was opened."
_READ = "It would read counts by this one statement:"


@dataclass(frozen=True, slots=True)
class PolicyWithoutSource:
    """A policy's pinned catalog and its ledger, without a source."""

    catalog: Catalog
    dialect: Dialect
    ledger: Ledger
    versions: DataVersions

    def find_version(self, table: Table) -> str:
        """Return the current public data version of a table."""
        return self.versions.find_version(table, now=datetime.now(UTC))


@contextmanager
def open_policy_without_source(path: Path) -> Iterator[PolicyWithoutSource]:
    """Read a policy and open its ledger. Raise KH001 to KH007, KH009 and KH010."""
    policy = Policy.load(path)
    catalog = make_catalog_from_pins(policy)
    with open_ledger(policy, knowledge=find_all_dependencies(catalog)) as ledger:
        yield PolicyWithoutSource(catalog, choose_dialect(policy.source), ledger, DataVersions(find_pins_path(policy)))


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run: the SQL that the release would read.

    If `is_known`, the same release was charged before.
    """

    is_known: bool
    sql: str

    def write_lines(self) -> Iterator[str]:
        """Yield the lines that follow the cost, for a terminal."""
        yield _FREE if self.is_known else _FITS
        yield _READ
        yield from (f"    {make_visible(line)}" for line in self.sql.split("\n"))

    def make_document(self) -> Mapping[str, Any]:
        """Return the result as a JSON document."""
        return {"dry_run": True, "paid_before": self.is_known, "sql": self.sql}


def run_dry(accounts: PolicyWithoutSource, release: Release[CountingStatement]) -> DryRun:
    """Check that the balances cover a release, and return the SQL that it would read. Nothing is charged or read.

    Raise KH310 and KH502.
    """
    known = find_release(accounts, release) is not None
    if not known:
        check_affordable(accounts, release)
    return DryRun(known, release.counts.sql)
