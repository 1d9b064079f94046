"""Both engines give the integers that the definition gives, on any rows."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given

from mechanisms.formula import TRUE
from planner.catalog.catalog import RowCap, Table
from planner.catalog.key_space import KeySpace
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Like, Not, Or
from planner.question.question import Accuracy, Measure, Question, Term
from tests.effort import cases, examples, rounds
from tests.proxy.sources.oracle import Row, read, true_aggregates
from tests.proxy.sources.worlds import (
    PRODUCTS,
    UNITS,
    Engines,
    columns,
    counted_values,
    crowd,
    functional,
    less_each_unit,
    linear,
    questions,
    rows,
    unit_sum,
    with_multiplied,
)

_GIVEN = examples(
    150,
    quick=8,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def _check(engines: Engines, question: Question, found: list[Row]) -> None:
    expected = true_aggregates(question, found)
    for answer in engines.answers(question, engines.load(found)):
        np.testing.assert_array_equal(answer, expected)


@_GIVEN
@given(question=questions(units=((),)), found=rows())
def test_row_unit(engines: Engines, question: Question, found: list[Row]) -> None:
    _check(engines, question, found)


@_GIVEN
@given(question=questions(units=UNITS), found=rows())
def test_bounded_units(engines: Engines, question: Question, found: list[Row]) -> None:
    _check(engines, question, found)


_CROWD = crowd(seed=7, size=400)
_CONDITIONS: tuple[Condition, ...] = (
    ALWAYS,
    Compare("cost", ">", Decimal("0.45")),
    Not(Or((Compare("cost", "<=", Decimal(0)), IsNull("cost")))),
    And((Like("person", "%o%"), Not(Compare("age", "=", 5)))),
)


def crowd_question(
    *,
    unit: tuple[str, ...],
    keys: tuple[str, ...],
    cap: int | None,
    groups: int,
    conditions: tuple[Condition, ...] = _CONDITIONS,
) -> Question:
    """Every measure under several filters, two values of the first key."""
    table = Table(
        name="visits",
        relation="visits",
        columns=with_multiplied(columns()),
        unit=unit,
        groups_per_unit=groups,
        rows_per_unit=2 if cap is None else None,
        row_cap=None if cap is None else RowCap(rows=cap, unique="id"),
        refresh="static",
        seed="crowd",
    )
    columns_ = tuple(table.get_column(name) for name in keys)
    domains = tuple(column.domain or () for column in columns_)
    functionals = [functional(table, measure, None, c) for measure in (Measure.ROWS, Measure.UNITS) for c in conditions]
    functionals += [functional(table, Measure.ROWS, name, ALWAYS) for name in ("cost", "amount", "person")]
    functionals += [
        functional(table, Measure.TOTAL, name, condition, threshold=threshold)
        for name in ("age", "big", "amount", "long", "cost", *PRODUCTS)
        for condition in conditions[:2]
        for threshold in (None, Fraction(7, 3))
    ]
    if unit:
        found = [Term(number, None, one, 0) for number, one in zip((2, -1, 3, -7), conditions[:4], strict=False)]
        functionals += [unit_sum(found), unit_sum(found[:2])]
        functionals += [less_each_unit(functionals[0], 2, ALWAYS), less_each_unit(functionals[-6], 9, None)]
        functionals += [less_each_unit(linear(table, found), 1, ALWAYS)]
    return Question(
        table=table,
        keys=KeySpace(columns=columns_, values=(*(domain[:2] for domain in domains[:1]), *domains[1:])),
        where=Compare("flag", "=", True) if groups in (1, 8) else ALWAYS,
        functionals=tuple(functionals),
        atoms=(),
        formula=TRUE,
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


def some_functionals(question: Question, *, among: tuple[object, ...], share: int) -> Question:
    """The question about one functional in so many, other ones for each of the test's cases: an engine's work is in
    proportion to their number."""
    first = crc32(repr(among).encode()) % share
    return replace(question, functionals=question.functionals[first::share])


def different_values(question: Question) -> Question:
    """The question about the different values of every column, beside units and rows."""
    counted = [
        functional(question.table, Measure.VALUES, name, condition)
        for name in counted_values(question.table)
        for condition in _CONDITIONS[:2]
    ]
    return replace(question, functionals=(*question.functionals[:5], *counted))


@pytest.fixture(scope="module")
def crowded(engines: Engines) -> dict[str, str]:
    return engines.load(_CROWD, postgres="crowd")


_KEYS = (("ward", "level"), ("ward", "month"), ("level",), ("born", "flag"), ())
_MANY_GROUPS = (("ward", "level", "flag"), ("month", "level", "ward"))


@pytest.mark.parametrize(("groups", "places"), [(1, 3), (8, 9), (8, 20)])
def test_units_with_one_row_in_each_of_too_many_groups(engines: Engines, groups: int, places: int) -> None:
    keys = _MANY_GROUPS[1]
    asked = crowd_question(unit=("person",), keys=keys, cap=None, groups=groups)
    asked = some_functionals(replace(asked, where=ALWAYS), among=(), share=6)
    held: dict[object, dict[object, Row]] = {}
    for row in _CROWD:
        at = tuple(read(asked.table, row, name) for name in keys)
        is_public = all(one in (asked.table.get_column(name).domain or ()) for one, name in zip(at, keys, strict=True))
        if row["person"] is not None and is_public:
            held.setdefault(row["person"], {}).setdefault(at, row)
    rows = [row for one in held.values() for row in [*one.values()][:places]]
    assert len(rows) > groups * len(held)
    for answer in engines.answers(asked, engines.load(rows)):
        np.testing.assert_array_equal(answer, true_aggregates(asked, rows))


@pytest.mark.parametrize(
    ("unit", "cap", "groups", "keys"),
    cases([()], [None], [1], _KEYS, quick=2)
    + cases(UNITS, [None, 2], [1, 3], _KEYS, quick=10)
    + cases(UNITS, [None], [8, 11], _MANY_GROUPS, quick=4),
    ids=str,
)
def test_crowd(
    engines: Engines,
    crowded: dict[str, str],
    unit: tuple[str, ...],
    cap: int | None,
    groups: int,
    keys: tuple[str, ...],
) -> None:
    asked = crowd_question(unit=unit, keys=keys, cap=cap, groups=groups)
    different = some_functionals(different_values(asked), among=(unit, cap, groups, keys), share=rounds(1, quick=3))
    for question in (asked, different):
        expected = true_aggregates(question, _CROWD)
        for answer in engines.answers(question, crowded):
            np.testing.assert_array_equal(answer, expected)
