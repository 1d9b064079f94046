"""`privacy_unit = { through = ..., by = ... }`: what it compiles to, what is charged, and what it refuses."""

import pytest

from planner.catalog.pins import Pins
from planner.catalog.relation_names import RelationIdentity
from planner.errors import KeyholeError
from planner.functionals.cells import CellReach, find_cell_reach
from planner.plan.question_identity import find_fingerprint
from planner.policy.rules.unit_paths import describe_vouched_paths, find_unproved_paths
from planner.policy.simulated_catalog import simulate_catalog
from proxy.pipeline.claim import find_charged_keys
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import POLICY, TYPES, compiled
from tests.worlds.policies import changed, parsed

LINES = "SELECT l_mode FROM lines GROUP BY l_mode HAVING {}"
_BY_CUSTOMER = '{ through = "customers.c_key", by = "o_customer" }'


def test_tables_on_a_path_have_the_units_of_the_last_one() -> None:
    customers, orders, lines = compiled().tables
    assert (customers.unit, orders.unit, lines.unit) == (("household",),) * 3
    assert lines.path is not None
    assert lines.path.text == "orders by l_shop, l_order, then customers by o_customer"
    assert [table.name for table in lines.stored_tables] == ["lines", "orders", "customers"]
    assert {table.ledger_root.table for table in (customers, orders, lines)} == {"customers"}
    assert lines.get_column("household").label == customers.get_column("household").label
    types = {**TYPES, "orders": {**TYPES["orders"], "household": "text"}}
    named = "[tables.orders.columns.o_month]"
    exposed = changed((named, f"[tables.orders.columns.household]\n{named}"), text=POLICY)
    of_orders = [compiled(text, types).tables[1].unit for text in (POLICY, exposed)]
    assert of_orders == [("household",), ("customers_household",)]  # only what is exposed takes a name


@in_turn(
    "having, reach",
    [
        ("count(*) > 40", CellReach(reaches_other_groups=True, changes_all_groups=True)),
        ("sum(amount) > 40", CellReach(reaches_other_groups=True, changes_all_groups=True, is_doubled=True)),
    ],
)
def test_an_order_decides_about_all_its_lines_so_that_all_cells_are_charged(having: str, reach: CellReach) -> None:
    question = asked(LINES.format(having), catalog=compiled())
    assert find_cell_reach(question) == reach
    family, cells = find_charged_keys(question, version="1")
    assert (family.table, family.columns, cells.columns) == ("customers", (), ())


def test_a_live_table_on_the_path_makes_the_rows_that_lead_there_live() -> None:
    live = compiled(POLICY.replace('refresh = "static"', 'refresh = "live"', 1))
    assert [table.refresh for table in live.tables] == ["live"] * 3


def test_another_path_is_another_question() -> None:
    sql = LINES.format("count(*) > 40")
    other = changed(('by = ["l_shop", "l_order"]', 'by = ["l_shop", "l_month"]'), text=POLICY)
    types = {**TYPES, "lines": {**TYPES["lines"], "l_month": "bigint"}}
    first, second = (asked(sql, catalog=compiled(text, types)) for text in (POLICY, other))
    assert find_fingerprint(first) != find_fingerprint(second)


_KEY = "l_shop = o_shop AND l_order = o_key"
_BY_MONTH = "GROUP BY o_month HAVING count(*) > 40 AND sum(amount) FILTER (WHERE region = 'north') > 9"
SPELLINGS = (
    f"SELECT o_month FROM lines JOIN orders ON {_KEY} JOIN customers ON o_customer = c_key {_BY_MONTH}",
    f"SELECT o_month FROM customers, orders, lines WHERE c_key = o_customer AND {_KEY} {_BY_MONTH}",
    f"SELECT o_month FROM lines LEFT JOIN orders ON {_KEY} LEFT JOIN customers ON c_key = o_customer {_BY_MONTH}",
    "SELECT b.o_month FROM customers c JOIN orders b ON c.c_key = b.o_customer JOIN lines a ON a.l_shop = b.o_shop"
    f" AND b.o_key = a.l_order {_BY_MONTH}",
    f"SELECT o_month FROM lines l JOIN orders o ON {_KEY} AND o.household = l.household JOIN customers c"
    f" ON o_customer = c_key WHERE c.household = l.household {_BY_MONTH}",
)


def test_a_join_along_keys_is_one_question_however_it_is_spelled() -> None:
    catalog = compiled()
    first, *others = (asked(sql, catalog=catalog) for sql in SPELLINGS)
    assert {find_fingerprint(one) for one in others} == {find_fingerprint(first)}
    assert find_fingerprint(first) != find_fingerprint(asked(LINES.format("count(*) > 40"), catalog=catalog))
    assert [table.name for table in first.table.stored_tables] == ["lines", "orders", "customers"]
    assert first.table.get_policy_key("region") == "tables.customers.columns.region"
    assert find_cell_reach(first) == CellReach(reaches_other_groups=True, changes_all_groups=True, is_doubled=True)


@in_turn(
    "keys, groups",
    [("l_mode", 2), ("o_month", 3), ("l_mode, o_month", 6), ("o_month, region", 15), ("l_mode, o_month, region", 30)],
)
def test_a_unit_is_in_as_many_groups_as_the_tables_that_own_the_keys_allow_together(keys: str, groups: int) -> None:
    """Its rows are those of the first table, and so often an order's price counts."""
    bounds = (
        ("max_groups_per_unit = 2\nrows_per_unit = 2\n", "max_groups_per_unit = 3\nrows_per_unit = 2\n"),
        ("max_groups_per_unit = 2\nrows_per_unit = 3\nunique", "max_groups_per_unit = 5\nrows_per_unit = 7\nunique"),
    )
    joined = f"FROM lines JOIN orders ON {_KEY} JOIN customers ON o_customer = c_key"
    question = asked(
        f"SELECT {keys} {joined} GROUP BY {keys} HAVING count(*) > 4 AND sum(o_price) > 9 AND sum(amount) > 9",
        catalog=compiled(changed(*bounds, text=POLICY)),
    )
    assert question.table.groups_per_unit == groups
    assert [functional.sensitivity for functional in question.functionals] == [3, 3 * 6, 20]


def test_keys_that_are_computed_of_rows_multiply_the_groups_of_tables_beside_them() -> None:
    """A unit's three lines have three values, NULL among them; its orders lie in two months."""
    sql = f"SELECT o_month, amount > 2 FROM lines JOIN orders ON {_KEY} GROUP BY 1, 2 HAVING count(*) > 4"
    assert asked(sql, catalog=compiled()).table.groups_per_unit == 2 * 3


def test_values_that_where_fixes_bound_rows_as_groupings_of_the_first_table_say() -> None:
    """A unit has one line in a mode and month, three in a mode. A price of -8 to 6 moves a sum by 8."""
    by_both = 'groupings."l_mode, l_month" = { max_groups = 3, rows = 1 }'
    first, price = "max_groups_per_unit = 2\nrows_per_unit = 3\n\n[tables.lines.columns.l_mode]", "bounds = [0, 6]"
    groupings = (first, first.replace("3\n\n", f"3\n{by_both}\n\n"))
    catalog = compiled(changed(groupings, (price, "bounds = [-8, 6]"), text=POLICY))
    for where, rows in (("l_month = 2", 1), ("l_month IN (1, 2)", 2), ("o_month = 2", 3)):
        sql = f"SELECT l_mode FROM lines JOIN orders ON {_KEY} WHERE {where} GROUP BY l_mode HAVING {{}}"
        counted = asked(sql.format("count(*) > 4 AND sum(o_price) > 9"), catalog=catalog)
        assert [functional.sensitivity for functional in counted.functionals] == [rows, 8 * rows], where


NOT_ALONG = (
    (
        "lines JOIN orders ON l_order = o_key",
        "JOIN ... ON lines.l_shop = orders.o_shop AND lines.l_order = orders.o_key.",
    ),
    ("lines LEFT JOIN orders USING (household)", "JOIN ... ON lines.l_shop = orders.o_shop AND"),
    (f"lines LEFT JOIN orders ON {_KEY} AND o_month = 2", "into the FILTER"),
    (f"lines LEFT JOIN orders ON {_KEY} AND o_month = l_month", "JOIN ... ON lines.l_shop = orders.o_shop AND"),
    (f"lines JOIN orders a ON {_KEY} JOIN orders b ON a.o_key = b.o_key", "two questions"),
)


@in_turn("source, hint", NOT_ALONG)
def test_a_join_beside_the_keys_is_refused_with_the_condition_that_follows_them(source: str, hint: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        asked(f"SELECT l_mode FROM {source} GROUP BY l_mode HAVING count(*) > 40", catalog=compiled())
    assert refused.value.code == "KH107"
    assert hint in str(refused.value.hint)


def test_an_outer_join_that_finds_no_line_has_no_key_of_lines() -> None:
    sql = "SELECT l_mode FROM {} ON " + _KEY + " GROUP BY l_mode HAVING count(*) > 40"
    outer, inner = (asked(sql.format(f"orders o {kind} lines"), catalog=compiled()) for kind in ("LEFT JOIN", "JOIN"))
    assert outer == inner


def test_a_column_of_a_table_that_is_reached_is_refused_with_the_joins_that_lead_there() -> None:
    with pytest.raises(KeyholeError) as refused:
        asked("SELECT l_mode FROM lines l WHERE region = 'north' GROUP BY 1 HAVING count(*) > 40", catalog=compiled())
    hint = str(refused.value.hint)
    joins = hint.partition(": add ")[2].removesuffix(" after l.")
    assert joins.count("JOIN") == 2
    asked(
        f"SELECT l_mode FROM lines l {joins} WHERE region = 'north' GROUP BY 1 HAVING count(*) > 40", catalog=compiled()
    )


def _leads(through: str, by: str = '"o_customer"') -> tuple[tuple[str, str], ...]:
    return ((_BY_CUSTOMER, f"{{ through = {through}, by = {by} }}"),)


def _beside(text: str) -> tuple[tuple[str, str], ...]:
    return ((_BY_CUSTOMER, f"{_BY_CUSTOMER}\n{text}"),)


_OF_ROWS = (
    ('privacy_unit = "household"', 'privacy_unit = "row"'),
    ("max_groups_per_unit = 2\nrows_per_unit = 3\nunique", "unique"),
)
REFUSED = (
    ("KH005", "leads to clients, which is no table", _leads('"clients.c_key"')),
    ("KH005", "leads in a circle, from table to table and back", _leads('"lines.l_order"', '"o_key"')),
    ("KH005", "leads in a circle, from table to table and back", _leads('"orders.o_key"')),
    ("KH005", "does not name as many columns", _leads('"customers.c_key"', '["o_customer", "o_key"]')),
    ("KH005", "does not name the columns of one table", _leads('"c_key"')),
    ("KH005", "has no key to", _leads('"customers.c_key"', '"o_customer", to = "x"')),
    ("KH005", "has no meaning beside a path", _beside('same_unit_as = "customers"')),
    ("KH005", "o_customer is of type integer, customers.region of type text", _leads('"customers.region"')),
    ("KH006", 'no column "o_client"', _leads('"customers.c_key"', '"o_client"')),
    ("KH006", 'customers has no column "key"', _leads('"customers.key"')),
    ("KH002", "has no meaning beside a path", _beside("epsilon_per_table = 4")),
    ("KH005", "where each row is a unit by itself", _OF_ROWS),
)


@in_turn("code, message, changes", REFUSED)
def test_a_path_that_leads_astray_is_refused(code: str, message: str, changes: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(KeyholeError) as refused:
        compiled(changed(*changes, text=POLICY))
    assert refused.value.code == code, refused.value
    assert message in str(refused.value)
    assert refused.value.hint


def _known(*keys: tuple[str, ...]) -> dict[str, RelationIdentity]:
    plain = RelationIdentity(names=("x",), bases=frozenset(), is_view=False, is_join=False)
    kept = RelationIdentity(
        names=("orders",),
        bases=frozenset(),
        is_view=False,
        is_join=False,
        unique=frozenset(key[0] for key in keys if len(key) == 1),
        keys=frozenset(frozenset(key) for key in keys if len(key) > 1),
    )
    return {"customers": plain, "orders": kept, "lines": plain}


def test_each_step_is_proved_by_a_constraint_or_vouched_for() -> None:
    policy = parsed(POLICY)
    assert list(find_unproved_paths(policy, _known())) == []
    assert len(list(describe_vouched_paths(policy, _known()))) == 2
    without = parsed(changed(('unique = ["o_shop", "o_key"]\n', ""), text=POLICY))
    (((*_, table, key), fault),) = find_unproved_paths(without, _known(("o_shop", "o_month"), ("o_month",)))
    assert (table, key, fault.code) == ("lines", "privacy_unit", "KH005")
    for proof in (("o_key", "o_shop"), ("o_key",)):
        assert list(find_unproved_paths(without, _known(proof))) == []


def test_questions_are_simulated_without_the_source() -> None:
    made = simulate_catalog(parsed(POLICY), LINES.format("count(DISTINCT household) > 40"), pins=Pins(), keys=None)
    assert [table.unit for table in made.catalog.tables] == [("household",)] * 3
    asked(LINES.format("count(DISTINCT household) > 40"), catalog=made.catalog)
