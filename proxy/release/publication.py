"""The publication of `keyhole publish`: a whole table of counts or of rows, to be given to others.

Every combination of public values has a count. `table` and `rows` add noise to each count, and are charged like a
question about these groups. They are one release, as the rows are made from the noisy counts. `perturbed` and `sps` are
published methods that no budget covers (unprotected.py).

References: docs/proofs/published_tables.md.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction

import numpy as np

from mechanisms.formula import Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise, Unachievable
from mechanisms.publishing.contingency_table import make_rows, release_table
from mechanisms.publishing.reconstruction_privacy import Criterion
from planner.bind.scored_rows import bind_scores
from planner.catalog.catalog import Catalog
from planner.lower.dialects.dialect import Dialect
from planner.lower.scores.score_counts import ScoreCounts
from planner.parser.lexer import quote_identifier
from planner.question.question import Question
from planner.question.scores import ScoredRows
from planner.question.unit_groups import count_unit_groups
from planner.statements.settings import read_accuracy
from proxy.open_policy.service import Service
from proxy.release.charged import PaidRelease, Release, make_release
from proxy.release.published_file import PublishedColumn, list_columns
from proxy.release.release_refusals import (
    refuse_many_cells,
    refuse_pinned_lookup,
    refuse_undrawable,
    refuse_unknown_table,
)
from proxy.release.row_expressions import read_rows
from proxy.release.rows_left import check_rows_left
from proxy.sources.protocol import Counts

MOST_CELLS = 1 << 20
"""Of one table: each has a count in the ledger, and one of noise."""

MOST_GENERALISED = 2000  # values of a public column that are compared with each other
_LEAST_EPSILON = Fraction(1, 1_000_000)  # of one row


class TableMethod(StrEnum):
    """The method by which a published table is made."""

    TABLE = "table"
    ROWS = "rows"
    PERTURBED = "perturbed"
    SPS = "sps"

    @property
    def is_charged(self) -> bool:
        """Return True if the method's loss is charged to budgets."""
        return self in (TableMethod.TABLE, TableMethod.ROWS)


@dataclass(frozen=True, slots=True)
class PublicationRequest:
    """The owner's request for a published table. All of it is public.

    Parameters:
        public, sensitive: distinct columns with public domains, in the order of the file.
        where: a condition on rows, or "", for charged methods.
        epsilon: the cost to one unit in one cell; None if no budget covers the method.
        most_rows: the number of rows of one unit that count in one cell, for charged methods.
        retention, within, unsure, exact: the parameters of the methods that no budget covers.
        name: the name of the published table.
    """

    table: str
    public: tuple[str, ...]
    sensitive: str
    method: TableMethod
    epsilon: Fraction | None
    most_rows: int
    retention: Fraction
    within: Fraction
    unsure: Fraction
    exact: bool
    name: str
    where: str = ""
    why: str = ""

    @property
    def text(self) -> str:
        """Return the request as text, for the ledger."""
        parts = [
            f"keyhole publish {self.table} --public {','.join(self.public)} --sensitive {self.sensitive}",
            f"--method {self.method} --out {self.name}",
        ]
        if self.epsilon is not None:
            parts.append(f"--epsilon {float(self.epsilon):g}")
        if self.where:
            parts.append(f"--where {self.where!r}")
        if self.most_rows != 1:
            parts.append(f"--rows-per-unit {self.most_rows}")
        return " ".join(parts) + (f" (why: {self.why})" if self.why else "")

    def make_criterion(self, values: int) -> Criterion:
        """Return the condition that the method SPS must meet in every group."""
        return Criterion(
            retention=float(self.retention),
            value_count=values,
            relative_error=float(self.within),
            least_tail=float(self.unsure),
            uses_exact_tails=self.exact,
        )


@dataclass(frozen=True, slots=True)
class Publication:
    """A planned publication: its cells, and the statement that counts the rows in them."""

    request: PublicationRequest
    counts: ScoreCounts

    @property
    def question(self) -> Question:
        """The question that has the publication's rows and cells."""
        return self.counts.scored.question

    @property
    def columns(self) -> tuple[PublishedColumn, ...]:
        """The published columns, the sensitive one last."""
        counted = list_columns(self.question.keys)
        return tuple(counted[place] for place in self.places)

    @property
    def places(self) -> tuple[int, ...]:
        """The index of each published column among the columns of the counts."""
        names = self.question.keys.names
        return tuple(names.index(name) for name in (*self.request.public, self.request.sensitive))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of public values of each column, in the counts' order of columns."""
        return self.question.keys.shape

    @property
    def groups_of_one_unit(self) -> int:
        """The largest number of cells in which one unit is counted."""
        return count_unit_groups(self.question)

    @property
    def release(self) -> Release[ScoreCounts]:
        """Return the charged release. Raise ValueError if no budget covers the method."""
        epsilon, rows = self.request.epsilon, self.request.most_rows
        if epsilon is None:
            raise ValueError("no budget covers this method")
        counted = "row" if rows == 1 else f"{rows} rows"
        promise = (
            f"{float(epsilon):g} epsilon a cell, of at most {counted} of each privacy unit. Counts over public cells, "
            "each with discrete Laplace noise."
        )
        return Release(self.counts, f"table {epsilon} {rows}", epsilon, self.request.text, promise, self.question)

    def read_counts(self, found: Counts) -> Integers:
        """Return the exact counts of the cells as an array with the shape `shape`. They are private."""
        counts = np.zeros(self.question.keys.size, dtype=np.int64)
        for place, counted in found:
            counts[place] = counted
        return counts.reshape(self.shape)

    def decide(self, found: Counts, noise: Noise) -> bytes:
        """Return noisy counts as bytes for the ledger. All noise is drawn here."""
        assert self.request.epsilon is not None
        counts = self.read_counts(found)
        noisy = release_table(counts, epsilon=self.request.epsilon, most_rows=self.request.most_rows, noise=noise)
        return json.dumps({"counts": noisy.ravel().tolist()}).encode()

    def read_published_counts(self, stored: bytes) -> Integers:
        """Parse noisy counts from the ledger's bytes. Return them for the file, with an axis for each published column.

        For a table of rows, the count is the number of rows to write for a cell.
        """
        noisy = np.array(json.loads(stored)["counts"], dtype=np.int64).reshape(self.shape)
        told = make_rows(noisy) if self.request.method is TableMethod.ROWS else noisy
        return told.transpose(self.places)


def plan_publication(asked: PublicationRequest, catalog: Catalog, dialect: Dialect) -> Publication:
    """Plan a publication: what it reads and what it costs. Nothing is charged.

    Raise KH311 and KH315, and KH1xx and KH2xx.
    """
    table = catalog.find_table(asked.table)
    if table is None:
        raise refuse_unknown_table(asked.table, catalog)
    keys = ", ".join(map(quote_identifier, _order_columns(asked)))
    lines = [
        f"SELECT {keys} FROM {quote_identifier(asked.table)}",
        *(["WHERE (", asked.where, ")"] if asked.where else []),
        f"GROUP BY {keys}",
        "HAVING sum(1) > 0",
    ]
    embedded = read_rows(lines, catalog, table, typed={"--where": asked.where} if asked.where else {})
    question, _ = bind_scores(
        embedded, catalog, ("1",), accuracy=read_accuracy({}, catalog.defaults), today=datetime.now(UTC).date()
    )
    check_rows_left(question, asked.where)
    if question.keys.size > MOST_CELLS:
        raise refuse_many_cells(question.keys.size, most=MOST_CELLS)
    most_rows = 1 if table.is_row_unit else asked.most_rows
    counts = ScoreCounts(ScoredRows(question, (), most_rows if asked.method.is_charged else None), dialect)
    if counts.pinned:
        raise refuse_pinned_lookup(asked.table)
    if asked.method is TableMethod.SPS and max(question.keys.shape) > MOST_GENERALISED:
        raise refuse_many_cells(max(question.keys.shape), most=MOST_GENERALISED)
    if asked.epsilon is not None:
        _check_drawable(asked.epsilon / most_rows)
    return Publication(asked, counts)


def _order_columns(asked: PublicationRequest) -> tuple[str, ...]:
    """Return the columns in one fixed order, so that requests in different orders are one release.

    With noise on each count, the sensitive column is treated like the others.
    """
    if asked.method.is_charged:
        return tuple(sorted((*asked.public, asked.sensitive)))
    return (*sorted(asked.public), asked.sensitive)


def publish_counts(service: Service, planned: Publication) -> tuple[Integers, PaidRelease]:
    """Charge and draw noisy counts, or return the ones that were charged before, with the paid release.

    Raise KH310, KH313, KH501, KH502.
    """
    released = make_release(service, planned.release, lambda found: planned.decide(found, service.noise))
    return planned.read_published_counts(released.body), released


def _check_drawable(rate: Fraction) -> None:
    try:
        if rate < _LEAST_EPSILON:
            raise Unachievable("so little is drawn at rates that depend on the data")
        check_rate(rate)
    except Unachievable:
        raise refuse_undrawable() from None
