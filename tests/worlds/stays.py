"""Catalogs of patients with many stays: totals clipped, and the same with rows capped; and beside them two private
tables with the same privacy units, one of others, and a public table."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from planner.catalog.catalog import Catalog, Column, Derivation, PublicTable, RowCap, SqlType, Table, UnitRoot
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
_ROOT = UnitRoot("stays", ("patient_id",))
PATIENTS = Table(
    name="patients",
    relation="patients",
    columns=(
        Column("patient_id", SqlType.INTEGER, "integer", ledger="patient_id"),
        Column("sex", SqlType.TEXT, "text", domain=("f", "m"), ledger="patients.sex"),
        Column("born", SqlType.DATE, "date", ledger="patients.born"),
        Column(
            "year",
            SqlType.INTEGER,
            "integer",
            domain=(1960, 1980, 2000),
            derivation=Derivation("extract", "year", "born"),
            ledger="patients.year=extract(year born)",
        ),
        Column("ward", SqlType.TEXT, "text", domain=("A", "B", "C"), ledger="patients.ward"),
        Column(
            "weight",
            SqlType.INTEGER,
            "integer",
            bounds=(Decimal(0), Decimal(200)),
            grid=Decimal(1),
            per_unit=(Decimal(0), Decimal(300)),
            ledger="patients.weight",
        ),
    ),
    unit=("patient_id",),
    groups_per_unit=2,
    rows_per_unit=2,
    row_cap=None,
    refresh="static",
    seed="patients",
    root=_ROOT,
)
LABS = Table(
    name="labs",
    relation="labs",
    columns=(
        Column("person", SqlType.INTEGER, "bigint", ledger="patient_id"),
        Column("kind", SqlType.TEXT, "text", domain=("blood", "urine"), ledger="labs.kind"),
    ),
    unit=("person",),
    groups_per_unit=1,
    rows_per_unit=3,
    row_cap=None,
    refresh="static",
    seed="labs",
    root=_ROOT,
)
STAFF = replace(PATIENTS, name="staff", relation="staff", root=None)
CHOSEN = replace(CAPPED, root=_ROOT)
WARDS = PublicTable(
    name="wards",
    columns=(Column("name", SqlType.TEXT, "text"), Column("floor", SqlType.INTEGER, "integer")),
    rows=(("A", 1), ("B", 2), ("C", 2)),
    digest="w",
)


def stays() -> Catalog:
    """The catalog made by hand, with `stays` and `capped` beside its tables."""
    return replace(retail(), tables=(*retail().tables, STAYS, CAPPED))


def people() -> Catalog:
    """`stays`, and `patients` and `labs` with the same units; `capped` chooses rows; `staff` are other people."""
    tables = (STAYS, PATIENTS, LABS, CHOSEN, STAFF)
    return replace(retail(), tables=tables, public_tables=(WARDS,), stored_questions=())
