"""What a row adds under conditions on the column that is summed lies in the narrowed range, on both engines."""

import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from mechanisms.formula import TRUE
from planner.catalog.catalog import Column, SqlType, Table, Value
from planner.catalog.key_space import KeySpace
from planner.functionals.functional import find_grid
from planner.functionals.row_range import find_row_range
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Not, Or, Within
from planner.question.question import Accuracy, Functional, Measure, Question, Term
from planner.question.range_inference import narrow_range
from tests.effort import rounds
from tests.proxy.sources.worlds import TYPES, Engines, columns

RAW: dict[str, list[Any]] = {
    "age": [*range(-3, 25), 108, 109, 110, 111, 2**31 - 1, -(2**31), None],
    "amount": [
        *(Decimal(n).scaleb(-2) for n in [*range(-1120, -940, 7), *range(-60, 460, 11), *range(9_900, 10_200, 9)]),
        *(Decimal("9999999999.99"), Decimal("-9999999999.99"), None),
    ],
    "long": [*(Decimal(n).scaleb(-4) for n in range(-103_000, 20_000, 1777)), Decimal(10**33), -Decimal(10**33), None],
    "cost": [
        *(n / 20 for n in range(-130, 150, 3)),
        *(0.1, 0.3, 0.30000000000000004, 0.7, 2.5, 49.95, 50.0, 1e308, -1e308, 5e-324, 0.49999999999999994, -0.0),
        *(float("inf"), float("-inf"), float("nan"), None),
    ],
}
EDGES: dict[str, list[Value]] = {
    "age": [-(2**31), -5, 0, 1, 3, 7, 15, 109, 110, 200],
    "amount": [*map(Decimal, ("-20", "-10", "-9.87", "-0.5", "0", "0.125", "1.5", "3.33", "100.25", "100.5", "1e20"))],
    "long": [*map(Decimal, ("-1e40", "-10.25", "-10.2", "-0.15", "0", "0.00001", "0.15", "1.25", "99.9", "1e40"))],
    "cost": [
        *map(Decimal, ("-1e400", "-6", "-5.5", "-0.05", "0", "0.1", "0.3", "0.35", "0.45", "2.5", "49.95", "1e400"))
    ],
}
GRIDS = {
    "age": ("1", "7", "2.5", "0.3"),
    "amount": ("0.01", "1", "0.25", "0.3", "3", "500"),
    "long": ("0.0001", "1", "0.3"),
    "cost": ("0.1", "1", "0.3", "7", "1000"),
}


def conditions(column: str, *, seed: int, size: int) -> list[Condition]:
    """Conditions of all shapes on one column, and some that say nothing of it."""
    chance = random.Random(seed)

    def leaf() -> Condition:
        kind = chance.randrange(8)
        if kind == 0:
            return Within(column, tuple(sorted(set(chance.sample(EDGES[column], 2)))))
        if kind == 1:
            other: list[Condition] = [IsNull(column), Not(IsNull(column)), Compare("id", ">", 10), ALWAYS]
            return chance.choice(other)
        return Compare(column, chance.choice(["=", "<>", "<", "<=", ">", ">="]), chance.choice(EDGES[column]))

    def grown(depth: int) -> Condition:
        kind = chance.randrange(5) if depth else 0
        if kind < 2:
            return leaf()
        if kind == 2:
            return Not(grown(depth - 1))
        parts = tuple(grown(depth - 1) for _ in range(chance.randrange(1, 4)))
        return And(parts) if kind == 3 else Or(parts)

    return [grown(2) for _ in range(size)]


def summed(column: str, condition: Condition, *, table: Table, among: Condition) -> tuple[Functional, tuple[int, int]]:
    """The sum under a condition with the sensitivity that its narrowed range gives, and that range."""
    terms = (Term(1, column, condition, 1),)
    ranges = {column: find_grid(table.get_column(column), table, position=None)[1:]}
    low, high = find_row_range(terms, ranges=ranges, table=table, among=among)
    made = Functional(
        name="sum",
        measure=Measure.TOTAL,
        terms=terms,
        sensitivity=max(-low, high, 1),
        unit_range=None,
        unit_size=Decimal(1),
        rows=1,
    )
    return made, (low, high)


@pytest.mark.parametrize(("column", "step"), [(column, step) for column, steps in GRIDS.items() for step in steps])
def test_no_row_leaves_the_narrowed_range(engines: Engines, column: str, step: str) -> None:
    """Every raw value as a row and a key of its own; the rewriting checks the sensitivity against its own range."""
    rows: list[dict[str, Any]] = [
        {**dict.fromkeys(TYPES), "id": i, "level": i, column: value} for i, value in enumerate(RAW[column])
    ]
    domain: tuple[Value, ...] = tuple(range(len(rows)))
    made = columns(**{f"{column}_grid": step})
    key = replace(next(known for known in made if known.name == "level"), domain=domain)
    table = Table(
        name="visits",
        relation="visits",
        columns=tuple(key if known.name == "level" else known for known in made),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="s",
    )
    loaded = engines.load(rows)
    share = rounds(1, quick=4)  # of the conditions, other ones for each step
    some = slice(GRIDS[column].index(step) % share, None, share)
    for where in (ALWAYS, *conditions(column, seed=3, size=4)[some]):
        pairs = [
            summed(column, condition, table=table, among=where)
            for condition in (ALWAYS, *conditions(column, seed=7, size=24)[some])
        ]
        question = Question(
            table=table,
            keys=KeySpace(columns=(key,), values=(domain,)),
            where=where,
            functionals=tuple(functional for functional, _ in pairs),
            atoms=(),
            formula=TRUE,
            accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
            warnings=(),
        )
        for answer in engines.answers(question, loaded):
            for (functional, (low, high)), values in zip(pairs, answer, strict=True):
                assert values.min() >= low, functional.terms
                assert values.max() <= high, functional.terms


AGE = Column("x", SqlType.INTEGER, "integer", bounds=(Decimal(0), Decimal(100)), grid=Decimal(1))
FINE = replace(
    AGE, sql_type=SqlType.NUMERIC, declared="numeric", grid=Decimal("0.5"), bounds=(Decimal("9.7"), Decimal(50))
)
DOUBLE = replace(AGE, sql_type=SqlType.DOUBLE, declared="double precision", grid=Decimal("0.1"))


@pytest.mark.parametrize(
    ("column", "steps", "condition", "expected"),
    [
        (AGE, (0, 100), Compare("x", "<", 10), (0, 9)),
        (AGE, (0, 100), Compare("x", ">", 10), (11, 100)),
        (AGE, (0, 100), And((Compare("x", ">=", 5), Compare("x", "<=", 20))), (5, 20)),
        (AGE, (0, 100), Not(Compare("x", "<", 10)), (10, 100)),
        (AGE, (0, 100), Or((Compare("x", "<", 10), IsNull("x"))), (0, 9)),
        (AGE, (0, 100), Or((Compare("x", "<", 10), Compare("y", "=", 1))), (0, 100)),
        (AGE, (0, 100), Within("x", (3, 8)), (3, 8)),
        (AGE, (0, 100), Not(Within("x", (3, 8))), (0, 100)),
        (AGE, (0, 100), Compare("x", ">", 150), (100, 100)),
        (AGE, (0, 100), And((Compare("x", ">", 5), Compare("x", "<", 3))), (0, 100)),
        (FINE, (19, 100), Compare("x", "<", Decimal(5)), (19, 20)),
        (FINE, (19, 100), Compare("x", "<=", Decimal("12.3")), (19, 25)),
        (FINE, (19, 100), Compare("x", ">=", Decimal("12.3")), (24, 100)),
        (DOUBLE, (0, 1000), Compare("x", ">=", Decimal("0.3")), (3, 1000)),
        (replace(AGE, grid=None, sql_type=SqlType.NUMERIC), (0, 100), Compare("x", "<", Decimal(10)), (0, 100)),
    ],
)
def test_narrowed_by_hand(
    column: Column, steps: tuple[int, int], condition: Condition, expected: tuple[int, int]
) -> None:
    table = Table(
        name="t",
        relation="t",
        columns=(column, replace(AGE, name="y")),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="s",
    )
    assert narrow_range("x", steps, among=(condition,), table=table) == expected
