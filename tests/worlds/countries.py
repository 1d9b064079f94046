"""A small catalog for endpoint and shadow tests: two private tables, a public one, a stored question, a monitor."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache

from planner.catalog.catalog import (
    Analyst,
    Budget,
    Catalog,
    Column,
    Defaults,
    PublicTable,
    SqlType,
    StoredQuestion,
    Table,
)
from planner.catalog.monitor import Monitor, Windows
from proxy.security.scram import make_verifier

PASSWORD = "open sesame"
QUESTION = "SELECT country FROM sales GROUP BY country HAVING count(*) > 20"
CROWDED = Monitor(
    name="crowded",
    sql="SELECT country FROM sales GROUP BY country HAVING count(*) > 20",
    windows=Windows("invoice_date", length=timedelta(days=1)),
    every=timedelta(hours=1),
    lateness=timedelta(minutes=10),
    begins=datetime(2026, 1, 1),
    ends=datetime(2026, 2, 1),
    mechanism="alarm",
    analysts=("ada",),
    comment="Countries over 20 sales today",
)
"""One that bob may not read."""


@cache
def analyst(name: str) -> Analyst:
    text = make_verifier(PASSWORD, salt=name.encode().ljust(16, b"."))
    return Analyst(name=name, verifier=text, token_hash=None, per_predicate=None, per_unit=None)


@cache
def endpoint_catalog(
    *, digest: str = "first", analysts: tuple[str, ...] = ("ada", "bob"), timeout_ms: int = 30_000
) -> Catalog:
    domain = ("Côte d'Ivoire", "France", 'G"\\{},', "Spain", "Sweden")
    sales = Table(
        name="sales",
        relation="sales",
        columns=(
            Column("country", SqlType.TEXT, "text", domain=domain),
            Column("amount", SqlType.NUMERIC, "numeric(10,2)", bounds=(Decimal(0), Decimal(100)), grid=Decimal("0.01")),
            Column("invoice_date", SqlType.TIMESTAMP, "timestamp without time zone"),
            Column("quantity", SqlType.INTEGER, "integer"),
        ),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="seed",
    )
    visits = replace(
        sales,
        name="visits",
        relation="visits",
        columns=(Column("patient_id", SqlType.INTEGER, "integer"), *sales.columns),
        unit=("patient_id",),
        rows_per_unit=20,
    )
    regions = PublicTable(
        name="regions",
        columns=(Column("country", SqlType.TEXT, "text"), Column("region", SqlType.TEXT, "text")),
        rows=(("France", "Europe"), ("Spain", "Europe"), ("Côte d'Ivoire", "Africa"), ("Nowhere", None)),
        digest="regions",
    )
    return Catalog(
        tables=(sales, visits),
        public_tables=(regions,),
        stored_questions=(StoredQuestion("busy", QUESTION + ";"),),
        analysts=tuple(analyst(name) for name in analysts),
        defaults=Defaults(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=50, mechanism="keyhole"),
        budget=Budget(per_predicate=4.0, per_unit=8.0, per_query=2.0),
        database="retail",
        max_keys=1000,
        statement_timeout_ms=timeout_ms,
        digest=digest,
        monitors=(CROWDED,),
    )
