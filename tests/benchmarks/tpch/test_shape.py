"""No cast, window, hash or join is added to TPC-H's statements without anybody's noticing."""

import csv
from pathlib import Path

from tests.benchmarks.tpch.shape import KEPT, read_shape


def test_statements_consist_of_what_the_file_says(tmp_path: Path) -> None:
    """A change of the file tells what a statement gains or loses: `python -m tests.benchmarks.tpch.shape` writes it."""
    with KEPT.open(encoding="utf-8", newline="") as file:
        kept = list(csv.reader(file))
    found = read_shape(tmp_path)
    assert [row for row in found if row not in kept] == []
    assert len(found) == len(kept) > 40
