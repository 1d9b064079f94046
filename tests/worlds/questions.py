"""Questions built by hand, past the parser: what the planning tests put together."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from mechanisms.formula import Cut, Formula
from planner.catalog.catalog import Column, RowCap, SqlType, Table
from planner.catalog.key_space import KeySpace
from planner.question.condition import ALWAYS, Compare, Condition
from planner.question.question import Accuracy, Atom, Functional, Measure, Question, Term

COUNTRIES = ("France", "Germany", "Norway", "Spain")
MONTHS = (date(2011, 1, 1), date(2011, 2, 1), date(2011, 3, 1))

COLUMNS = (
    Column("customer_id", SqlType.INTEGER, "integer"),
    Column("country", SqlType.TEXT, "text", domain=COUNTRIES),
    Column("month", SqlType.DATE, "date", domain=MONTHS),
    Column(
        "amount",
        SqlType.NUMERIC,
        "numeric(10,2)",
        bounds=(Decimal(0), Decimal(100)),
        grid=Decimal(1),
        per_unit=(Decimal(0), Decimal(500)),
    ),
    Column("line_id", SqlType.INTEGER, "integer"),
)

ROWS = Table(
    name="sales",
    relation="sales",
    columns=COLUMNS,
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="seed",
)
CLIPPED = replace(ROWS, unit=("customer_id", "month"), rows_per_unit=20)
CAPPED = replace(ROWS, unit=("customer_id", "month"), row_cap=RowCap(rows=5, unique="line_id"))

ACCURACY = Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=50, mechanism="keyhole")

FRANCE = Compare("country", "=", "France")
SPAIN = Compare("country", "=", "Spain")


def count(condition: Condition = ALWAYS, *, table: Table = ROWS, name: str = "count(*)") -> Functional:
    most = table.rows_per_unit or (table.row_cap.rows if table.row_cap else 1)
    clipped = not table.is_row_unit and table.row_cap is None
    return Functional(
        name=name,
        measure=Measure.ROWS,
        terms=(Term(1, None, condition, 0),),
        sensitivity=most,
        unit_range=(0, most) if clipped else None,
        unit_size=Decimal(1),
        rows=1,
    )


def total(condition: Condition = ALWAYS, *, table: Table = ROWS, name: str = "sum(amount)") -> Functional:
    clipped = not table.is_row_unit and table.row_cap is None
    most = 500 if clipped else 100 * (table.row_cap.rows if table.row_cap else 1)
    return Functional(
        name=name,
        measure=Measure.TOTAL,
        terms=(Term(1, "amount", condition, 1),),
        sensitivity=most,
        unit_range=(0, 500) if clipped else None,
        unit_size=Decimal(1),
        rows=1,
    )


def average(threshold: int, *, rows: int = 50) -> Functional:
    return Functional(
        name=f"avg(amount) - {threshold}",
        measure=Measure.TOTAL,
        terms=(Term(1, "amount", ALWAYS, 1), Term(-threshold, "amount", ALWAYS, 0)),
        sensitivity=max(threshold, 100 - threshold),
        unit_range=None,
        unit_size=Decimal(1),
        rows=rows,
        origin=Decimal(threshold),
    )


def units(condition: Condition = ALWAYS) -> Functional:
    return Functional(
        name="count(DISTINCT customer_id)",
        measure=Measure.UNITS,
        terms=(Term(1, None, condition, 0),),
        sensitivity=1,
        unit_range=None,
        unit_size=Decimal(1),
        rows=1,
    )


def above(functional: int, cut: int, tolerance: int) -> Cut:
    return Cut(functional=functional, cut=cut, above=True, tolerance=tolerance)


def below(functional: int, cut: int, tolerance: int) -> Cut:
    return Cut(functional=functional, cut=cut, above=False, tolerance=tolerance)


def question(
    formula: Formula,
    *functionals: Functional,
    table: Table = ROWS,
    where: Condition = ALWAYS,
    atoms: tuple[Atom, ...] = (),
    accuracy: Accuracy = ACCURACY,
) -> Question:
    columns = (table.get_column("country"), table.get_column("month"))
    return Question(
        table=table,
        keys=KeySpace(columns=columns, values=(COUNTRIES, MONTHS)),
        where=where,
        functionals=functionals,
        atoms=atoms,
        formula=formula,
        accuracy=accuracy,
        warnings=(),
    )
