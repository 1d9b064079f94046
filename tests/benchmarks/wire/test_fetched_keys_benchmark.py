"""The benchmark of keys on the wire runs, on few: every way fetches the same answer."""

import sys
from pathlib import Path

import pytest

from benchmarks.wire import fetched_keys
from benchmarks.wire.fetched_keys import measure


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_every_way_fetches_the_same_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is laid out in this process, whose memory is no matter."""
    monkeypatch.setattr(fetched_keys, "run_in_process", lambda work, *arguments: work(*arguments))
    found = measure(tmp_path, places=40, products=30, rows=4_800, more=2)
    assert list(found.ways) == ["COPY", "SELECT", "REST, NDJSON", "REST, CSV"]
    (keys,) = {one.keys for one in found.ways.values()}
    assert 0 < keys < 1_200
    assert all(one.own_bytes > 1e7 for one in found.ways.values())
    assert [one.session_bytes is None for one in found.ways.values()] == [False, False, True, True]
    copied, _, lines, table = found.ways.values()
    assert None not in (copied.size, lines.size, table.size)
    assert min(copied.processor_s, found.plain_s) >= 0
