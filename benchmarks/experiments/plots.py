"""Draws a figure as PNG: medians as lines, the middle half of the runs as bands; same numbers, same bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter

from benchmarks.experiments.figures import Figure
from benchmarks.experiments.runs import Measured
from mechanisms.registry import DEFAULT

HEADINGS = {
    "epsilon_mean": "epsilon, mean over keys",
    "epsilon_max": "epsilon, largest of a key",
    "gamma": "min-entropy / ln keys",
    "fnr": "FNR",
    "fpr": "FPR, all negatives",
    "false_positives": "false positives, number",
    "missed": "false negatives, number",
}
_LEAST_TOP = 0.01
_LOGARITHMIC = ("epsilon_mean", "epsilon_max")
_COLOURS = {
    "progressive": "#006d5b",
    "keyhole": "#4fb89f",
    "probe": "#d9480f",
    "probe_gradual": "#f59f00",
    "probe_naive": "#a5673f",
    "probe_ent": "#c2255c",
    "naive": "#868e96",
    "naive (u = 12 %)": "#868e96",
    "nlm": "#adb5bd",
    "tslm": "#1c7ed6",
    "ppwlm": "#7048e8",
    "dppwlm": "#c2255c",
    "mim_baseline": "#1c7ed6",
    "mim_progressive": "#d9480f",
    "mim_progressive (same tolerance)": "#f59f00",
}
_OTHERS = ("#364fc7", "#1c7ed6", "#4fb89f", "#f59f00", "#d9480f")
STYLE: dict[Any, Any] = {
    "savefig.dpi": 90,
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(figure: Figure, measured: Sequence[Measured], directory: Path) -> Path:
    """Write the figure's image and give its path."""
    shown = figure.select(measured)
    panels = list(dict.fromkeys(m.panel for m in shown))
    labels = list(dict.fromkeys(m.label for m in shown))
    with mpl.rc_context(STYLE):
        rows, columns = len(panels), len(figure.metrics)
        canvas = Canvas(figsize=(2.7 * columns, 1.9 * rows + 0.6), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False)
        for row, panel in enumerate(panels):
            own = [m for m in shown if m.panel == panel]
            for column, metric in enumerate(figure.metrics):
                each: Axes = axes[row][column]
                _draw_panel(each, figure, own, metric, labels)
                if row == 0:
                    each.set_title(HEADINGS[metric])
            axes[row][0].set_ylabel(panel.removeprefix(figure.prefix).lstrip(": "))
        for each in axes[-1]:
            each.set_xlabel(figure.x)
        handles, names = axes[0][0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
        path = directory / f"{figure.slug}.png"
        canvas.savefig(path, metadata={"Software": None})
    return path


def _draw_panel(axes: Axes, figure: Figure, own: Sequence[Measured], metric: str, labels: Sequence[str]) -> None:
    xs = sorted({m.x for m in own})
    for number, label in enumerate(labels):
        points = sorted((m for m in own if m.label == label and not m.refused), key=lambda m: m.x)
        at = [xs.index(m.x) for m in points]
        spreads = [m.spreads[metric] for m in points]
        colour = _COLOURS.get(label, _OTHERS[number % len(_OTHERS)])
        width = 2.2 if label == DEFAULT else 1.1
        name = f"{label} (default)" if label == DEFAULT else label
        medians, low, high = [s.median for s in spreads], [s.low for s in spreads], [s.high for s in spreads]
        axes.plot(at, medians, color=colour, linewidth=width, marker="o", markersize=2.5, label=name)
        axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set_xticks(range(len(xs)), [figure.label_tick(x) for x in xs])
    if metric in _LOGARITHMIC:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(_format_plain))
        axes.yaxis.set_minor_formatter(FuncFormatter(_format_some))
    else:
        axes.set_ylim(bottom=0.0, top=max(axes.get_ylim()[1], _LEAST_TOP))


def _format_plain(value: float, _: int | None) -> str:
    return f"{value:g}"


def _format_some(value: float, _: int | None) -> str:
    """Between powers of ten, the ticks at 2 and 5."""
    return f"{value:g}" if f"{value:e}"[0] in "25" else ""
