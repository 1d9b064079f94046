"""Public tables of thousands of rows, joined in both engines: pinned rows are read, and nothing else."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from hashlib import md5

import duckdb
import pytest

from planner.catalog.catalog import Catalog, Column, PublicTable, SqlType, Table
from planner.lower.scan import rewrite
from planner.question.question import Question
from proxy.sources import pinned_relations
from proxy.sources.open import open_source
from tests.proxy.sources.test_joins import asked
from tests.proxy.sources.worlds import Engines, relations_of
from tests.worlds.retail import retail

ROWS = 3_000
SALES = Table(
    name="bought",
    relation="public.bought",
    columns=(
        Column("product", SqlType.INTEGER, "integer"),
        Column("code", SqlType.TEXT, "text"),
        Column("person", SqlType.INTEGER, "integer"),
        Column("store", SqlType.INTEGER, "integer", domain=(0, 1, 2)),
    ),
    unit=("person",),
    groups_per_unit=20,
    rows_per_unit=10_000,
    row_cap=None,
    refresh="static",
    seed="pinned",
)
PRODUCTS = PublicTable(
    name="products",
    columns=(
        Column("id", SqlType.INTEGER, "bigint"),
        Column("code", SqlType.TEXT, "text"),
        Column("department", SqlType.TEXT, "text"),
        Column("price", SqlType.NUMERIC, "numeric(6,2)"),
    ),
    rows=tuple(
        (i, f"c'{i} é", None if i % 11 == 0 else f"department {i % 7}", Decimal(i % 500) / 4) for i in range(ROWS)
    ),
    digest=md5(b"products", usedforsecurity=False).hexdigest(),
)
CATALOG: Catalog = replace(retail(), tables=(SALES,), stored_questions=(), public_tables=(PRODUCTS,))
FROM = "FROM bought b JOIN products p ON {} WHERE b.person IS NOT NULL"
QUESTIONS = (
    ("p.department", "p.id = b.product", "", "count(*)"),
    ("p.department", "p.code = b.code", "", "sum(p.price)"),
    ("b.store", "p.id = b.product", "AND p.department LIKE '%t 3'", "count(*) FILTER (WHERE p.price > 60.25)"),
    ("b.store", "p.code = b.code", "", "count(*)"),
)
_TABLES = (
    "CREATE TABLE bought AS SELECT i % 4000 AS product, 'c''' || i % 4000 || ' é' AS code, "
    "CASE WHEN i % 13 > 0 THEN i % 50 END AS person, i % 3 AS store FROM {} AS t(i)"
)


@pytest.fixture(scope="module")
def bought(engines: Engines) -> Iterator[duckdb.DuckDBPyConnection]:
    """What was bought, in both engines; and the truth, which has the products as well."""
    engines.writer.execute(_TABLES.format("generate_series(0, 5999)"))
    with duckdb.connect() as truth:
        truth.execute(_TABLES.format("range(6000)"))
        truth.execute("CREATE TABLE products (id bigint, code text, department text, price numeric(6,2))")
        rows = [list(column) for column in zip(*PRODUCTS.rows, strict=True)]
        unnested = "unnest(?::bigint[]), unnest(?::text[]), unnest(?::text[]), unnest(?::numeric(6,2)[])"
        truth.execute(f"INSERT INTO products SELECT {unnested}", rows)
        truth.execute(f"COPY bought TO '{engines.folder / 'bought.parquet'}'")
        yield truth
    engines.writer.execute("DROP TABLE bought")


def _question(key: str, joined: str, also: str, aggregate: str) -> Question:
    where = f"{FROM.format(joined)} {also}"
    return asked(f"SELECT {key} {where} GROUP BY {key} HAVING {aggregate} > 1000003", CATALOG)


def _relations(engines: Engines) -> dict[str, str]:
    return relations_of(engines.folder / "bought.parquet", postgres="public.bought")


@pytest.mark.parametrize(("key", "joined", "also", "aggregate"), QUESTIONS)
def test_the_integers_of_a_large_join_are_those_of_the_real_one(
    engines: Engines, bought: duckdb.DuckDBPyConnection, key: str, joined: str, also: str, aggregate: str
) -> None:
    question = _question(key, joined, also, aggregate)
    sql = f"SELECT {key}, {aggregate} {FROM.format(joined)} {also} GROUP BY {key}"
    found = dict(bought.execute(sql).fetchall())
    (functional,) = question.functionals
    keys = [question.keys.get_key(number)[0] for number in range(question.keys.size)]
    expected = [[int((found[one] or 0) / functional.unit_size) for one in keys]]
    assert any(expected[0])
    for answer in engines.answers(question, _relations(engines)):
        assert answer.tolist() == expected


def test_a_relation_of_the_same_name_in_the_source_is_not_read(
    engines: Engines, bought: duckdb.DuckDBPyConnection
) -> None:
    del bought
    question = _question(*QUESTIONS[0])
    before = [answer.tolist() for answer in engines.answers(question, _relations(engines))]
    (pinned,) = rewrite(question, dialect=engines.postgres.dialect).pinned_relations
    engines.writer.execute(f"CREATE TABLE {pinned.name} AS SELECT i AS k, 'department 1' AS v0 FROM bought b(i)")
    try:
        assert [answer.tolist() for answer in engines.answers(question, _relations(engines))] == before
    finally:
        engines.writer.execute(f"DROP TABLE {pinned.name}")


def test_relations_that_no_statement_reads_are_dropped_for_later_ones(
    engines: Engines, bought: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_relations, "_KEPT", 1)
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH ':memory:' AS {pinned_relations.DATABASE}")
        pins = pinned_relations.DuckDBPins(connection)
        relations = [rewrite(_question(*one), dialect=engines.duck.dialect).pinned_relations for one in QUESTIONS[:2]]
        held = "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'keyhole_pinned'"
        first, second = (f"TABLE {read[0].name}" for read in relations)
        with pins.provide_tables(first, relations[0]), pins.provide_tables(second, relations[1]):
            assert connection.execute(held).fetchone() == (2,)
        assert connection.execute(held).fetchone() == (1,)
        with pins.provide_tables("SELECT 1", relations[0]):  # it names none of them
            assert connection.execute(held).fetchone() == (1,)
        for (relation,) in relations:
            with pins.provide_tables(f"SELECT count(*), count(v0) FROM {relation.name}", (relation,)) as sql:
                values = relation.columns[1].values
                assert connection.execute(sql).fetchone() == (ROWS, len(values) - values.count(None))


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_rows_that_count_are_kept_with_what_was_looked_up(
    engines: Engines, bought: duckdb.DuckDBPyConnection, postgres_url: str, engine: str
) -> None:
    """A rollup of a join with a large public table gives what the scan gives."""
    del bought
    question = _question(*QUESTIONS[0])
    url = "duckdb://" if engine == "duckdb" else postgres_url
    with closing(open_source(url, directory=engines.folder, rollups=1)) as source:
        table = replace(question.table, relation=_relations(engines)[engine])
        rewritten = rewrite(replace(question, table=table), dialect=source.dialect)
        answers = []
        for _ in range(2):
            found = source.read_aggregates(rewritten, question.keys, functionals=1, timeout_ms=60_000, version="1")
            answers.append(found.values.tolist())
            source.wait_for_rollups()
        assert source.count_rollups() == {"ready": 1, "building": 0, "useless": 0}
    assert answers[0] == answers[1]
