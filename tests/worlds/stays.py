"""A catalog whose privacy unit is a patient with many stays: totals clipped, and the same with rows capped."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from planner.catalog.model import Catalog, Column, Derivation, RowCap, SqlType, Table
from tests.worlds.retail import retail

STAYS = Table(
    name="stays",
    relation="stays",
    columns=(
        Column("stay_id", SqlType.INTEGER, "bigint"),
        Column("patient_id", SqlType.INTEGER, "integer"),
        Column("ward", SqlType.TEXT, "text", domain=("A", "B", "C")),
        Column(
            "day",
            SqlType.DATE,
            "date",
            domain=tuple(date(2026, 1, 1 + i) for i in range(10)),
            derivation=Derivation("date", "", "arrived"),
        ),
        Column("arrived", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column(
            "age",
            SqlType.INTEGER,
            "integer",
            bounds=(Decimal(0), Decimal(110)),
            grid=Decimal(1),
            per_unit=(Decimal(0), Decimal(220)),
        ),
        Column(
            "cost",
            SqlType.NUMERIC,
            "numeric(10,2)",
            bounds=(Decimal(0), Decimal(500)),
            grid=Decimal("0.5"),
            per_unit=(Decimal(0), Decimal(1000)),
        ),
        Column("height", SqlType.DOUBLE, "double precision", bounds=(Decimal(0), Decimal(3)), grid=Decimal("0.1")),
        Column("insured", SqlType.BOOLEAN, "boolean"),
    ),
    unit=("patient_id",),
    groups_per_unit=2,
    rows_per_unit=20,
    row_cap=None,
    refresh="static",
    seed="stays",
)
CAPPED = replace(STAYS, name="capped", rows_per_unit=None, row_cap=RowCap(rows=4, unique="stay_id"))


def stays() -> Catalog:
    """The catalog made by hand, with `stays` and `capped` beside its tables."""
    return replace(retail(), tables=(*retail().tables, STAYS, CAPPED))
