"""Statements that are put together of pieces, over the market and over the shop, each with what PostgreSQL counts.

A piece is written once. The tables' names stand for the private tables in what is asked, and for those with the rows
that have a unit in what is counted.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hypothesis import strategies as st

from planner.catalog.catalog import Catalog, Table
from tests.proxy.sources.markets import market as market_of
from tests.proxy.sources.unit_paths import shop as shop_of
from tests.worlds.policies import changed

Rows: TypeAlias = dict[str, list[tuple[Any, ...]]]
Names: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class First:
    """What stands first in FROM, what is counted for it, its unit's columns, and what may be said of its rows."""

    asked: str
    counted: str
    unit: tuple[str, ...]
    keys: tuple[str, ...]
    conditions: tuple[str, ...]
    sums: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class World:
    """Tables, and pieces of statements over them.

    `keyed` are subqueries of each row's own key, by what stands first in FROM. `windows` are over rows of lines.
    """

    catalog: Catalog
    units: Names
    first: Mapping[str, First]
    values: Names
    inner: Names
    rows: st.SearchStrategy[Rows]
    load: Callable[[Rows], list[str]]
    take_one_away: Callable[[Rows, st.DataObject], Rows]
    windows: tuple[str, ...]
    keyed: Names

    @property
    def tight(self) -> Catalog:
        """The same with bounds that cut most units."""
        return replace(self.catalog, tables=tuple(map(_tighten, self.catalog.tables)))

    def of_units(self, text: str) -> str:
        """The text over the tables with the rows that have a unit."""
        return re.sub(rf"\b(FROM|JOIN) ({'|'.join(self.units)})\b", r"\1 true_\2", text)


def _tighten(table: Table) -> Table:
    path = None if table.path is None else replace(table.path, table=_tighten(table.path.table))
    return replace(table, groups_per_unit=2, rows_per_unit=2, path=path)


@dataclass(frozen=True, slots=True)
class Combined:
    """A statement: its keys, its aggregate, and what stands behind them from FROM on, asked and counted."""

    keys: tuple[str, ...]
    aggregate: str
    source: str
    counted: str

    @property
    def asked(self) -> str:
        """The statement that asks for groups by the aggregate."""
        keys = ", ".join(self.keys)
        return f"SELECT {keys} FROM {self.source} GROUP BY {keys} HAVING {self.aggregate} > 0"

    @property
    def truth(self) -> str:
        """What PostgreSQL is asked: by group, the aggregate over the rows that have a unit."""
        keys = ", ".join(self.keys)
        return f"SELECT {keys}, {self.aggregate} FROM {self.counted} GROUP BY {keys}"


def _load_market(rows: Rows) -> list[str]:
    return [*market_of.load_sql(rows), *market_of.truth_sql()]


def _take_from_market(rows: Rows, data: st.DataObject) -> Rows:
    return market_of.take_away(rows, data.draw(st.sampled_from((1, 2, 3))))


_ORDER = "ORDER BY {0}, l_part, l_supplier, l_late, l_order, l_amount"
MARKET = World(
    catalog=market_of.market(),
    units={"customers": ("c_key",), "orders": ("o_customer",), "lines": ("o_customer",)},
    first={
        "orders": First(
            "orders b", "orders b", ("b.o_customer",), ("o_month",), ("o_month > 1", "o_price > 1"), ("sum(o_price)",)
        ),
        "customers": First("customers b", "customers b", ("b.c_key",), ("c_nation",), ("c_nation > 0",)),
        "lines": First(
            "lines b",
            "lines b",
            ("b.o_customer",),
            ("l_part", "l_late"),
            ("l_late", "l_amount > -2"),
            ("sum(l_amount)",),
        ),
        "along": First(
            "lines b JOIN orders o ON l_order = o_key",
            "lines b",
            ("b.o_customer",),
            ("o_month", "l_part"),
            ("o_price > 1", "(l_late OR o_month = 1)", "l_amount < o_price"),
            ("sum(o_price)", "sum(l_amount)"),
        ),
        "units": First(
            "customers b JOIN orders o ON b.c_key = o.o_customer",
            "customers b JOIN orders o ON b.c_key = o.o_customer",
            ("b.c_key",),
            ("c_nation", "o_month"),
            ("c_nation < o_month", "o_price IS NOT NULL"),
            ("sum(o_price)",),
        ),
    },
    values={
        "orders": ("count(*)", "min(o_month)", "sum(o_price) FILTER (WHERE o_month > 1)", "count(DISTINCT o_price)"),
        "lines": ("count(*) FILTER (WHERE l_late)", "count(*)", "max(l_part)", "avg(l_amount)", "sum(l_amount)"),
        "customers": ("count(*)", "max(c_nation)"),
    },
    inner={
        "orders": ("", " WHERE o_price > 1", " WHERE o_month = 1 OR o_price IS NULL"),
        "lines": ("", " WHERE l_late", " WHERE l_part <> 1", " WHERE l_amount > 1"),
        "customers": ("", " WHERE c_nation > 0"),
    },
    rows=market_of.markets(),
    load=_load_market,
    take_one_away=_take_from_market,
    windows=(
        f"row_number() OVER (PARTITION BY o_customer {_ORDER}) AS w",
        "count(*) OVER (PARTITION BY o_customer) AS w",
        f"lag(l_part) OVER (PARTITION BY o_customer {_ORDER}) AS w",
        "min(l_part) FILTER (WHERE l_late) OVER (PARTITION BY o_customer) AS w",
    ),
    keyed={
        "orders": (
            "lines x WHERE x.l_order = b.o_key AND x.l_late",
            "lines x WHERE x.l_order = b.o_key AND l_amount > 1",
        ),
        "lines": (
            "orders x WHERE x.o_key = b.l_order AND x.o_price > 1",
            "lines x WHERE x.l_order = b.l_order AND x.l_supplier <> b.l_supplier",
        ),
        "along": (
            "lines x WHERE x.l_order = b.l_order AND x.l_late",
            "lines x WHERE x.l_order = b.l_order AND x.l_part < b.l_part",
        ),
    },
)

_PAIR = ("household", "region")


def _load_shop(rows: Rows) -> list[str]:
    truth = [
        f"DROP TABLE IF EXISTS true_{name}; CREATE TABLE true_{name} AS SELECT * FROM"
        f" {'' if name == 'customers' else 'stored_'}{name} WHERE (household, region) IS NOT NULL"
        for name in shop_of.TYPES
    ]
    return [*shop_of.load_sql(rows, _PAIR), *truth]


def _take_from_shop(rows: Rows, data: st.DataObject) -> Rows:
    return shop_of.take_one_away(rows, _PAIR, data)


def _with_room(text: str) -> str:
    return re.sub(r"(max_groups_per_unit|rows_per_unit) = \d", r"\1 = 40", text)


SHOP = World(
    catalog=shop_of.compiled(
        _with_room(
            changed(('privacy_unit = "household"', 'privacy_unit = ["household", "region"]'), text=shop_of.POLICY)
        )
    ),
    units=dict.fromkeys(shop_of.TYPES, _PAIR),
    first={
        "customers": First("customers b", "customers b", ("b.household", "b.region"), ("b.region",), ("c_key = 1",)),
        "orders": First(
            "orders b",
            "orders b",
            ("b.household", "b.region"),
            ("o_month", "b.region"),
            ("o_price > 2", "o_month <> 2"),
        ),
        "lines": First(
            "lines b", "lines b", ("b.household", "b.region"), ("l_mode", "l_month"), ("amount > 0", "l_month < 3")
        ),
        "along": First(
            "lines b JOIN orders o ON l_shop = o_shop AND l_order = o_key",
            "lines b",
            ("b.household", "b.region"),
            ("o_month", "l_mode"),
            ("o_price > 2", "l_month <= o_month"),
        ),
        "units": First(
            "lines b JOIN customers c ON b.household = c.household AND b.region = c.region",
            "lines b JOIN customers c ON b.household = c.household AND b.region = c.region",
            ("b.household", "b.region"),
            ("l_mode", "l_month"),
            ("l_month < c.c_key", "amount > 0"),
        ),
    },
    values={
        "customers": ("count(*)", "max(c_key)"),
        "orders": ("count(*)", "min(o_month)", "count(DISTINCT o_shop)"),
        "lines": ("count(*)", "max(l_month)", "count(*) FILTER (WHERE amount > 1)", "min(amount)"),
    },
    inner={
        "customers": ("", " WHERE c_key = 2"),
        "orders": ("", " WHERE o_price < 3", " WHERE o_shop = 'a'"),
        "lines": ("", " WHERE l_mode = 'ship'", " WHERE amount IS NOT NULL"),
    },
    rows=shop_of.shops(),
    load=_load_shop,
    take_one_away=_take_from_shop,
    windows=(
        "row_number() OVER (PARTITION BY region, household ORDER BY {0}, l_mode, l_month, l_shop, l_order, amount)"
        " AS w",
        "max(l_month) OVER (PARTITION BY household, region) AS w",
    ),
    keyed={},
)

_HAVING = ("", "", " HAVING count(*) > 1")
_LISTS = (
    "({0}) {1} (SELECT {2} FROM {3}{4})",
    "({0}) {1} (SELECT {2} FROM {3}{4} GROUP BY {2} HAVING count(*) > 1)",
    "({0}) {1} (SELECT {2} FROM {3}{4} EXCEPT SELECT {5} FROM customers)",
)


@st.composite
def draw_statements(draw: st.DrawFn, world: World) -> Combined:
    """A statement of some pieces beside each other."""
    name = draw(st.sampled_from((*world.first, "window", "along", "lines")))
    if name == "window":
        return _draw_window(draw, world)
    first = world.first[name]
    joins, known, shown, where = "", list(first.conditions), list(first.keys), []
    for i in range(draw(st.sampled_from((0, 1, 1, 2)))):
        join, read, is_key = _draw_values(draw, world, first, f"v{i}")
        joins += join
        known += read
        if is_key and draw(st.booleans()):
            shown.append(f"v{i}.v{i}_0")
        where.append(draw(st.sampled_from(read)))
    if "v1" in joins:
        known.append("v0.v0_0 > v1.v1_0")
    if draw(st.booleans()):
        where.append(draw(st.sampled_from(known)))
    counted = list(where)
    for _ in range(draw(st.sampled_from((0, 1, 1, 2)))):
        text = _draw_list(draw, world, first)
        if draw(st.sampled_from((False, False, True))):
            text = f"({draw(st.sampled_from(known))} OR {text})"
        where.append(text)
        counted.append(world.of_units(text))
    if name in world.keyed and draw(st.booleans()):
        text = f"{draw(st.sampled_from(('', 'NOT ')))}EXISTS (SELECT 1 FROM {draw(st.sampled_from(world.keyed[name]))}"
        where.append(f"{text})")
        counted.append(world.of_units(f"{text} AND x.o_customer = b.o_customer)"))
    units = ", ".join(first.unit)
    sums = (*first.sums, *(["sum(v0.v0_0)"] if "count(*) AS v0_0" in joins else []))
    aggregates = ("count(*)", f"count(DISTINCT ({units}))", f"count(*) FILTER (WHERE {known[-1]})", *sums)
    return Combined(
        tuple(draw(st.lists(st.sampled_from(shown), min_size=1, max_size=2, unique=True))),
        draw(st.sampled_from(aggregates)),
        f"{first.asked}{joins}{_where(where)}",
        f"{world.of_units(f'FROM {first.counted}{joins}')[5:]}{_where(counted)}",
    )


def _draw_values(draw: st.DrawFn, world: World, first: First, called: str) -> tuple[str, list[str], bool]:
    """A join with values of units, conditions on these, and whether the first of them may be a key."""
    table = draw(st.sampled_from(tuple(world.units)))
    computed = draw(st.lists(st.sampled_from(world.values[table]), min_size=1, max_size=2, unique=True))
    join = draw(st.sampled_from(("JOIN", "LEFT JOIN")))
    having = draw(st.sampled_from(_HAVING)) if join == "JOIN" else ""
    listed = ", ".join(f"{one} AS {called}_{j}" for j, one in enumerate(computed))
    unit = ", ".join(world.units[table])
    met = " AND ".join(f"{called}.{one} = {own}" for one, own in zip(world.units[table], first.unit, strict=True))
    inner = f"SELECT {unit}, {listed} FROM {table}{draw(st.sampled_from(world.inner[table]))} GROUP BY {unit}{having}"
    read = [f"{called}.{called}_0 > 1", f"({called}.{called}_0 < 2 OR {called}.{called}_0 IS NULL)"]
    if len(computed) == 2:
        read.append(f"{called}.{called}_0 <= {called}.{called}_1")
    return f" {join} ({inner}) {called} ON {met}", read, computed[0].startswith(("count", "min(o_", "max"))


def _draw_window(draw: st.DrawFn, world: World) -> Combined:
    """A subquery with a window over the lines of a unit, which finds its unit along keys."""
    ordered = ("amount DESC", "l_mode") if world is SHOP else ("l_amount", "l_amount DESC", "l_late")
    window = draw(st.sampled_from(world.windows)).format(draw(st.sampled_from(ordered)))
    where = ["w <= 2"] if "row_number" in window or draw(st.booleans()) else []
    source = f"(SELECT *, {window} FROM lines{draw(st.sampled_from(world.inner['lines']))}) b{_where(where)}"
    keys = ("w", *world.first["lines"].keys)
    chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True))
    counted = draw(st.sampled_from(("count(*)", f"count(DISTINCT ({', '.join(world.first['lines'].unit)}))")))
    return Combined(tuple(chosen), counted, source, world.of_units(source))


def _draw_list(draw: st.DrawFn, world: World, first: First) -> str:
    table, word = draw(st.sampled_from(tuple(world.units))), draw(st.sampled_from(("IN", "NOT IN")))
    unit, inner = ", ".join(world.units[table]), draw(st.sampled_from(world.inner[table]))
    other = ", ".join(world.units["customers"])
    return draw(st.sampled_from(_LISTS)).format(", ".join(first.unit), word, unit, table, inner, other)


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
