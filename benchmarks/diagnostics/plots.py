"""Draws the images of docs/results/diagnostics.md; same numbers, same bytes."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.diagnostics.experiments import AreaRow, SeparationRow
from benchmarks.diagnostics.residual_plots import ResidualRow
from benchmarks.experiments.plots import STYLE

_COLOURS = ("#006d5b", "#1c7ed6", "#7048e8", "#d9480f", "#f59f00")


def draw_areas(rows: Sequence[AreaRow], path: Path) -> None:
    """The error of the area under the curve over epsilon, a panel for each number of rows."""
    sizes = list(dict.fromkeys(row.rows for row in rows))
    methods = list(dict.fromkeys(row.method for row in rows))
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(3.3 * len(sizes), 3.2), layout="constrained")
        panels = canvas.subplots(1, len(sizes), squeeze=False, sharey=True)[0]
        for axes, size in zip(panels, sizes, strict=True):
            for colour, method in zip(_COLOURS, methods, strict=False):
                own = [row for row in rows if (row.rows, row.method) == (size, method)]
                epsilons, errors = [float(row.epsilon) for row in own], [row.error for row in own]
                axes.plot(epsilons, errors, "o-", markersize=3, color=colour, label=method)
            axes.set_title(f"{size:,} rows")
            axes.set_xscale("log")
            axes.set_yscale("log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(NullFormatter())
            axes.set_xlabel("epsilon")
        panels[0].set_ylabel("mean error of the area")
        handles, names = panels[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside upper center", ncols=5, frameon=False)
        canvas.savefig(path, metadata={"Software": None})


def draw_separations(shapes: Sequence[SeparationRow], plots: Sequence[ResidualRow], path: Path) -> None:
    """How surely a wrong model is told from a right one, over rows times epsilon."""
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(6.6, 3.0), layout="constrained")
        left, right = canvas.subplots(1, 2, sharey=True)
        for colour, method in zip(_COLOURS, dict.fromkeys(row.method for row in shapes), strict=False):
            own = [row for row in shapes if row.method == method]
            values = [row.separation for row in own]
            left.plot([row.information for row in own], values, "o-", markersize=3, color=colour, label=method)
        for colour, method in zip(_COLOURS[2:], dict.fromkeys(row.method for row in plots), strict=False):
            for law, style in enumerate(("o-", "s--")):
                line = [row for row in plots if row.method == method]
                label = f"{method}, law {'HN'[law]}"
                values = [row.separations[law] for row in line]
                right.plot([row.information for row in line], values, style, markersize=3, color=colour, label=label)
        for axes, heading in ((left, "calibration"), (right, "residuals")):
            axes.set_title(heading)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_xlabel("rows times epsilon")
            axes.set_ylim(0, 1.05)
            axes.legend(frameon=False, fontsize=7)
        left.set_xlabel("rows times epsilon; without noise, rows")
        left.set_ylabel("separation")
        canvas.savefig(path, metadata={"Software": None})
