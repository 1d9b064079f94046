"""A DuckDB file that a loader writes between questions: held while Keyhole serves, or open only while it is read."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import pytest
from structlog.testing import capture_logs

from planner.catalog.catalog import Column, SqlType
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.question.plan import Rewritten
from proxy.open_policy.service import Service
from proxy.sources import failures
from proxy.sources.duckdb_source import DuckDBSource
from proxy.sources.open import Source, open_source
from tests.effort import PATIENCE_S
from tests.end_to_end.certainty import truth
from tests.worlds import shop
from tests.worlds.house import write_policy

_KEYS = KeySpace(columns=(Column("ward", SqlType.TEXT, "text", domain=("a", "b")),), values=(("a", "b"),))
_COUNTED = Rewritten(DUCKDB.name, "SELECT ward AS k0, count(*) AS f0 FROM visits GROUP BY 1")
# DuckDB keeps other processes out of a file that is open, so the loader is one
_LOADER = """
import sys, duckdb
with duckdb.connect(sys.argv[1]) as connection:
    connection.execute(sys.argv[2])
    print("open", flush=True)
    sys.stdin.read()
"""


@contextmanager
def loading(path: Path, statement: str) -> Iterator[None]:
    """Another process has the file open, and has run the statement, until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _LOADER, str(path), statement], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as loader:
        assert loader.stdout is not None
        assert loader.stdin is not None
        assert loader.stdout.readline() == "open\n"
        yield
        loader.stdin.close()
        assert loader.wait(PATIENCE_S) == 0


def load(path: Path, statement: str) -> bool:
    """Whether another process could write to the file."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADER, str(path), statement], input="", text=True, capture_output=True, check=False
    )
    return done.returncode == 0


def counts(source: Source) -> list[int]:
    """The visits of wards a and b, read as a question reads them."""
    with source.take_turn(analyst="ada", timeout_ms=30_000):
        found: list[int] = source.read_aggregates(_COUNTED, _KEYS, functionals=1, timeout_ms=30_000).values[0].tolist()
        return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'a' AS ward FROM range(3)")
    return path


def test_a_held_file_keeps_loaders_out(file: Path) -> None:
    source = open_source("duckdb:///visits.duckdb", directory=file.parent)
    try:
        assert counts(source) == [3, 0]
        assert not load(file, "INSERT INTO visits VALUES ('b')")
        assert counts(source) == [3, 0]
    finally:
        source.close()


def test_a_file_that_is_not_held_is_written_between_questions(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_notice", failures._Notice())
    source = open_source("duckdb:///visits.duckdb", directory=file.parent, is_held=False)
    try:
        assert counts(source) == [3, 0]
        with loading(file, "INSERT INTO visits VALUES ('b'), ('b')"), capture_logs() as logged:
            with pytest.raises(KeyholeError, match="KH501") as refused, source.take_turn(analyst="ada", timeout_ms=200):
                raise AssertionError
            assert "Nothing was spent" in (refused.value.hint or "")
        assert [one["why"] for one in logged] == ["another process has the file open for writing"]
        assert counts(source) == [3, 2]
        with source.take_turn(analyst="ada", timeout_ms=30_000):  # a question is under way
            assert not load(file, "INSERT INTO visits VALUES ('b')")
        with source.hold_open():
            assert not load(file, "INSERT INTO visits VALUES ('b')")
        assert source.list_relations() == ('"visits"',)
        assert load(file, "INSERT INTO visits VALUES ('b')")
    finally:
        source.close()
    with pytest.raises(KeyholeError, match="KH501"), source.take_turn(analyst="ada", timeout_ms=200):
        raise AssertionError


def test_the_operator_learns_that_all_turns_are_taken(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_notice", failures._Notice())
    source = DuckDBSource(file, directories=(file.parent,), settings={}, questions=1)
    with closing(source), source.take_turn(analyst="ada", timeout_ms=30_000), capture_logs() as logged:
        for _ in range(2):
            with pytest.raises(KeyholeError, match="KH501"), source.take_turn(analyst="bob", timeout_ms=1):
                raise AssertionError
    why = "as many questions are under way as the source is asked at once"
    assert logged == [{"event": "no connection to the source", "log_level": "warning", "why": why}]


def test_a_policy_says_that_its_file_is_not_held(tmp_path: Path) -> None:
    """Answers and public tables as ever, and the file is free as soon as one is there."""
    path = tmp_path / "shop.duckdb"
    shop.fill_duckdb(path)
    policy = write_policy(tmp_path, source=f'duckdb:///{path}"\nhold = false # "')
    with Service.open(policy) as service:
        assert truth(service, shop.BUSY) == shop.BUSY_STORES
        assert load(path, "INSERT INTO sales SELECT * FROM sales")
