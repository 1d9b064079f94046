"""The benchmark of many keys runs, on few."""

from pathlib import Path

from benchmarks.many_keys import measure


def test_it_measures_every_stage(tmp_path: Path) -> None:
    found = measure(tmp_path, places=50, products=30, rows=9_000, repeats=1, more=4)
    assert list(found.seconds) == ["plain", "planned", "answered", "from store"]
    assert all(clock >= 0 and used >= 0 for clock, used in found.seconds.values())
    assert 0 < found.returned < 1_500
    assert min(found.plain_bytes, found.own_bytes) > 1e6
