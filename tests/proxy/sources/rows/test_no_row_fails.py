"""No row can make a rewritten question fail: neither its error nor its absence tells anything."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import psycopg
import pytest

from mechanisms.formula import TRUE
from planner.catalog.catalog import RowCap, Table
from planner.catalog.key_space import KeySpace
from planner.question.condition import ALWAYS, Compare, Condition, Not
from planner.question.question import Accuracy, Measure, Question
from tests.effort import cases, rounds
from tests.proxy.sources.worlds import MONTHS, TYPES, Engines, columns, functional

_FAR = {
    "infinite future": {"visited": "TIMESTAMP 'infinity'", "born": "DATE 'infinity'"},
    "infinite past": {"visited": "TIMESTAMP '-infinity'", "born": "DATE '-infinity'"},
    "far future": {"visited": "TIMESTAMP '290000-01-01 00:00:00'", "born": "DATE '5800000-01-01'"},
    "far past": {
        "visited": "TIMESTAMP '0001-01-01 00:00:00' - INTERVAL '4000 years'",
        "born": "CAST(DATE '0001-01-01' - INTERVAL '4000 years' AS date)",
    },
    "largest": {
        "age": "2147483647",
        "big": "9223372036854775807",
        "code": "9223372036854775807",
        "amount": "9999999999.99",
        "long": "9" * 34 + ".9999",
        "cost": "CAST('1.7976931348623157e308' AS double precision)",
    },
    "least": {
        "age": "(-2147483648)",
        "big": "CAST('-9223372036854775808' AS bigint)",
        "amount": "-9999999999.99",
        "long": "-" + "9" * 34 + ".9999",
        "cost": "CAST('-1.7976931348623157e308' AS double precision)",
    },
    "smallest": {"cost": "CAST('5e-324' AS double precision)"},
    "not a number": {"cost": "CAST('NaN' AS double precision)"},
    "infinite": {"cost": "CAST('-Infinity' AS double precision)"},
    "odd text": {"person": "'\\'", "ward": "'%_\\'"},
    "missing": {},
}
_CONDITIONS: tuple[Condition, ...] = (
    ALWAYS,
    Compare("hour_of", ">=", 0),
    Not(Compare("month", "=", MONTHS[0])),
    Compare("long", "<", Decimal("1.00001")),
    Compare("age", "<", 10**40),
)
_KEYS = ("ward", "born", "month", "hour_of", "dow", "day", "hours", "week")
_ASKED = cases(
    (((), False), (("person",), False), (("person",), True), (("visited", "born"), False)),
    [(key, ALWAYS) for key in _KEYS] + [("level", where) for where in _CONDITIONS],
    quick=13,
)


def _question(*, unit: tuple[str, ...], cap: bool, key: str, grids: dict[str, str], where: Condition) -> Question:
    table = Table(
        name="visits",
        relation="visits",
        columns=columns(**grids),
        unit=unit,
        groups_per_unit=1,
        rows_per_unit=None if cap else 2,
        row_cap=RowCap(rows=2, unique="long") if cap and unit else None,
        refresh="static",
        seed="s",
    )
    column = table.get_column(key)
    totals = ("age", "big", "amount", "long", "cost")
    return Question(
        table=table,
        keys=KeySpace(columns=(column,), values=(column.domain or (),)),
        where=where,
        functionals=(
            *(functional(table, Measure.ROWS, name, ALWAYS) for name in (None, *totals)),
            *(functional(table, Measure.TOTAL, name, ALWAYS) for name in totals),
            *(functional(table, Measure.TOTAL, name, ALWAYS, threshold=Fraction(7, 3)) for name in totals),
            functional(table, Measure.UNITS, None, Compare("week", "<>", date(2026, 1, 5))),
        ),
        atoms=(),
        formula=TRUE,
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


@pytest.mark.parametrize("row", _FAR.values(), ids=_FAR.keys())
def test_a_far_row_neither_fails_nor_moves_more_than_its_bound(engines: Engines, row: dict[str, str]) -> None:
    """Every key column, unit and bounding, over one strange row among ordinary ones."""
    plain = {"id": "1", "ward": "'north'", "level": "2", "flag": "TRUE", "person": "'ann'"}
    strange = {"ward": "'north'", "level": "2", "flag": "TRUE", "person": "'eve'", "code": "5", "id": "2"} | row
    tuples = [
        ", ".join(one.get(name, f"CAST(NULL AS {kind})") for name, kind in TYPES.items()) for one in (plain, strange)
    ]
    relations = engines.load_sql(tuples)
    share = rounds(1, quick=3)  # of the functionals, other ones for each question
    for turn, ((unit, cap), (key, where)) in enumerate(_ASKED):
        grids = {"age_grid": "0.3", "amount_grid": "0.25", "cost_grid": "7"} if key == "ward" else {}
        question = _question(unit=unit, cap=cap, key=key, grids=grids, where=where)
        question = replace(question, functionals=question.functionals[turn % share :: share])
        for answer in engines.answers(question, relations):
            limits = np.array([[f.sensitivity] for f in question.functionals])
            assert np.all(abs(answer) <= 2 * limits)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e100000", "-1e100000", "1e-16000", "0.5"])
@pytest.mark.parametrize("grid", ["0.01", "0.3"])
def test_any_numeric(engines: Engines, postgres_url: str, value: str, grid: str) -> None:
    """PostgreSQL's unconstrained numeric is clipped before anything else happens to it."""
    question = _question(unit=(), cap=False, key="level", grids={"amount_grid": grid}, where=_CONDITIONS[0])
    amount = replace(question.table.get_column("amount"), declared="numeric")
    table = replace(question.table, columns=tuple(amount if c.name == "amount" else c for c in question.table.columns))
    question = replace(question, table=replace(table, relation="odd"), functionals=question.functionals[8:9])
    engines.writer.execute("DROP TABLE IF EXISTS odd; CREATE TABLE odd (level integer, amount numeric)")
    engines.writer.execute("INSERT INTO odd VALUES (2, %s)", (value,))
    (answer,) = engines.answers(question, {"postgres": "odd"})
    low, high = (round(bound / amount.grid) for bound in amount.bounds)  # type: ignore[union-attr,operator]
    small = {"1e-16000": 0, "0.5": round(Decimal("0.5") / Decimal(grid)), "NaN": 0}
    expected = small.get(value, low if value.startswith("-") else high)
    assert answer[0, 1] == expected
    with psycopg.connect(postgres_url, autocommit=True) as writer:
        writer.execute("DROP TABLE odd")
