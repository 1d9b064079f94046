"""Windows whose watching process is killed at random: the alerts and the charge are those of one that is not."""

import re
import sys
from pathlib import Path

import pytest

from benchmarks import monitor_kills
from tests.children import forked
from tests.effort import rounds

pytestmark = pytest.mark.process


def test_a_killed_window_alerts_as_one_that_nobody_killed() -> None:
    runs = rounds(20, quick=1)
    done = forked.run(
        [sys.executable, "-m", "benchmarks.monitor_kills", "--runs", str(runs), "--ledgers", "sqlite"],
        check=True,
        capture_output=True,
        text=True,
    )
    told = re.sub(r"\s+", " ", done.stdout)
    assert f"sqlite: {runs} windows" in told
    assert "'other alerts': 0, 'other charges': 0, 'not verified': 0" in told
    assert int(re.findall(r"'kills': (\d+)", told)[0]) > 0


def test_another_draw_is_seen(tmp_path: Path) -> None:
    """Two windows with numbers of their own alert at other looks, so that a second draw would show."""
    monitor_kills.write_visits(tmp_path)
    told = set()
    for seed in (1, 2):
        policy = monitor_kills.prepare(tmp_path, f"sqlite:///{seed}.db")
        monitor_kills.watch(policy, seed)
        told.add(monitor_kills.read(policy)[0])
    assert len(told) == 2
