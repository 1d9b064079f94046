"""Groups that PostgreSQL sends piece by piece are those that it sends at once."""

from collections.abc import Iterator

import numpy as np
import psycopg
import pytest

from planner.catalog.catalog import Column, SqlType
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.question.plan import PinnedColumn, PinnedRelation, Rewritten
from proxy.sources.postgres_source import PostgresSource

KEYS = KeySpace(
    (Column("place", SqlType.INTEGER, "integer"), Column("name", SqlType.TEXT, "text")),
    (tuple(range(20)), ("a", "b", "c")),
)
SQL = """
SELECT i % 25 AS k0, CASE WHEN i % 4 = 3 THEN 'beyond' ELSE chr(97 + (i % 4)::integer) END AS k1,
  count(*) AS f0, sum(i) AS f1
FROM generate_series(1, 700) AS t(i) GROUP BY 1, 2"""
GIVEN = PinnedRelation("given", (PinnedColumn("number", "bigint", is_whole=True, values=tuple(range(1, 701))),))
ON_PINNED = SQL.replace("generate_series(1, 700) AS t(i)", "(SELECT number AS i FROM given) AS t")


@pytest.fixture
def sources(postgres_url: str) -> Iterator[dict[int, PostgresSource]]:
    with psycopg.connect(postgres_url) as alive:
        alive.execute("SELECT 1")
    made = {size: PostgresSource(postgres_url, connections=1, settings={}, rows_at_once=size) for size in (3, 60)}
    yield made
    for source in made.values():
        source.close()


def test_pieces_are_the_whole(sources: dict[int, PostgresSource]) -> None:
    expected = np.zeros((2, KEYS.size), dtype=np.int64)
    for i in range(1, 701):
        if i % 25 < 20 and i % 4 < 3:
            expected[:, i % 25 * 3 + i % 4] += (1, i)
    for source in sources.values():
        for sql, pinned in ((SQL, ()), (ON_PINNED, (GIVEN,))):
            rewritten = Rewritten("postgres", sql.replace("sum(i)", "sum(i)::bigint"), pinned_relations=pinned)
            found = source.read_aggregates(rewritten, KEYS, functionals=2, timeout_ms=60_000)
            np.testing.assert_array_equal(found.values, expected)


def test_a_failure_after_some_pieces_tells_nothing_and_leaves_the_source_at_work(
    sources: dict[int, PostgresSource],
) -> None:
    failing = SQL.replace("count(*)", "1 / (1000 - max(i) * sign(max(i) - 690)::integer * 1000 / max(i))")
    for source in sources.values():
        with pytest.raises(KeyholeError, match="KH501") as refused:
            source.read_aggregates(Rewritten("postgres", failing), KEYS, functionals=2, timeout_ms=60_000)
        assert refused.value.__cause__ is refused.value.__context__ is None
        found = source.read_aggregates(
            Rewritten("postgres", SQL.replace("sum(i)", "sum(i)::bigint")), KEYS, functionals=2, timeout_ms=60_000
        )
        assert int(found.values[0].sum()) == sum(i % 25 < 20 and i % 4 < 3 for i in range(1, 701))
