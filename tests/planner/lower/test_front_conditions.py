"""Which conditions of a question a table is asked before its rows are joined, and which it may not be."""

import pytest

from planner.catalog.catalog import ComputedName
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions, split_front
from planner.question.condition import Compare, Or, Within, join_all, join_any
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import compiled

LINES = "lines JOIN orders ON l_shop = o_shop AND l_order = o_key JOIN customers ON o_customer = c_key"
CHEAP = Compare("o_price", "<", 3)


def split(where: str, *, source: str = LINES, key: str = "l_mode") -> FrontConditions:
    """The conditions that a question with this WHERE asks in front of joins."""
    sql = f"SELECT {key} FROM {source} WHERE {where} GROUP BY {key} HAVING count(*) > 4"
    return split_front(asked(sql, catalog=compiled()))


def test_each_table_along_a_path_is_asked_what_reads_it_alone() -> None:
    found = split("amount > 2 AND o_price < 3 AND c_key = 5 AND l_month + 1 > o_month")
    assert found.own == Compare("amount", ">", 2)
    assert found.find_path_conditions().own == CHEAP
    assert found.find_path_conditions().find_path_conditions().own == Compare("c_key", "=", 5)


def test_joined_tables_are_asked_in_their_own_names() -> None:
    source = "orders o JOIN customers c ON o.household = c.household"
    found = split("o.o_price < 3 AND (c.c_key = 5 OR c.c_key = 7)", source=source, key="o.o_month")
    customers, orders = found.members
    assert orders.own == CHEAP
    assert customers.own == join_any([Compare("c_key", "=", 5), Compare("c_key", "=", 7)])


@pytest.mark.parametrize(
    "where",
    [
        pytest.param("o_price IS NULL", id="it holds of NULL"),
        pytest.param("coalesce(o_price, 1) < 3", id="what is computed is not NULL"),
        pytest.param("(o_price < 3 OR o_price IS NULL)", id="one part holds of NULL"),
        pytest.param("(o_price < 3 OR amount > 2)", id="it reads two tables"),
        pytest.param("o_price * o_month < 3", id="nobody has told of it that NULL gives NULL"),
        pytest.param("household = 'ann'", id="a unit is known behind the join alone"),
    ],
)
def test_what_a_row_of_null_satisfies_or_two_tables_decide_is_asked_behind_the_join_alone(where: str) -> None:
    assert split(where) == NOTHING or not split(where)


def test_a_table_is_asked_what_each_part_of_a_disjunction_implies_of_it() -> None:
    """A part that says nothing of a table lets all of its rows through."""
    found = split("(o_price < 3 AND amount > 2) OR (o_price < 2 AND amount > 4)")
    assert found.own == join_any([Compare("amount", ">", 2), Compare("amount", ">", 4)])
    assert found.find_path_conditions().own == join_any([CHEAP, Compare("o_price", "<", 2)])
    found = split("(o_price < 3 AND amount > 2) OR amount > 4 OR (o_price < 2 AND amount IS NULL AND amount < 9)")
    least = join_all([Compare("amount", ">", 2)])
    assert found.find_path_conditions() == NOTHING or not found.find_path_conditions()
    assert isinstance(found.own, Or)
    assert least in found.own.conditions


def test_what_is_compared_of_one_table_is_asked_of_it() -> None:
    compared, other = split("o_price < o_month AND o_price <> 2").find_path_conditions().own.list_conjuncts()
    assert isinstance(compared, Compare)
    assert isinstance(compared.column, ComputedName)
    assert other == Compare("o_price", "<>", 2)


def test_a_row_is_asked_for_the_values_of_its_key_that_count() -> None:
    assert split("l_mode = 'air' AND amount > 2").own == join_all(
        [Compare("amount", ">", 2), Within("l_mode", ("air",))]
    )


def test_rows_of_which_a_window_is_computed_are_all_there() -> None:
    source = "(SELECT *, lag(amount) OVER (PARTITION BY household ORDER BY l_month) AS was FROM lines) q"
    assert split("was = 2 AND amount > 2", source=source) == NOTHING
