"""Catalogs made by hand for tests: `retail` with a customer-month as privacy unit, `visits` with the row as unit."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from mechanisms.registry import MECHANISMS
from planner.catalog.catalog import (
    Analyst,
    Budget,
    Catalog,
    Column,
    Defaults,
    Derivation,
    PublicTable,
    RowCap,
    SqlType,
    StoredQuestion,
    Table,
)

COUNTRIES = ("France", "Germany", "Norway", "United Kingdom")
MONTHS = tuple(date(2010 + (11 + i) // 12, (11 + i) % 12 + 1, 1) for i in range(13))

SALES = Table(
    name="sales",
    relation="sales",
    columns=(
        Column("customer_id", SqlType.INTEGER, "integer"),
        Column("country", SqlType.TEXT, "text", domain=COUNTRIES),
        Column(
            "month",
            SqlType.DATE,
            "date",
            domain=MONTHS,
            derivation=Derivation("date_trunc", "month", "invoice_date"),
        ),
        Column("invoice_date", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column(
            "amount",
            SqlType.NUMERIC,
            "numeric(10,2)",
            bounds=(Decimal(-500), Decimal(500)),
            grid=Decimal("0.01"),
            per_unit=(Decimal(-1000), Decimal(1500)),
        ),
        Column(
            "quantity",
            SqlType.INTEGER,
            "integer",
            bounds=(Decimal(-100), Decimal(100)),
            grid=Decimal(1),
            per_unit=(Decimal(0), Decimal(1000)),
        ),
        Column("stock_code", SqlType.TEXT, "character varying(12)"),
        Column("gift", SqlType.BOOLEAN, "boolean"),
        Column("weight", SqlType.DOUBLE, "double precision"),
        Column("attributes", SqlType.OTHER, "jsonb"),
    ),
    unit=("customer_id", "month"),
    groups_per_unit=1,
    rows_per_unit=100,
    row_cap=None,
    refresh="static",
    seed="retail",
    comment="lines of invoices",
)
VISITS = Table(
    name="visits",
    relation="visits",
    columns=(
        Column("visit_id", SqlType.INTEGER, "bigint"),
        Column("ward", SqlType.TEXT, "text", domain=("A", "B", "C")),
        Column(
            "day",
            SqlType.DATE,
            "date",
            domain=tuple(date(2026, 1, 1 + i) for i in range(10)),
            derivation=Derivation("date", "", "arrived"),
        ),
        Column(
            "hour",
            SqlType.INTEGER,
            "integer",
            domain=tuple(range(24)),
            derivation=Derivation("extract", "hour", "arrived"),
        ),
        Column("arrived", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("age", SqlType.INTEGER, "integer", bounds=(Decimal(0), Decimal(110)), grid=Decimal(1)),
        Column("cost", SqlType.NUMERIC, "numeric", bounds=(Decimal(0), Decimal(5000)), grid=Decimal("0.5")),
        Column("height", SqlType.DOUBLE, "double precision", bounds=(Decimal(0), Decimal(3))),
        Column("insured", SqlType.BOOLEAN, "boolean"),
        Column("disease", SqlType.TEXT, "text"),
        Column("reference", SqlType.UUID, "uuid"),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="visits",
)
CAPPED_SALES = replace(SALES, name="capped_sales", row_cap=RowCap(rows=5, unique="stock_code"), rows_per_unit=None)
REGIONS = PublicTable(
    name="regions",
    columns=(Column("name", SqlType.TEXT, "text"), Column("region", SqlType.TEXT, "text")),
    rows=(("France", "West"), ("Germany", "Middle"), ("Norway", "North"), ("United Kingdom", "West")),
    digest="0" * 64,
)
BUSY = StoredQuestion(
    name="busy_months",
    sql="SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 1000",
    comment="busy",
)
DEFAULTS = Defaults(fnr=0.05, fpr=0.10, tolerance="10%", min_rows=50, mechanism="keyhole")
EVERY_MECHANISM = replace(DEFAULTS, mechanisms=tuple(MECHANISMS))
"""A policy's defaults that allow every mechanism, the ones without both bounds as well."""
RETAIL = Catalog(
    tables=(SALES, VISITS, CAPPED_SALES),
    public_tables=(REGIONS,),
    stored_questions=(BUSY,),
    analysts=(Analyst("demo", "SCRAM-SHA-256$4096:c2FsdA==$a:b", None, None, None),),
    defaults=DEFAULTS,
    budget=Budget(per_predicate=4.0, per_unit=8.0, per_query=2.0),
    database="retail",
    max_keys=10_000,
    statement_timeout_ms=60_000,
    digest="1" * 64,
)


def retail() -> Catalog:
    """Tables sales (unit customer-month), visits (unit row) and capped_sales (rows capped), and public regions."""
    return RETAIL
