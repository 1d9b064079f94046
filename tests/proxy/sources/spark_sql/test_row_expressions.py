"""Random expressions of a row, over odd values: none fails, and Spark's truths are DuckDB's."""

from pathlib import Path
from random import Random
from typing import Any

import duckdb

from planner.lower.dialects.duckdb import DUCKDB
from tests.effort import rounds
from tests.proxy.sources.rows.row_expressions import conditions, lowered, rows, values_sql

_TOGETHER = 25  # conditions of one statement


def test_no_row_fails_and_truths_are_those_of_duckdb(connected: Any, tmp_path: Path) -> None:
    drawn = Random(23)
    path = tmp_path / "odd.parquet"
    asked = conditions(drawn, rounds(1_500, quick=100))
    with duckdb.connect() as duck:
        made = values_sql(rows(drawn, 60, far=False), "TRY_CAST", {"cost": "decimal(38,10)"})
        duck.execute(f"CREATE TABLE odd AS {made}")
        duck.execute(f"COPY odd TO '{path}' (FORMAT parquet)")
        for i in range(0, len(asked), _TOGETHER):
            some = asked[i : i + _TOGETHER]
            ours = [f"{lowered(truth, DUCKDB)} AS c{j}" for j, (_, truth) in enumerate(some)]
            theirs = [f"{lowered(truth, connected.dialect)} AS c{j}" for j, (_, truth) in enumerate(some)]
            expected = duck.execute(f"SELECT id, {', '.join(ours)} FROM odd ORDER BY id").fetchall()
            found = connected.rows(f"SELECT id, {', '.join(theirs)} FROM parquet.`{path}` ORDER BY id")
            for j, (text, _) in enumerate(some):
                assert [row[j + 1] for row in found] == [row[j + 1] for row in expected], text
