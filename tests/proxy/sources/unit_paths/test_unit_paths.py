"""Units that rows reach through keys, on the engines: each row's unit, and what taking one unit away changes.

Rows repeat where the owner vouched that they do not, and lead nowhere where they should lead somewhere.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.catalog.catalog import Catalog
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.question.question import Question
from tests.effort import examples
from tests.planner.asked import asked_once, rewritten_once
from tests.proxy.sources.unit_paths.shop import POLICY, Rows, compiled, load_sql, shops, store_units, take_one_away
from tests.proxy.sources.worlds import Engines
from tests.worlds.policies import changed

HOUSEHOLDS = compiled()
PAIRS = compiled(changed(('privacy_unit = "household"', 'privacy_unit = ["household", "region"]'), text=POLICY))
OF_ONE = (
    "SELECT l_mode FROM lines GROUP BY l_mode HAVING count(DISTINCT household) > 4 AND sum(amount) > 10",
    "SELECT l_month FROM lines WHERE household <> 'ann' GROUP BY 1 HAVING count(DISTINCT l_mode) > 4",
    "SELECT l_month FROM (SELECT household, l_month, count(*) AS n FROM lines GROUP BY household, l_month) v"
    " GROUP BY l_month HAVING count(*) FILTER (WHERE n >= 2) > 4",
    "SELECT l_mode FROM lines JOIN customers USING (household) GROUP BY l_mode HAVING count(*) > 4",
    "SELECT region, o_month FROM orders o, customers c WHERE o.household = c.household GROUP BY 1, 2"
    " HAVING count(DISTINCT o.household) > 4",
)
_KEY = "l_shop = o_shop AND l_order = o_key"
ALONG_KEYS = (
    f"SELECT o_month, l_mode FROM lines JOIN orders ON {_KEY} GROUP BY 1, 2"
    " HAVING count(*) > 4 AND sum(o_price) FILTER (WHERE amount > 0) > 10",
    f"SELECT region FROM customers, orders o, lines WHERE c_key = o.o_customer AND {_KEY} AND o_month < 3"
    " GROUP BY region HAVING count(DISTINCT household) > 4 AND count(DISTINCT o_key) > 4 AND sum(amount) > 3",
    f"SELECT o_month FROM lines l LEFT JOIN orders o ON {_KEY} GROUP BY o_month"
    " HAVING count(*) FILTER (WHERE l_month = o_month) > 4 AND sum(amount * o_price) > 9",
    "SELECT region, o_month FROM orders LEFT JOIN customers ON c_key = o_customer GROUP BY 1, 2"
    " HAVING sum(o_price) > 4",
    f"SELECT o_month FROM lines JOIN orders ON {_KEY} JOIN customers USING (household) GROUP BY o_month"
    " HAVING count(*) > 4 AND count(DISTINCT c_key) > 2",
    # plain SQL fails on such rows
    f"SELECT o_month FROM lines JOIN orders ON {_KEY} WHERE amount * 2000000000 - o_price > 5 OR 10 / (o_price - 5) > 1"
    " GROUP BY o_month HAVING count(*) FILTER (WHERE o_key * 4 > l_month - amount) > 4 AND count(*) > 1",
)
OF_ANY = (
    "SELECT l_mode, l_month FROM lines WHERE amount > 0 GROUP BY 1, 2 HAVING count(*) > 4",
    "SELECT o_month FROM orders GROUP BY o_month HAVING count(*) > 4",
    "SELECT l_month FROM lines WHERE l_mode = 'air' GROUP BY 1 HAVING sum(amount) FILTER (WHERE amount > 0) > 4"
    " AND avg(amount) > 2 AND count(amount) > 1",
    "SELECT l_mode FROM lines GROUP BY 1 HAVING sum(CASE WHEN l_month = 1 THEN amount ELSE -2 * amount END) > 4",
)
OF_PAIRS = (
    f"SELECT o_month, l_mode FROM lines JOIN orders ON {_KEY} JOIN customers ON o_customer = c_key GROUP BY 1, 2"
    " HAVING count(DISTINCT c_key) > 4 AND count(*) FILTER (WHERE region = 'north') > 4",
    "SELECT l_mode FROM lines GROUP BY l_mode HAVING count(DISTINCT (household, region)) > 4 AND sum(amount) > 10",
    "SELECT region, l_mode FROM lines GROUP BY 1, 2 HAVING count(*) > 4",
    "SELECT l_mode FROM lines JOIN orders USING (household, region) GROUP BY l_mode HAVING count(*) > 4",
)
ASKED = [(HOUSEHOLDS, (*OF_ONE, *OF_ANY)), (PAIRS, (*OF_ANY, *OF_PAIRS)), (HOUSEHOLDS, ALONG_KEYS)]


_STORED: dict[int, tuple[Question, Question]] = {}


def _stored(question: Question) -> Question:
    """The same question of tables that store their units, made once for all rows that are drawn."""
    if id(question) not in _STORED:
        _STORED[id(question)] = question, store_units(question)
    return _STORED[id(question)][1]


def _answer_over(rows: Rows, question: Question, engines: Engines) -> list[Counter[tuple[Any, ...]]]:
    """What both engines give over a shop's rows, along keys and with the units and joined columns stored."""
    loads = load_sql(rows, ("household",))
    with duckdb.connect() as duck:
        for statement in loads:
            duck.execute(statement)
        engines.writer.execute("; ".join(loads).encode())
        return [*_answers(question, duck, engines), *_answers(_stored(question), duck, engines)]


def _answers(question: Question, duck: duckdb.DuckDBPyConnection, engines: Engines) -> list[Counter[tuple[Any, ...]]]:
    found: list[Any] = []
    for sql in _statements(question, DUCKDB):
        found.append(duck.execute(sql).fetchall())
    for sql in _statements(question, POSTGRES):
        found.append(engines.writer.execute(sql.encode()).fetchall())
    return [Counter(tuple(row) for row in rows) for rows in found]


def _statements(question: Question, dialect: Dialect) -> list[str]:
    """The question's statement, and that which tells the rows of heavy units apart, if there is one."""
    rewritten = rewritten_once(question, dialect)
    return [rewritten.sql, *([] if rewritten.from_kept_steps is None else [rewritten.from_kept_steps.sql])]


@examples(100, quick=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=shops(), asks=st.sampled_from(ASKED), data=st.data())
def test_rows_count_for_the_unit_that_they_lead_to(
    engines: Engines, rows: dict[str, list[tuple[Any, ...]]], asks: tuple[Catalog, Sequence[str]], data: st.DataObject
) -> None:
    """The integers are those of tables in which units and joined rows are stored, whatever the keys hold. Without one
    unit, each key moves by at most the sensitivity, and as many keys at most as a unit may be in."""
    catalog, statements = asks
    unit = catalog.tables[0].unit
    without = take_one_away(rows, unit, data)
    worlds = []
    with duckdb.connect() as duck:
        for world in (rows, without):
            for statement in load_sql(world, unit):
                duck.execute(statement)
            engines.writer.execute("; ".join(load_sql(world, unit)).encode())
            answers = []
            for sql in statements:
                question = asked_once(sql, catalog)
                first, *others = [
                    *_answers(question, duck, engines),
                    *_answers(_stored(question), duck, engines),
                ]
                assert others == [first] * len(others), sql
                answers.append((question, first))
            worlds.append(answers)
    for (question, before), (_, after) in zip(*worlds, strict=True):
        _check_moves(question, before, after)


def test_a_row_that_names_half_a_unit_leads_nobody_astray(engines: Engines) -> None:
    """Of two customers with one key the first in order has no region: the line is the other's."""
    rows: dict[str, list[tuple[Any, ...]]] = {
        "customers": [(1, "ann", None), (1, "bob", "north")],
        "orders": [("a", 1, 1, 1, 2)],
        "lines": [("a", 1, "air", 1, 1)],
    }
    unit = PAIRS.tables[0].unit
    with duckdb.connect() as duck:
        for statement in load_sql(rows, unit):
            duck.execute(statement)
        engines.writer.execute("; ".join(load_sql(rows, unit)).encode())
        question = asked_once("SELECT l_mode FROM lines GROUP BY l_mode HAVING count(*) > 4", PAIRS)
        assert [one[("air", 1)] for one in _answers(question, duck, engines)] == [1] * 4


def _check_moves(question: Question, before: Counter[tuple[Any, ...]], after: Counter[tuple[Any, ...]]) -> None:
    table = question.table if question.per_unit is None else question.per_unit.table
    keys = len(question.keys.columns)
    first, second = ({row[:keys]: row[keys:] for row in found} for found in (before, after))
    limits = [functional.sensitivity for functional in question.functionals]
    nothing = (0,) * len(limits)
    moved = 0
    for key in first.keys() | second.keys():
        moves = [abs(a - b) for a, b in zip(first.get(key, nothing), second.get(key, nothing), strict=True)]
        assert all(move <= limit for move, limit in zip(moves, limits, strict=True))
        moved += any(moves)
    assert moved <= table.groups_per_unit


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT l_mode FROM lines GROUP BY l_mode HAVING count(*) > 4",
        f"SELECT l_mode FROM lines l JOIN orders o ON {_KEY} WHERE o_month = 1 GROUP BY l_mode HAVING count(*) > 4",
    ],
)
def test_rows_whose_keys_are_of_two_units_count_for_the_least(engines: Engines, sql: str) -> None:
    """Three lines of each of ann's orders count in a mode. Of her five by air no more do; were two bob's, all would."""
    rows: dict[str, list[tuple[Any, ...]]] = {
        "customers": [(1, "ann", "north"), (2, "bob", "north")],
        "orders": [("s", key, customer, 1, 2) for key, customer in ((1, 1), (7, 2), (7, 1), (8, 1), (8, 2))],
        "lines": [*[("s", 1, "air", 1, 1)] * 3, *[("s", 7, "air", 1, 1)] * 2, ("s", 8, "ship", 1, 1)],
    }
    question = asked_once(sql, HOUSEHOLDS)
    found = _answer_over(rows, question, engines)
    assert [{row: times for row, times in one.items() if row[1]} for one in found] == [
        {("air", 3): 1, ("ship", 1): 1}
    ] * len(found)


@pytest.mark.parametrize("order", [1, -1], ids=["as written", "turned round"])
def test_of_rows_of_one_unit_and_key_the_first_by_its_values_is_joined(engines: Engines, order: int) -> None:
    """NULL comes before all values, and nothing depends on how rows are stored: all questions join the same row."""
    orders = [("s", 7, 1, 2, 2), ("s", 7, 1, 1, 2), ("s", 7, 1, 1, None), ("s", 7, 1, 3, None), ("s", 7, 1, 1, 5)]
    rows: dict[str, list[tuple[Any, ...]]] = {
        "customers": [(1, "ann", "north")],
        "orders": orders[::order],
        "lines": [("s", 7, "air", 1, 1)] * 2,
    }
    counted = "count(*) > 4 AND count(*) FILTER (WHERE o_price IS NULL) > 4"
    question = asked_once(
        f"SELECT o_month FROM lines JOIN orders ON {_KEY} GROUP BY o_month HAVING {counted}", HOUSEHOLDS
    )
    found = _answer_over(rows, question, engines)
    assert [{row: times for row, times in one.items() if row[1]} for one in found] == [{(1, 2, 2): 1}] * len(found)
