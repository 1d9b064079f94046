"""Draws the image of docs/results/bounds.md; same numbers, same bytes."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.bounds.experiments import CoverageRow
from benchmarks.bounds.page import KEYHOLE
from benchmarks.experiments.plots import STYLE

_COLOURS = ("#d9480f", "#f59f00", "#006d5b", "#1c7ed6", "#7048e8", "#868e96")
_LEAST = 1e-4  # of the covered share: less is drawn as this


def draw_coverage(rows: Sequence[CoverageRow], path: Path) -> None:
    """How far the covered share is from 95 %, over epsilon, a panel for each statistic."""
    own = [row for row in rows if row.target == 0.95]
    statistics = list(dict.fromkeys(row.statistic for row in own))
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(2.9 * len(statistics), 3.3), layout="constrained")
        panels = canvas.subplots(1, len(statistics), squeeze=False, sharey=True)[0]
        for axes, statistic in zip(panels, statistics, strict=True):
            for colour, method in zip(_COLOURS, dict.fromkeys(row.method for row in own), strict=False):
                line = [row for row in own if (row.statistic, row.method) == (statistic, method)]
                errors = [100 * max(row.error, _LEAST) for row in line]
                width = 2.4 if method == KEYHOLE else 1.2
                epsilons = [float(row.epsilon) for row in line]
                axes.plot(epsilons, errors, "o-", markersize=3, linewidth=width, color=colour, label=method)
            axes.set_title(statistic)
            axes.set_xscale("log")
            axes.set_yscale("log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_formatter(NullFormatter())
            axes.set_xlabel("epsilon")
        panels[0].set_ylabel("points from 95 %, in the mean")
        handles, names = panels[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside upper center", ncols=3, frameon=False)
        canvas.savefig(path, metadata={"Software": None})
