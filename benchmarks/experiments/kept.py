"""Measurements read back from their CSV files, to write the page again without running anything.

The files hold five significant digits; thresholds and true keys follow from the same data and seed as in the run.
"""

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.experiments.runs import METRICS, Case, Measured, Spread, sum_runs


def read_csv(path: Path, cases: Sequence[Case]) -> list[Measured]:
    """Return what `write_csv` wrote of these cases. Raises ValueError if the file is of other cases."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    entries = [(case, entrant) for case in cases for entrant in case.entrants]
    found = []
    for row, (case, entrant) in zip(rows, entries, strict=True):
        empty = sum_runs(case, entrant, runs=0, worst_case=_read_number(row["worst_case"]), outcomes=[], refused="")
        if (row["panel"], float(row["x"]), row["label"], int(row["keys"])) != (
            *(empty.panel, empty.x),
            *(empty.label, empty.keys),
        ):
            raise ValueError(f"{path} was not measured on these data: {row['panel']}, {row['x']}, {row['label']}")
        spreads = {
            name: Spread(*(_read_number(row[f"{name}_{part}"]) for part in ("mean", "median", "q1", "q3")))
            for name in METRICS
        }
        denied = _read_number(row["denied"])
        found.append(replace(empty, runs=int(row["runs"]), denied=denied, refused=row["refused"], spreads=spreads))
    return found


def _read_number(text: str) -> float:
    return float(text) if text else float("nan")
