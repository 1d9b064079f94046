"""Thresholds that a key determines: what becomes of statements, what is the same question, and what is taken off."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from mechanisms.formula import FALSE, Integers, evaluate_formula, list_literals
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, PublicTable, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.explain.render import explain_text
from planner.functionals.per_key_offsets import LIMIT, subtract_offsets
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.plan.question_identity import find_fingerprint
from planner.question.question import Accuracy, Question
from planner.statements.classify import Asking, classify
from tests.in_turn import in_turn
from tests.planner.rendering import formula_text
from tests.planner.spec import pairs
from tests.proxy.sources.oracle import true_aggregates
from tests.worlds.retail import retail

VISITS = Table(
    name="visits",
    relation="visits",
    columns=(
        Column("room", SqlType.TEXT, "text", domain=("a", "b", "c", "d")),
        Column("hour", SqlType.INTEGER, "integer", domain=(0, 1, 2)),
        Column("age", SqlType.INTEGER, "integer", bounds=(Decimal(0), Decimal(100)), grid=Decimal(1)),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="rooms",
)
ROOMS = PublicTable(
    name="rooms",
    columns=(
        Column("room", SqlType.TEXT, "text"),
        Column("capacity", SqlType.INTEGER, "integer"),
        Column("share", SqlType.NUMERIC, "numeric"),
        Column("factor", SqlType.DOUBLE, "double precision"),
        Column("building", SqlType.TEXT, "text"),
    ),
    rows=(
        ("a", 20, Decimal("0.5"), Decimal("0.5"), "x"),
        ("b", 100, Decimal("0.25"), Decimal("0.5"), "x"),
        ("c", None, None, None, "y"),
        ("d", 200, Decimal("0.75"), Decimal("0.5"), "y"),
    ),
    digest="rooms",
)
BUILDINGS = PublicTable(
    name="buildings",
    columns=(Column("id", SqlType.TEXT, "text"), Column("quota", SqlType.INTEGER, "integer")),
    rows=(("x", 50), ("y", 80)),
    digest="buildings",
)
CATALOG: Catalog = replace(retail(), tables=(VISITS,), public_tables=(ROOMS, BUILDINGS), stored_questions=())
ACCURACY = Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole")
_GUARD = "count(*) FILTER (WHERE v.age IS NOT NULL AND r.capacity IS NOT NULL) >= 1"
JOINED = "FROM visits v JOIN rooms r ON v.room = r.room"


def _asked(sql: str) -> Question:
    statement = classify(sql, CATALOG)
    assert isinstance(statement, Asking)
    return bind_question(statement.questions[0], CATALOG, accuracy=ACCURACY, parameters={}, today=date(2026, 1, 1))


def _outcome(sql: str) -> str:
    try:
        question = _asked(sql)
    except KeyholeError as error:
        return error.code
    keys = ", ".join(
        f"{name} {len(values)}" for name, values in zip(question.keys.names, question.keys.values, strict=True)
    )
    taken = "; ".join(
        one.name
        if one.offsets is None
        else f"{one.name} less {' '.join(map(str, one.offsets.steps))} by {one.offsets.key}"
        for one in question.functionals
    )
    return f"[{keys}] {formula_text(question.formula)}; {taken}"


@in_turn(("sql", "expected"), pairs("per_key.sql"))
def test_corpus(sql: str, expected: str) -> None:
    assert _outcome(sql) == expected


SAME = [
    f"SELECT v.room {JOINED} GROUP BY v.room, r.capacity HAVING count(*) > 0.8 * r.capacity",
    f"SELECT v.room, r.capacity {JOINED} GROUP BY v.room, r.capacity HAVING NOT 0.8 * r.capacity >= count(*)",
    f"SELECT v.room {JOINED} WHERE r.capacity IS NOT NULL GROUP BY v.room HAVING count(*) / 0.8 > max(r.capacity)",
    f"SELECT v.room {JOINED} GROUP BY v.room, capacity HAVING 1.0 * count(*) / capacity > 0.8",
    "SELECT x.room FROM visits x, rooms y WHERE x.room = y.room GROUP BY 1, y.capacity"
    " HAVING count(*) > y.capacity * 0.8",
]
OTHER = [
    f"SELECT v.room {JOINED} GROUP BY v.room, r.capacity HAVING count(*) > 0.9 * r.capacity",
    f"SELECT v.room {JOINED} WHERE r.room <> 'd' GROUP BY v.room, r.capacity HAVING count(*) > 0.8 * r.capacity",
    f"SELECT v.room {JOINED} WHERE r.capacity IS NOT NULL GROUP BY v.room HAVING count(*) > 16",
    f"SELECT v.room {JOINED} GROUP BY v.room, r.capacity HAVING count(*) > 0.8 * r.capacity + 4 * r.share",
]


def test_one_question_has_one_fingerprint_and_others_have_others() -> None:
    prints = [plan_question(_asked(sql), dialect=POSTGRES).fingerprint for sql in SAME + OTHER]
    assert len(set(prints[: len(SAME)])) == 1
    assert len(set(prints)) == 1 + len(OTHER)


def test_another_pin_is_another_question() -> None:
    changed = replace(ROOMS, rows=(("a", 30, *ROOMS.rows[0][2:]), *ROOMS.rows[1:]), digest="other")
    catalog = replace(CATALOG, public_tables=(changed, BUILDINGS))
    statement = classify(SAME[0], catalog)
    assert isinstance(statement, Asking)
    other = bind_question(statement.questions[0], catalog, accuracy=ACCURACY, parameters={}, today=date(2026, 1, 1))
    first = plan_question(_asked(SAME[0]), dialect=POSTGRES)
    assert plan_question(other, dialect=POSTGRES).fingerprint != first.fingerprint


def test_thresholds_that_differ_by_a_constant_share_one_noisy_value() -> None:
    sql = f"SELECT v.room {JOINED} GROUP BY v.room, r.capacity HAVING count(*) BETWEEN r.capacity AND r.capacity + 30"
    question = _asked(sql)
    assert len(question.functionals) == 1
    assert len({cut.cut for cut in list_literals(question.formula)}) == 2


def test_what_a_key_determines_costs_what_one_threshold_costs() -> None:
    own = plan_question(_asked(SAME[0]), dialect=POSTGRES)
    one = plan_question(_asked(OTHER[2]), dialect=POSTGRES)
    assert own.worst_case_epsilon == one.worst_case_epsilon


def test_different_thresholds_of_one_sum_add_up() -> None:
    """One unit moves them together."""
    sql = (
        f"SELECT v.room {JOINED} GROUP BY v.room, r.capacity HAVING count(*) > r.capacity OR count(*) < r.capacity / 2"
    )
    made = plan_question(_asked(sql), dialect=POSTGRES)
    assert made.calibration.task.exposures == ((Fraction(1), Fraction(1)),)
    assert made.worst_case_epsilon >= sum(test.epsilon for test in made.calibration.tests) * (1 - 1e-9)


def test_what_is_taken_off_follows_the_key_and_never_widens_a_difference() -> None:
    sql = f"SELECT v.hour, v.room {JOINED} GROUP BY v.hour, v.room, r.capacity HAVING count(*) > r.capacity"
    question = _asked(sql)
    assert question.keys.names == ("hour", "room")
    values = np.arange(9, dtype=np.int64).reshape(1, 9) * 50
    offsets = (0, 80, 180)
    assert subtract_offsets(question, values).tolist() == [[50 * i - offsets[i % 3] for i in range(9)]]
    extreme = np.array([[2**63 - 1, -(2**63), LIMIT, -LIMIT, 0, 1, 2, 3, 4]], dtype=np.int64)
    moved = extreme.copy()
    moved[0, 2:] += 1
    before, after = subtract_offsets(question, extreme), subtract_offsets(question, moved)
    assert np.all(np.abs(after - before) <= 1)
    assert np.all(np.abs(before) <= 2 * LIMIT)


def test_explain_says_what_the_thresholds_are() -> None:
    lines = explain_text(plan_question(_asked(SAME[0]), dialect=POSTGRES), left=None)
    assert any(
        "count(*) > 0.8 * r.capacity (16 to 160)   may err by 1 below each group's own threshold" in line
        for line in lines
    )
    assert any("10% of 16, the least of the groups' thresholds" in line for line in lines)


def test_hints_for_own_thresholds_work() -> None:
    without = f"SELECT v.room {JOINED} GROUP BY v.room, r.capacity HAVING count(*) = 0.125 * r.capacity"
    with pytest.raises(KeyholeError) as refused:
        _asked(without)
    written = (refused.value.hint or "").removeprefix("Write ").removesuffix(".")
    assert _asked(without.replace("count(*) = 0.125 * r.capacity", written)).keys.size == 3
    zero = "SELECT hour FROM visits GROUP BY hour HAVING count(*) > 100 * hour"
    with pytest.raises(KeyholeError) as refused:
        _asked(zero)
    tolerance = (refused.value.hint or "").split("'")[1]
    statement = classify(zero, CATALOG)
    assert isinstance(statement, Asking)
    wanted = replace(ACCURACY, tolerance=tolerance)
    found = bind_question(statement.questions[0], CATALOG, accuracy=wanted, parameters={}, today=date(2026, 1, 1))
    assert plan_question(found, dialect=POSTGRES).worst_case_epsilon > 0


_CAPACITIES = dict(zip("abcd", (20, 100, None, 200), strict=True))
_MEANS = (
    ("avg(v.age) > max(r.capacity)", lambda mean, own: mean > own),
    (f"avg(v.age) >= 0.5 * min(r.capacity) - 3 AND {_GUARD}", lambda mean, own: mean >= Fraction(own, 2) - 3),
    ("0.1 * max(r.capacity) < avg(v.age)", lambda mean, own: mean > Fraction(own, 10)),
    (f"avg(v.age) = max(r.capacity) AND {_GUARD}", lambda mean, own: mean == own),
    (f"avg(v.age) < max(r.capacity) AND {_GUARD}", lambda mean, own: mean < own),
    (f"avg(v.age) <> max(r.capacity) AND {_GUARD}", lambda mean, own: mean != own),
)


def _passed(question: Question, values: Integers) -> list[tuple[Value, ...]]:
    found = evaluate_formula(
        question.formula, lambda cut: cut.evaluate(values[cut.functional]), keys=question.keys.size
    )
    return list(question.keys.list_keys(found))


@pytest.mark.parametrize(("formula", "holds"), _MEANS)
def test_a_mean_is_compared_with_each_group_s_own_threshold(
    formula: str, holds: Callable[[Fraction, int], bool]
) -> None:
    """By brute force over 60 tables of up to 20 rows: PostgreSQL's truth, NULL ages and a NULL threshold included."""
    random = Random(7)
    exact = replace(ACCURACY, tolerance="0")
    statement = classify(f"SELECT v.room {JOINED} GROUP BY v.room HAVING {formula}", CATALOG)
    assert isinstance(statement, Asking)
    question = bind_question(statement.questions[0], CATALOG, accuracy=exact, parameters={}, today=date(2026, 1, 1))
    for _ in range(60):
        rooms = random.choices("abcd", k=random.randrange(20))
        ages = [random.choice((None, 0, 7, 10, 20, 20, 47, 100, 100)) for _ in rooms]
        rows = [
            {"room": room, "hour": 0, "age": age, "capacity": _CAPACITIES[room]}
            for room, age in zip(rooms, ages, strict=True)
        ]
        passed = _passed(question, subtract_offsets(question, true_aggregates(question, rows)))
        expected = []
        for room, own in _CAPACITIES.items():
            known = [age for of, age in zip(rooms, ages, strict=True) if of == room and age is not None]
            if known and own is not None and holds(Fraction(sum(known), len(known)), own):
                expected.append((room,))
        assert passed == expected


def test_the_mean_s_sensitivity_is_that_of_the_worst_key() -> None:
    """Every row that there could be, in every room: none moves the functional by more, and one moves it by as much."""
    question = _asked(f"SELECT v.room {JOINED} GROUP BY v.room HAVING avg(v.age) > max(r.capacity)")
    (functional,) = question.functionals
    moved = [
        abs(int(value))
        for room, capacity in _CAPACITIES.items()
        for age in (None, *range(101))
        for value in true_aggregates(question, [{"room": room, "age": age, "capacity": capacity}])[0]
    ]
    assert max(moved) == functional.sensitivity == 200


def test_a_predicate_is_false_or_null_where_its_threshold_is_null() -> None:
    """It is NULL if no data could make it false. It is another question than one with all its thresholds, and refused
    where it might be true all the same."""
    shown = _asked(f"SELECT v.room, count(*) <= max(r.capacity) AND count(*) >= 50 AS free {JOINED} GROUP BY v.room")
    assert shown.publicly_false_keys == ((("room", (2,)),),)
    assert "free is false for the values of room that have no threshold" in shown.warnings
    assert find_fingerprint(shown) != find_fingerprint(replace(shown, publicly_false_keys=((),)))
    within = _asked(f"SELECT v.room, count(*) > max(r.capacity) {JOINED} WHERE r.room = 'c' GROUP BY v.room")
    assert (within.predicates, within.functionals, within.null_predicates) == ((FALSE,), (), (True,))
    assert find_fingerprint(within) != find_fingerprint(replace(within, null_predicates=(False,)))
    left = _asked(f"SELECT v.room, count(*) > r.capacity {JOINED} WHERE v.room <> 'a' GROUP BY v.room, r.capacity")
    assert (left.publicly_false_keys, left.publicly_null_keys) == (((),), ((("room", (1,)),),))
    assert find_fingerprint(left) != find_fingerprint(replace(left, publicly_null_keys=((),)))
    for formula in ("count(*) > max(r.capacity) OR count(*) > 300", "(count(*) > max(r.capacity)) IS NOT TRUE"):
        with pytest.raises(KeyholeError, match="KH208"):
            _asked(f"SELECT v.room, {formula} {JOINED} GROUP BY v.room")
