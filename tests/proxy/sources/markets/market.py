"""Customers, orders and lines, whose keys repeat and lead nowhere, beside public tables; and what SQL says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from hypothesis import strategies as st

from planner.catalog.catalog import Catalog, Column, PublicTable, SqlType
from tests.proxy.sources.unit_paths.shop import compiled
from tests.proxy.sources.worlds import spelled
from tests.worlds.policies import VERIFIER

Rows: TypeAlias = Mapping[str, Sequence[tuple[Any, ...]]]

TYPES: Mapping[str, Mapping[str, str]] = {
    "customers": {"c_key": "integer", "c_nation": "integer"},
    "orders": {"o_key": "bigint", "o_customer": "integer", "o_month": "integer", "o_price": "integer"},
    "lines": {
        "l_order": "bigint",
        "l_part": "integer",
        "l_supplier": "bigint",
        "l_late": "boolean",
        "l_amount": "integer",
    },
}
STOCK = ((1, 1, 5), (1, 2, 7), (2, 1, 0), (2**31 - 1, 3, 2))
SUPPLIERS = ((1, 0), (2, 1), (3, 1))
POLICY = f"""\
[source]
url = "duckdb:///market.duckdb"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 4

[tables.customers]
privacy_unit = "c_key"
refresh = "static"
max_groups_per_unit = 8
rows_per_unit = 20

[tables.customers.columns.c_nation]
key = {{ range = [0, 2] }}

[tables.orders]
privacy_unit = "o_customer"
same_unit_as = "customers"
refresh = "static"
unique = ["o_key"]
max_groups_per_unit = 8
rows_per_unit = 20

[tables.orders.columns]
o_key = {{}}
o_month = {{ key = {{ range = [1, 3] }} }}
o_price = {{ bounds = [0, 9], per_unit = [0, 200] }}

[tables.lines]
privacy_unit = {{ through = "orders.o_key", by = "l_order" }}
refresh = "static"
max_groups_per_unit = 8
rows_per_unit = 20

[tables.lines.columns]
l_order = {{}}
l_part = {{ key = {{ range = [1, 3] }} }}
l_supplier = {{}}
l_late = {{ key = {{ values = [false, true] }} }}
l_amount = {{ bounds = [-9, 9], per_unit = [-200, 200] }}

[analysts.ada]
password = "{VERIFIER}"
"""

PUBLIC = {"stock": (("k_part", "k_supplier", "k_cost"), STOCK), "suppliers": (("s_key", "s_nation"), SUPPLIERS)}


def market() -> Catalog:
    """The catalog of the market, its public tables pinned."""
    public = tuple(
        PublicTable(
            name=name,
            columns=tuple(Column(one, SqlType.INTEGER, "bigint" if one == "s_key" else "integer") for one in columns),
            rows=rows,
            digest=name,
        )
        for name, (columns, rows) in PUBLIC.items()
    )
    return replace(compiled(POLICY, TYPES), public_tables=public)


_FOUND: Mapping[str, tuple[Any, ...]] = {
    "c_key": (1, 1, 2, 3, None),
    "c_nation": (0, 1, 1, 2, None),
    "o_key": (1, 1, 2, 3, 2**62, None),
    "o_customer": (1, 1, 2, 3, None),
    "o_month": (1, 1, 2, 3, None),
    "o_price": (0, 2, 7, None),
    "l_order": (1, 1, 2, 3, 2**62, None),
    "l_part": (1, 1, 2, 3, 2**31 - 1, -(2**31), None),
    "l_supplier": (1, 1, 2, 3, 2**63 - 1, -(2**63), None),
    "l_late": (True, True, False, None),
    "l_amount": (-9, -1, 2, 5, 9, None),
}


def markets() -> st.SearchStrategy[dict[str, list[tuple[Any, ...]]]]:
    """Rows of few keys, so that most of them repeat where they should not, and some lead nowhere."""
    rows = {name: st.tuples(*(st.sampled_from(_FOUND[one]) for one in types)) for name, types in TYPES.items()}
    sizes = {"customers": (2, 5), "orders": (4, 8), "lines": (6, 14)}
    return st.fixed_dictionaries(
        {name: st.lists(row, min_size=sizes[name][0], max_size=sizes[name][1]) for name, row in rows.items()}
    )


def find_unit_of_lines(rows: Rows) -> list[int | None]:
    """The customer of each line: the least of those whose order it may be."""
    least: dict[Any, int] = {}
    for key, customer, *_ in rows["orders"]:
        if key is not None and customer is not None:
            least[key] = min(customer, least.get(key, customer))
    return [least.get(row[0]) for row in rows["lines"]]


def take_away(rows: Rows, customer: int) -> dict[str, list[tuple[Any, ...]]]:
    """The rows without those of one customer, in all tables."""
    units = find_unit_of_lines(rows)
    return {
        "customers": [row for row in rows["customers"] if row[0] != customer],
        "orders": [row for row in rows["orders"] if row[1] != customer],
        "lines": [row for row, unit in zip(rows["lines"], units, strict=True) if unit != customer],
    }


def load_sql(rows: Rows) -> list[str]:
    """The statements that make the private tables."""
    made = []
    for name, types in TYPES.items():
        columns = ", ".join(f"{column} {kind}" for column, kind in types.items())
        made += [f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})"]
        values = ", ".join(f"({', '.join(map(spelled, row, types.values()))})" for row in rows[name])
        made += [f"INSERT INTO {name} VALUES {values}"] if values else []
    return made


def truth_sql() -> list[str]:
    """The statements that make what PostgreSQL counts: rows with a unit, lines with their order's columns beside them.

    Of several orders with a key it is the least customer's, and of these the first by its values.
    """
    made = []
    for name, (columns, rows) in PUBLIC.items():
        values = ", ".join(map(str, rows))
        made += [
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} AS SELECT * FROM (VALUES {values}) AS v({', '.join(columns)})",
        ]
    lines = (
        "SELECT * FROM lines, LATERAL (SELECT * FROM orders WHERE o_key = l_order AND o_customer IS NOT NULL"
        " ORDER BY o_customer, o_key, o_month NULLS FIRST, o_price NULLS FIRST LIMIT 1) o"
    )
    counted = {
        "true_customers": "SELECT * FROM customers WHERE c_key IS NOT NULL",
        "true_orders": "SELECT * FROM orders WHERE o_customer IS NOT NULL",
        "true_lines": lines,
    }
    for name, sql in counted.items():
        made += [f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} AS {sql}"]
    return made
