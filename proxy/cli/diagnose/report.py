"""The report of a diagnosis: its cost, one row for each group, and the curves. All of it comes from the release."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mechanisms.diagnostics.residual_grid import ResidualGrid
from mechanisms.diagnostics.score_histogram import ADAPTIVE_SHARE, ScoreHistogram
from planner.catalog.catalog import Value
from planner.catalog.key_space import format_value, quote_in_row
from proxy.cli.diagnose.curves import SURE, GroupCalibration, GroupRoc, read_calibration, read_roc
from proxy.cli.diagnose.residuals import GroupResiduals, read_residuals
from proxy.cli.diagnose.table import Group
from proxy.release.charged import PaidRelease
from proxy.release.diagnosis import SENTENCES, Diagnosis, DiagnosisKind, DiagnosisRelease, Method
from proxy.report.html.page import Drawing, PageTable, Part
from proxy.report.html.plots import Axis, Curve, draw_cell_plot, draw_line_plot
from proxy.report.section import ReportSection

MOST_DRAWN = 60
"""Groups with a curve of their own in a report: a page that can be read. A program is told all of them."""

_MOST_BARS = 65  # of errors on one curve, so that they do not touch: 64 bins

_COLUMNS: Mapping[DiagnosisKind, tuple[str, ...]] = {
    DiagnosisKind.ROC: ("group", "area", "noise (95 %)", "bins (at most)", "separation", "positives", "negatives"),
    DiagnosisKind.CALIBRATION: ("group", "bins", "off", "expected error", "rows"),
    DiagnosisKind.RESIDUALS: ("group", "rows", "predictions", "residuals"),
}
_POINTS: Mapping[DiagnosisKind, tuple[str, ...]] = {
    DiagnosisKind.ROC: ("score from", "false positives", "true positives", "precision"),
    DiagnosisKind.CALIBRATION: ("scores", "rows", "mean score", "outcomes", "residual", "band", ""),
    DiagnosisKind.RESIDUALS: ("predictions", "rows", "mean residual", "noise (95 %)"),
}
_READING: Mapping[DiagnosisKind, str] = {
    DiagnosisKind.ROC: "The area is the chance that a positive row scores above a negative one. One error of it is "
    "from noise, the other is what bins may hide. Neither covers how rows were drawn from a larger population. All "
    "of it is computed from the released counts.",
    DiagnosisKind.CALIBRATION: "A bin is off if noise and chance do not explain how far its outcomes are from its "
    "scores. In a calibrated model they do, 95 times in 100. Neighbouring bins are joined until noise does not "
    "drown them.",
    DiagnosisKind.RESIDUALS: "A residual is the outcome less the prediction. Residuals of a good model lie around "
    "zero, and equally wide for all predictions. Rows beyond the grid, about 6 in 100, are left out.",
}
_WITHOUT_BANDS = "This method does not say how far noise and chance may move a residual."
TITLES: Mapping[DiagnosisKind, str] = {
    DiagnosisKind.ROC: "ROC curve",
    DiagnosisKind.CALIBRATION: "Calibration",
    DiagnosisKind.RESIDUALS: "Residuals",
}
"""The name of each plot in headings and sentences."""


@dataclass(frozen=True, slots=True)
class DiagnosisReport:
    """The report of a command that releases how well scores predict: the release, its cost, and each group's result."""

    planned_release: DiagnosisRelease
    diagnosis: Diagnosis
    paid_release: PaidRelease
    groups: tuple[Group, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Read the groups once, since every section needs them."""
        object.__setattr__(self, "groups", tuple(self._read_groups()))

    def sections(self) -> tuple[ReportSection, ...]:
        """Return the report's sections, in their order."""
        drawn = self.groups[:MOST_DRAWN]
        curves = [
            self._make_group_section(one) for one in drawn if not (isinstance(one, GroupRoc) and one.curve is None)
        ]
        return (self._make_summary(), *curves)

    @property
    def statement(self) -> str:
        """Return the statement about privacy for a file of the curves."""
        asked, groups = self.planned_release.request, self.planned_release.groups_of_one_unit
        each = float(asked.epsilon)
        rows = f" where {asked.where}" if asked.where else ""
        return (
            f"{TITLES[asked.kind]} of {asked.score} against {asked.outcome} in {asked.table}{rows}. Differentially "
            f"private: epsilon {each:g} of each group, {groups * each:g} of a privacy unit. {SENTENCES[asked.method]}"
        )

    def make_document(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        asked = self.planned_release.request
        groups = [
            {"keys": dict(zip(asked.by, map(format_value, keys), strict=True)), **one.make_document()}
            for keys, one in zip(self.planned_release.groups, self.groups, strict=True)
        ]
        return {
            "plot": asked.kind.value,
            "method": asked.method.value,
            "table": asked.table,
            "epsilon": float(asked.epsilon),
            "groups_of_one_unit": self.planned_release.groups_of_one_unit,
            "paid_before": self.paid_release.is_repeated,
            "version": self.paid_release.version,
            "groups": groups,
        }

    def _read_groups(self) -> Iterator[Group]:
        asked, axes = self.planned_release.request, self.planned_release.scored_rows.axes
        names = (_name_group(keys, asked.table) for keys in self.planned_release.groups)
        for name, one in zip(names, self.diagnosis.groups, strict=True):
            if isinstance(one, ResidualGrid):
                yield read_residuals(name, one, *axes)
            elif asked.kind is DiagnosisKind.ROC:
                assert isinstance(one, ScoreHistogram)
                yield read_roc(name, one, axes[0])
            else:
                rate = self.planned_release.epsilon_of_counts
                rate *= 1 - float(ADAPTIVE_SHARE) if asked.method is Method.ADAPTIVE else 1
                yield read_calibration(name, one, axes[0], epsilon_per_count=rate)

    def _make_summary(self) -> ReportSection:
        asked, groups = self.planned_release.request, self.planned_release.groups_of_one_unit
        paid = f"paid {float(asked.epsilon):g} epsilon" + (" a group" if len(self.groups) > 1 else "")
        paid = "released before, so it costs nothing" if self.paid_release.is_repeated else paid
        each = f"; a unit counts in at most {groups} of them" if groups > 1 else ""
        named = "group" if len(self.groups) == 1 else "groups"
        parts: list[Part] = [
            f"{asked.score} against {asked.outcome} in {asked.table}"
            + (f" where {asked.where}" if asked.where else "")
            + f": {len(self.groups):,} {named}, {paid}{each}.",
            SENTENCES[asked.method],
            PageTable(_COLUMNS[asked.kind], tuple(one.make_row() for one in self.groups)),
            *(f"{one.name}: {warning}" for one in self.groups for warning in one.warnings),
            _READING[asked.kind] if asked.method is not Method.PRIBRP else _WITHOUT_BANDS,
        ]
        if len(self.groups) > MOST_DRAWN:
            parts.append(f"The first {MOST_DRAWN} groups are shown one by one; --json has all of them.")
        return ReportSection("summary", f"{TITLES[asked.kind]} of {asked.table}", tuple(parts))

    def _make_group_section(self, one: Group) -> ReportSection:
        points = PageTable(_POINTS[self.planned_release.request.kind], tuple(one.list_points()))
        return ReportSection("group", one.name, (*_draw(one), points))


def _name_group(keys: Sequence[Value], table: str) -> str:
    """Return the values of a group's keys, separated if there are several; without keys, the table's name."""
    texts = [format_value(value) for value in keys]
    return ", ".join(map(quote_in_row, texts)) if len(texts) > 1 else texts[0] if texts else table


def _draw(one: Group) -> Sequence[Drawing]:
    match one:
        case GroupRoc(curve=curve) if curve is not None:
            xs, ys = tuple(curve.false_positives.tolist()), tuple(curve.true_positives.tolist())
            errors = tuple((SURE * curve.true_sds).tolist()) if len(xs) <= _MOST_BARS else ()
            curves = [
                Curve(f"{one.name}, area {curve.area:.3f}", xs, ys, errors),
                Curve("by chance", (0.0, 1.0), (0.0, 1.0)),
            ]
            x, y = Axis("false positives", 0, 1), Axis("true positives", 0, 1)
            recall = [Curve("", ys[1:], tuple(curve.precision.tolist())[1:])]
            return (
                draw_line_plot(f"ROC: {one.name}", curves, x=x, y=y),
                draw_line_plot(f"Precision: {one.name}", recall, x=Axis("recall", 0, 1), y=Axis("precision", 0, 1)),
            )
        case GroupCalibration(bins=bins) if bins:
            xs = tuple(bin_.score for bin_ in bins)
            bands = tuple(bin_.band or 0.0 for bin_ in bins)
            curves = [
                Curve(one.name, xs, tuple(bin_.residual for bin_ in bins), bands, is_dotted=True),
                Curve("calibrated", (0.0, 1.0), (0.0, 0.0)),
            ]
            return (
                draw_line_plot(f"Residuals: {one.name}", curves, x=Axis("score", 0, 1), y=Axis("outcome less score")),
            )
        case GroupResiduals():
            return tuple(_draw_residuals(one))
        case _:
            return ()


def _draw_residuals(one: GroupResiduals) -> Iterator[Drawing]:
    if one.strips:
        xs = tuple((strip.low + strip.high) / 2 for strip in one.strips)
        errors = tuple(strip.error for strip in one.strips)
        means = Curve("mean residual", xs, tuple(strip.residual for strip in one.strips), errors, is_dotted=True)
        yield draw_line_plot(f"Mean residuals: {one.name}", [means], x=Axis("prediction"), y=Axis("residual"))
    most = max(float(one.counts.max()), 1.0)
    counts = one.counts.T[::-1].clip(min=0.0)  # residuals upward, predictions to the right
    rows = [f"{low:.3g} to {high:.3g}" for low, high in zip(one.residuals, one.residuals[1:], strict=False)][::-1]
    yield draw_cell_plot(
        f"Rows by residual (down) and prediction (across): {one.name}",
        rows,
        [f"{low:.3g}" for low in one.predictions[:-1]],
        (counts / most).tolist(),
        [[f"{value:.0f}" for value in row] for row in counts.tolist()],
    )
