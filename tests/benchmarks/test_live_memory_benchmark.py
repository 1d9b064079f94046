"""The benchmark of memory on a live table runs, on few questions."""

import sys
from pathlib import Path

import pytest

from benchmarks.live_memory import measure


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_it_measures_as_often_as_it_is_told(tmp_path: Path) -> None:
    found = list(measure(tmp_path, questions=4, every=2))
    assert [number for number, _ in found] == [2, 4]
    assert all(resident_mb > 1 for _, resident_mb in found)
