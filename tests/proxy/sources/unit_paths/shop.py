"""A small shop in three tables, as databases have people: households of customers, their orders, the orders' lines."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import strategies as st

from planner.catalog.catalog import Catalog, Table
from planner.catalog.pins import Pins
from planner.policy.compile import SourceColumn, compile_catalog, list_key_domains
from planner.policy.file import Policy
from planner.question.question import Question
from tests.proxy.sources.worlds import spelled
from tests.worlds.policies import VERIFIER

Rows: TypeAlias = Mapping[str, Sequence[tuple[Any, ...]]]

TYPES = {
    "customers": {"c_key": "integer", "household": "text", "region": "text"},
    "orders": {
        "o_shop": "text",
        "o_key": "bigint",
        "o_customer": "integer",
        "o_month": "integer",
        "o_price": "integer",
    },
    "lines": {"l_shop": "text", "l_order": "bigint", "l_mode": "text", "l_month": "integer", "amount": "integer"},
}
_HEAD = """\
[source]
url = "postgresql://reader@db/shop"

[budget]
epsilon_per_predicate = 400
epsilon_per_unit = 900
epsilon_per_query = 400
"""
POLICY = f"""{_HEAD}
[tables.customers]
privacy_unit = "household"
refresh = "static"
max_groups_per_unit = 2
rows_per_unit = 3
unique = ["c_key"]

[tables.customers.columns.region]
key = {{ values = ["north", "south"] }}

[tables.orders]
privacy_unit = {{ through = "customers.c_key", by = "o_customer" }}
refresh = "static"
max_groups_per_unit = 2
rows_per_unit = 2
unique = ["o_shop", "o_key"]

[tables.orders.columns.o_month]
key = {{ range = [1, 3] }}

[tables.orders.columns.o_price]
bounds = [0, 6]
per_unit = [0, 9]

[tables.lines]
privacy_unit = {{ through = ["orders.o_shop", "orders.o_key"], by = ["l_shop", "l_order"] }}
refresh = "static"
max_groups_per_unit = 2
rows_per_unit = 3

[tables.lines.columns.l_mode]
key = {{ values = ["air", "ship"] }}

[tables.lines.columns.l_month]
key = {{ range = [1, 3] }}

[tables.lines.columns.amount]
bounds = [-5, 10]
per_unit = [-10, 20]

[analysts.ada]
password = "{VERIFIER}"
"""


def compiled(text: str = POLICY, types: Mapping[str, Mapping[str, str]] = TYPES) -> Catalog:
    """The catalog of a policy over the shop's tables."""
    policy = Policy.parse(text, path=Path("keyhole.toml"))
    schema = {
        name: tuple(SourceColumn(column, kind, True) for column, kind in columns.items())
        for name, columns in types.items()
    }
    domains = tuple(pinned for pinned, _ in list_key_domains(policy, schema=schema, pins=Pins()))
    return compile_catalog(policy, schema=schema, pins=Pins(domains=domains), directory=Path())


def name_plainly(catalog: Catalog) -> Catalog:
    """The same tables without quotes around their relations' names, which engines write in several ways."""

    def unquote(table: Table) -> Table:
        path = None if table.path is None else replace(table.path, table=unquote(table.path.table))
        return replace(table, relation=table.name, path=path)

    return replace(catalog, tables=tuple(map(unquote, catalog.tables)))


def store_units(question: Question) -> Question:
    """The same question of tables that store their units, and the columns of tables that they are joined with along
    keys, in relations that are called `stored_`."""

    def store(table: Table) -> Table:
        if table.members:
            return replace(table, members=tuple(replace(one, table=store(one.table)) for one in table.members))
        return replace(table, path=None, relation=f"stored_{table.name}")

    rows = question.per_unit
    per_unit = None if rows is None else replace(rows, table=store(rows.table))
    return replace(question, table=store(question.table), per_unit=per_unit)


Home: TypeAlias = tuple[str, ...]


def find_units(rows: Rows, unit: Sequence[str]) -> dict[str, list[Home | None]]:
    """The unit of each row, None where there is none, as the promise has it: the least of those it leads to."""
    places = [list(TYPES["customers"]).index(name) for name in unit]
    homes = [_home([row[place] for place in places]) for row in rows["customers"]]
    by_customer = _least([((row[0],), home) for row, home in zip(rows["customers"], homes, strict=True)])
    of_orders = [by_customer.get((row[2],)) for row in rows["orders"]]
    by_order = _least([((row[0], row[1]), home) for row, home in zip(rows["orders"], of_orders, strict=True)])
    return {"customers": homes, "orders": of_orders, "lines": [by_order.get((row[0], row[1])) for row in rows["lines"]]}


def _home(values: Sequence[Any]) -> Home | None:
    return None if None in values else tuple(values)


def _least(found: Sequence[tuple[tuple[Any, ...], Home | None]]) -> dict[tuple[Any, ...], Home]:
    least: dict[tuple[Any, ...], Home] = {}
    for key, home in found:
        if home is not None and None not in key:
            least[key] = min(home, least.get(key, home), key=lambda one: [text.encode() for text in one])
    return least


def take_away(rows: Rows, home: Home, unit: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows without those of one unit, in all tables."""
    units = find_units(rows, unit)
    return {
        name: [row for row, own in zip(found, units[name], strict=True) if own != home] for name, found in rows.items()
    }


def take_one_away(rows: Rows, unit: Sequence[str], data: st.DataObject) -> dict[str, list[tuple[Any, ...]]]:
    """The rows without those of a unit that is drawn, in all tables."""
    homes = sorted({home for found in find_units(rows, unit).values() for home in found if home is not None})
    return take_away(rows, data.draw(st.sampled_from(homes or [("",)])), unit)


def join_rows(rows: Rows, unit: Sequence[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows with those that they lead to beside them, as the promise has it: of the least unit's rows with the key
    the first in the order of their values, by the columns' names; nothing where no row with a unit has the key."""
    units = find_units(rows, unit)
    customers = [tuple(row) for row in rows["customers"]]
    led = _first_rows("customers", [(row[0],) for row in customers], customers, units)
    orders = [(*row, *led.get((row[2],), (None,) * len(TYPES["customers"]))) for row in rows["orders"]]
    led = _first_rows("orders", [(row[0], row[1]) for row in orders], orders, units)
    nothing = (None,) * (len(TYPES["orders"]) + len(TYPES["customers"]))
    lines = [(*row, *led.get((row[0], row[1]), nothing)) for row in rows["lines"]]
    return {"customers": customers, "orders": orders, "lines": lines}


def _first_rows(
    name: str,
    keys: Sequence[tuple[Any, ...]],
    rows: Sequence[tuple[Any, ...]],
    units: Mapping[str, Sequence[Home | None]],
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    columns = list(TYPES[name])
    places = [columns.index(column) for column in sorted(columns)]

    def order(found: tuple[Home, tuple[Any, ...]]) -> tuple[Any, ...]:
        home, row = found
        values = [row[place].encode() if isinstance(row[place], str) else row[place] for place in places]
        return [one.encode() for one in home], [() if value is None else (value,) for value in values]

    least: dict[tuple[Any, ...], tuple[Home, tuple[Any, ...]]] = {}
    for key, row, home in zip(keys, rows, units[name], strict=True):
        if home is not None and None not in key:
            least[key] = min((home, row), least.get(key, (home, row)), key=order)
    return {key: row for key, (_, row) in least.items()}


def load_sql(rows: Rows, unit: Sequence[str]) -> list[str]:
    """The statements that make the tables, and beside each one with the units and the joined columns stored."""
    units, joined, statements = find_units(rows, unit), join_rows(rows, unit), []
    further = {"customers": (), "orders": ("customers",), "lines": ("orders", "customers")}
    for name, types in TYPES.items():
        statements += _table_sql(name, types, rows[name])
        brought = {column: kind for other in further[name] for column, kind in TYPES[other].items()}
        kept = [column not in unit for column in brought]
        named = {} if name == "customers" else dict.fromkeys(unit, "text")
        stored = []
        for row, home in zip(joined[name], units[name], strict=True):
            own, more = row[: len(types)], row[len(types) :]
            there = [value for value, keep in zip(more, kept, strict=True) if keep]
            stored.append((*own, *(() if not named else home or (None,) * len(unit)), *there))
        wide = {**types, **named, **{column: kind for column, kind in brought.items() if column not in unit}}
        statements += _table_sql(f"stored_{name}", wide, stored)
    return statements


def _table_sql(name: str, types: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> list[str]:
    columns = ", ".join(f"{column} {kind}" for column, kind in types.items())
    values = ", ".join(f"({', '.join(map(spelled, row, types.values()))})" for row in rows)
    made = [f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})"]
    return [*made, *([f"INSERT INTO {name} VALUES {values}"] if values else [])]


_FOUND: Mapping[str, tuple[Any, ...]] = {
    "c_key": (1, 1, 0, 0, 2, None),
    "household": ("ann", "bob", "zoë", "ANN", "", None),
    "region": ("north", "north", "south", "east", None),
    "o_shop": ("a", "a", "", "A", None),
    "o_key": (1, 0, 2**62, None),
    "o_customer": (1, 0, 2, 0, 3, None),
    "o_month": (1, 2, 3, 4),
    "o_price": (0, 2, 5, 7, None),
    "l_shop": ("a", "a", "", "A", None),
    "l_order": (1, 0, 2**62, None),
    "l_mode": ("air", "ship", "ship", "rail"),
    "l_month": (1, 2, 3, None),
    "amount": (-(2**31), -3, 1, 7, 7, 2**31 - 1, None),
}


def shops() -> st.SearchStrategy[dict[str, list[tuple[Any, ...]]]]:
    """Rows of few keys, so that most of them repeat where they should not, and some lead nowhere."""
    rows = {name: st.tuples(*(st.sampled_from(_FOUND[one]) for one in types)) for name, types in TYPES.items()}
    sizes = {"customers": (3, 6), "orders": (4, 8), "lines": (6, 14)}
    return st.fixed_dictionaries(
        {name: st.lists(row, min_size=sizes[name][0], max_size=sizes[name][1]) for name, row in rows.items()}
    )
