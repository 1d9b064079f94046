"""Conditions on keys beside a total, where no PostgreSQL runs the query around the question."""

import pytest

from planner.errors import KeyholeError
from proxy.pipeline.messages import read_bare_question
from tests.worlds.retail import retail

TOTAL = "(SELECT sum(amount) FROM sales)"


def test_conditions_that_the_total_lacks_are_refused_with_two_ways_out() -> None:
    question = f"SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.1 * {TOTAL}"
    beside = "WHERE country <> 'Norway'"
    outside = question.replace("GROUP", f"{beside} GROUP")
    for sql in (outside, f"{question} AND country <> 'Norway'"):
        with pytest.raises(KeyholeError, match="KH106: conditions on keys") as raised:
            read_bare_question(sql, retail())
        assert (raised.value.hint or "").startswith("Leave the condition out and drop these groups from the answer")
    assert read_bare_question(question, retail())
    assert read_bare_question(outside.replace("FROM sales)", f"FROM sales {beside})"), retail())


def test_queries_that_somebody_wrote_around_are_told_as_before() -> None:
    around = f"SELECT q.country FROM (SELECT country FROM sales GROUP BY country HAVING sum(amount) > 0.1 * {TOTAL}) q"
    with pytest.raises(KeyholeError, match="KH106: this is not a question by itself"):
        read_bare_question(f"{around} WHERE q.country <> 'Norway' ORDER BY upper(q.country)", retail())
