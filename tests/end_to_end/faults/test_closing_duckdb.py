"""A DuckDB source that is closed while it reads: what is read ends first, and the process goes on."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from planner.errors import KeyholeError
from proxy.sources.duckdb_source import DuckDBSource
from tests.effort import PATIENCE_S

ENDLESS = "SELECT 0, count(*) FROM range(3000000) a(x), range(1000000) b(y) WHERE hash(a.x * 7 + b.y) % 5 = 1"

_CLOSED_BEHIND_A_TIMEOUT = f"""
from contextlib import ExitStack, closing
from pathlib import Path

from planner.errors import KeyholeError
from proxy.sources.duckdb_source import DuckDBSource
from proxy.sources.public_moments import PublicMoments

with closing(DuckDBSource(None, directories=(Path("."),), settings={{"threads": "2"}})) as source:
    moments = PublicMoments(timeout_ms=200, every_ms=0)
    with ExitStack() as reading:
        reading.enter_context(source.take_turn(analyst="ada", timeout_ms=1000))
        try:
            moments.read(lambda: source.read_counts({ENDLESS!r}, relations=(), timeout_ms=200), keeping=reading)
        except KeyholeError as error:
            print(error.code)
print("closed")
"""


def test_a_process_survives_that_closes_right_after_a_timeout(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CLOSED_BEHIND_A_TIMEOUT],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["KH501", "closed"]), done.stderr


@pytest.mark.parametrize("held", [True, False])
def test_closing_ends_what_is_read(tmp_path: Path, *, held: bool) -> None:
    source, began, failed = (
        DuckDBSource(None, directories=(tmp_path,), settings={}, is_held=held),
        threading.Event(),
        [],
    )

    def read() -> None:
        began.set()
        try:
            source.read_counts(ENDLESS, relations=(), timeout_ms=round(1000 * PATIENCE_S))
        except KeyholeError as error:
            failed.append(error.code)

    reader = threading.Thread(target=read)
    reader.start()
    assert began.wait(PATIENCE_S)
    source.close()
    reader.join(PATIENCE_S)
    assert failed == ["KH501"]
