"""The claimed changes of a comparison by one privacy unit, against the largest change of all small worlds.

A triple is a comparison, the bounds of its columns, and the bounds of a unit. Claimed are the sensitivity of each sum,
the loss of a cell when its sums have noise of any rates, and what reads a cell, by how much and with which sign. All
changes that one unit can make are listed, on grids of rows, so nothing fails by chance.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from mechanisms.protocol import CommonSums
from mechanisms.threshold.joint_loss import compute_joint_loss
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, SqlType
from planner.functionals.cell_readings import list_cell_sums
from planner.functionals.cells import find_cell_reach
from planner.question.condition_text import write_canonical
from planner.question.question import Functional, Measure, Question
from planner.question.unit_groups import count_unit_groups
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.settings import read_accuracy
from tests.effort import is_repeated, rounds, shares
from tests.mechanisms.keyhole.cell_worlds import coefficients, list_keys
from tests.planner.asked import TODAY, asked, asking
from tests.planner.functionals.one_table import make_visits_catalog

SHARES = shares(25)
COMPARISONS = rounds(100, quick=8)
BOUNDS = rounds(40, quick=10)  # of the unit and of the columns, for each comparison: 100,000 triples in all

WARDS, MONTHS = ("a", "b", "c"), (1, 2, 3, 4)
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_MANY = 1000  # rows of one unit: more than any clipping leaves


@dataclass(frozen=True, slots=True)
class Bounds:
    """A policy's bounds of a unit and of two columns, in steps of their grid. With no rows, the row is the unit."""

    rows: int
    groups: int
    capped: bool
    age: tuple[int, int]
    cost: tuple[int, int]
    age_total: tuple[int, int]
    cost_total: tuple[int, int]
    grid: Decimal


def _draw_bounds(drawn: random.Random, *, people: bool) -> Bounds:
    def column() -> tuple[int, int]:
        low = drawn.choice((0, 0, 0, 1, 3, -1, -5, -12))
        return low, max(low + 1, drawn.choice((-2, 0, 1, 4, 10, 25)))

    age, cost = column(), column()
    rows, factor = drawn.choice((2, 3, 5) if people else (0, 0, 1, 2, 5)), drawn.choice((1, 3, 7))

    def total(one: tuple[int, int]) -> tuple[int, int]:
        return min(0, one[0]) * factor, max(0, one[1]) * factor

    grid = Decimal(drawn.choice(("1", "0.5", "0.25", "10")))
    return Bounds(rows, drawn.choice((1, 2, 5, 12)), drawn.random() < 0.4, age, cost, total(age), total(cost), grid)


def _make_catalog(bounds: Bounds) -> Catalog:
    def measure(name: str, ends: tuple[int, int], total: tuple[int, int]) -> Column:
        low, high, least, most = (bounds.grid * one for one in (*ends, *total))
        numeric = "numeric(12,2)"
        return Column(name, SqlType.NUMERIC, numeric, bounds=(low, high), grid=bounds.grid, per_unit=(least, most))

    columns = (
        Column("id", SqlType.INTEGER, "integer"),
        Column("person", SqlType.INTEGER, "integer"),
        Column("ward", SqlType.TEXT, "text", domain=WARDS),
        Column("month", SqlType.INTEGER, "integer", domain=MONTHS),
        Column("urgent", SqlType.BOOLEAN, "boolean"),
        measure("age", bounds.age, bounds.age_total),
        measure("cost", bounds.cost, bounds.cost_total),
    )
    return make_visits_catalog(
        columns,
        name="sensitivity",
        groups=bounds.groups if bounds.rows else 0,
        rows=bounds.rows,
        is_capped=bounds.capped,
        timeout_ms=60_000,
    )


# --- what one unit adds to the sums of one group

SIZES: dict[str, Callable[[Ints, Ints, Ints], Ints]] = {
    "count(*)": lambda age, cost, urgent: np.ones_like(age),
    "count(age)": lambda age, cost, urgent: _known(age),
    "sum(age)": lambda age, cost, urgent: np.where(_known(age), age, 0),
    "sum(cost)": lambda age, cost, urgent: np.where(_known(cost), cost, 0),
    "count(*) FILTER (WHERE urgent)": lambda age, cost, urgent: urgent,
    "count(*) FILTER (WHERE NOT urgent)": lambda age, cost, urgent: 1 - urgent,
    "sum(age) FILTER (WHERE urgent)": lambda age, cost, urgent: np.where(_known(age), age, 0) * urgent,
    "count(DISTINCT person)": lambda age, cost, urgent: np.ones_like(age),
}  # fmt: skip
_NULL = -(1 << 40)


def _known(values: Ints) -> Ints:
    return np.asarray(values != _NULL, dtype=np.int64)


def _list_row_values(names: tuple[str, ...], bounds: Bounds) -> Ints:
    """Return what each kind of row adds to each size: the ends of both columns, their middles, 0, and NULL."""

    def values(ends: tuple[int, int]) -> list[int]:
        low, high = ends
        return [*dict.fromkeys((low, (low + high) // 2, min(max(0, low), high), high, _NULL))]

    age, cost, urgent = np.array(list(product(values(bounds.age), values(bounds.cost), (0, 1))), dtype=np.int64).T
    return np.stack([SIZES[name](age, cost, urgent) for name in names], axis=1)


def _list_changes(names: tuple[str, ...], bounds: Bounds) -> Ints:
    """Return what one unit may add to the sizes of one group, of shape (changes, sizes)."""
    rows = _list_row_values(names, bounds)
    if not bounds.rows:
        return rows
    many = {_MANY} if not bounds.capped else set[int]()
    numbers = sorted({0, 1, bounds.rows - 1, bounds.rows} | many)
    pairs = [one for one in product(numbers, repeat=2) if not bounds.capped or sum(one) <= bounds.rows]
    some, others = np.array(pairs, dtype=np.int64).T
    added = some[:, None, None, None] * rows[None, :, None, :] + others[:, None, None, None] * rows[None, None, :, :]
    found = added.reshape(-1, len(names))
    if not bounds.capped:
        ranges = [
            bounds.age_total if "age" in name and "sum" in name else bounds.cost_total if "cost" in name else None
            for name in names
        ]
        found = np.stack([np.clip(found[:, at], *(one or (0, bounds.rows))) for at, one in enumerate(ranges)], axis=1)
    for at, name in enumerate(names):
        if "DISTINCT" in name:
            found[:, at] = np.minimum(found[:, at], 1)
    return np.asarray(found, dtype=np.int64)


# --- what a comparison reads of the groups: each window maps the sums of all groups to one number for each group

_Window = Callable[[Floats], Floats]
"""From sums of shape (..., wards, months) to values of the same shape, NaN where SQL has NULL."""


def _lag(by: int) -> _Window:
    def read(sums: Floats) -> Floats:
        found = np.full_like(sums, np.nan)
        if by > 0:
            found[..., by:] = sums[..., :-by]
        else:
            found[..., :by] = sums[..., -by:]
        return found

    return read


def _frame(before: int, after: int, *, mean: bool = False) -> _Window:
    def read(sums: Floats) -> Floats:
        found = np.full_like(sums, np.nan)
        for at in range(len(MONTHS)):
            part = sums[..., max(0, at - before) : max(0, at + after + 1)]
            if part.shape[-1]:
                found[..., at] = part.mean(axis=-1) if mean else part.sum(axis=-1)
        return found

    return read


def _whole(*axes: int, mean: bool = False) -> _Window:
    def read(sums: Floats) -> Floats:
        added = (np.mean if mean else np.sum)(sums, axis=axes, keepdims=True)
        return np.broadcast_to(added, sums.shape)

    return read


_BY = "PARTITION BY ward ORDER BY month"
WINDOWS: dict[str, _Window] = {
    "{}": lambda sums: sums,
    "sum({}) OVER ()": _whole(-2, -1),
    "avg({}) OVER ()": _whole(-2, -1, mean=True),
    "sum({}) OVER (PARTITION BY ward)": _whole(-1),
    "sum({}) OVER (PARTITION BY month)": _whole(-2),
    "avg({}) OVER (PARTITION BY ward)": _whole(-1, mean=True),
    f"lag({{}}) OVER ({_BY})": _lag(1),
    f"lag({{}}, 2) OVER ({_BY})": _lag(2),
    f"lead({{}}) OVER ({_BY})": _lag(-1),
    f"sum({{}}) OVER ({_BY})": _frame(9, 0),
    f"sum({{}}) OVER ({_BY} ROWS 1 PRECEDING)": _frame(1, 0),
    f"avg({{}}) OVER ({_BY} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)": _frame(1, 1, mean=True),
    f"sum({{}}) OVER ({_BY} ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)": _frame(2, -1),
}
_FACTORS = ("1", "1", "1", "2", "3", "0.5", "1.2", "0.1", "0.25")


@dataclass(frozen=True, slots=True)
class Compared:
    """`sum of factor * window(size) > threshold`."""

    parts: tuple[tuple[Fraction, str, str], ...]

    @property
    def sizes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(size for _, size, _ in self.parts))

    @property
    def sql(self) -> str:
        """The statement, in which each window is a column."""
        shown = ", ".join(f"{window.format(size)} AS w{at}" for at, (_, size, window) in enumerate(self.parts))
        left = " + ".join(f"{float(factor)} * w{at}" for at, (factor, _, _) in enumerate(self.parts))
        groups = f"SELECT ward, month, {shown} FROM visits GROUP BY ward, month"
        return f"SELECT ward, month FROM ({groups}) q WHERE {left.replace('+ -', '- ')} > 7"

    def respond(self) -> dict[str, Floats]:
        """Return by size what one step in each group moves each group's value: (group that moves, group that reads)."""
        groups = len(WARDS) * len(MONTHS)
        alone = np.eye(groups).reshape(groups, len(WARDS), len(MONTHS))
        found = {size: np.zeros((groups, groups)) for size in self.sizes}
        for factor, size, window in self.parts:
            found[size] += float(factor) * WINDOWS[window](alone).reshape(groups, groups)
        missing = sum(np.isnan(one) for one in found.values()) > 0
        return {size: np.where(missing, np.nan, one) for size, one in found.items()}


def _draw_compared(drawn: random.Random, *, people: bool) -> Compared:
    sizes = [name for name in SIZES if people or "person" not in name]
    chosen = drawn.sample(sizes, drawn.choice((1, 1, 1, 2, 3)))
    windows = drawn.sample([*WINDOWS], max(len(chosen), drawn.choice((2, 2, 3))))
    if all(window == "{}" for window in windows):
        windows[0] = "sum({}) OVER ()"
    parts = []
    for at, window in enumerate(windows):
        factor = (-1 if drawn.random() < 0.6 else 1) * Fraction(drawn.choice(_FACTORS))
        parts.append((factor if at else Fraction(1), chosen[at % len(chosen)], window))  # Keyhole divides by the first
    return Compared(tuple(parts))


# --- the claims


@pytest.mark.parametrize("share", SHARES)
def test_claims_about_a_unit_are_the_largest_changes_found(share: int) -> None:
    drawn = random.Random(20261130 + share if is_repeated() else None)
    judged = 0
    for _ in range(COMPARISONS):
        people = drawn.random() < 0.6
        compared = _draw_compared(drawn, people=people)
        read: EmbeddedQuestion | None = None
        for number in range(BOUNDS):
            bounds = _draw_bounds(drawn, people=people)
            catalog = _make_catalog(bounds)
            if read is None:
                (read,) = asking(compared.sql, catalog).questions
            question = _bind(read, catalog)
            if number == 1:
                assert question == asked(compared.sql, catalog=catalog, guard="refuse")
            _judge(drawn, compared, bounds, question, reads=number == 0)
            judged += 1
    assert judged == COMPARISONS * BOUNDS


def _bind(read: EmbeddedQuestion, catalog: Catalog) -> Question:
    """Return the question of a text that was read over another catalog. To read it takes longer than all the rest."""
    (table,) = catalog.tables
    wanted = read_accuracy({"keyhole.guard": "refuse"}, catalog.defaults)
    there = replace(read, table=table, declared_table=None)
    return bind_question(there, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)


def _judge(drawn: random.Random, compared: Compared, bounds: Bounds, question: Question, *, reads: bool) -> None:
    sums, common = list_cell_sums(question)
    names = tuple(map(_name_size, sums))
    assert sorted(names) == sorted(compared.sizes)
    changes = np.abs(_list_changes(names, bounds))
    assert tuple(map(int, np.maximum(changes.max(axis=0), 1))) == common.sensitivities, (compared, bounds)
    rates = [drawn.randint(1, 60) for _ in names]
    losses = [Fraction(rate * moved) for rate, moved in zip(rates, common.sensitivities, strict=True)]
    largest = int((changes @ np.array(rates)).max())
    assert compute_joint_loss(losses, common.exposures) == largest, (compared, bounds)
    groups = min(bounds.groups, len(WARDS) * len(MONTHS)) if bounds.rows else 1
    assert count_unit_groups(question) == groups
    assert find_cell_reach(question).count_losses(groups) == 1
    if reads:
        _judge_readings(compared, bounds, names, common, question.functionals[0])


def _name_size(made: Functional) -> str:
    """Return the size that a sum is, by its terms: its own name may be that of the window which reads it."""
    if made.measure is Measure.UNITS:
        return "count(DISTINCT person)"
    (term,) = made.terms
    condition = write_canonical(term.condition)
    call = f"sum({term.column})" if term.power else f"count({term.column or '*'})"
    if "urgent" not in condition:
        return call
    return f"{call} FILTER (WHERE {'NOT ' if 'false' in condition else ''}urgent)"


def _judge_readings(
    compared: Compared,
    bounds: Bounds,
    names: tuple[str, ...],
    common: CommonSums,
    functional: Functional,
) -> None:
    """Compare the factors of all cells in all readings with what a step more in each cell moves, by SQL's windows."""
    response = compared.respond()
    keys = list_keys(common)
    unit = float(functional.unit_size)
    steps = {name: float(bounds.grid) if name.startswith("sum") else 1.0 for name in names}
    for at, key in enumerate(keys):
        found = coefficients(common, 0, key)
        for place, name in enumerate(names):
            moved = response[name][:, at] * steps[name]
            if found is None:
                assert np.isnan(moved).all()
            else:
                claimed = np.array([found[place, cell] * unit for cell in keys])
                np.testing.assert_allclose(claimed, moved, atol=1e-9)
    if len(names) == 1:
        own = np.nanmax(np.abs(np.diagonal(response[names[0]]))) * common.sensitivities[0] * steps[names[0]]
        assert functional.sensitivity * unit == pytest.approx(max(own, unit), rel=1e-9)
