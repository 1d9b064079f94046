"""The benchmark of looks reads what it says: every shape sees the watched day, a hundred questions are a few scans."""

from pathlib import Path

import duckdb
import pytest

from benchmarks.alarms.looks import MONITORS, ROWS, compare, list_shapes, make_many_looks
from benchmarks.rewriting import TABLE
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from planner.lower.shared_looks import share_scans
from proxy.sources.open import open_source


def test_every_shape_sees_the_watched_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.rewriting.REPEATS", 1)
    rows = 5_000
    made = ROWS.format(rows=rows, step=25 * 24 * 3600 * 10**6 // rows)
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as writer:
        writer.execute(f"CREATE TABLE visits AS {made}")
        (seen,) = writer.execute(
            "SELECT count(*) FROM visits WHERE age >= 5 AND added BETWEEN '2026-01-20' AND '2026-01-20 17:59:59'"
        ).fetchall()
    duck = open_source("duckdb:///visits.duckdb", directory=tmp_path)
    for name, look in list_shapes():
        sql = rewrite(look, dialect=DUCKDB)
        read = duck.read_aggregates(sql, look.keys, functionals=3, timeout_ms=60_000)
        assert int(read.values[0].sum()) == seen[0], name
    assert len(list(compare(duck, DUCKDB, lambda sql: None, named="duckdb"))) == len(list(list_shapes())) + 4
    duck.close()


def test_a_hundred_standing_questions_are_two_scans() -> None:
    shared = share_scans(make_many_looks(TABLE), dialect=DUCKDB)
    assert sum(len(look.places) for look in shared) == MONITORS
    assert len(shared) == 2
