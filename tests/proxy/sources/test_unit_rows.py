"""Questions over a subquery per privacy unit: both engines give the integers of bounding done by hand, and one unit
changes each of them by no more than its sensitivity."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, given, reject
from hypothesis import strategies as st

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Column, RowCap, Table
from planner.errors import KeyholeError
from planner.question.as_of import AsOf
from planner.question.looks import look_at
from planner.question.question import Question
from planner.statements.classify import Asking, classify
from planner.statements.settings import read_accuracy
from tests.effort import cases, examples, rounds
from tests.proxy.sources.oracle import Row, capped, chosen, grid_steps, is_in_time, is_nan, over_horizon, read
from tests.proxy.sources.worlds import MOMENTS, UNITS, Engines, columns, crowd, rewritten_for, rows, tables
from tests.worlds.retail import retail

Totals = Mapping[str, Fraction | None]
_GIVEN = examples(
    120,
    quick=12,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def _values(column: Column, found: Sequence[Row]) -> list[Fraction]:
    values = [row[column.name] for row in found if row[column.name] is not None and not is_nan(row[column.name])]
    assert column.grid is not None
    return [grid_steps(column, value) * Fraction(column.grid) for value in values]


def _summed(column: str, where: Callable[[Row], bool] = lambda row: True) -> Callable[[Table, list[Row]], Any]:
    def total(table: Table, found: list[Row]) -> Fraction | None:
        known = table.get_column(column)
        values = _values(known, [row for row in found if where(row)])
        if not values:
            return None
        if table.row_cap is not None:
            return sum(values, Fraction(0))
        assert known.per_unit is not None
        assert known.grid is not None
        # a declared range is counted in whole steps, and contains 0
        step = Fraction(known.grid)
        low = min(Fraction(0), Fraction(known.per_unit[0]) // step * step)
        high = max(Fraction(0), -(-Fraction(known.per_unit[1]) // step) * step)
        return max(low, min(high, sum(values, Fraction(0))))

    return total


def _counted(where: Callable[[Row], bool]) -> Callable[[Table, list[Row]], Any]:
    def total(table: Table, found: list[Row]) -> Fraction:
        number = sum(where(row) for row in found)
        return Fraction(number if table.rows_per_unit is None else min(number, table.rows_per_unit))

    return total


def _differing(table: Table, found: list[Row]) -> Fraction:
    days = {read(table, row, "day") for row in found} - {None}
    return Fraction(len(days) if table.rows_per_unit is None else min(len(days), table.rows_per_unit))


def _multiplied(table: Table, found: list[Row]) -> Fraction | None:
    """The total of amount * big, clipped to the rows of a unit times the corners of their ranges, in steps."""
    amount, big = table.get_column("amount"), table.get_column("big")
    present = [row for row in found if row["amount"] is not None and row["big"] is not None]
    assert amount.grid is not None
    assert amount.bounds is not None
    total = sum(grid_steps(amount, row["amount"]) * grid_steps(big, row["big"]) for row in present)
    if table.rows_per_unit is not None:
        low, high = (
            floor(Fraction(amount.bounds[0]) / Fraction(amount.grid)),
            ceil(Fraction(amount.bounds[1]) / Fraction(amount.grid)),
        )
        corners = [one * other for one in (low, high) for other in (-1000, 1_000_000)]
        total = max(min(corners) * table.rows_per_unit, min(max(corners) * table.rows_per_unit, total))
    return total * Fraction(amount.grid) if present else None


TOTALS: dict[str, tuple[str, Callable[[Table, list[Row]], Any]]] = {
    "n": ("count(*)", _counted(lambda row: True)),
    "aged": ("count(age)", _counted(lambda row: row["age"] is not None)),
    "old": ("count(*) FILTER (WHERE age > 5)", _counted(lambda row: row["age"] is not None and row["age"] > 5)),
    "ages": ("sum(age)", _summed("age")),
    "spent": ("sum(amount)", _summed("amount")),
    "days": ("count(DISTINCT day)", _differing),
    "worth": ("sum(big * amount)", _multiplied),
    "paid": ("sum(cost) FILTER (WHERE flag)", _summed("cost", lambda row: row["flag"] is True)),
}
Condition = Callable[[Totals], bool | None]


def _test(name: str, holds: Callable[[Fraction], bool]) -> Condition:
    def condition(totals: Totals) -> bool | None:
        value = totals[name]
        return None if value is None else holds(value)

    return condition


def _not(inner: Condition) -> Condition:
    def condition(totals: Totals) -> bool | None:
        held = inner(totals)
        return None if held is None else not held

    return condition


def _or(one: Condition, other: Condition) -> Condition:
    def condition(totals: Totals) -> bool | None:
        held = [one(totals), other(totals)]
        return True if True in held else None if None in held else False

    return condition


CONDITIONS: dict[str, Condition] = {
    "n > 1": _test("n", lambda x: x > 1),
    "n <> 2.5": _test("n", lambda x: True),
    "NOT n < 2": _test("n", lambda x: x >= 2),
    "ages BETWEEN 3 AND 90.5": _test("ages", lambda x: 3 <= x <= Fraction("90.5")),
    "NOT (ages > 20)": _not(_test("ages", lambda x: x > 20)),
    "ages <> 20.5": _test("ages", lambda x: x != Fraction("20.5")),
    "spent < 10.005": _test("spent", lambda x: x < Fraction("10.005")),
    "spent IN (0, 1.5, 0.126)": _test("spent", lambda x: x in (0, Fraction("1.5"), Fraction("0.126"))),
    "paid IS NULL": lambda totals: totals["paid"] is None,
    "paid >= -0.5": _test("paid", lambda x: x >= Fraction("-0.5")),
    "old IN (1, 3) OR spent >= 0": _or(_test("old", lambda x: x in (1, 3)), _test("spent", lambda x: x >= 0)),
    "days >= 2": _test("days", lambda x: x >= 2),
    "worth > 10.5": _test("worth", lambda x: x > Fraction("10.5")),
    "aged = 0": _test("aged", lambda x: x == 0),
}
WHERES: dict[str, Callable[[Row], bool]] = {
    "": lambda row: True,
    "WHERE flag": lambda row: row["flag"] is True,
    "WHERE NOT (age > 5)": lambda row: row["age"] is not None and row["age"] <= 5,
    "WHERE cost IS NULL": lambda row: row["cost"] is None,
}


def _plain(name: str, less: Fraction = Fraction(0)) -> Callable[[Totals], Fraction]:
    return lambda totals: Fraction(0) if (value := totals[name]) is None else value - less


AGGREGATES: dict[str, tuple[str, Callable[[Totals], Fraction]]] = {
    "count(*) > 1": ("", lambda totals: Fraction(1)),
    "count(*) FILTER (WHERE {}) > 1": ("if", lambda totals: Fraction(1)),
    "sum(ages) > 10": ("", _plain("ages")),
    "sum(ages) FILTER (WHERE {}) > 10": ("if", _plain("ages")),
    "avg(n) > 1.5": ("", _plain("n", Fraction(3, 2))),
    "sum(spent) FILTER (WHERE {}) > 3": ("if", _plain("spent")),
    "sum(days) > 3": ("", _plain("days")),
    "sum(worth) > 3": ("", _plain("worth")),
    "count(paid) > 1": ("", lambda totals: Fraction(totals["paid"] is not None)),
    "sum(paid) > 1": ("", _plain("paid")),
}


@st.composite
def asked(draw: st.DrawFn) -> tuple[str, Callable[[Row], bool], list[Condition], list[tuple[str | None, Any]]]:
    """A question as text with `{0}` for the unit and `{1}` for the keys, and what it means."""
    where = draw(st.sampled_from(sorted(WHERES)))
    tested = draw(st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=2, unique=True))
    wanted = draw(st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=4, unique=True))
    parts, meant = [], []
    for text in wanted:
        kind, adds = AGGREGATES[text]
        condition = draw(st.sampled_from(sorted(CONDITIONS))) if kind else None
        parts.append(text.format(condition))
        meant.append((condition, adds))
    totals = ", ".join(f"{sql} AS {name}" for name, (sql, _) in TOTALS.items())
    outer = "WHERE " + " AND ".join(f"({one})" for one in tested) if tested else ""
    sql = (
        f"SELECT {{1}} FROM (SELECT {{0}}, {totals} FROM visits {where} GROUP BY {{0}}) v {outer} "
        f"GROUP BY {{1}} HAVING {' OR '.join(parts)}"
    )
    return sql, WHERES[where], [CONDITIONS[one] for one in tested], meant


def unit_question(sql: str, table: Table, keys: tuple[str, ...]) -> Question:
    """The question of a drawn statement, which is drawn again where declared bounds alone decide it."""
    catalog = replace(retail(), tables=(table,))
    groups = ", ".join(dict.fromkeys((*table.unit, *keys)))
    statement = classify(sql.format(groups, ", ".join(keys)), catalog)
    assert isinstance(statement, Asking)
    (question,) = statement.questions
    wanted = read_accuracy({"keyhole.tolerance": "10%"}, catalog.defaults)
    try:
        return bind_question(question, catalog, accuracy=wanted, parameters={}, today=date(2026, 1, 1))
    except KeyholeError as error:
        if error.code != "KH220":  # a mean of at most one row a unit is never above 1.5
            raise
        reject()


def by_hand(
    question: Question,
    where: Callable[[Row], bool],
    tested: list[Condition],
    meant: list[tuple[str | None, Any]],
    found: Sequence[Row],
) -> npt.NDArray[np.int64]:
    """Bounding as declared: G keys of a unit, M rows of each, totals of those that count, clipped; then the units."""
    assert question.per_unit is not None
    bounded = over_horizon(replace(question, table=question.per_unit.table))
    table, keys, as_of = bounded.table, bounded.keys, bounded.as_of
    index = {keys.get_key(i): i for i in range(keys.size)}
    result = np.zeros((len(meant), keys.size), dtype=np.int64)
    by_unit: dict[tuple[Any, ...], dict[tuple[Any, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in found:
        unit = tuple(read(table, row, name) for name in table.unit)
        key = tuple(read(table, row, name) for name in keys.names)
        public = all(part in (one.domain or ()) for part, one in zip(key, keys.columns, strict=True))
        if None not in unit and public and (as_of is None or is_in_time(bounded, as_of, row)):
            by_unit[unit][key].append(row)
    for unit, groups in by_unit.items():
        for key in chosen(bounded, unit, groups):
            if key not in index:
                continue
            kept = [row for row in capped(bounded, groups[key]) if where(row)]
            totals = {name: total(table, kept) for name, (_, total) in TOTALS.items()}
            if kept and all(condition(totals) is True for condition in tested):
                for f, (condition, adds) in enumerate(meant):
                    if condition is None or CONDITIONS[condition](totals) is True:
                        steps = adds(totals) / Fraction(question.functionals[f].unit_size)
                        assert steps.denominator == 1
                        result[f, index[key]] += int(steps)
    return result


def _answers(engines: Engines, question: Question, relations: dict[str, str]) -> list[npt.NDArray[np.int64]]:
    found = []
    for source in engines.sources:
        assert question.per_unit is not None
        table = replace(question.per_unit.table, relation=relations[source.dialect.name])
        rewritten = rewritten_for(replace(question, per_unit=replace(question.per_unit, table=table)), source.dialect)
        if rewritten is None:
            continue
        found.append(
            source.read_aggregates(
                rewritten, question.keys, functionals=len(question.functionals), timeout_ms=60_000
            ).values
        )
    return found


@_GIVEN
@given(
    world=asked(),
    table=tables(units=UNITS),
    keys=st.sampled_from([("ward",), ("ward", "level"), ("level", "month"), ("born",), ("day", "ward")]),
    found=rows(),
)
def test_the_integers_of_bounding_by_hand(
    engines: Engines, world: Any, table: Table, keys: tuple[str, ...], found: list[Row]
) -> None:
    sql, where, tested, meant = world
    question = unit_question(sql, table, keys)
    if len(question.functionals) < len(meant):  # two spellings of one
        return
    expected = by_hand(question, where, tested, meant, found)
    for answer in _answers(engines, question, engines.load(found)):
        np.testing.assert_array_equal(answer, expected)


@_GIVEN
@given(
    world=asked(),
    table=tables(units=UNITS),
    keys=st.sampled_from([("level", "month"), ("born",), ("day", "ward")]),
    place=st.integers(0, 2),
    came=st.sampled_from(["visited", "born"]),
    before=st.sampled_from(MOMENTS[1:4]),
    found=rows(),
)
def test_a_look_at_the_units_that_had_come(
    engines: Engines,
    world: Any,
    table: Table,
    keys: tuple[str, ...],
    place: int,
    came: str,
    before: datetime,
    found: list[Row],
) -> None:
    sql, where, tested, meant = world
    question = unit_question(sql, table, keys)
    if len(question.functionals) < len(meant):  # two spellings of one
        return
    (window,) = {"born", "month", "day"} & set(keys)
    horizon = tuple(sorted(table.get_column(window).domain or ()))
    as_of = AsOf(came, before, window, horizon, timedelta(days=40))
    look = look_at(question, as_of, windows=(horizon[place % len(horizon)],))
    expected = by_hand(look, where, tested, meant, found)
    for answer in _answers(engines, look, engines.load(found)):
        np.testing.assert_array_equal(answer, expected)


_CROWD = crowd(seed=11, size=240)
_EVERYTHING = (
    "SELECT {1} FROM (SELECT {0}, count(*) AS n, sum(age) AS ages, sum(amount) AS spent, sum(cost) AS paid,"
    " count(DISTINCT day) AS days FROM visits"
    " WHERE big > 0 GROUP BY {0} HAVING count(*) > 0) v WHERE ages IS NOT NULL GROUP BY {1}"
    " HAVING count(*) > 3 OR count(*) FILTER (WHERE n > 1) > 3 OR sum(n) > 3 OR sum(ages) > 30 OR avg(spent) > 1.5"
    " OR sum(paid) FILTER (WHERE n < 3) > 3 OR sum(days) > 3"
    " OR count(*) FILTER (WHERE days > 1) > 3 OR 100.0 * count(*) FILTER (WHERE spent > 1) / count(*) > 20"
)


@pytest.mark.parametrize(
    ("unit", "cap", "groups"),
    cases([("person",), ("person", "code"), ("person", "month")], [False, True], [1, 2], quick=6),
    ids=str,
)
def test_one_unit_changes_every_functional_by_no_more_than_its_sensitivity(
    engines: Engines, unit: tuple[str, ...], cap: bool, groups: int
) -> None:
    table = Table(
        name="visits",
        relation="visits",
        columns=columns(),
        unit=unit,
        groups_per_unit=groups,
        rows_per_unit=None if cap else 3,
        row_cap=RowCap(rows=3, unique="id") if cap else None,
        refresh="static",
        seed="crowd",
    )
    question = unit_question(_EVERYTHING, table, ("ward", "level"))
    whole = _answers(engines, question, engines.load(_CROWD))
    units = sorted({tuple(read(table, row, name) for name in unit) for row in _CROWD}, key=repr)
    sensitivities = np.array([one.sensitivity for one in question.functionals])
    changed = False
    for left_out in units[: rounds(6, quick=2)]:
        others = [row for row in _CROWD if tuple(read(table, row, name) for name in unit) != left_out]
        for before, after in zip(whole, _answers(engines, question, engines.load(others)), strict=True):
            change = np.abs(before - after)
            assert (change <= sensitivities[:, None]).all()
            assert (change.any(axis=0)).sum() <= groups
            changed = changed or bool(change.any())
    assert changed
