"""Totals of an expression take the least bound that is declared of it, or that its columns' totals imply."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from random import Random

import duckdb

from planner.bind.unit_join import join_on_unit
from planner.catalog.catalog import Catalog, Column, SqlType
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.policy.expression_totals import read_total
from planner.question.question import Functional, Term
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.worlds.retail import SALES, retail

ROWS = 4
Range = tuple[int, int]


def measure(name: str, bounds: Range, per_unit: Range | None = None, grid: str = "0.01") -> Column:
    ends = None if per_unit is None else (Decimal(per_unit[0]), Decimal(per_unit[1]))
    return Column(
        name,
        SqlType.NUMERIC,
        "numeric",
        bounds=(Decimal(bounds[0]), Decimal(bounds[1])),
        grid=Decimal(grid),
        per_unit=ends,
    )


MEASURES = (
    measure("price", (0, 100), (0, 150)),
    measure("discount", (0, 1)),
    measure("tax", (0, 2), (0, 3)),
    measure("change", (-10, 10), (-12, 15), grid="1"),
    measure("whole", (0, 50), (0, 60), grid="1"),
)


def catalog(rows: int | None = ROWS) -> Catalog:
    table = replace(SALES, columns=(*SALES.columns, *MEASURES), rows_per_unit=rows)
    return replace(retail(), tables=(table, *retail().tables[1:]))


def functional(expression: str, *, rows: int | None = ROWS, having: str = "> 100000") -> Functional:
    question = asked(
        f"SELECT country FROM sales GROUP BY country HAVING sum({expression}) {having}", catalog=catalog(rows)
    )
    (found,) = [one for one in question.functionals if one.unit_range is not None and one.unit_range != (0, rows)]
    return found


def in_units(found: Functional) -> tuple[float, float]:
    assert found.unit_range is not None
    low, high = found.unit_range
    return float(low * found.unit_size), float(high * found.unit_size)


@in_turn(
    ("expression", "expected"),
    [
        ("price * (1 - discount)", (0, 150)),  # and not 4 rows of 100
        ("price * (1 - discount) * (1 + tax)", (0, 450)),
        ("price * discount", (0, 150)),
        ("price * tax", (0, 300)),  # twice the price's total, and not 100 times the tax's
        ("price + whole", (0, 210)),
        ("price - whole", (-60, 150)),
        ("change + whole", (-12, 75)),
        ("change * discount", (-40, 40)),  # parts of a total of both signs may be large: rows bound it
        ("2 * price - price * discount", (0, 300)),
    ],
)
def test_the_least_bound_holds(expression: str, expected: tuple[int, int]) -> None:
    assert in_units(functional(expression)) == expected


def test_without_a_bound_on_rows_declared_totals_are_enough() -> None:
    assert in_units(functional("price * (1 - discount)", rows=None)) == (0, 150)


def test_no_unit_within_its_declared_bounds_is_cut() -> None:
    """Random units of up to four rows within every declared bound (200, quick: 60), of eight expressions."""
    random = Random(22)
    expressions = (
        "price * (1 - discount)",
        "price * (1 - discount) * (1 + tax)",
        "2 * price - price * discount",
        "price + whole",
        "price - 2 * whole",
        "change + whole",
        "change * discount",
        "(change - 3) * whole",
    )
    made = [functional(one, having="> 100000 AND count(*) > 1000") for one in expressions]
    for _ in range(rounds(200, quick=60)):
        unit = [_draw_row(random) for _ in range(random.randint(0, ROWS))]
        while not _is_within(unit):
            unit.pop(random.randrange(len(unit)))
        for found in made:
            assert found.unit_range is not None
            low, high = found.unit_range
            total = sum(_added(term, row) for row in unit for term in found.terms)
            assert low <= total <= high, (found.name, unit)
            assert found.sensitivity == max(-low, high, 1)


def _draw_row(random: Random) -> dict[str, int]:
    row = {}
    for column in MEASURES:
        assert column.bounds is not None
        assert column.grid is not None
        low, high = (int(end / column.grid) for end in column.bounds)
        row[column.name] = random.choice((low, high, random.randint(low, high)))
    return row


def _is_within(unit: list[dict[str, int]]) -> bool:
    for column in MEASURES:
        total = sum(row[column.name] for row in unit)
        assert column.grid is not None
        if column.per_unit is not None and not (column.per_unit[0] <= total * column.grid <= column.per_unit[1]):
            return False
    return True


def _added(term: Term, row: Mapping[str, int]) -> int:
    value = term.coefficient
    if term.column is not None and term.power:
        for name in term.column.split(" * "):
            value *= row[name]
    return value


def test_explain_says_what_the_total_is_clipped_to() -> None:
    made = plan_question(
        asked(
            "SELECT country FROM sales GROUP BY country HAVING sum(price * (1 - discount)) > 10000", catalog=catalog()
        ),
        dialect=DUCKDB,
    )
    assert "the total of one (customer_id, month) is clipped to 0 .. 150" in "\n".join(explain_text(made, left=None))


def declared(*totals: tuple[str, Range], rows: int | None = ROWS) -> Catalog:
    """The catalog with totals of expressions, read as a policy has them."""
    found = catalog(rows)
    made = tuple(read_total(text, (Decimal(low), Decimal(high))) for text, (low, high) in totals)
    return replace(found, tables=(replace(found.tables[0], totals=made), *found.tables[1:]))


def declared_functional(sql: str, found: Catalog, *, than: str = "> 100000") -> Functional:
    question = asked(f"SELECT country FROM sales GROUP BY country HAVING {sql} {than}", catalog=found)
    return question.functionals[0]


@in_turn(
    ("expression", "expected"),
    [
        ("sum(price * (1 - discount))", (0, 90)),
        ("sum((1 - discount) * price)", (0, 90)),
        ("sum(PRICE*1-discount  *price)", (0, 90)),
        ("sum(price - discount * price) ", (0, 90)),
        ("sum(2 * price * (1 - discount))", (0, 180)),
        ("sum((discount - 1) * price)", (-90, 0)),
        ("sum(price * (1 - discount)) FILTER (WHERE whole > 3)", (0, 90)),
        ("sum(CASE WHEN whole > 3 THEN price * (1 - discount) END)", (0, 90)),
        ("sum(price * (1 - discount) * (1 + tax))", (0, 450)),  # another expression
        ("sum(price * (1 + discount))", (0, 300)),
        ("sum(change * whole)", (-7, 20)),
    ],
)
def test_the_owner_declares_the_total_of_an_expression(expression: str, expected: Range) -> None:
    """However it is spelled; of an expression of which nothing is declared the columns' totals hold as before."""
    made = declared(("price * (1 - discount)", (0, 90)), ("whole * change", (-7, 20)))
    found = declared_functional(expression, made, than="> 100000" if expected[1] else "< -100000")
    assert in_units(found) == expected
    assert found.unit_range is not None
    low, high = found.unit_range
    assert found.sensitivity == max(-low, high)


def test_a_declared_total_may_stand_in_the_place_of_a_bound_on_rows() -> None:
    found = declared_functional("sum(price * change)", declared(("price * change", (-5, 40)), rows=None))
    assert in_units(found) == (-5, 40)


def test_a_mean_is_not_bounded_by_the_total() -> None:
    """What it is compared with is added in each row."""
    sql = "avg(price * (1 - discount))"
    plain = declared_functional(sql, catalog())
    assert declared_functional(sql, declared(("price * (1 - discount)", (0, 90)))) == plain


def test_in_a_join_the_rows_of_the_other_table_repeat_the_total() -> None:
    table = declared(("price * (1 - discount)", (0, 90))).tables[0]
    other = replace(table, name="returns", rows_per_unit=3, totals=(), root=table.ledger_root)
    joined = join_on_unit([table, other])
    (total,) = joined.totals
    assert total.per_unit == (Decimal(0), Decimal(270))
    assert total.columns == {"sales.price", "sales.discount"}


def test_one_unit_changes_no_more_than_declared() -> None:
    """Random units (60, quick: 20), most of them beyond what is declared, on DuckDB: the scan clips their totals, and
    some reach the range's end."""
    random = Random(23)
    made = declared(("price * (1 - discount)", (0, 90)), ("whole * change", (-7, 20)))
    reached = 0
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE sales (customer_id integer, invoice_date timestamp, country text, price numeric(9, 2),"
            " discount numeric(9, 2), whole integer, change integer)"
        )
        for expression, (low, high) in (("price * (1 - discount)", (0, 90)), ("change * whole", (-7, 20))):
            question = asked(
                f"SELECT country FROM sales GROUP BY country HAVING sum({expression}) > 100000", catalog=made
            )
            size, sql = question.functionals[0].unit_size, plan_question(question, dialect=DUCKDB).rewritten.sql
            for _ in range(rounds(60, quick=20)):
                engine.execute("DELETE FROM sales")
                for _ in range(random.randint(0, 2 * ROWS)):
                    row = _draw_row(random)
                    engine.execute(
                        "INSERT INTO sales VALUES (1, TIMESTAMP '2011-01-01', 'France', ?, ?, ?, ?)",
                        [row["price"] / 100, row["discount"] / 100, row["whole"], row["change"]],
                    )
                found = [float(amount * size) for *_, amount in engine.execute(sql).fetchall() if amount is not None]
                assert all(low <= amount <= high for amount in found), (expression, found)
                reached += any(amount in (low, high) for amount in found)
    assert reached > 10
