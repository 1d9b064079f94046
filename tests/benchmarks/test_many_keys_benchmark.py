"""The benchmark of many keys runs, on few."""

from pathlib import Path

from benchmarks.many_keys import measure


def test_it_measures_every_stage(tmp_path: Path) -> None:
    found = measure(tmp_path, keys=1_500, repeats=1)
    assert list(found) == ["plain", "planned", "answered", "from store"]
    assert all(clock >= 0 and used >= 0 for clock, used in found.values())
