"""Lists of keys within a unit: how much one cell changes in every small world, by the SQL that runs.

A person has an order of either sign in each of two months, or not, and each order up to two lines in two cells. Each
world stands there as one person, and each neighbour of it as another, without the rows of a month, of a cell of lines,
or of both. So one statement gives what all of them add. Nothing is drawn, and nothing fails by chance.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import duckdb
import pytest

from planner.functionals.cells import find_cell_reach
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from planner.question.unit_groups import count_unit_groups
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import compiled
from tests.worlds.policies import VERIFIER

_World: TypeAlias = tuple[tuple[int, ...] | None, ...]
"""The parts of each order's lines; None for an order that is not there."""
ORDERS = ((1, 5), (1, -5), (2, 5), (2, -5))
"""The month and the price of each order."""
WORLDS: tuple[_World, ...] = tuple(product((None, (), (1,), (2,), (1, 2)), repeat=len(ORDERS)))
AMOUNTS: Mapping[int, int] = {1: 9, 2: -9}  # by part; lines of part 1 are late
NEIGHBOURS = tuple(product((0, 1, 2), (0, 1, 2)))
"""The month and the part of the cells that are taken away, each 0 for none."""
TYPES = {
    "orders": {"o_key": "bigint", "person": "integer", "month": "integer", "price": "integer"},
    "lines": {"l_order": "bigint", "part": "integer", "late": "boolean", "amount": "integer"},
}
POLICY = """\
[source]
url = "duckdb:///market.duckdb"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 4

[tables.orders]
privacy_unit = "person"
refresh = "static"
unique = ["o_key"]
max_groups_per_unit = {room}
rows_per_unit = {room}

[tables.orders.columns]
person = {{ key = {{ range = [0, {persons}] }} }}
o_key = {{}}
month = {{ key = {{ range = [1, 2] }} }}
price = {{ bounds = [-5, 5], per_unit = [-5, 5] }}

[tables.lines]
privacy_unit = {{ through = "orders.o_key", by = "l_order" }}
refresh = "static"
max_groups_per_unit = {room}
rows_per_unit = {room}

[tables.lines.columns]
l_order = {{}}
part = {{ key = {{ range = [1, 2] }} }}
late = {{ key = {{ values = [false, true] }} }}
amount = {{ bounds = [-9, 9], per_unit = [-36, 36] }}

[analysts.ada]
password = "{verifier}"
"""


def _load_sql() -> Iterator[str]:
    """The statements that make every world and its neighbours, each of which is a person."""
    found = [
        (world, number) for world, orders in enumerate(WORLDS) for number, one in enumerate(orders) if one is not None
    ]
    orders = ", ".join(f"({world}, {number})" for world, number in found)
    lines = ", ".join(f"({world}, {number}, {part})" for world, number in found for part in WORLDS[world][number] or ())
    without = ", ".join(f"({number}, {month}, {part})" for number, (month, part) in enumerate(NEIGHBOURS))
    person = f"world * {len(NEIGHBOURS)} + neighbour"
    known = ", ".join(f"({number}, {month}, {price})" for number, (month, price) in enumerate(ORDERS))
    yield f"CREATE TABLE without AS SELECT * FROM (VALUES {without}) AS v(neighbour, w_month, w_part)"
    yield (
        f"CREATE TABLE orders AS SELECT ({person}) * 4 + number AS o_key, {person} AS person, month, price"
        f" FROM (VALUES {orders}) AS o(world, number) JOIN (VALUES {known}) AS k(number, month, price) USING (number)"
        " JOIN without ON w_month <> month"
    )
    amount = f"CASE part WHEN 1 THEN {AMOUNTS[1]} ELSE {AMOUNTS[2]} END"
    yield (
        f"CREATE TABLE lines AS SELECT ({person}) * 4 + number AS l_order, part, part = 1 AS late, {amount} AS amount"
        f" FROM (VALUES {lines}) AS l(world, number, part) JOIN without ON w_part <> part"
    )


@pytest.fixture(scope="module")
def every_world() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as engine:
        for statement in _load_sql():
            engine.execute(statement)
        yield engine


def _is_cut(world: _World, *, room: int) -> bool:
    """Return True if a bound cuts the person in some grouping: with all rows, those of one cell, or all but these."""
    found = [(*order, parts) for order, parts in zip(ORDERS, world, strict=True) if parts is not None]
    prices = sum(price for _, price, _ in found)
    months, parts = {month for month, *_ in found}, [part for *_, own in found for part in own]
    return abs(prices) > 5 or max(len(months), len(set(parts)), len(found), len(parts)) > room


_ORDERS = "SELECT person, month FROM orders o WHERE {} GROUP BY 1, 2 HAVING {} > 3"
_LINES = "SELECT person, part FROM lines l WHERE {} GROUP BY 1, 2 HAVING {} > 3"
_ALONG = "SELECT person, month FROM lines l, orders WHERE l_order = o_key AND {} GROUP BY 1, 2 HAVING {} > 3"
_LATE = "EXISTS (SELECT 1 FROM lines x WHERE x.l_order = o_key AND late)"
_OTHER = "EXISTS (SELECT 1 FROM lines x WHERE x.l_order = l.l_order AND x.part {} l.part)"
_ONE_LINE = "o_key IN (SELECT l_order FROM lines GROUP BY l_order HAVING count(*) = 1)"
_OF_PERSON = "EXISTS (SELECT 1 FROM lines l WHERE l.person = o.person AND l.amount {} o.price)"
_HALF, _QUARTER = Fraction(1, 2), Fraction(1, 4)
# What is asked, for how many rows and groups of a person there is room, how many losses of one group a cell is charged,
# and by how many it moves at most a person whom no bound cuts, and any person.
ASKED: tuple[tuple[str, int, int, int | Fraction, int | Fraction], ...] = (
    (_ORDERS.format(_LATE, "count(DISTINCT person)"), 8, 2, 2, 2),
    (_ORDERS.format(_LATE, "count(DISTINCT person)"), 1, 1, 1, 2),
    (_ORDERS.format(_LATE, "sum(price)"), 8, 4, 2, 2),
    (_ORDERS.format(f"NOT {_LATE}", "count(*)"), 1, 2, 1, 2),
    (_ORDERS.format(_ONE_LINE, "sum(price)"), 8, 4, 4, 4),
    (_ORDERS.format(_ONE_LINE, "count(DISTINCT person)"), 8, 4, 2, 2),
    (_ORDERS.format(_ONE_LINE, "count(DISTINCT person)"), 1, 2, 1, 2),
    (_ORDERS.format(_OF_PERSON.format(">"), "sum(price)"), 8, 4, 2, 2),
    (_ORDERS.format(f"NOT {_OF_PERSON.format('<')}", "count(DISTINCT person)"), 8, 4, 2, 2),
    (_LINES.format(_OTHER.format("<"), "count(*)"), 8, 2, _HALF, _HALF),
    (_LINES.format("l_order IN (SELECT o_key FROM orders WHERE price > 1)", "sum(amount)"), 1, 2, _QUARTER, 1),
    (_ALONG.format(f"NOT {_OTHER.format('>')}", "sum(amount)"), 8, 4, 2, 2),
    (_ALONG.format(f"NOT {_OTHER.format('<>')}", "count(DISTINCT person)"), 8, 4, 2, 2),
)


@pytest.mark.parametrize(("sql", "room", "charged", "uncut", "largest"), ASKED)
def test_a_cell_behind_a_list_of_keys_moves_no_more_than_is_charged(
    every_world: duckdb.DuckDBPyConnection,
    sql: str,
    room: int,
    charged: int,
    uncut: int | Fraction,
    largest: int | Fraction,
) -> None:
    """What is charged holds for persons whom no bound cuts, twice all groups for everybody, and a whole person moves
    all groups once. EXISTS attains what it is charged for counts, HAVING for sums of both signs, and for counts where
    a bound cuts."""
    persons = len(WORLDS) * len(NEIGHBOURS)
    policy = POLICY.format(room=room, persons=persons - 1, verifier=VERIFIER)
    question = asked(sql, catalog=compiled(policy, TYPES), tolerance="0")
    reach, groups, sensitivity = (
        find_cell_reach(question),
        count_unit_groups(question),
        question.functionals[0].sensitivity,
    )
    assert (reach.reaches_other_groups, reach.count_losses(groups)) == (True, charged)
    added: list[dict[int, int]] = [{} for _ in range(persons)]
    for person, group, value in every_world.execute(rewrite(question, dialect=DUCKDB).sql).fetchall():
        added[person][group] = value
    found = {False: Fraction(0), True: Fraction(0)}
    for number, world in enumerate(WORLDS):
        whole, *others = added[number * len(NEIGHBOURS) :][: len(NEIGHBOURS)]
        assert sum(map(abs, whole.values())) <= groups * sensitivity, "the whole unit, at once"
        moved = max(sum(abs(whole.get(one, 0) - other.get(one, 0)) for one in (1, 2)) for other in others)
        cut = _is_cut(world, room=room)
        found[cut] = max(found[cut], Fraction(moved, sensitivity))
    assert found[False] <= charged
    assert max(found.values()) <= 2 * groups
    assert (found[False], max(found.values())) == (uncut, largest)
