"""Where the group is a person, the refusal proposes the question about groups of them, and that has an answer."""

from collections.abc import Callable

import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.planner.asked import TODAY
from tests.worlds.retail import retail
from tests.worlds.stays import stays

PEOPLE: list[tuple[Callable[[], Catalog], str, str]] = [
    (
        retail,
        "SELECT customer_id, count(*) AS n FROM sales GROUP BY customer_id HAVING count(*) > 5 ORDER BY n DESC",
        "SELECT country FROM (SELECT country, customer_id, month, count(*) AS total FROM sales GROUP BY country, "
        "customer_id, month) v WHERE total > 5 GROUP BY country HAVING count(*) > 50;",
    ),
    (
        retail,
        "SELECT s.customer_id, s.country FROM sales s WHERE s.quantity > 3 GROUP BY 1, 2 "
        "HAVING sum(s.amount) > 100 AND count(*) > 1",
        "SELECT country FROM (SELECT country, customer_id, month, sum(s.amount) AS total, count(*) AS total2 "
        "FROM sales s WHERE s.quantity > 3 GROUP BY country, customer_id, month) v "
        "WHERE total > 100 AND total2 > 1 GROUP BY country HAVING count(*) > 50;",
    ),
    (
        retail,
        "SELECT customer_id FROM sales GROUP BY customer_id HAVING avg(amount) > 5",
        "SELECT country FROM (SELECT country, customer_id, month, count(*) AS total FROM sales GROUP BY country, "
        "customer_id, month) v WHERE total > 3 GROUP BY country HAVING count(*) > 50;",
    ),
    (
        stays,
        "SELECT patient_id FROM stays GROUP BY patient_id HAVING count(*) > 2",
        "SELECT ward FROM (SELECT ward, patient_id, count(*) AS total FROM stays GROUP BY ward, patient_id) v "
        "WHERE total > 2 GROUP BY ward HAVING count(*) > 50;",
    ),
]


def _refused(sql: str, catalog: Catalog) -> KeyholeError:
    with pytest.raises(KeyholeError) as refused:
        classify(sql, catalog)
    return refused.value


@pytest.mark.parametrize("mode", ["null", "refuse"])
@pytest.mark.parametrize(("made", "sql", "proposed"), PEOPLE)
def test_groups_of_people_are_proposed_and_answered(
    made: Callable[[], Catalog], sql: str, proposed: str, mode: str
) -> None:
    catalog = made().replace_numbers(mode)
    if mode == "null" or "count(*) AS n" not in sql:
        refusal = _refused(sql, catalog)
        assert refusal.code == "KH202"
        assert refusal.hint == f"Instead you can ask: {proposed}"
    asking = classify(proposed, catalog)
    assert isinstance(asking, Asking)
    (question,) = asking.questions
    wanted = read_accuracy({}, catalog.defaults)
    plan_question(
        bind_question(question, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True), dialect=POSTGRES
    )


def test_a_search_for_duplicates_is_told_why_not() -> None:
    for having in ("count(*) > 1", "count(*) >= 2", "count(stock_code) > 1"):
        refusal = _refused(f"SELECT stock_code FROM sales GROUP BY stock_code HAVING {having}", retail())
        assert refusal.detail == (
            "One row decides whether a stock_code is there twice, so no private answer reveals it."
        )
        assert refusal.hint == "Look for duplicates where the data are kept."
    assert "twice" not in str(
        _refused("SELECT stock_code FROM sales GROUP BY stock_code HAVING count(*) > 9", retail()).detail
    )
