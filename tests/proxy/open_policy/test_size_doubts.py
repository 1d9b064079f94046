"""`keyhole check` says where rollups and the time of a question do not suit the size of a table; it reads no row."""

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest

from proxy.cli.check import check
from proxy.owner import pace as measuring
from tests.worlds.house import new_database

ROWS = 20_000
POLICY = """\
[source]
url = "{source}"
{rollups}
[ledger]
url = "sqlite:///keyhole.db"
[limits]
statement_timeout_ms = {timeout_ms}
[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 2
[tables.visits]
relation = "{relation}"
privacy_unit = {unit}
refresh = "{refresh}"
{bounds}
[tables.visits.columns.ward]
key = {{ values = ["A", "B"] }}
"""
BOUNDS = "max_groups_per_unit = 1\nrows_per_unit = 1"
Warnings = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that declares its size has a pace measured, of no interest here. This takes seconds at full size."""
    monkeypatch.setattr(measuring, "ROWS", 10_000)
    monkeypatch.setattr(measuring, "_RUNS", 1)


def warnings_of(directory: Path, source: str, relation: str) -> Warnings:
    def find(
        *,
        rollups: str = "",
        timeout_ms: int = 30_000,
        unit: str = '"id"',
        refresh: str = "static",
        bounds: str = BOUNDS,
    ) -> list[str]:
        path = directory / "keyhole.toml"
        path.write_text(
            POLICY.format(
                source=source,
                relation=relation,
                rollups=rollups,
                timeout_ms=timeout_ms,
                unit=unit,
                refresh=refresh,
                bounds=bounds,
            ),
            encoding="utf-8",
        )
        return [warning for warning in check(path, confirm=True).warnings if " rows" in warning and "some" in warning]

    return find


@pytest.fixture(params=["file", "table", "view", "postgres"])
def warnings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Warnings]:
    rows = "SELECT i AS id, 'A' AS ward FROM {} AS t(i)"
    if request.param == "postgres":
        with new_database(request.getfixturevalue("postgres_url")) as url:
            with psycopg.connect(url, autocommit=True) as owner:
                owner.execute(f"CREATE TABLE visits AS {rows.format(f'generate_series(1, {ROWS})')}".encode())
                owner.execute("ANALYZE visits")
            yield warnings_of(tmp_path, url, "visits")
        return
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as owner:
        owner.execute(f"CREATE TABLE visits AS {rows.format(f'range({ROWS})')}")
        owner.execute("CREATE VIEW seen AS SELECT * FROM visits")
        owner.execute(f"COPY visits TO '{tmp_path / 'visits.parquet'}'")
    named = {"file": "visits.parquet", "table": "visits", "view": "seen"}[request.param]
    yield warnings_of(tmp_path, "duckdb:///visits.duckdb", named)


def test_a_table_that_suits_its_limits_is_not_warned_of(warnings: Warnings) -> None:
    assert warnings() == []
    assert warnings(rollups=f"rollup_rows = {ROWS}", timeout_ms=ROWS // 1000) == []


def test_what_does_not_suit_is_said_with_its_size(warnings: Warnings) -> None:
    (large,) = warnings(rollups=f"rollup_rows = {ROWS - 1}")
    assert "tables.visits has some 20,000 rows, and a rollup may have 19,999" in large
    for others in ({"rollups": "rollups = 0"}, {"refresh": "live"}, {"unit": '"row"', "bounds": ""}):
        rollups = f"{others.pop('rollups', '')}\nrollup_rows = {ROWS - 1}"
        assert warnings(rollups=rollups, **others) == []
    (slow,) = warnings(timeout_ms=ROWS // 1000 - 1)
    assert "after 0.019 s (limits.statement_timeout_ms)" in slow
    assert slow.endswith(" If tables.visits.size is declared, such a question is refused free of charge.")
    assert "refused" not in warnings(timeout_ms=ROWS // 1000 - 1, bounds=f"{BOUNDS}\nsize = {{ rows = {ROWS} }}")[0]
