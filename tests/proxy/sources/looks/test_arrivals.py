"""Looks at standing questions: both engines give the integers that the definition gives, and whatever rows come later,
what one unit adds to a key of a window never falls and is in no more groups of the whole horizon than are declared."""

from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, assume, given
from hypothesis import strategies as st

from mechanisms.formula import TRUE, Booleans
from planner.catalog.catalog import RowCap, Table
from planner.catalog.key_space import KeySpace
from planner.lower.scan import rewrite
from planner.question.as_of import AsOf, Hopping
from planner.question.condition import ALWAYS, Compare
from planner.question.looks import look_at
from planner.question.question import Accuracy, Measure, Question
from tests.effort import examples
from tests.proxy.sources.looks.worlds import looks, overlapping
from tests.proxy.sources.oracle import Row, in_windows, over_horizon, read, true_aggregates
from tests.proxy.sources.worlds import TYPES, UNITS, Engines, columns, functional, rows

_GIVEN = {
    "phases": [Phase.explicit, Phase.generate],
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
}


def _check(engines: Engines, question: Question, found: list[Row]) -> None:
    expected = true_aggregates(question, found)
    for answer in engines.answers(question, engines.load(found)):
        np.testing.assert_array_equal(answer, expected)


@examples(100, quick=8, **_GIVEN)
@given(question=st.one_of(looks(units=((),)), overlapping(units=((),))), found=rows())
def test_rows_that_had_come(engines: Engines, question: Question, found: list[Row]) -> None:
    _check(engines, question, found)


@examples(100, quick=8, **_GIVEN)
@given(question=st.one_of(looks(units=UNITS), overlapping(units=UNITS)), found=rows())
def test_units_that_had_come(engines: Engines, question: Question, found: list[Row]) -> None:
    _check(engines, question, found)


@examples(60, quick=4, **_GIVEN)
@given(question=st.one_of(looks(units=UNITS), overlapping(units=UNITS)), found=rows(), data=st.data())
def test_one_unit_is_in_few_groups_of_all_looks(
    engines: Engines, question: Question, found: list[Row], data: st.DataObject
) -> None:
    """Whatever is summed, different values and negative amounts too: removing a unit moves nothing by more than its
    sensitivity at any look, and at all looks together no more than G groups."""
    table, as_of = over_horizon(question).table, question.as_of
    assert as_of is not None

    def unit(row: Row) -> set[tuple[object, ...]]:
        return {tuple(read(table, one, name) for name in table.unit) for one in in_windows(question, row)}

    units = sorted({one for row in found for one in unit(row)}, key=repr)
    assume(units)
    removed = data.draw(st.sampled_from(units))
    loaded = [
        engines.load(found, postgres="visits"),
        engines.load([row for row in found if removed not in unit(row)], postgres="crowd"),
    ]
    keys = question.keys
    asked = (as_of.horizon if name == as_of.window else v for name, v in zip(keys.names, keys.values, strict=True))
    question = replace(question, keys=replace(keys, values=tuple(asked)))
    touched: dict[int, Booleans] = defaultdict(lambda: np.zeros(question.keys.size, dtype=bool))  # by engine
    for before in (datetime(2026, 1, 1, 0, 0, 1), datetime(2026, 1, 20), datetime(9999, 12, 31, 23, 59)):
        look = replace(question, as_of=replace(as_of, before=before))
        answers = [engines.answers(look, one) for one in loaded]
        for engine, (whole, rest) in enumerate(zip(*answers, strict=True)):
            changed = abs(whole - rest)
            assert np.all(changed <= np.array([[one.sensitivity] for one in question.functionals]))
            touched[engine] |= changed.any(axis=0)
    assert all(np.count_nonzero(one) <= table.groups_per_unit for one in touched.values())


_DAYS = tuple(date(2026, 1, day) for day in range(1, 5))
_LOOKS = tuple(datetime(2026, 1, 1, 12) + timedelta(hours=hours) for hours in (0, 12, 36, 48, 84, 2000))


def _standing(
    *, groups: int, cap: int | None, unit: tuple[str, ...] = ("person",), keys: tuple[str, ...] = ("ward", "born")
) -> Question:
    """Rows, units and a sum without negatives, each day a window; a row's `visited` is when it came."""
    made = tuple(replace(one, domain=_DAYS) if one.name == "born" else one for one in columns())
    table = Table(
        name="visits",
        relation="visits",
        columns=made,
        unit=unit,
        groups_per_unit=groups,
        rows_per_unit=2 if cap is None else None,
        row_cap=None if cap is None else RowCap(rows=cap, unique="id"),
        refresh="live",
        seed="looks",
        append_only=True,
        arrival_column="visited",
    )
    columns_ = tuple(table.get_column(name) for name in keys)
    where = Compare("age", "<", 100)
    return Question(
        table=table,
        keys=KeySpace(columns=columns_, values=tuple(column.domain or () for column in columns_)),
        where=ALWAYS,
        functionals=(
            functional(table, Measure.ROWS, None, ALWAYS),
            functional(table, Measure.UNITS, None, ALWAYS),
            functional(table, Measure.TOTAL, "age", ALWAYS),
            functional(table, Measure.ROWS, None, where),
        ),
        atoms=(),
        formula=TRUE,
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


def _at(question: Question, before: datetime, *, open_for: timedelta = timedelta(hours=25)) -> Question:
    return replace(question, as_of=AsOf("visited", before, "born", _DAYS, open_for))


_HOPS = tuple(datetime(2025, 12, 31) + timedelta(hours=12 * i) for i in range(12))


def _overlapping(question: Question, before: datetime) -> Question:
    """A look at days that begin every twelve hours, of the time that rows come at: each row is in two."""
    length, hop = timedelta(days=1), timedelta(hours=12)
    as_of = AsOf("visited", before, "opened", _HOPS, length, Hopping("visited", length, hop))
    return look_at(question, as_of, windows=_HOPS)


def _row(number: int, came: datetime, *, day: date, ward: str = "north", person: str | None = "ann") -> Row:
    others: dict[str, Any] = dict.fromkeys(("code", "level", "flag", "big", "amount", "long", "cost"))
    return {"id": number, "person": person, "ward": ward, "visited": came, "born": day, "age": 44, **others}


@st.composite
def _arrivals(draw: st.DrawFn) -> list[Row]:
    """Rows of three people in any order: early, in time and late for their windows, several at one moment."""
    moment = st.integers(-4, 30).map(lambda quarter: datetime(2026, 1, 1) + timedelta(hours=6 * quarter))
    made = st.builds(
        _row,
        st.just(0),
        moment,
        day=st.sampled_from(_DAYS),
        ward=st.sampled_from(["north", "süd"]),
        person=st.sampled_from(["ann", "ann", "o'hare", None]),
    )
    found = draw(st.lists(made, min_size=4, max_size=24))
    return [{**row, "id": i, "age": i % 120} for i, row in enumerate(found)]


def _added_by(
    engines: Engines, standing: list[Question], found: list[Row], person: str, *, physically: bool = False
) -> list[list[npt.NDArray[np.int64]]]:
    """By engine, what one person adds at each look: with their rows, less without them.

    `physically`: rows that come later are not there yet.
    """
    without = [row for row in found if row["person"] != person]
    by_look = []
    tables = None if physically else [engines.load(found, postgres="visits"), engines.load(without, postgres="crowd")]
    for before, question in zip(_LOOKS, standing, strict=False):
        if physically:
            there = [[row for row in some if row["visited"] < before] for some in (found, without)]
            tables = [engines.load(there[0], postgres="visits"), engines.load(there[1], postgres="crowd")]
        assert tables is not None
        answers = [engines.answers(question, one) for one in tables]
        by_look.append([whole - rest for whole, rest in zip(*answers, strict=True)])
    return [list(engine) for engine in zip(*by_look, strict=True)]


def _assert_stable(question: Question, added: list[npt.NDArray[np.int64]]) -> None:
    """What one unit adds never falls, stays within the sensitivities, and is in G groups of the horizon at most."""
    limits = np.array([[one.sensitivity] for one in question.functionals])
    for earlier, later in zip([np.zeros_like(added[0]), *added], added, strict=False):
        assert np.all(earlier <= later)
        assert np.all(later <= limits)
    touched = np.any([one != 0 for one in added], axis=(0, 1))
    assert np.count_nonzero(touched) <= question.table.groups_per_unit


@examples(60, quick=4, **_GIVEN)
@given(found=_arrivals(), groups=st.integers(1, 4), cap=st.sampled_from([None, 1, 2]), overlaps=st.booleans())
def test_what_a_unit_adds_never_falls(
    engines: Engines, found: list[Row], groups: int, cap: int | None, overlaps: bool
) -> None:
    """Each look sees more rows, late ones for closed windows too; windows follow each other or overlap."""
    standing = _standing(groups=groups, cap=cap, keys=("ward",) if overlaps else ("ward", "born"))
    look = _overlapping if overlaps else _at
    for added in _added_by(engines, [look(standing, before) for before in _LOOKS], found, "ann"):
        _assert_stable(standing, added)


@pytest.mark.parametrize("cap", [None, 1])
def test_the_order_of_ordinary_questions_takes_back_what_was_counted(engines: Engines, cap: int | None) -> None:
    """Two groups of which one counts come at one look each: in one of both orders md5 alone lets the later one take the
    earlier one's place, so that the unit was in two. The property sees it; as they came, both orders keep it."""
    question = _standing(groups=1, cap=cap)
    groups = [("north", _DAYS[0]), ("süd", _DAYS[1])]
    kept = {"as they came": 0, "by md5 alone": 0}
    for order in (groups, groups[::-1]):
        found = [_row(i, _LOOKS[i] - timedelta(hours=1), day=day, ward=ward) for i, (ward, day) in enumerate(order)]
        for name, standing in (
            ("as they came", [_at(question, before) for before in _LOOKS[:2]]),
            ("by md5 alone", [question, question]),
        ):
            (added, same) = _added_by(engines, standing, found, "ann", physically=True)
            np.testing.assert_array_equal(added, same)
            kept[name] += _is_stable(question, added)
    assert kept == {"as they came": 2, "by md5 alone": 1}


@pytest.mark.parametrize("wards", [("north", "süd"), ("süd", "north")])
def test_a_day_that_is_not_over_takes_no_place(engines: Engines, wards: tuple[str, str]) -> None:
    """Two rows of one day, of which a look at noon could see one: if it counted, md5 could give its place away."""
    standing = _standing(groups=1, cap=None, keys=("ward",))
    hopping = Hopping("visited", timedelta(hours=12), timedelta(hours=12))
    found = [_row(i, datetime(2026, 1, 1, 11 + 12 * i), day=_DAYS[0], ward=ward) for i, ward in enumerate(wards)]
    as_of = AsOf("born", _LOOKS[0], "opened", _HOPS, timedelta(days=2), hopping)
    looks_ = [look_at(standing, replace(as_of, before=before), windows=_HOPS) for before in _LOOKS[:3]]
    for added in _added_by(engines, looks_, found, "ann", physically=True):
        _assert_stable(standing, added)
        assert [int(one[0].sum()) for one in added] == [0, 1, 1]


@pytest.mark.parametrize("ward", ["north", "süd"])
@pytest.mark.parametrize("cap", [None, 1])
def test_a_group_takes_its_place_whichever_rows_a_look_asks_for(engines: Engines, cap: int | None, ward: str) -> None:
    """Questions that ask for other rows would each count another group of the unit otherwise."""
    standing = _standing(groups=1, cap=cap)
    found = [
        _row(0, _LOOKS[0] - timedelta(hours=2), day=_DAYS[0]),
        _row(1, _LOOKS[0] - timedelta(hours=1), day=_DAYS[0], ward="süd"),
    ]
    question = _at(replace(standing, where=Compare("ward", "=", ward)), _LOOKS[1])
    for answer in engines.answers(question, engines.load(found)):
        assert answer[0].sum() == (ward == "north")


def _is_stable(question: Question, added: list[npt.NDArray[np.int64]]) -> bool:
    try:
        _assert_stable(question, added)
    except AssertionError:
        return False
    return True


_ODD = ("'infinity'", "'-infinity'", "NULL", "'2026-01-02 12:00:00'", "'2026-01-02 11:59:59.999999'", "'0001-01-01'")
_FAR = {
    "duckdb": ("'290000-01-01'", "'290000-01-01 (BC)'", "'4000-01-01 (BC)'"),
    "postgres": ("'290000-01-01'", "'4700-01-01 BC'", "'4000-01-01 BC'"),
}


@pytest.mark.parametrize("unit", [(), ("person",)], ids=["row", "unit"])
@pytest.mark.parametrize("column", ["visited", "born"])
def test_no_moment_fails(engines: Engines, unit: tuple[str, ...], column: str) -> None:
    """Times that are no times, that are on no calendar, and those at a look's own moment: what came before it counts.

    A row of a window counts however long before it came, and never if it came after the window had closed.
    """
    standing = _standing(groups=2, cap=None, unit=unit)
    if not unit:
        standing = replace(standing, table=replace(standing.table, rows_per_unit=None))
        standing = replace(standing, functionals=(functional(standing.table, Measure.ROWS, None, ALWAYS),))
    as_of = AsOf(column, datetime(2026, 1, 2, 12), "born", _DAYS, timedelta(hours=24))
    for source in (engines.duck, engines.postgres):
        tuples: list[str] = []
        for i, moment in enumerate((*_ODD, *_FAR[source.dialect.name])):
            for day in ("DATE '2026-01-01'", "DATE '2026-01-02'", "DATE 'infinity'", "NULL"):
                visited = "NULL" if moment == "NULL" else f"TIMESTAMP {moment}"
                row = [str(i), f"'p{len(tuples)}'", "NULL", "'north'", "1", visited, day, "NULL", "5"]
                tuples.append(", ".join([*row, "NULL", "NULL", "NULL", "NULL"]))
        relation = _load_on(engines, source.dialect.name, tuples)
        table = replace(standing.table, relation=relation)
        question = replace(standing, table=table, as_of=as_of)
        found = source.read_aggregates(
            rewrite(question, dialect=source.dialect), question.keys, functionals=len(question.functionals),
            timeout_ms=60_000,
        ).values[0].reshape(3, 4)  # fmt: skip
        # of the first window none of the second day; of the second all that came before its noon, which is what a date
        # says only where nothing is chosen
        expected = [4, 5, 0, 0] if column == "visited" else [9, 0 if unit else 9, 0, 0]
        np.testing.assert_array_equal(found, [expected, [0] * 4, [0] * 4])


def _load_on(engines: Engines, dialect: str, tuples: list[str]) -> str:
    """Rows given as SQL, on one of both engines, whose far years differ."""
    declared = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    values = ", ".join(f"({one})" for one in tuples)
    if dialect == "postgres":
        engines.writer.execute(f"DROP TABLE IF EXISTS crowd; CREATE UNLOGGED TABLE crowd ({declared})")
        engines.writer.execute(f"INSERT INTO crowd VALUES {values}")
        return "public.crowd"
    path = engines.folder / f"odd_{abs(hash(values))}.parquet"
    with duckdb.connect() as writer:
        writer.execute(f"CREATE TABLE visits ({declared}); INSERT INTO visits VALUES {values}")
        writer.execute(f"COPY visits TO '{path}'")
    return f"read_parquet('{path}')"
