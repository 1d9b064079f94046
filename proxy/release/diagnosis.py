"""The release of `keyhole diagnose`: noisy counts that show how well scores predict outcomes. It is charged.

Rows are counted by cells of public width, in each group. A mechanism of `mechanisms/diagnostics/` adds noise to these
counts. Curves, areas and their errors are computed from the released counts, and cost nothing. So the ROC curve and
the calibration of the same scores by the same method are one release.

References: docs/proofs/score_histogram.md.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms.certified import Probability
from mechanisms.diagnostics.pribrp import ResidualBin, release_pribrp
from mechanisms.diagnostics.priroc import release_priroc, release_priroc_fix
from mechanisms.diagnostics.prirp import release_prirp
from mechanisms.diagnostics.residual_grid import ResidualGrid, release_residuals
from mechanisms.diagnostics.score_histogram import (
    ScoreHistogram,
    choose_bins,
    cut_cells_equally,
    release_adaptive,
    release_scores,
)
from mechanisms.formula import Booleans, Integers
from mechanisms.noise.exact import check_rate
from mechanisms.protocol import Noise, Unachievable, Words
from planner.bind.scored_rows import bind_scores
from planner.catalog.catalog import Catalog, Value
from planner.functionals.row_range import make_not_true_condition
from planner.lower.dialects.dialect import Dialect
from planner.lower.scores.score_counts import ScoreCounts
from planner.parser.lexer import quote_identifier
from planner.question.condition import ALWAYS, join_all
from planner.question.question import Question
from planner.question.scores import RowNumber, ScoreAxis, ScoredRows, make_score_axis
from planner.question.unit_groups import count_unit_groups
from planner.statements.settings import read_accuracy
from proxy.open_policy.service import Service
from proxy.release.charged import PaidRelease, Release, make_release
from proxy.release.release_refusals import (
    refuse_always_positive,
    refuse_constant,
    refuse_many_curves,
    refuse_never_positive,
    refuse_outcome,
    refuse_pinned_lookup,
    refuse_score,
    refuse_undrawable,
    refuse_unknown_table,
)
from proxy.release.row_expressions import read_rows
from proxy.release.rows_left import can_be_met, check_rows_left
from proxy.sources.protocol import Counts

MOST_CELLS = 1024
"""Of scores in one group: as fine as any method looks."""

MOST_ON_A_SIDE = 512
"""Of predictions, and of residuals."""

MOST_GROUPS = 1000  # each is a curve of its own, which somebody is to look at
_MOST_COUNTS = 1 << 22  # of all groups together, in memory
_PLAIN_BINS = 32  # where nobody says how many rows there are: what errs least between 500 and 10,000 rows times epsilon
_LEAST_EPSILON = Fraction(1, 1_000_000)  # of one row: what every method's finest noise can be drawn for
_COUNTING = Fraction(1, 10)  # of epsilon, into counting rows, for the methods that have to know


class DiagnosisKind(StrEnum):
    """The kind of diagnosis. Each is a subcommand of `keyhole diagnose`."""

    ROC = "roc"
    CALIBRATION = "calibration"
    RESIDUALS = "residuals"


class Method(StrEnum):
    """The method of adding noise: Keyhole's own, over public or private bins, or a published one, corrected."""

    OURS = "ours"
    ADAPTIVE = "adaptive"
    PRIROC = "priroc"
    PRIROC_FIX = "priroc_fix"
    PRIBRP = "pribrp"
    PRIRP = "prirp"


METHODS: Mapping[DiagnosisKind, tuple[Method, ...]] = {
    DiagnosisKind.ROC: (Method.OURS, Method.ADAPTIVE, Method.PRIROC, Method.PRIROC_FIX),
    DiagnosisKind.CALIBRATION: (Method.OURS, Method.ADAPTIVE, Method.PRIBRP),
    DiagnosisKind.RESIDUALS: (Method.OURS, Method.PRIRP),
}

SENTENCES: Mapping[Method, str] = {
    Method.OURS: "Counts over public cells, each with discrete Laplace noise; one row changes one of them.",
    Method.ADAPTIVE: "A fifth of epsilon finds 16 bins of about as many rows each, the rest counts them.",
    Method.PRIROC: "PriROC as published, repaired: thresholds by medians of medians, counts over private intervals. "
    "It errs more than plain counts over 16 or 32 bins.",
    Method.PRIROC_FIX: "PriROC with 1,024 fixed thresholds as published, repaired: counts over private intervals. "
    "It errs more than plain counts over 16 or 32 bins.",
    Method.PRIBRP: "PriBRP as published, repaired (as printed it is not private): bins by medians of medians, merged "
    "until they are large enough. It tells a wrong model from a right one less well than plain counts do.",
    Method.PRIRP: "PriRP as published: symmetric bounds by doubling, then a grid of noisy counts. It needs about "
    "twice the rows of the plain method.",
}
"""The use of each method, and its quality beside the others: docs/results/diagnostics.md has the numbers."""


@dataclass(frozen=True, slots=True)
class DiagnosisRequest:
    """The owner's request for a diagnosis. All of it is public.

    Parameters:
        score, outcome: SQL expressions of one row.
        by: distinct grouping columns. There is one curve for each combination of their values.
        where: a condition on rows, or "".
        bins: the number of equal bins of scores; None: the number with the least error.
        most_rows: the number of rows of one unit that count in a group.
        units: the approximate number of units in a group, if it is public.
    """

    kind: DiagnosisKind
    table: str
    score: str
    outcome: str
    by: tuple[str, ...]
    where: str
    epsilon: Fraction
    method: Method
    bins: int | None
    most_rows: int
    units: int | None
    why: str = ""

    @property
    def text(self) -> str:
        """Return the request as text, for the ledger."""
        parts = [f"keyhole diagnose {self.kind} {self.table} --score {self.score!r} --outcome {self.outcome!r}"]
        parts += [f"--epsilon {float(self.epsilon):g} --method {self.method}"]
        parts += [f"--by {','.join(self.by)}"] if self.by else []
        parts += [f"--where {self.where!r}"] if self.where else []
        parts += [] if self.bins is None else [f"--bins {self.bins}"]
        parts += [f"--rows-per-unit {self.most_rows}"] if self.most_rows > 1 else []
        parts += [] if self.units is None else [f"--units {self.units}"]
        return " ".join(parts) + (f" (why: {self.why})" if self.why else "")


Released = ScoreHistogram | tuple[ResidualBin, ...] | ResidualGrid
"""The release of one group: a histogram, the bins of PriBRP, or a grid of residuals."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The released values of each group, in the order of the question's groups or of the shown groups."""

    groups: tuple[Released, ...]

    def to_bytes(self) -> bytes:
        """Return the released values as bytes, for the ledger."""
        return json.dumps({"groups": [_write(one) for one in self.groups]}, sort_keys=True).encode()

    @staticmethod
    def from_bytes(stored: bytes) -> "Diagnosis":
        """Parse released values from the ledger's bytes."""
        return Diagnosis(tuple(_read(one) for one in json.loads(stored)["groups"]))


@dataclass(frozen=True, slots=True)
class DiagnosisRelease:
    """A planned diagnosis: the request, and the `Release` that reads its counts.

    The diagnosis's values are computed from these counts, with noise.
    """

    request: DiagnosisRequest
    release: Release[ScoreCounts]

    @property
    def scored_rows(self) -> ScoredRows:
        """The rows with a score and an outcome, and their groups and cells."""
        return self.release.counts.scored

    @property
    def groups(self) -> tuple[tuple[Value, ...], ...]:
        """The groups' keys, in the order of the released values. One empty key if the whole table is one group."""
        keys = self.scored_rows.question.keys
        return tuple(tuple(keys.get_key(place)[at] for at in self._shown_columns) for place in self._shown_groups)

    @property
    def _shown_columns(self) -> tuple[int, ...]:
        """The index of each requested grouping column among the columns of the counts."""
        return tuple(self.scored_rows.question.keys.names.index(name) for name in self.request.by)

    @property
    def _shown_groups(self) -> list[int]:
        """The indices of the shown groups among the counted groups, in the order of the released values."""
        keys = self.scored_rows.question.keys
        places: list[int] = np.arange(keys.size).reshape(keys.shape).transpose(self._shown_columns).ravel().tolist()
        return places

    def order_groups(self, released: Diagnosis) -> Diagnosis:
        """Return the released values in the requested order of groups."""
        return Diagnosis(tuple(released.groups[place] for place in self._shown_groups))

    @property
    def groups_of_one_unit(self) -> int:
        """The largest number of groups in which one unit is counted."""
        return count_unit_groups(self.scored_rows.question)

    @property
    def epsilon_of_counts(self) -> float:
        """The rate of the noise on a histogram's counts over public bins."""
        return float(self.request.epsilon / self.request.most_rows)

    def decide(self, counts: Counts, noise: Noise) -> Diagnosis:
        """Compute the released values from true counts of cells. All noise is drawn here."""
        cells = self.scored_rows.cells
        found = np.zeros(len(self.groups) * cells, dtype=np.int64)
        for place, count in counts:
            found[place] = count
        shape = tuple(axis.cells for axis in self.scored_rows.axes)
        draw = _DRAWS[self.request.kind, self.request.method]
        return Diagnosis(tuple(draw(self.request, group.reshape(shape), noise) for group in found.reshape(-1, cells)))


def plan_diagnosis(asked: DiagnosisRequest, catalog: Catalog, dialect: Dialect) -> DiagnosisRelease:
    """Plan a diagnosis: what it reads and what it costs. Nothing is charged.

    Raise KH311, KH314 and KH315, and KH1xx and KH2xx as for a question.
    """
    table = catalog.find_table(asked.table)
    if table is None:
        raise refuse_unknown_table(asked.table, catalog)
    if table.is_row_unit:
        asked = replace(asked, most_rows=1)  # a unit has no more
    texts = (asked.score, asked.outcome)
    if asked.kind is DiagnosisKind.RESIDUALS:
        texts = (asked.score, f"({asked.outcome}) - ({asked.score})")
    keys = ", ".join(map(quote_identifier, sorted(asked.by)))  # in whatever order they are asked for, it is one release
    lines = [
        f"SELECT {keys or '1'} FROM {quote_identifier(asked.table)}",
        *(["WHERE (", asked.where, ")"] if asked.where else []),
        *([f"GROUP BY {keys}"] if keys else []),
        "HAVING sum(",
        texts[0],
        ") > 0 AND sum(",
        texts[1],
        ") > 0",
    ]
    typed = {"--score": asked.score, "--outcome": asked.outcome} | ({"--where": asked.where} if asked.where else {})
    embedded = read_rows(lines, catalog, table, typed=typed)
    question, numbers = bind_scores(
        embedded, catalog, texts, accuracy=read_accuracy({}, catalog.defaults), today=datetime.now(UTC).date()
    )
    check_rows_left(question, asked.where)
    for number, text in zip(numbers, (asked.score, asked.outcome), strict=True):
        _check_varies(number, text, question)
    scored = ScoredRows(question, tuple(_make_axes(asked, *numbers)), asked.most_rows)
    if question.keys.size > MOST_GROUPS or question.keys.size * scored.cells > _MOST_COUNTS:
        raise refuse_many_curves(question.keys.size, most=min(MOST_GROUPS, _MOST_COUNTS // scored.cells))
    counts = ScoreCounts(scored, dialect)
    if counts.pinned:
        raise refuse_pinned_lookup(asked.table)
    terms = f"{asked.method} {asked.epsilon} {asked.bins} {asked.most_rows} {asked.units}"
    release = Release(counts, terms, asked.epsilon, asked.text, _write_promise(asked), question)
    _check_drawable(asked, scored)
    return DiagnosisRelease(asked, release)


def make_diagnosis(service: Service, planned: DiagnosisRelease) -> tuple[Diagnosis, PaidRelease]:
    """Charge and make a diagnosis, or return the one that was charged before. Raise KH310, KH313, KH501 and KH502."""
    released = make_release(service, planned.release, lambda counts: planned.decide(counts, service.noise).to_bytes())
    return planned.order_groups(Diagnosis.from_bytes(released.body)), released


def find_bins(asked: DiagnosisRequest, cells: int) -> tuple[int, ...]:
    """Return the public edges of the bins that the plain method counts, as numbers of cells."""
    bins = asked.bins
    if bins is None:
        bins = _PLAIN_BINS if asked.units is None else choose_bins(asked.units, epsilon=float(asked.epsilon))
    return cut_cells_equally(cells, bins=bins)


def _make_axes(asked: DiagnosisRequest, score: RowNumber, other: RowNumber) -> tuple[ScoreAxis, ScoreAxis]:
    for number in (score, other):
        if number.is_constant:
            raise refuse_constant(number.text)
    if asked.kind is DiagnosisKind.RESIDUALS:
        symmetric = asked.method is Method.PRIRP
        return (
            make_score_axis(score, most=MOST_ON_A_SIDE, symmetric=symmetric, even=True),
            make_score_axis(other, most=MOST_ON_A_SIDE, symmetric=True),
        )
    if (other.least, other.most) != (0, 1) or other.step != 1:
        raise refuse_outcome(asked.outcome)
    if asked.kind is DiagnosisKind.CALIBRATION and not (score.step * score.least >= 0 and score.step * score.most <= 1):
        raise refuse_score(asked.score)
    return make_score_axis(score, most=MOST_CELLS), make_score_axis(other, most=2)


def _check_varies(number: RowNumber, text: str, question: Question) -> None:
    """Raise KH314 if a score or outcome is publicly known to be the same for all rows."""
    rows = join_all((question.where, number.present))
    if not any(can_be_met(join_all((rows, term.condition)), question) for term in number.terms):
        raise refuse_never_positive(text)
    only = number.terms[0]
    if len(number.terms) > 1 or only.column is not None or only.condition == ALWAYS:
        return
    if not can_be_met(join_all((rows, make_not_true_condition(only.condition))), question):
        raise refuse_always_positive(text)


def _check_drawable(asked: DiagnosisRequest, scored: ScoredRows) -> None:
    """Raise KH311 if the noise of a request cannot be drawn, before anything is charged."""
    nobody = np.zeros(tuple(axis.cells for axis in scored.axes), dtype=np.int64)
    try:
        if asked.epsilon < _LEAST_EPSILON * asked.most_rows:
            raise Unachievable("so little is drawn at rates that depend on the data")
        _DRAWS[asked.kind, asked.method](asked, nobody, _CheckedNoise())
    except Unachievable:
        raise refuse_undrawable() from None


def _write_promise(asked: DiagnosisRequest) -> str:
    rows = "row" if asked.most_rows == 1 else f"{asked.most_rows} rows"
    return (
        f"{float(asked.epsilon):g} epsilon a group, of at most {rows} of each privacy unit. {SENTENCES[asked.method]}"
    )


_Draw = Callable[[DiagnosisRequest, Integers, Noise], Released]


def _draw_plain_histogram(asked: DiagnosisRequest, counts: Integers, noise: Noise) -> ScoreHistogram:
    edges = find_bins(asked, len(counts))
    return release_scores(counts, edges=edges, epsilon=asked.epsilon, most_rows=asked.most_rows, noise=noise)


def _make_quantile_method(release: Callable[..., ScoreHistogram]) -> _Draw:
    def draw(asked: DiagnosisRequest, counts: Integers, noise: Noise) -> ScoreHistogram:
        return release(counts, epsilon=asked.epsilon, most_rows=asked.most_rows, noise=noise)

    return draw


def _make_row_method(release: Callable[..., Any]) -> _Draw:
    """Return a drawing function for a method that needs the number of rows.

    The function uses the declared number of units if there is one, and otherwise a noisy count.
    """

    def draw(asked: DiagnosisRequest, counts: Integers, noise: Noise) -> Released:
        epsilon, rows = asked.epsilon, asked.units
        if rows is None:
            rate = epsilon * _COUNTING / asked.most_rows
            check_rate(rate)
            rows = max(1, int(counts.sum()) + int(noise.draw_discrete_laplace(rate=rate, size=1)[0]))
            epsilon -= epsilon * _COUNTING
        made: Released = release(counts, rows=rows, epsilon=epsilon, most_rows=asked.most_rows, noise=noise)
        return made

    return draw


_DRAWS: Mapping[tuple[DiagnosisKind, Method], _Draw] = {
    (DiagnosisKind.ROC, Method.OURS): _draw_plain_histogram,
    (DiagnosisKind.ROC, Method.ADAPTIVE): _make_quantile_method(release_adaptive),
    (DiagnosisKind.ROC, Method.PRIROC): _make_quantile_method(release_priroc),
    (DiagnosisKind.ROC, Method.PRIROC_FIX): _make_quantile_method(release_priroc_fix),
    (DiagnosisKind.CALIBRATION, Method.OURS): _draw_plain_histogram,
    (DiagnosisKind.CALIBRATION, Method.ADAPTIVE): _make_quantile_method(release_adaptive),
    (DiagnosisKind.CALIBRATION, Method.PRIBRP): _make_row_method(release_pribrp),
    (DiagnosisKind.RESIDUALS, Method.OURS): _make_row_method(release_residuals),
    (DiagnosisKind.RESIDUALS, Method.PRIRP): _make_row_method(release_prirp),
}


class _CheckedNoise:
    """A noise source that draws zeros, used to check that all of a method's noise can be drawn."""

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        check_rate(rate)
        return np.zeros(size, dtype=np.int64)

    draw_geometric = draw_discrete_laplace

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:  # noqa: ARG002
        return self.draw_discrete_laplace(rate=rate, size=size)

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        raise NotImplementedError(f"{size} coins of {probability}")

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        raise NotImplementedError(f"{size} coins of {probability}")

    def draw_words(self, *, size: int) -> Words:
        raise NotImplementedError(f"{size} words")


def _write(one: Released) -> dict[str, Any]:
    match one:
        case ScoreHistogram():
            return {"edges": list(one.edges), "counts": one.counts.tolist(), "variance": one.variance}
        case ResidualGrid():
            return {
                "predictions": list(one.predictions),
                "residuals": list(one.residuals),
                "counts": one.counts.tolist(),
                "variance": one.variance,
            }
        case _:
            return {"bins": [asdict(bin_) for bin_ in one]}


def _read(stored: Mapping[str, Any]) -> Released:
    if "bins" in stored:
        return tuple(ResidualBin(**one) for one in stored["bins"])
    counts = np.array(stored["counts"], dtype=np.float64)
    if "edges" in stored:
        return ScoreHistogram(tuple(stored["edges"]), counts, stored["variance"])
    return ResidualGrid(tuple(stored["predictions"]), tuple(stored["residuals"]), counts, stored["variance"])
