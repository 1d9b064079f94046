"""Several looks as one statement: each has the integers that it has by definition, on both engines."""

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from planner.lower.dialects.postgres import POSTGRES
from planner.lower.shared_looks import share_scans
from planner.question.condition import ALWAYS
from planner.question.question import Question
from tests.effort import examples
from tests.proxy.sources.looks.worlds import looks, overlapping
from tests.proxy.sources.oracle import Row, true_aggregates
from tests.proxy.sources.worlds import UNITS, Engines, conditions, functionals, rows


@st.composite
def _together(draw: st.DrawFn) -> list[Question]:
    """Looks at the same windows of one table, each with a WHERE and functionals of its own."""
    units = draw(st.sampled_from([((),), UNITS]))
    first = draw(st.one_of(looks(units=units), overlapping(units=units)))
    made = [first]
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.one_of(st.just(ALWAYS), st.just(first.where), conditions()))
        one = replace(first, where=where)
        summed = draw(st.lists(functionals(one.table, different=True), min_size=1, max_size=3))
        made.append(replace(one, functionals=(*summed, *first.functionals[:1])))
    return made


@examples(
    100,
    quick=8,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(questions=_together(), found=rows())
def test_together_each_has_its_own_integers(engines: Engines, questions: list[Question], found: list[Row]) -> None:
    shared = share_scans(questions, dialect=POSTGRES)
    assert sorted(number for look in shared for number, _ in look.places) == list(range(len(questions)))
    relations = engines.load(found)
    expected = [true_aggregates(question, found) for question in questions]
    for look in shared:
        for answer in engines.answers(look.question, relations):
            for number, places in look.places:
                np.testing.assert_array_equal(answer[list(places)], expected[number])
