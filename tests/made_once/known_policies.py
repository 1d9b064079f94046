"""Each process that tests prices a policy's proposals and tries its shadow once: these took half of a check.

Keyhole's own processes do so at every check."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from planner.catalog.catalog import Budget, Catalog
from planner.lower.dialects.dialect import Dialect
from planner.policy.sections import ServerLimitsSection
from proxy.cli import check
from proxy.process import generations
from proxy.report.proposal_prices import describe_expensive_proposals
from proxy.shadow.binaries import PostgresPrograms
from proxy.shadow.schema import build_schema
from proxy.shadow.validity import check_showable

_try_shadow = generations.try_shadow


class KnownPolicies:
    """Remembers of each catalog, whatever its digest, that a shadow showed it and which proposals cost too much."""

    def __init__(self) -> None:
        self._folder = tempfile.gettempdir()
        self._shown: set[str] = set()
        self._dear: dict[tuple[str, str], tuple[str, ...]] = {}

    def try_shadow(self, catalog: Catalog, *, limits: ServerLimitsSection, binaries: PostgresPrograms | None) -> None:
        """`try_shadow` of generations. What was refused is tried again, as is everything while a test takes the place
        of a shadow or of its folder."""
        shown = f"{_describe(_without_caps(catalog))}{limits!r}"
        is_usual = vars(generations)["build_schema"] is build_schema and tempfile.gettempdir() == self._folder
        if is_usual and binaries is None and shown in self._shown:
            check_showable(catalog)
            return
        _try_shadow(catalog, limits=limits, binaries=binaries)
        self._shown.add(shown)

    def describe_expensive_proposals(self, catalog: Catalog, *, dialect: Dialect) -> Iterator[str]:
        """`describe_expensive_proposals` of the report."""
        asked = (_describe(catalog), dialect.name)
        if asked not in self._dear:
            self._dear[asked] = tuple(describe_expensive_proposals(catalog, dialect=dialect))
        return iter(self._dear[asked])


def _without_caps(catalog: Catalog) -> Catalog:
    """A shadow shows nothing of what may be spent."""
    analysts = tuple(replace(analyst, per_predicate=None, per_unit=None) for analyst in catalog.analysts)
    return replace(catalog, budget=Budget(per_predicate=1, per_unit=None, per_query=1), analysts=analysts)


def _describe(catalog: Catalog) -> str:
    """All of a catalog but its digest, which a shadow carries as a stamp; rows of public tables by their own digest."""
    return repr(
        replace(
            catalog,
            digest="",
            public_tables=tuple(replace(public, rows=()) for public in catalog.public_tables),
            analysts=tuple(replace(analyst, verifier="") for analyst in catalog.analysts),
        )
    )


@contextmanager
def known_policies() -> Iterator[None]:
    """While the block runs, checks in this process find it out so."""
    known = KnownPolicies()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(check, "describe_expensive_proposals", known.describe_expensive_proposals)
        patched.setattr(generations, "try_shadow", known.try_shadow)
        yield
