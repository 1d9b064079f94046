"""The benchmark of looks, small: monitors of one table and moment are one statement. Nothing is timed."""

from pathlib import Path

from benchmarks.alarms.runner import watch_day


def test_three_monitors_read_once_a_look(tmp_path: Path) -> None:
    day = watch_day(tmp_path, keys=20, rows=2_000, monitors=3, looks=2)
    assert day.statements == 2
    assert len(day.looks_s) == 2
