"""Each single row value, one row per key: clipped, rounded half up to its grid, the same on both engines."""

import random
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechanisms.formula import TRUE
from planner.catalog.catalog import Table, Value
from planner.catalog.key_space import KeySpace
from planner.question.condition import ALWAYS
from planner.question.question import Accuracy, Measure, Question
from tests.effort import cases
from tests.proxy.sources.oracle import true_aggregates
from tests.proxy.sources.worlds import TYPES, Engines, columns, functional

_RANDOM = random.Random(20260101)
_INTEGERS = [*range(-15, 125), 2**31 - 1, -(2**31)]
_DECIMALS = [Decimal(n).scaleb(-2) for n in [*range(-1105, 1105, 7), *range(9_900, 10_200, 3), 10**11, -(10**11)]]
_LONGS = [Decimal(n).scaleb(-4) for n in [*range(-103_000, 20_000, 777), 10**37, -(10**37), 1_000_000, 999_999, 1500]]
_DOUBLES = [
    *(_RANDOM.uniform(-8, 60) for _ in range(150)),
    *(n / 20 for n in range(-120, 120)),
    *(0.49999999999999994, 1e308, -1e308, 5e-324, -5e-324, 1e-310, -0.0, float("inf"), float("-inf"), float("nan")),
]


def _table(**grids: str) -> Table:
    return Table(
        name="visits",
        relation="visits",
        columns=columns(**grids),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="s",
    )


def _rows(column: str, values: list[Any]) -> list[dict[str, Any]]:
    empty: dict[str, Any] = dict.fromkeys(TYPES)
    return [{**empty, "id": i, "level": i, column: value} for i, value in enumerate(values)]


def _question(table: Table, column: str, *, keys: int) -> Question:
    domain: tuple[Value, ...] = tuple(range(keys))
    key = replace(table.get_column("level"), domain=domain)
    table = replace(table, columns=tuple(key if c.name == "level" else c for c in table.columns))
    return Question(
        table=table,
        keys=KeySpace(columns=(key,), values=(domain,)),
        where=ALWAYS,
        functionals=(
            functional(table, Measure.TOTAL, column, ALWAYS),
            functional(table, Measure.TOTAL, column, ALWAYS, threshold=Fraction(7, 3)),
            functional(table, Measure.ROWS, column, ALWAYS),
        ),
        atoms=(),
        formula=TRUE,
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


@pytest.mark.parametrize(
    ("column", "values", "grid"),
    [
        *cases(["age"], [_INTEGERS], ("1", "2", "7", "0.5", "2.5", "0.3", "1000"), quick=3),
        *cases(["amount"], [_DECIMALS], ("0.01", "0.001", "0.1", "1", "0.25", "0.3", "3", "500"), quick=4),
        *cases(["long"], [_LONGS], ("0.0001", "0.001", "1", "0.3", "0.25"), quick=3),
        *cases(["cost"], [_DOUBLES], ("0.1", "0.01", "1", "0.5", "0.3", "7", "1000"), quick=3),
    ],
)
def test_row_value(engines: Engines, column: str, values: list[Any], grid: str) -> None:
    table = _table(**{f"{column}_grid": grid})
    rows = _rows(column, values)
    question = _question(table, column, keys=len(rows))
    expected = true_aggregates(question, rows)
    for answer in engines.answers(question, engines.load(rows)):
        np.testing.assert_array_equal(answer, expected)


def test_sums_stay_within_sixty_two_bits(engines: Engines) -> None:
    """Totals beyond 2^62 are clipped there, not wrapped around and not refused."""
    table = _table()
    big = replace(table.get_column("big"), bounds=(Decimal(-(2**52)), Decimal(2**52)))
    table = replace(table, columns=tuple(big if c.name == "big" else c for c in table.columns))
    rows = [
        {**dict.fromkeys(TYPES), "id": i, "level": 0, "big": 2**63 - 1, "visited": datetime(2026, 1, 1)}
        for i in range(3000)
    ]
    question = _question(table, "big", keys=1)
    expected = np.clip(true_aggregates(replace(question, functionals=question.functionals[2:]), rows), 0, 2**62)
    for answer in engines.answers(question, engines.load(rows)):
        assert answer[0, 0] == 2**62
        assert answer[1, 0] == 2**62
        assert answer[2, 0] == expected[0, 0]
