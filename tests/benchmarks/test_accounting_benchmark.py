"""The ledger's benchmark runs, on both stores, and measures what it says."""

import pytest

from benchmarks.accounting import measure


@pytest.mark.parametrize("only", ["SQLite", "PostgreSQL"])
def test_the_benchmark_measures_both_stores(only: str) -> None:
    rows = list(measure(keys=50, questions=40, repeats=2, only=only))
    assert {row.store for row in rows} == {only}
    assert len(rows) == len({(row.what, number) for number, row in enumerate(rows)})
    assert all(0 < row.median_ms <= row.worst_ms for row in rows)
