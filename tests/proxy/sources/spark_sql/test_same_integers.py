"""Spark, Sail, DuckDB and PostgreSQL give the integers that the definition gives, on any rows; what Spark cannot answer
in a time that tells nothing is refused by its text alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given

from planner.errors import KeyholeError
from planner.lower.scan import rewrite
from planner.question.question import Question
from planner.question.row_work import are_expensive
from tests.effort import examples, rounds
from tests.proxy.sources.oracle import Row, true_aggregates
from tests.proxy.sources.worlds import UNITS, Engines, questions, rows

_GIVEN = examples(
    500,
    quick=6,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def _is_dear(question: Question) -> bool:
    filters = (term.condition for functional in question.functionals for term in functional.terms)
    return are_expensive(dict.fromkeys((question.where, *filters)), question.table)


@_GIVEN
@given(question=questions(units=((), *UNITS)), found=rows())
def test_random_worlds(connected: Any, engines: Engines, question: Question, found: list[Row]) -> None:
    relations, expected = engines.load(found), true_aggregates(question, found)
    for known in engines.answers(question, relations):
        np.testing.assert_array_equal(known, expected)
    asked = replace(question, table=replace(question.table, relation=relations[connected.dialect.name]))
    if _is_dear(asked):
        with pytest.raises(KeyholeError, match="KH214"):
            rewrite(asked, dialect=connected.dialect)
        return
    rewritten = rewrite(asked, dialect=connected.dialect)
    answer = connected.read_aggregates(rewritten, asked.keys, functionals=len(asked.functionals), timeout_ms=60_000)
    np.testing.assert_array_equal(answer.values, expected)


@pytest.fixture
def four(engines: Engines, request: pytest.FixtureRequest) -> Iterator[Engines]:
    """DuckDB, PostgreSQL, Sail and Apache Spark, each as Keyhole asks it."""
    from tests.proxy.sources.spark.engines import open_server

    asked = [open_server(request.getfixturevalue(name).url, directory=engines.folder) for name in ("sail", "spark")]
    yield replace(engines, instead=(engines.duck, engines.postgres, *asked))
    for source in asked:
        source.close()


@pytest.mark.installed
def test_worlds_of_all_four_engines(four: Engines) -> None:
    """The same worlds, asked of each: at full size at least 500 that no engine refuses."""
    answered = []

    @examples(600, quick=5, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.too_slow])
    @given(question=questions(units=((), *UNITS)), found=rows())
    def ask(question: Question, found: list[Row]) -> None:
        relations, expected = four.load(found), true_aggregates(question, found)
        answers = four.answers(question, relations)
        for values in answers:
            np.testing.assert_array_equal(values, expected)
        refused = _is_dear(question)
        assert len(answers) >= (2 if refused else 4)
        answered.append(not refused)

    ask()
    assert sum(answered) >= rounds(500, quick=3)
