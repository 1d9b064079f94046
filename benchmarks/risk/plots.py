"""Draws the images of docs/results/risk.md; same numbers, same bytes."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.experiments.plots import STYLE
from benchmarks.risk.attacks import KEY_SET, LAPLACE, PEGASUS, TARGETS, TRUE_COUNTS, TTL, Found, name_at_utility
from benchmarks.risk.disclosures import PublishedRow

_COLOURS = ("#006d5b", "#d9480f", "#1c7ed6", "#7048e8", "#f59f00")
_LINE = "#343a40"


def draw_disclosures(rows: Sequence[PublishedRow], path: Path) -> None:
    """How many disclosures there are over how large the answers' errors are, and over epsilon."""
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(7.2, 2.9), layout="constrained")
        by_epsilon, by_error = canvas.subplots(1, 2, sharey=True)
        for colour, sensitive in zip(_COLOURS, dict.fromkeys(row.sensitive for row in rows), strict=False):
            own = [row for row in rows if row.sensitive == sensitive]
            counts = [row.disclosed for row in own]
            by_epsilon.plot([row.epsilon for row in own], counts, "o-", markersize=3, color=colour, label=sensitive)
            by_error.plot([100 * row.error for row in own], counts, "o-", markersize=3, color=colour)
        for axes, heading in (
            (by_epsilon, "epsilon of all marginals"),
            (by_error, "mean relative error of answers, %"),
        ):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_xlabel(heading)
        by_epsilon.set_ylabel("disclosures")
        by_epsilon.legend(frameon=False, title="sensitive")
        canvas.savefig(path, metadata={"Software": None})


def draw_attacks(found: Sequence[Found], over_epsilon: Sequence[Found], path: Path) -> None:
    """Person-hours found better than before, over epsilon, a panel for each attacker; what has no epsilon is a line."""
    attackers = list(dict.fromkeys(one.attacker for one in found))
    levels = (
        (TRUE_COUNTS, _LINE, ":"),
        (name_at_utility(TTL, TARGETS[0]), _COLOURS[4], "--"),
        (KEY_SET, _COLOURS[0], "-"),
    )
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(2.9 * len(attackers), 3.3), layout="constrained")
        panels = canvas.subplots(1, len(attackers), squeeze=False, sharey=True)[0]
        for axes, attacker in zip(panels, attackers, strict=True):
            for name, colour in ((LAPLACE, _COLOURS[2]), (PEGASUS, _COLOURS[1])):
                own = [one for one in over_epsilon if one.attacker == attacker and one.technique == name]
                epsilons = [one.setting or 0.0 for one in own]
                axes.plot(epsilons, [one.one_place for one in own], "o-", markersize=2.5, color=colour, label=name)
                joint = [one.joint for one in own]
                axes.plot(epsilons, joint, "s--", markersize=2, linewidth=0.8, color=colour, label=f"{name}, joint")
            for name, colour, style in levels:
                level = next(one.one_place for one in found if one.attacker == attacker and one.technique == name)
                axes.axhline(level, color=colour, linestyle=style, linewidth=1.6, label=name)
            axes.set_title(attacker)
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.set_xlabel("epsilon")
        panels[0].set_ylabel("person-hours found better")
        handles, names = panels[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside upper center", ncols=4, frameon=False)
        canvas.savefig(path, metadata={"Software": None})
