"""Conditions on public tables: they are computed on public rows, and hold for a private row where they did."""

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.catalog.catalog import Catalog, Column, PublicTable, RowCap, SqlType, Table
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.policy.sections import SourceSection
from proxy.sources.engine_settings import make_engine_settings
from tests.effort import examples
from tests.planner.asked import asked
from tests.proxy.sources.test_work_of_a_row import lowest, walk
from tests.proxy.sources.worlds import Engines, relations_of
from tests.worlds.retail import retail

PRODUCTS = PublicTable(
    name="products",
    columns=(
        Column("id", SqlType.INTEGER, "bigint"),
        Column("name", SqlType.TEXT, "text"),
        Column("price", SqlType.NUMERIC, "numeric(6,2)"),
        Column("since", SqlType.DATE, "date"),
    ),
    rows=tuple(
        (
            i,
            None if i % 11 == 0 else f"{'zebra' if i % 2 else 'horse'} {i % 7}",
            None if i % 5 == 0 else Decimal(i) / 4,
            f"20{i % 30 + 10}-01-01",
        )
        for i in range(1_500)
    ),
    digest="products",
)
BOUGHT = Table(
    name="bought",
    relation="bought",
    columns=(
        Column("id", SqlType.INTEGER, "integer"),
        Column("product", SqlType.INTEGER, "integer"),
        Column("person", SqlType.INTEGER, "integer"),
        Column("store", SqlType.INTEGER, "integer", domain=(0, 1, 2)),
        Column("note", SqlType.TEXT, "text"),
    ),
    unit=("person",),
    groups_per_unit=3,
    rows_per_unit=10_000,
    row_cap=None,
    refresh="static",
    seed="bought",
)
CAPPED = replace(BOUGHT, rows_per_unit=None, row_cap=RowCap(rows=10_000, unique="id"))
ROWS = 600
_ROWS = (
    "SELECT i AS id, CASE WHEN i % 17 > 0 THEN i * 5 % 2000 END AS product, CASE WHEN i % 13 > 0 THEN i % 50 END"
    " AS person, i % 3 AS store, 'note ' || i AS note FROM {} AS t(i)"
)
MARK = "zebra"


@pytest.fixture(scope="module")
def bought(engines: Engines) -> Iterator[duckdb.DuckDBPyConnection]:
    """What was bought, in both engines; and the truth, which has the products as well."""
    engines.writer.execute(f"CREATE TABLE bought AS {_ROWS.format(f'generate_series(1, {ROWS})')}".encode())
    with duckdb.connect() as truth:
        truth.execute(f"CREATE TABLE bought AS {_ROWS.format(f'range(1, {ROWS + 1})')}")
        truth.execute("CREATE TABLE products (id bigint, name text, price numeric(6,2), since date)")
        rows = [list(column) for column in zip(*PRODUCTS.rows, strict=True)]
        unnested = "unnest(?::bigint[]), unnest(?::text[]), unnest(?::numeric(6,2)[]), unnest(?::date[])"
        truth.execute(f"INSERT INTO products SELECT {unnested}", rows)
        truth.execute(f"COPY bought TO '{engines.folder / 'bought.parquet'}'")
        yield truth
    engines.writer.execute("DROP TABLE bought")


def known(table: Table) -> Catalog:
    return replace(retail(), tables=(table,), stored_questions=(), public_tables=(PRODUCTS,))


TESTS = (
    f"p.name LIKE '%{MARK}%'",
    f"p.name NOT LIKE '%{MARK} 3'",
    "p.name = 'horse 2'",
    "p.price > 60.25",
    "extract(year FROM p.since) = 2020",
    "p.name IS NULL",
    "p.id IS NULL",
    "p.id IS NOT NULL",
    "b.store = 1",
    "b.product < 900",
    "b.note LIKE '%7%'",
)
CONDITIONS = st.recursive(
    st.sampled_from(TESTS),
    lambda parts: st.one_of(
        st.lists(parts, min_size=2, max_size=3).map(lambda found: f"({' AND '.join(found)})"),
        st.lists(parts, min_size=2, max_size=3).map(lambda found: f"({' OR '.join(found)})"),
        parts.map(lambda found: f"NOT ({found})"),
    ),
    max_leaves=6,
)


@example("(p.name IS NULL OR p.price > 60.25)", "(b.store = 1 OR p.id IS NOT NULL)", "LEFT ", BOUGHT)
@example("b.product < 1900", "NOT (p.name IS NOT NULL AND p.price > 60.25)", "LEFT ", BOUGHT)
@given(CONDITIONS, CONDITIONS, st.sampled_from(["", "LEFT "]), st.sampled_from([BOUGHT, CAPPED]))
@examples(200)
def test_conditions_on_public_rows_hold_where_they_do(
    engines: Engines, bought: duckdb.DuckDBPyConnection, where: str, condition: str, kind: str, table: Table
) -> None:
    source = f"FROM bought b {kind}JOIN products p ON p.id = b.product WHERE b.person IS NOT NULL AND {where}"
    try:
        question = asked(
            f"SELECT b.store {source} GROUP BY b.store HAVING count(*) FILTER (WHERE {condition}) > 1000003",
            catalog=known(table),
        )
    except KeyholeError:
        return  # nothing is answered that could be wrong
    sql = f"SELECT b.store, count(*) FILTER (WHERE {condition}) {source} GROUP BY b.store"
    found = dict(bought.execute(sql).fetchall())
    expected = [found.get(question.keys.get_key(number)[0], 0) for number in range(question.keys.size)]
    relations = relations_of(engines.folder / "bought.parquet", postgres="public.bought")
    answers = engines.answers(question, relations)
    assert len(answers) >= 2
    for answer in answers:
        assert answer.tolist() == [expected], (where, condition)


SEARCHED = {
    "WHERE": f"WHERE p.name LIKE '%{MARK}%' GROUP BY b.store HAVING count(*) > 5",
    "WHERE behind one person": f"WHERE b.id = 7 AND p.name LIKE '%{MARK}%' GROUP BY b.store HAVING count(*) > 5",
    "OR": f"WHERE b.id = 7 OR p.name LIKE '%{MARK}%' GROUP BY b.store HAVING count(*) > 5",
    "FILTER": f"GROUP BY b.store HAVING count(*) FILTER (WHERE b.id = 7 AND p.name LIKE '%{MARK}%') > 5",
    "CASE": "GROUP BY b.store HAVING count(CASE WHEN b.store = 1 THEN"
    f" CASE WHEN p.name NOT LIKE '%{MARK}%' THEN 1 END END) > 5",
    "beside a pattern of a row": f"WHERE b.note LIKE '%7%' AND p.name LIKE '%{MARK}%' GROUP BY b.store"
    " HAVING count(*) > 5",
}
BUYERS = ("FALSE", "TRUE", "product = 1", "product > 1600", "product IS NULL")


@pytest.mark.parametrize("asking", SEARCHED.values(), ids=SEARCHED)
def test_public_rows_are_searched_whoever_there_is(engines: Engines, asking: str) -> None:
    """Each public row once, where the public table is read and nowhere else, whichever private rows there are."""
    question = asked(
        f"SELECT b.store FROM bought b JOIN products p ON p.id = b.product {asking}", catalog=known(BOUGHT)
    )
    made = {dialect: plan_question(question, dialect=dialect).rewritten for dialect in (DUCKDB, POSTGRES)}
    (pinned,) = made[DUCKDB].pinned_relations
    columns = [f"unnest(?::{one.type_name}[]) AS {one.name}" for one in pinned.columns]
    loads = f"CREATE TEMP TABLE {pinned.name} AS SELECT {', '.join(columns)}"
    values = [list(one.values) for one in pinned.columns]
    writer = engines.writer
    writer.execute(loads.replace("?", "%s").encode(), values)
    settings = make_engine_settings(SourceSection(url="duckdb://"), directory=engines.folder, workers=1)
    with duckdb.connect(config={"disabled_optimizers": settings["disabled_optimizers"]}) as duck:
        duck.execute(loads, values)
        for buyers in BUYERS:
            source = f"SELECT * FROM ({_ROWS}) AS bought WHERE {buyers}"
            duck.execute(f"CREATE OR REPLACE TEMP TABLE bought AS {source.format(f'range(1, {ROWS + 1})')}")
            told = duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {made[DUCKDB].sql}").fetchone()
            assert told is not None
            check_searches(json.loads(told[1])["operator"][0], "children")
            loaded = (
                f"DROP TABLE IF EXISTS pg_temp.bought; CREATE TEMP TABLE bought AS {source}; ANALYZE pg_temp.bought"
            )
            writer.execute(loaded.format(f"generate_series(1, {ROWS})").encode())
            told = writer.execute(f"EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) {made[POSTGRES].sql}".encode()).fetchone()
            assert told is not None
            check_searches(told[0][0]["Plan"], "Plans")
    writer.execute(f"DROP TABLE pg_temp.bought, {pinned.name}")


def _reads(node: dict[str, Any]) -> bool:
    return any(one["type"] == "CTE_SCAN" for one in walk(node, "children"))


def check_searches(root: dict[str, Any], children: str) -> None:
    """What looks for the word reads the public table alone, all of it, once."""
    nodes = list(walk(root, children))
    own = [json.dumps({key: value for key, value in one.items() if key != children}).lower() for one in nodes]
    searching = [node for node, told in zip(nodes, own, strict=True) if MARK in told]
    # DuckDB calls a computed column by its name; what stands above has it from the step
    searching += [one for one in lowest(root, children, "keyhole_found") if children != "Plans" and not _reads(one)]
    assert searching
    for node in searching:
        assert not any("bought" in json.dumps(one) for one in walk(node, children)), node
        below = node.get(children)
        read = below[0] if below else node
        if children == "Plans":
            assert read["Actual Loops"] * (read["Actual Rows"] + read.get("Rows Removed by Filter", 0)) == 1_500
        else:
            assert read["intermediate_rows" if below else "operator_rows_scanned"] == 1_500
