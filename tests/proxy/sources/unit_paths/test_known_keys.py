"""A statement over tables whose keys the source keeps unique makes no list of rows that repeat one, while it does."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from planner.catalog.catalog import Catalog, SqlType
from planner.catalog.known_keys import add_source_keys
from planner.catalog.relation_names import RelationIdentity
from planner.errors import KeyholeError
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import list_relations
from planner.plan.build import plan_question
from planner.question.plan import Plan
from proxy.sources.postgres_relations import check_keys_stay_unique
from proxy.sources.postgres_source import PostgresSource
from proxy.sources.read_types import MissingColumn, TypesChanged
from proxy.sources.source_refusals import SourceFailed
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import TYPES, compiled
from tests.proxy.sources.unit_paths.test_unit_paths import ALONG_KEYS, OF_ONE
from tests.worlds.house import new_database

ROWS = {
    "customers": "i, 'h' || i, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END FROM generate_series(1, 20) AS t(i)",
    "orders": "'s' || i % 3, i / 3, i % 25, 1 + i % 3, i % 8 FROM generate_series(1, 90) AS t(i)",
    "lines": "'s' || i % 4, i % 31, CASE WHEN i % 2 = 0 THEN 'air' ELSE 'ship' END, 1 + i % 3, i % 9"
    " FROM generate_series(1, 300) AS t(i)",
}
STATEMENTS = (OF_ONE[0], *OF_ONE[3:], *ALONG_KEYS[:4])
ORDERS = frozenset({"o_shop", "o_key"})


@pytest.fixture
def shop(postgres_url: str) -> Iterator[tuple[psycopg.Connection, PostgresSource]]:
    with new_database(postgres_url) as url, psycopg.connect(url, autocommit=True) as owner:
        for name, columns in TYPES.items():
            owner.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})".encode())
            owner.execute(f"INSERT INTO {name} SELECT {ROWS[name]}".encode())
        owner.execute("ALTER TABLE customers ADD PRIMARY KEY (c_key), ADD UNIQUE (household)")
        owner.execute("CREATE UNIQUE INDEX by_key ON orders (o_key, o_shop) INCLUDE (o_month)")
        source = PostgresSource(url, connections=1, settings={}, rollups=1)
        try:
            yield owner, source
        finally:
            source.close()


def _know(catalog: Catalog, source: PostgresSource) -> Catalog:
    return add_source_keys(catalog, {table.name: source.identify(table.relation) for table in catalog.tables})


def _read(source: PostgresSource, asks: Plan, *, version: str) -> list[list[int]]:
    functionals = len(asks.question.functionals)
    found = source.read_aggregates(
        asks.rewritten, asks.question.keys, functionals=functionals, timeout_ms=60_000, version=version
    )
    source.wait_for_rollups()
    return [list(map(int, values)) for values in found.values]


def test_answers_are_the_same_by_keys_and_by_lists_of_what_repeats(
    shop: tuple[psycopg.Connection, PostgresSource],
) -> None:
    _, source = shop
    catalog, known = compiled(), _know(compiled(), source)
    for sql in STATEMENTS:
        listed, keyed = (plan_question(asked(sql, catalog=one), dialect=POSTGRES) for one in (catalog, known))
        assert len(keyed.rewritten.steps) < len(listed.rewritten.steps)
        assert len(keyed.rewritten.sql) < len(listed.rewritten.sql)
        expected = _read(source, listed, version="1")
        assert any(map(any, expected)), "some group has rows"
        assert _read(source, keyed, version="1") == expected == _read(source, keyed, version="1")


@pytest.mark.parametrize(
    ("dropped", "back"),
    [
        ("ALTER TABLE customers DROP CONSTRAINT customers_pkey", "ALTER TABLE customers ADD UNIQUE (c_key)"),
        ("DROP INDEX by_key", "CREATE UNIQUE INDEX ON orders (o_shop, o_key)"),
        ("CREATE TABLE more () INHERITS (customers)", "DROP TABLE more"),
        (
            "ALTER TABLE customers DROP CONSTRAINT customers_pkey; CREATE UNIQUE INDEX part ON customers (c_key)"
            " WHERE c_key > 3",
            "ALTER TABLE customers ADD PRIMARY KEY (c_key)",
        ),
    ],
)
def test_a_statement_that_counts_on_a_key_is_not_answered_once_it_is_gone(
    shop: tuple[psycopg.Connection, PostgresSource], dropped: str, back: str
) -> None:
    """A key may go between the policy's opening and a question; whoever opens the policy then reads without it."""
    owner, source = shop
    known = _know(compiled(), source)
    keyed = plan_question(asked(ALONG_KEYS[1], catalog=known), dialect=POSTGRES)
    expected = _read(source, keyed, version="1")
    owner.execute(dropped.encode())
    with pytest.raises(SourceFailed) as refused:
        _read(source, keyed, version="2")
    assert refused.value.unread, "nothing was read"
    with pytest.raises(KeyholeError):
        source.read_counts("SELECT 0, ARRAY[1]", relations=keyed.rewritten.relations, timeout_ms=60_000)
    opened = plan_question(asked(ALONG_KEYS[1], catalog=_know(compiled(), source)), dialect=POSTGRES)
    assert opened.rewritten.sql != keyed.rewritten.sql
    assert _read(source, opened, version="3") == expected
    owner.execute(back.encode())
    assert _read(source, keyed, version="4") == expected


def test_a_key_stays_as_long_as_a_statement_reads(shop: tuple[psycopg.Connection, PostgresSource]) -> None:
    """Nobody drops it meanwhile. A child of the table may come, whose rows it says nothing of, and is noticed."""
    owner, source = shop
    counted_on = list_relations(asked(ALONG_KEYS[1], catalog=_know(compiled(), source)).table)
    owner.execute("SET lock_timeout = '10ms'")

    def read() -> None:
        with psycopg.connect(owner.info.dsn) as reader, check_keys_stay_unique(counted_on, reader):
            for dropped in ("ALTER TABLE customers DROP CONSTRAINT customers_pkey", "DROP INDEX by_key"):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    owner.execute(dropped.encode())
            owner.execute("CREATE TABLE more () INHERITS (customers)")

    with pytest.raises(TypesChanged) as noticed:
        read()
    assert not isinstance(noticed.value, MissingColumn), "rows were read"


def test_keys_are_known_of_single_tables_and_of_columns_that_are_read_as_they_are_stored() -> None:
    whole = RelationIdentity(
        ("orders",), frozenset({"oid 1"}), False, False, keys=frozenset({ORDERS}), can_check_keys=True
    )

    def keys_of(identity: RelationIdentity, catalog: Catalog) -> list[frozenset[frozenset[str]]]:
        found = add_source_keys(catalog, {"orders": identity}).tables
        return [one.keys for one in found] + [one.path.table.keys for one in found if one.path is not None]

    assert keys_of(whole, compiled()).count(frozenset({ORDERS})) == 2, "the table's own, and where a path leads"
    for other in (
        replace(whole, is_view=True),
        replace(whole, can_check_keys=False),
        replace(whole, bases=frozenset({"oid 1", "oid 2"})),
        replace(whole, keys=frozenset({ORDERS | {"o_clerk"}})),
    ):
        assert not any(keys_of(other, compiled()))
    brought = replace(whole, keys=frozenset(), unique=frozenset({"household"}))
    assert not any(keys_of(brought, compiled())), "a column that the policy does not show, called as the unit's is"
    rounded = tuple(
        replace(table, columns=tuple(replace(one, sql_type=SqlType.TIMESTAMP) for one in table.columns))
        for table in compiled().tables
    )
    assert not keys_of(whole, replace(compiled(), tables=rounded))[1]
