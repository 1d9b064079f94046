"""The WHERE around a grouped subquery is one formula: it misses a group as seldom as one HAVING does."""

import numpy as np
import pytest
from scipy import stats
from sqlglot import exp

from mechanisms.registry import MECHANISMS
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from planner.plan.build import plan_question
from planner.question.plan import Plan
from tests.effort import rounds
from tests.planner.asked import asked, refusal
from tests.planner.rendering import question_text
from tests.seeded_noise import SeededNoise
from tests.worlds.retail import retail
from tests.worlds.stays import stays

MONTHS = "count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b, lag(count(*), 2) OVER (ORDER BY month) AS c"
BUSY = f"SELECT month, count(*) > 1000 AS busy, lag(count(*)) OVER (ORDER BY month) > 1000 AS was_busy, {MONTHS}"
NEIGHBOURS, CARDS = f"(SELECT month, {MONTHS} FROM sales GROUP BY month)", f"({BUSY} FROM sales GROUP BY month)"
AT_THE_EDGE = (
    f"SELECT month FROM {NEIGHBOURS} q WHERE n > 1000 AND b > 1000",
    f"SELECT month FROM {NEIGHBOURS} q WHERE n > 1000 AND b > 1000 AND c > 1000",
    f"WITH q AS {NEIGHBOURS} SELECT month, n, b FROM q WHERE n > 1000 AND b > 1000",
    f"SELECT month FROM {CARDS} q WHERE busy AND b > 1000",
    f"SELECT month, busy FROM {CARDS} q WHERE busy AND b > 1000",
    f"SELECT month FROM {CARDS} q WHERE busy AND was_busy",
    f"SELECT month FROM {CARDS} q WHERE NOT NOT busy AND (was_busy OR b < 5)",
    f"SELECT month, b > 50 AS had_some FROM {CARDS} q WHERE n > 1000 AND month > '2010-12-01' AND b > 1000",
    "SELECT month FROM (SELECT * FROM (SELECT month, count(*) > 1000 AS busy, count(DISTINCT customer_id) AS n "
    "FROM sales GROUP BY month) q) r WHERE busy AND n > 1000",
)
"""Statements whose conditions all hold by one row if every month has 1001 rows."""


def plan(sql: str) -> Plan:
    return plan_question(asked(sql, catalog=retail().replace_numbers("null")), dialect=DUCKDB)


@pytest.mark.parametrize("sql", AT_THE_EDGE)
def test_a_group_that_passes_every_condition_is_missed_as_seldom_as_one_condition_allows(sql: str) -> None:
    """Months that exceed every threshold by one row, four in each of 2,000 answers (quick: 500). They share no noisy
    value. With rates as promised, a count of misses is too high with a probability below 1e-6."""
    made, many, noise = plan(sql), rounds(2_000, quick=500), SeededNoise(7)
    apart, missed = [3, 6, 9, 12], 0
    sums = np.full((len(made.question.computed_functionals), 13), 1001)
    for _ in range(many):
        outcome = MECHANISMS[made.calibration.mechanism].decide(made.calibration, sums, noise=noise)
        returned = np.logical_and.reduce([outcome.passed, *outcome.predicates])
        missed += int(np.count_nonzero(~returned[apart]))
    assert missed <= stats.binom.isf(1e-6, many * len(apart), 0.05)


@pytest.mark.parametrize(
    ("sql", "same"),
    [
        (
            f"SELECT month, n FROM {NEIGHBOURS} q WHERE n > b + 500 AND month > '2011-02-01'",
            f"SELECT month FROM {NEIGHBOURS} q WHERE n > b + 500 AND month > '2011-02-01'",
        ),
        (
            f"WITH q AS {NEIGHBOURS} SELECT month, n - b FROM q WHERE n > b AND b > 1000",
            f"SELECT month FROM {NEIGHBOURS} q WHERE n > b AND b > 1000",
        ),
        (
            "SELECT country, sum(amount) FROM sales GROUP BY 1 HAVING count(*) > (SELECT count(*) FROM sales) / 5",
            "SELECT country FROM sales GROUP BY country HAVING count(*) > (SELECT count(*) FROM sales) / 5",
        ),
        (
            "WITH s AS (SELECT month, sum(amount) AS a FROM sales GROUP BY month) "
            "SELECT month, a FROM s WHERE a > (SELECT avg(a) FROM s)",
            "SELECT month FROM (SELECT month, sum(amount) > avg(sum(amount)) OVER () AS p FROM sales GROUP BY 1) q "
            "WHERE p",
        ),
    ],
)
def test_the_hint_of_a_comparison_with_other_groups_is_that_comparison_as_postgresql_reads_it(
    sql: str, same: str
) -> None:
    """PostgreSQL has no windows in HAVING."""
    error = refusal(sql)
    assert error is not None
    assert error.code == "KH101"
    hint = (error.hint or "").rstrip(";")
    tree = parse(hint, read_tokens(hint)).tree
    assert not any(window.find_ancestor(exp.Having) for window in tree.find_all(exp.Window)), hint
    assert asked(hint).formula == asked(same).formula
    assert question_text(asked(hint)) == question_text(asked(same))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("100.0 * (count(*) / (SELECT count(*) FROM sales)) > 5", "count(*) / (SELECT count(*) FROM sales)"),
        (
            "count(*) > 2 * (SELECT count(*) FROM sales) / (SELECT max(amount) FROM sales)",
            "2 * (SELECT count(*) FROM sales)",
        ),
    ],
)
def test_a_refusal_names_a_total_as_it_was_written(sql: str, words: str) -> None:
    error = refusal(f"SELECT country FROM sales GROUP BY country HAVING {sql}")
    assert error is not None
    assert words in f"{error.message} {error.hint}"
    assert "OVER" not in error.message


@pytest.mark.parametrize("total", ["SELECT max(n) FROM v", "SELECT avg(n) FROM v", "SELECT count(*) FROM stays"])
def test_a_total_beside_totals_of_units_is_refused(total: str) -> None:
    """The groups of the WITH query are privacy units, of which nothing is added up around it."""
    units = "WITH v AS (SELECT ward, patient_id, count(*) AS n FROM stays GROUP BY 1, 2)"
    sql = f"{units} SELECT ward FROM v WHERE n > ({total}) GROUP BY ward HAVING count(*) > 100"
    with pytest.raises(KeyholeError, match="KH1"):
        asked(sql, catalog=stays())
