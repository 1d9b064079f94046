"""Draws the chapter's figures as PNG; same numbers, same bytes."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullFormatter

from benchmarks.experiments.plots import STYLE
from benchmarks.streams.events import CLOSE, EVERY_TICK
from benchmarks.streams.measures import Floats
from benchmarks.streams.rows import BLOCK_TREE, EPSILONS, LAPLACE, PEGASUS, PEGASUS_LARGE, SLIDING, ZEROS, Row
from mechanisms.formula import Integers

_COLOURS = {
    LAPLACE: "#1c7ed6",
    PEGASUS: "#d9480f",
    "pegasus, MS": "#f59f00",
    "pegasus, WSS": "#d9480f",
    PEGASUS_LARGE: "#c2255c",
    "pegasus, theta 40, WSS": "#c2255c",
    BLOCK_TREE: "#7048e8",
    SLIDING: "#15aabf",
    CLOSE: "#006d5b",
    EVERY_TICK: "#69db7c",
    ZEROS: "#343a40",
}
_OTHER = "#868e96"


def draw_picture(counts: Integers, found: Mapping[tuple[str, Fraction], Floats], path: Path) -> None:
    """Figure 5.2: the stream, and what each mechanism makes of it."""
    labels = list(dict.fromkeys(label for label, _ in found))
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(2.7 * (1 + len(labels)), 3.6), layout="constrained")
        axes = canvas.subplots(len(EPSILONS), 1 + len(labels), squeeze=False, sharex=True)
        for row, epsilon in enumerate(EPSILONS):
            shown = {"counts": counts, **{label: found[label, epsilon] for label in labels}}
            for each, (label, values) in zip(axes[row], shown.items(), strict=True):
                each.plot(values, linewidth=0.4, color=_COLOURS.get(label, _OTHER), rasterized=True)
                if label == ZEROS:
                    each.set_ylim(axes[row][0].get_ylim())
                if row == 0:
                    each.set_title(label)
            axes[row][0].set_ylabel(f"epsilon {float(epsilon):g}")
        _save(canvas, path)


def draw_errors(rows: Sequence[Row], path: Path, *, heading: str) -> None:
    """Figures 5.3, 5.4 and 5.8: a bar by logarithm to ten for each mechanism, zeros as a dotted line, a panel for each
    stream and epsilon."""
    data = list(dict.fromkeys(row.data for row in rows))
    with mpl.rc_context(STYLE):
        bars = max(sum(row.data == name and row.epsilon == EPSILONS[0] for row in rows) for name in data)
        canvas = Canvas(figsize=(2.0 + 2.3 * len(data), 0.7 + 0.36 * bars), layout="constrained")
        axes = canvas.subplots(len(EPSILONS), len(data), squeeze=False, sharey=True)
        for row, epsilon in enumerate(EPSILONS):
            for each, name in zip(axes[row], data, strict=True):
                _draw_bars(each, [one for one in rows if one.data == name and one.epsilon == epsilon])
                each.set_title(f"{name}, epsilon {float(epsilon):g}")
        for each in axes[-1]:
            each.set_xlabel(heading)
        _save(canvas, path)


def draw_windows(rows: Sequence[Row], path: Path) -> None:
    """Figure 5.5: the error of a window's sum over its length, a panel for each epsilon."""
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(7.2, 3.4), layout="constrained")
        axes = canvas.subplots(1, len(EPSILONS), squeeze=False)[0]
        for each, epsilon in zip(axes, EPSILONS, strict=True):
            for label in dict.fromkeys(row.label for row in rows):
                own = [row for row in rows if row.label == label and row.epsilon == epsilon]
                colour = _COLOURS.get(label, _OTHER)
                style = "s-" if label == SLIDING else "o-"
                each.plot(
                    [row.x for row in own], [row.mean for row in own], style, markersize=2.5, color=colour, label=label
                )
            each.set_xscale("log", base=2)
            each.set_yscale("log")
            each.yaxis.set_minor_formatter(NullFormatter())
            each.set_title(f"epsilon {float(epsilon):g}")
            each.set_xlabel("window, ticks")
        axes[0].set_ylabel("mean absolute error")
        handles, names = axes[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside upper center", ncols=3, frameon=False)
        _save(canvas, path)


def draw_curves(rows: Sequence[Row], path: Path) -> None:
    """Figures 5.6 and 5.7: found events over others reported, a panel for each event and epsilon."""
    cases = list(dict.fromkeys(row.experiment for row in rows))
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(0.6 + 2.5 * len(cases), 5.4), layout="constrained")
        axes = canvas.subplots(len(EPSILONS), len(cases), squeeze=False, sharex=True, sharey=True)
        shown = {}
        for row, epsilon in enumerate(EPSILONS):
            for each, case in zip(axes[row], cases, strict=True):
                own = [one for one in rows if one.experiment == case and one.epsilon == epsilon]
                for label in dict.fromkeys(one.label for one in own):
                    points = [(one.x / 1000.0, one.mean) for one in own if one.label == label]
                    style = ":" if label == ZEROS else "--" if label == EVERY_TICK else "-"
                    (shown[label],) = each.plot(
                        *zip(*points, strict=True), style, color=_COLOURS.get(label, _OTHER), linewidth=1.1
                    )
                each.set_title(f"{case.partition(', ')[2]} ticks, epsilon {float(epsilon):g}")
        for each in axes[-1]:
            each.set_xlabel("others reported")
        for each in axes[:, 0]:
            each.set_ylabel("events found")
        canvas.legend(list(shown.values()), list(shown), loc="outside upper center", ncols=4, frameon=False)
        _save(canvas, path)


def _draw_bars(axes: Axes, rows: Sequence[Row]) -> None:
    for place, row in enumerate(rows):
        axes.barh(place, math.log10(row.mean), color=_COLOURS.get(row.label, _OTHER), height=0.7)
    zeros = math.log10(next(row.mean for row in rows if row.label == ZEROS))
    axes.axvline(zeros, color=_COLOURS[ZEROS], linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    if not axes.yaxis_inverted():
        axes.invert_yaxis()


def _save(canvas: Canvas, path: Path) -> None:
    canvas.savefig(path, metadata={"Software": None})
