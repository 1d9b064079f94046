"""TPC-H's queries as questions: which of them plan, over tables that have the schema and hardly a row."""

from dataclasses import replace
from pathlib import Path

import duckdb

from benchmarks.tpch.asking import Asked, ask_all
from benchmarks.tpch.data import PlainDuckDB, load_duckdb
from benchmarks.tpch.page import RESULTS, count_planned, draw, read_csv, summarise, write_csv
from benchmarks.tpch.statements import read_statements
from proxy.open_policy.service import Service

_MONEY = "decimal(15, 2)"
_SCHEMA = {
    "customer": "c_custkey bigint, c_name text, c_address text, c_nationkey integer, c_phone text, c_acctbal {m},"
    " c_mktsegment text, c_comment text",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus text, o_totalprice {m}, o_orderdate date,"
    " o_orderpriority text, o_clerk text, o_shippriority integer, o_comment text",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber bigint, l_quantity {m},"
    " l_extendedprice {m}, l_discount {m}, l_tax {m}, l_returnflag text, l_linestatus text, l_shipdate date,"
    " l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text, l_comment text",
    "nation": "n_nationkey integer, n_name text, n_regionkey integer, n_comment text",
    "region": "r_regionkey integer, r_name text, r_comment text",
    "supplier": "s_suppkey bigint, s_name text, s_address text, s_nationkey integer, s_phone text, s_acctbal {m},"
    " s_comment text",
    "part": "p_partkey bigint, p_name text, p_mfgr text, p_brand text, p_type text, p_size integer, p_container text,"
    " p_retailprice {m}, p_comment text",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty bigint, ps_supplycost {m}, ps_comment text",
}
_NATIONS = ["FRANCE", "GERMANY", "BRAZIL", "CHINA", "CANADA"]
_ROWS = {
    "region": "(0, 'EUROPE', ''), (1, 'AMERICA', ''), (2, 'ASIA', '')",
    "nation": ", ".join(f"({i}, '{name}', {i % 3}, '')" for i, name in enumerate([*_NATIONS, "SAUDI ARABIA"])),
    "supplier": "(1, 'S1', '', 5, '', 1.5, ''), (2, 'S2', '', 1, '', 2.5, '')",
    "part": "(1, 'green', '', 'Brand#12', 'PROMO BRASS', 5, 'SM CASE', 900, ''),"
    " (2, 'red', '', 'Brand#23', 'ECONOMY ANODIZED STEEL', 7, 'MED BOX', 1000, '')",
    "partsupp": "(1, 1, 10, 1.5, ''), (1, 2, 10, 2.5, ''), (2, 1, 5, 100, '')",
}
REFUSED = frozenset({"13", "17", "20", "22"})


def load(folder: Path) -> Path:
    """Load the tables into a DuckDB file in a folder, and return the policy over it."""
    files = folder / "files"
    files.mkdir()
    with duckdb.connect() as connection:
        for table, columns in _SCHEMA.items():
            rows = _ROWS.get(table)
            connection.execute(f"CREATE TABLE {table} ({columns.format(m=_MONEY)})")
            if rows is not None:
                connection.execute(f"INSERT INTO {table} VALUES {rows}")
            connection.execute(f"COPY {table} TO '{files / table}.parquet'")
    return load_duckdb(files, folder, limit_s=60)


def test_queries_plan_as_the_page_says(tmp_path: Path) -> None:
    """Plan or refuse each query, through the endpoint. What plans is not refused for its price either: it may be."""
    policy = load(tmp_path)
    plain = PlainDuckDB(tmp_path / "tpch.duckdb", limit_s=60)
    told: list[str] = []
    asked = list(ask_all("DuckDB", policy, plain, scale=1.0, tell=told.append, rounds=1))
    outcomes = {one.query: one.outcome for one in asked}
    assert {query for query, outcome in outcomes.items() if outcome == "public"} == {"2", "11", "16"}
    assert {query for query, outcome in outcomes.items() if outcome.startswith("KH")} == REFUSED, outcomes
    assert len({query.split()[0] for query in outcomes}) == 22
    assert [line for line in told if line.startswith("DuckDB Q21: planned, ")]
    hints = {one.query: one.hint for one in asked if one.hint is not None}
    for statement in read_statements():
        if statement.instead:
            assert hints[str(statement.number)] == f"Instead you can ask: {' '.join(statement.write_sql(1.0).split())};"
            assert outcomes[f"{statement.number} instead"] == "planned"


def test_a_question_is_timed_again_with_what_is_kept(tmp_path: Path) -> None:
    """A price and an answer of all three rounds: a stored answer would cost nothing, and take no time of the source."""
    policy = load(tmp_path)
    plain = PlainDuckDB(tmp_path / "tpch.duckdb", limit_s=60)
    (five,) = ask_all("DuckDB", policy, plain, scale=1.0, tell=lambda line: None, queries=[5])
    assert all(ratio is not None and ratio > 0 for ratio in five.ratios)
    with Service.open(policy) as service:
        assert [one.status for one in service.read_questions("demo")] == ["committed"] * 3


def test_the_page_has_what_was_measured(tmp_path: Path) -> None:
    asked = read_csv(RESULTS / "tpch.csv")
    assert count_planned(asked) == "18 of 18 queries that read private tables plan."
    page = RESULTS.with_name("benchmarks.md").read_text(encoding="utf-8")
    assert summarise(asked) in " ".join(page.split())
    assert "(results/tpch.png)" in page
    draw(asked, tmp_path / "tpch.png")
    assert (tmp_path / "tpch.png").read_bytes().startswith(b"\x89PNG")
    slow = replace(asked[0], outcome="planned; KH501: it took too long", hint="with, a comma", true=None, plain_s=None)
    write_csv([slow, Asked("DuckDB", "2", "public")], tmp_path / "tpch.csv")
    assert read_csv(tmp_path / "tpch.csv") == [slow, Asked("DuckDB", "2", "public")]
