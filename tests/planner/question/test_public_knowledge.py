"""Public knowledge for MiM: what its text means in integer steps, and that it is part of the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.protocol import Knowledge
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.public_knowledge import find_knowledge, parse_public_knowledge
from tests.planner.asked import asked

FILTERED = "count(*) FILTER (WHERE age > 65)"
COUNT = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100"
TWO = f"SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 AND {FILTERED} > 40"


def told(sql: str, text: str) -> tuple[Knowledge | None, ...]:
    return find_knowledge(asked(sql, mechanism="mim", public_knowledge=text))


@given(
    far=st.integers(0, 10**6),
    near=st.integers(0, 10**6),
    distances=st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)),
)
def test_counts_are_told_in_rows(far: int, near: int, distances: tuple[int, int]) -> None:
    near_by, far_by = sorted(distances)
    text = f"{far} far by {far_by}, {near} near by {near_by}"
    assert told(COUNT, text) == (Knowledge(far, far_by, near, near_by),)
    assert told(COUNT, f" Count : {text.upper()} ".replace(" BY ", "  by\n")) == (
        Knowledge(far, far_by, near, near_by),
    )


def test_averages_are_told_in_their_own_unit() -> None:
    """`min_rows` rows of a group are meant, as for its tolerance, and amounts are rounded down to whole steps."""
    sql = "SELECT ward FROM visits GROUP BY ward HAVING avg(age) > 60"
    question = asked(sql, mechanism="mim", min_rows="50", public_knowledge="avg(age): 3 far by 4.99, 2 near by 0.1")
    (functional,) = [one for one in question.functionals if one.name.startswith("avg")]
    index = question.functionals.index(functional)
    size = 50 / functional.unit_size
    assert find_knowledge(question)[index] == Knowledge(3, int(size * 499 / 100), 2, int(size / 10))


def test_the_most_telling_name_counts() -> None:
    general, own, filtered = "9 far by 9, 9 near by 9", "1 far by 30, 2 near by 20", "3 far by 15, 4 near by 10"
    both = (Knowledge(1, 30, 2, 20), Knowledge(3, 15, 4, 10))
    assert set(told(TWO, f"count: {own}; {FILTERED}: {filtered}; {general}")) == set(both)
    assert set(told(TWO, f"{general}; {FILTERED}: {filtered}")) == {Knowledge(9, 9, 9, 9), both[1]}
    assert set(told(TWO, f"{FILTERED}: {filtered}")) == {None, both[1]}


@pytest.mark.parametrize("text", ["", "  ", "sum(cost): 1 far by 30, 2 near by 20"])
def test_nothing_known_is_nothing(text: str) -> None:
    assert told(TWO, text) == ()
    assert parse_public_knowledge("").find_shortfall(("count",)) is None


def test_knowledge_chooses_the_looks_and_is_part_of_the_question() -> None:
    texts = ("", "count: 10000 far by 95, 10 near by 40", "count: 0 far by 95, 1000 near by 40")
    plans = [plan_question(asked(COUNT, mechanism="mim", public_knowledge=text), dialect=DUCKDB) for text in texts]
    assert [len(made.calibration.tests[0].looks) for made in plans] == [1, 1, 0]
    assert plans[0].calibration.tests[0].looks != plans[1].calibration.tests[0].looks
    assert len({made.fingerprint for made in plans}) == 3
    spelt = plan_question(asked(COUNT, mechanism="mim", public_knowledge=f"  {texts[1].upper()}"), dialect=DUCKDB)
    assert spelt.fingerprint == plans[1].fingerprint


@pytest.mark.parametrize("text", ["1000000 far by 90, 0 near by 90", "0 far by 1, 1000000 near by 1"])
@pytest.mark.parametrize("mechanism", ["mim", "mim_progressive"])
def test_whatever_is_told_the_promise_stays(mechanism: str, text: str) -> None:
    made = plan_question(asked(TWO, mechanism=mechanism, public_knowledge=text), dialect=DUCKDB)
    assert made.calibration.fnr is not None
    assert made.calibration.fpr is not None
    assert made.calibration.fnr <= 0.05
    assert made.calibration.fpr <= 0.1
