"""How fast a Spark is, as keyhole check measures it."""

from pathlib import Path

import pytest

from planner.catalog.pace import EngineWork
from proxy.owner.pace import measure_pace
from proxy.sources.open import SparkLogin, open_source


@pytest.mark.parametrize("engine", ["sail", pytest.param("spark", marks=pytest.mark.installed)])
def test_the_pace_is_that_of_rows_a_spark_makes_up(request: pytest.FixtureRequest, engine: str, tmp_path: Path) -> None:
    url = request.getfixturevalue(engine).url
    source = open_source(url, directory=tmp_path, spark=SparkLogin(engine=engine))
    try:
        pace = measure_pace(source, engine="x", rows=20_000)
    finally:
        source.close()
    assert min(pace.seconds.amounts) >= 0.0
    parts = (EngineWork(statements=1, rows=rows, row_aggregates=rows, groups=rows) for rows in (1e6, 1e9))
    few, many = (pace.estimate_time(work, timeout_ms=1) for work in parts)
    assert 0.0 < few.seconds < many.seconds
