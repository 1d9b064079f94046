"""Markdown tables and CSV files of what was measured."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.experiments.figures import Figure
from benchmarks.experiments.runs import METRICS, Measured, Spread
from mechanisms.registry import DEFAULT

_FACTS = ("experiment", "panel", "x", "label", "mechanism", "fnr_asked", "fpr_asked", "runs", "keys", "worst_case")


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> str:
    """A table; the first columns are texts, the others numbers."""
    rule = "|" + "|".join(["---"] * texts + ["--:"] * (len(headings) - texts)) + "|"
    return "\n".join(["| " + " | ".join(headings) + " |", rule, *("| " + " | ".join(row) + " |" for row in rows)])


def write_csv(measured: Sequence[Measured], path: Path) -> None:
    """One line per entrant and point, with mean, median and quartiles of every metric over the runs."""
    headings = [*_FACTS, "denied", "refused"]
    headings += [f"{metric}_{part}" for metric in METRICS for part in ("mean", "median", "q1", "q3")]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(headings)
        for m in measured:
            facts = [getattr(m, fact) for fact in _FACTS[:-1]]
            spreads = [
                number(value)
                for s in (m.spreads[metric] for metric in METRICS)
                for value in (s.mean, s.median, s.low, s.high)
            ]
            writer.writerow([*facts, number(m.worst_case), number(m.denied), m.refused, *spreads])


def results(figure: Figure, measured: Sequence[Measured]) -> str:
    """Every panel's entrants at its last point: the hardest question of most figures."""
    rows = []
    for panel in dict.fromkeys(m.panel for m in measured):
        own = [m for m in measured if m.panel == panel]
        last = max(m.x for m in own)
        rows += [_row(figure, m) for m in own if m.x == last]
    headings = (
        *("question, mechanism", "reserved", "epsilon, mean over keys", "largest of a key", "min-entropy"),
        *("FNR", "FPR, all negatives", "FPR, contract", "denied"),
    )
    return markdown(headings, rows)


def over_axis(figure: Figure, measured: Sequence[Measured], metric: str, scale: float = 1.0) -> str:
    """Medians of one metric, a column per place of the axis."""
    xs = sorted({m.x for m in measured})
    rows = []
    for panel, label in dict.fromkeys((m.panel, m.label) for m in measured):
        at = {m.x: m for m in measured if m.panel == panel and m.label == label}
        rows.append([f"{panel}: {named(label)}", *(cell(at[x].spreads[metric], scale) if x in at else "" for x in xs)])
    return markdown(["question, mechanism", *(figure.tick(x) for x in xs)], rows)


def cell(spread: Spread, scale: float = 1.0) -> str:
    """Median and quartiles; a dash where no run counts."""
    if math.isnan(spread.median):
        return "–"
    median, low, high = (short(scale * value) for value in (spread.median, spread.low, spread.high))
    return median if low == high == median else f"{median} ({low}–{high})"


def named(label: str) -> str:
    """The default in bold."""
    return f"**{label}**" if label == DEFAULT else label


def short(value: float) -> str:
    """Three significant digits."""
    if value == 0.0:
        return "0"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def number(value: float) -> str:
    """Five significant digits for files; empty for NaN."""
    return "" if math.isnan(value) else f"{value:.5g}"


def percent(value: float) -> str:
    """A share in percent."""
    return "–" if math.isnan(value) else f"{100.0 * value:.3g} %"


def _row(figure: Figure, m: Measured) -> list[str]:
    name = f"{m.panel}, {figure.x} {figure.tick(m.x)}: {named(m.label)}"
    if m.refused:
        return [name, f"refused: {m.refused}", *[""] * 7]
    rates = [cell(m.spreads[metric], 100.0) + " %" for metric in ("fnr", "fpr", "fpr_contract")]
    losses = [cell(m.spreads[metric]) for metric in ("epsilon_mean", "epsilon_max", "gamma")]
    return [name, short(m.worst_case), *losses, *rates, percent(m.denied)]
