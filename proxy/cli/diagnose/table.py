"""A diagnosis as a public table: a row for each point of each curve, with its error and the group's figures.

All of it is computed from the release. A group has no row if noise leaves it no curve.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from planner.catalog.key_space import format_value
from proxy.cli.diagnose.curves import GroupCalibration, GroupRoc
from proxy.cli.diagnose.residuals import GroupResiduals
from proxy.release.diagnosis import DiagnosisKind, DiagnosisRelease
from proxy.release.published_file import PublishedRows, find_unused_name, list_columns

_NUMBER = "double precision"
Group: TypeAlias = GroupRoc | GroupCalibration | GroupResiduals
_Cell: TypeAlias = float | bool | None

COLUMNS: Mapping[DiagnosisKind, tuple[tuple[str, str], ...]] = {
    DiagnosisKind.ROC: tuple(
        (name, _NUMBER)
        for name in (
            "threshold",
            "false_positive_rate",
            "true_positive_rate",
            "precision",
            "false_positive_noise_sd",
            "true_positive_noise_sd",
            "area",
            "area_noise_sd",
            "area_binning_bias",
            "separation",
            "positives",
            "negatives",
        )
    ),
    DiagnosisKind.CALIBRATION: (
        *((name, _NUMBER) for name in ("low", "high", "rows", "mean_score", "mean_outcome", "residual", "band")),
        ("off", "boolean"),
        ("expected_calibration_error", _NUMBER),
    ),
    DiagnosisKind.RESIDUALS: tuple((name, _NUMBER) for name in ("low", "high", "rows", "mean_residual", "error")),
}
"""Behind the grouping columns, named as in `--json`."""


def tabulate(planned: DiagnosisRelease, groups: Sequence[Group]) -> PublishedRows:
    """Return the plotted numbers of some groups as a table, in the release's order."""
    columns = {column.name: column.type_name for column in list_columns(planned.scored_rows.question.keys)}
    by = planned.request.by
    own = ((find_unused_name(name, by), type_name) for name, type_name in COLUMNS[planned.request.kind])
    rows = (
        (*map(format_value, keys), *map(_write_cell, point))
        for keys, group in zip(planned.groups, groups, strict=True)
        for point in _list_points(group)
    )
    return PublishedRows((*((name, columns[name]) for name in by), *own), tuple(rows))


def _write_cell(value: _Cell) -> str | None:
    if isinstance(value, bool):
        return format_value(value)
    return None if value is None else repr(float(value))


def _list_points(group: Group) -> Iterator[tuple[_Cell, ...]]:
    match group:
        case GroupRoc(curve=curve) if curve is not None:
            of_area = (curve.area, curve.noise_sd, curve.binning_bias)
            of_group = (*of_area, curve.separation, curve.positives, curve.negatives)
            rates = (curve.false_positives, curve.true_positives, curve.precision)
            for edge, *point in zip(curve.edges, *rates, curve.false_sds, curve.true_sds, strict=True):
                yield (group.axis.find_edge(edge), *point, *of_group)
        case GroupCalibration():
            for one in group.bins:
                told = (one.low, one.high, one.rows, one.score, one.outcome, one.residual, one.band)
                yield (*told, None if one.band is None else one.is_off, group.error)
        case GroupResiduals():
            for strip in group.strips:
                yield strip.low, strip.high, strip.rows, strip.residual, strip.error
