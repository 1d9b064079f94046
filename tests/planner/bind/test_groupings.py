"""Bounds by grouping: those that hold for a question's keys follow from what is declared, and from nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bind.computed_groupings import find_expression_faults
from planner.bind.grouping_bounds import apply_grouping_bounds, determines
from planner.bind.unit_join import apply_bounds
from planner.catalog.catalog import Catalog, Column, Derivation, Grouping, Lookup, LookupValues, RowCap, SqlType, Table
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups
from tests.effort import examples
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.worlds.stays import STAYS, people

MANY = 10**6  # a default that everything declared stays below
DAYS = tuple(date(2026, 1, 1) + timedelta(days=i) for i in range(120))
REGIONS = LookupValues.from_pairs((("s1", "north"), ("s2", "north"), ("s3", "south"), ("s4", None)))


def _derived(name: str, part: str) -> Column:
    days = [
        datetime(day.year, day.month, 1).date() if part == "month" else day - timedelta(day.weekday()) for day in DAYS
    ]
    derivation = Derivation("date_trunc", part, "bought")
    return Column(name, SqlType.DATE, "date", domain=tuple(dict.fromkeys(days)), derivation=derivation)


def _measure(name: str, low: int) -> Column:
    bounds = (Decimal(low), Decimal(100))
    return Column(
        name, SqlType.INTEGER, "integer", bounds=bounds, grid=Decimal(1), per_unit=(Decimal(-MANY), Decimal(MANY))
    )


SALES = Table(
    name="sales",
    relation="sales",
    columns=(
        Column("household", SqlType.INTEGER, "integer"),
        Column("bought", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("day", SqlType.DATE, "date", domain=DAYS, derivation=Derivation("date", "", "bought")),
        _derived("week", "week"),
        _derived("month", "month"),
        Column("store", SqlType.TEXT, "text", domain=tuple(store for store, _ in REGIONS)),
        Column(
            "region", SqlType.TEXT, "text", domain=("north", "south"), derivation=Lookup("store", "stores", REGIONS)
        ),
        Column("sex", SqlType.TEXT, "text", domain=("f", "m")),
        _measure("amount", 0),
        _measure("balance", -100),
    ),
    unit=("household",),
    groups_per_unit=4,
    rows_per_unit=20,
    row_cap=None,
    refresh="static",
    seed="sales",
)
KEYS = ("day", "week", "month", "store", "region", "sex")


def _keys(*names: str) -> list[Column]:
    return [SALES.get_column(name) for name in names]


def _range(table: Table, measure: str) -> tuple[int, int]:
    range_ = table.get_column(measure).per_unit
    assert range_ is not None
    return int(range_[0]), int(range_[1])


def _declare(*declared: tuple[str, int | None, int | None], table: Table = SALES) -> Table:
    groupings = tuple(Grouping(tuple(keys.split(", ")), groups, rows, ()) for keys, groups, rows in declared)
    return replace(table, groupings=groupings)


@in_turn(
    ("base", "column", "expected"),
    [
        ("day", "day", True),
        ("day", "week", True),
        ("day", "month", True),
        ("week", "month", False),
        ("month", "day", False),
        ("store", "region", True),
        ("region", "store", False),
        ("bought", "day", True),
        ("store", "week", False),
    ],
)
def test_a_key_determines_what_follows_by_calendar_and_pinned_tables(base: str, column: str, *, expected: bool) -> None:
    assert determines(SALES.get_column(base), SALES.get_column(column), SALES) is expected


@pytest.mark.parametrize(
    ("keys", "groups", "why"),
    [
        (("week",), 53, "as declared"),
        (("store",), 6, "as declared"),
        (("week", "store"), 60, "declared for both is less than the product"),
        (("store", "week"), 60, "in any order"),
        (("region",), 6, "no more regions than stores"),
        (("month",), 100, "no more months than days"),
        (("day",), 100, "as declared"),
        (("day", "store"), 600, "the product of both"),
        (("day", "region"), 600, "through what is finer"),
        (("sex",), 4, "nothing is said of it: the table's own"),
        (("week", "sex"), 53, "nothing is said of both together: no less than of the weeks alone"),
    ],
)
def test_the_tightest_product_that_covers_all_keys_holds(keys: tuple[str, ...], groups: int, why: str) -> None:
    table = _declare(("week", 53, None), ("store", 6, None), ("day", 100, None), ("store, week", 60, None))
    assert apply_grouping_bounds(table, _keys(*keys)).groups_per_unit == groups, why


@pytest.mark.parametrize(
    ("keys", "rows", "why"),
    [
        (("week",), 10, "as declared"),
        (("day",), 10, "a part of a week holds no more than the week where it lies"),
        (("week", "store"), 10, "a part of a week"),
        (("month",), 20, "weeks do not lie in months: the table's own"),
        (("sex",), 60, "the rows of each store, as many times as a unit is in one"),
        (("region",), 60, "no more than in its stores"),
    ],
)
def test_rows_of_one_group_follow_from_coarser_keys_and_multiples_of_finer_ones(
    keys: tuple[str, ...], rows: int, why: str
) -> None:
    table = _declare(("week", None, 10), ("store", 2, 30))
    if keys == ("sex",):
        table = _declare(("store, sex", 2, 30))
    if keys == ("day",):
        table = _declare(("month", None, 10), ("store", 2, 30))
    assert apply_grouping_bounds(table, _keys(*keys)).rows_per_unit == rows, why


def test_a_row_cap_is_bounded_alike() -> None:
    capped = replace(SALES, rows_per_unit=None, row_cap=RowCap(rows=5, unique="household"))
    bounded = apply_grouping_bounds(_declare(("week", 53, 9), table=capped), _keys("week"))
    assert bounded.row_cap == RowCap(rows=9, unique="household")
    assert bounded.rows_per_unit is None


@pytest.mark.parametrize(
    ("keys", "amount", "balance", "why"),
    [
        (("week",), (0, 50), (-20, 50), "as declared"),
        (("week", "store"), (0, 50), (-MANY, MANY), "parts of a small total of both signs may be large"),
        (("month",), (0, MANY), (-MANY, MANY), "the table's own where nothing is said"),
    ],
)
def test_totals_of_parts_are_bounded_where_values_have_one_sign(
    keys: tuple[str, ...], amount: tuple[int, int], balance: tuple[int, int], why: str
) -> None:
    ranges = (("amount", (Decimal(0), Decimal(50))), ("balance", (Decimal(-20), Decimal(50))))
    table = replace(SALES, groupings=(Grouping(("week",), 53, None, ranges),))
    columns = {column.name: column for column in table.columns}
    table = replace(
        table,
        columns=tuple(
            replace(columns[name], per_unit=(Decimal(0), Decimal(MANY))) if name == "amount" else columns[name]
            for name in columns
        ),
    )
    bounded = apply_grouping_bounds(table, _keys(*keys))
    assert _range(bounded, "amount") == amount, why
    assert _range(bounded, "balance") == balance, why


def test_totals_of_coarser_keys_are_a_multiple_of_those_of_finer_ones() -> None:
    ranges = (("amount", (Decimal(0), Decimal(50))),)
    table = replace(SALES, groupings=(Grouping(("day",), 7, None, ranges),))
    assert _range(apply_grouping_bounds(table, _keys("month")), "amount") == (0, 350)


Declared = Mapping[str, tuple[int, int, int]]


@st.composite
def _purchases(draw: st.DrawFn) -> list[dict[str, object]]:
    """The rows of one household."""
    days = draw(st.lists(st.sampled_from(DAYS), min_size=1, max_size=4, unique=True))
    stores = draw(st.lists(st.sampled_from([store for store, _ in REGIONS]), min_size=1, max_size=3, unique=True))
    found = []
    for _ in range(draw(st.integers(1, 12))):
        day, store = draw(st.sampled_from(days)), draw(st.sampled_from(stores))
        row: dict[str, object] = {"day": day, "store": store, "region": dict(REGIONS)[store]}
        row |= {"week": day - timedelta(day.weekday()), "month": day.replace(day=1)}
        row |= {"sex": draw(st.sampled_from("fm")), "amount": draw(st.integers(0, 100))}
        found.append(row | {"balance": draw(st.integers(-100, 100))})
    return found


def _groups(rows: Sequence[Mapping[str, object]], keys: Sequence[str]) -> Counter[tuple[object, ...]]:
    found = [tuple(row[key] for key in keys) for row in rows]
    return Counter(one for one in found if None not in one)


def _totals(rows: Sequence[Mapping[str, object]], keys: Sequence[str], measure: str) -> list[int]:
    totals: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        key = tuple(row[one] for one in keys)
        if None not in key:
            totals[key] += int(str(row[measure]))
    return [0, *totals.values()]


@examples(2000, quick=150)
@given(
    rows=_purchases(),
    declared=st.lists(st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True), max_size=4),
    keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3, unique=True),
    data=st.data(),
)
def test_what_is_declared_of_a_unit_rightly_never_cuts_it(
    rows: list[dict[str, object]], declared: list[list[str]], keys: list[str], data: st.DataObject
) -> None:
    """Whatever true bounds are declared of some keys, what follows for others leaves the unit whole. (The store without
    a region is in no group by region, so finer groups may only be more.)"""
    if "region" in {name for names in declared for name in names}:
        rows = [row for row in rows if row["region"] is not None]
    groupings = []
    for names in declared:
        found = _groups(rows, names)
        ranges = []
        for measure in ("amount", "balance"):
            totals = _totals(rows, names, measure)
            ranges.append((measure, (Decimal(min(totals)), Decimal(max(totals)))))
        groups = data.draw(st.sampled_from([None, len(found) or 1]))
        most = data.draw(st.sampled_from([None, max(found.values(), default=1)]))
        groupings.append(Grouping(tuple(names), groups, most, tuple(data.draw(st.sampled_from([ranges, []])))))
    table = replace(SALES, groupings=tuple(groupings), groups_per_unit=MANY, rows_per_unit=MANY)
    bounded = apply_grouping_bounds(table, _keys(*keys))
    found = _groups(rows, keys)
    assert len(found) <= bounded.groups_per_unit
    assert max(found.values(), default=0) <= (bounded.rows_per_unit or 0)
    for measure in ("amount", "balance"):
        range_ = bounded.get_column(measure).per_unit
        assert range_ is not None
        assert all(range_[0] <= total <= range_[1] for total in _totals(rows, keys, measure))


def _with_groupings(catalog: Catalog, **declared: tuple[Grouping, ...]) -> Catalog:
    tables = tuple(replace(table, groupings=declared.get(table.name, ())) for table in catalog.tables)
    return replace(catalog, tables=tables)


BY_WARD, BY_DAY = Grouping(("ward",), 1, 15, ()), Grouping(("day",), 7, 3, (("cost", (Decimal(0), Decimal(900))),))
BY_YEAR = Grouping(("year",), 1, 1, ())


def _ask(sql: str, catalog: Catalog | None = None) -> Question:
    catalog = catalog or _with_groupings(people(), stays=(BY_WARD, BY_DAY), patients=(BY_YEAR,))
    return asked(sql, catalog=catalog)


@in_turn(
    ("sql", "groups", "rows", "most"),
    [
        ("SELECT ward FROM stays GROUP BY ward HAVING count(*) > 100", 1, 15, 15),
        ("SELECT day FROM stays GROUP BY day HAVING count(*) > 100", 7, 3, 3),
        ("SELECT day, ward FROM stays GROUP BY 1, 2 HAVING count(*) > 100", 7, 3, 3),
        ("SELECT day FROM stays GROUP BY day HAVING sum(cost) > 9000", 7, 3, 1800),
        (
            "SELECT day FROM (SELECT day, patient_id, count(*) AS n FROM stays GROUP BY day, patient_id) v "
            "GROUP BY day HAVING sum(n) > 100",
            7,
            None,
            3,
        ),
        (
            "SELECT s.day FROM stays s JOIN patients p USING (patient_id) GROUP BY s.day HAVING count(*) > 100",
            7,
            6,
            6,
        ),
        (
            "SELECT s.day, p.year FROM stays s JOIN patients p USING (patient_id) "
            "GROUP BY s.day, p.year HAVING sum(cost) > 9000",
            7,
            3,
            1800,
        ),
    ],
)
def test_a_question_is_bounded_by_its_own_keys(sql: str, groups: int, rows: int | None, most: int) -> None:
    question = _ask(sql)
    assert (question.table.groups_per_unit, question.table.rows_per_unit) == (groups, rows)
    assert count_unit_groups(question) == groups
    assert [functional.sensitivity for functional in question.functionals] == [most]


def test_other_bounds_make_another_question_and_those_of_other_keys_do_not() -> None:
    sql = "SELECT ward FROM stays GROUP BY ward HAVING count(*) > 100"
    more = Grouping(("day",), 9, None, ())
    same = [_ask(sql, _with_groupings(people(), stays=groupings)) for groupings in ((BY_WARD,), (BY_WARD, more))]
    assert same[0] == same[1]
    other = _ask(sql, _with_groupings(people(), stays=(replace(BY_WARD, groups=2),)))
    assert other.table.groups_per_unit == 2
    assert other != same[0]


def test_nothing_is_bounded_by_conditions_but_where_they_fix_a_key_of_narrower_groups() -> None:
    def bounded(where: str) -> Table:
        return _ask(f"SELECT ward FROM stays WHERE {where} GROUP BY ward HAVING count(*) > 100").table

    assert len({bounded(where) for where in ("true", "ward = 'A'", "arrived > '2026-01-01'", "age > 40")}) == 1
    whole, one_day = bounded("true"), bounded("day = '2026-01-01'")
    assert (whole.rows_per_unit, one_day.rows_per_unit) == (15, 3)
    assert replace(one_day, rows_per_unit=15, columns=whole.columns, fixed=()) == whole
    assert apply_bounds(STAYS, [STAYS.get_column("ward")]) == STAYS


def _of_expressions(keys: tuple[str, ...], groups: int, *computed: str) -> Grouping:
    return Grouping(keys, groups, None, (), computed)


@in_turn(
    ("keys", "declared", "groups", "by"),
    [
        ("ward, cost > 100", (), 3, ""),
        ("ward, cost > 100", (_of_expressions((), 1, "cost > 100"),), 1, "ward; cost > 100"),
        ("ward, NOT (cost <= 100)", (_of_expressions(("ward",), 2, "cost > 100"),), 2, "ward, cost > 100"),
        ("floor(cost / 200)", (_of_expressions((), 2, "floor(cost / 100)"),), 2, "floor(cost / 100)"),
        ("floor(cost / 150)", (_of_expressions((), 2, "floor(cost / 100)"),), 5, ""),
        ("cost > 100, extract(dow FROM arrived)", (_of_expressions((), 1, "cost > 100"),), 2, "cost > 100"),
    ],
)
def test_computed_keys_have_the_least_bound(keys: str, declared: tuple[Grouping, ...], groups: int, by: str) -> None:
    """Of a ward a patient is in one group, and has 15 rows there; nothing is declared of all groups."""
    catalog = _with_groupings(people(), stays=(BY_WARD, *declared))
    table = _ask(f"SELECT {keys} FROM stays GROUP BY {keys} HAVING count(*) > 100", catalog).table
    assert (table.groups_per_unit, table.groups_by) == (
        groups,
        " and ".join(f'groupings."{named}"' for named in by.split("; ") if named),
    )


def test_parts_of_times_stand_beside_a_declared_expression() -> None:
    """They are groups of a column that the question itself derives: the declared expression's table has none of it."""
    catalog = _with_groupings(people(), stays=(BY_WARD, _of_expressions((), 1, "cost > 100")))
    left = Column("left_at", SqlType.TIMESTAMP, "timestamp without time zone")
    tables = [replace(one, columns=(*one.columns, left)) if one.name == "stays" else one for one in catalog.tables]
    keys = "cost > 100, extract(dow FROM left_at)"
    asked = f"SELECT {keys} FROM stays GROUP BY {keys} HAVING count(*) > 100"
    assert _ask(asked, replace(catalog, tables=tuple(tables))).table.groups_per_unit == 8


def test_an_expression_that_makes_no_groups_of_one_column_is_a_fault() -> None:
    texts = ("nothing > 10", "cost > 1 AND ward = 'A'", "cost > 1, age > 2", "floor(cost /", "cost > 1 HAVING true")
    for text in texts:
        catalog = _with_groupings(people(), stays=(_of_expressions((), 2, text),))
        assert [fault.hint is not None for _, fault in find_expression_faults(catalog)] == [True], text
    catalog = _with_groupings(people(), stays=(_of_expressions((), 2, "date_trunc('week', arrived)"),))
    assert not list(find_expression_faults(catalog))
