"""Markdown tables and CSV files of what was measured."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.experiments.runs import METRICS, Measured
from mechanisms.registry import DEFAULT

_FACTS = ("experiment", "panel", "x", "label", "mechanism", "fnr_asked", "fpr_asked", "runs", "keys", "worst_case")


def write_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> str:
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
                format_number(value)
                for s in (m.spreads[metric] for metric in METRICS)
                for value in (s.mean, s.median, s.low, s.high)
            ]
            writer.writerow([*facts, format_number(m.worst_case), format_number(m.denied), m.refused, *spreads])


def quote_label(label: str) -> str:
    """The default in bold."""
    return f"**{label}**" if label == DEFAULT else label


def format_short(value: float) -> str:
    """Three significant digits."""
    if value == 0.0:
        return "0"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def format_number(value: float) -> str:
    """Five significant digits for files; empty for NaN."""
    return "" if math.isnan(value) else f"{value:.5g}"


def format_percent(value: float) -> str:
    """A share in percent."""
    return "–" if math.isnan(value) else f"{100.0 * value:.3g} %"
