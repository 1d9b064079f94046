"""Draws the images of docs/results/alarms.md; same numbers, same bytes."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter

from benchmarks.alarms.measured import Watched
from benchmarks.alarms.prices import AFRESH, ALARM, BELOW, LOOKS, WINDOWS, list_ways, price_rivals
from benchmarks.alarms.side_by_side import AROUND
from benchmarks.experiments.plots import STYLE

_COLOURS = {
    ALARM: "#006d5b",
    BELOW: "#343a40",
    AFRESH: "#d9480f",
    "binary tree": "#7048e8",
    "tree with nodes added and subtracted, of the best degree": "#1c7ed6",
    "sparse vector as published": "#c2255c",
    "and on the threshold": "#f59f00",
    "matrix mechanism, delta 1e-6, tolerance 100": "#868e96",
}
_SHORT = {
    "tree with nodes added and subtracted, of the best degree": "signed tree",
    "and on the threshold": "sparse vector, best found",
    "matrix mechanism, delta 1e-6, tolerance 100": "matrix, delta 1e-6",
    BELOW: "lower bound",
    AFRESH: "asked afresh",
}
_WAYS = ("#006d5b", "#4fb89f", "#d9480f", "#1c7ed6", "#74c0fc", "#c2255c", "#343a40")


def draw_prices(path: Path) -> None:
    """Prices over looks for tumbling windows, and over lengths for sliding ones."""
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(8.4, 3.6), layout="constrained")
        tumbling, sliding = canvas.subplots(1, 2)
        found = {looks: price_rivals(looks) for looks in LOOKS}
        for name, colour in _COLOURS.items():
            style = "--" if name == BELOW else "o-"
            prices = [found[looks][name] for looks in LOOKS]
            label = _SHORT.get(name, name)
            tumbling.plot(LOOKS, prices, style, markersize=2.5, color=colour, label=label)
        tumbling.set_title("a window that begins anew, by its looks")
        windows = [window for window in WINDOWS if window.hop == 1]
        for way in dict.fromkeys(one.way for window in windows for one in list_ways(window)):
            points = [(window.length, one.price) for window in windows for one in list_ways(window) if one.way is way]
            sliding.plot(*zip(*points, strict=True), "o-", markersize=2.5, label=way.value)
        sliding.set_title("a window that slides, by its length in looks")
        for axes in (tumbling, sliding):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.legend(frameon=False, fontsize=6.5)
        tumbling.set_ylabel("epsilon (tolerance + 1)")
        canvas.savefig(path, metadata={"Software": None})


def draw_delays(watched: Sequence[Watched], path: Path) -> None:
    """Who is in the answer around the first look at which a window exceeds its cut, a panel for each kind."""
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(3.6 * len(watched), 3.9), layout="constrained")
        panels = canvas.subplots(1, len(watched), squeeze=False, sharey=True)[0]
        for axes, own in zip(panels, watched, strict=True):
            _draw_delay(axes, own)
        panels[0].set_ylabel("share of the windows that exceed it, in the answer")
        handles, names = panels[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside upper center", ncols=3, frameon=False)
        canvas.savefig(path, metadata={"Software": None})


def _draw_delay(axes: Axes, own: Watched) -> None:
    for way, colour in zip(own.ways, _WAYS, strict=True):
        looks = range(-AROUND, AROUND + 1)
        axes.plot(looks, way.around, "o-", markersize=2.0, linewidth=1.0, color=colour, label=way.name)
    axes.axvline(0, color="#343a40", linewidth=0.6, linestyle=":")
    axes.set_title(f"{own.what}: {own.cut}, tolerance {own.tolerance}")
    axes.set_xlabel("looks since the first that is true")
