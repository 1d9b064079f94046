"""The text that the ledger keeps: the same question again, or no constant in it that is about rows."""

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.extract.question_text import MOST_CHARACTERS, write_question_text
from planner.parser.lexer import read_tokens
from planner.plan.question_identity import find_fingerprint
from planner.plan.reduce import reduce_question
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.classify import classify
from tests.effort import examples, rounds
from tests.planner.asked import asked, asking
from tests.planner.spec import pairs
from tests.worlds.retail import retail

FILES = (
    "aggregates.sql",
    "wrappings.sql",
    "joined.sql",
    "written_by_tools.sql",
    "flattened.sql",
    "guards.sql",
    "key_expressions.sql",
    "row_conditions.sql",
    "spellings.sql",
)


@cache
def questions() -> tuple[tuple[str, EmbeddedQuestion], ...]:
    """The statements of the corpus that are one question, be it answered or not."""
    return tuple(_questions())


def _questions() -> Iterator[tuple[str, EmbeddedQuestion]]:
    catalog = retail()
    for name in FILES:
        for sql, _ in pairs(name):
            try:
                statement = classify(sql, catalog)
            except KeyholeError:
                continue
            if isinstance(statement, Asking) and len(statement.questions) == 1:
                yield sql, statement.questions[0]


def kept(sql: str, *, constants: bool, **values: int | str) -> str:
    (question,) = asking(sql).questions
    parameters = {int(name[1:]): value for name, value in values.items()}
    return write_question_text(question, parameters, keeps_constants=constants)


def meaning(sql: str) -> str:
    return find_fingerprint(reduce_question(asked(sql))[0])


def test_the_corpus_has_questions() -> None:
    assert len(questions()) >= 200


def test_the_text_with_its_constants_is_the_same_question() -> None:
    """The whole corpus is compared at full size, every eighth question at quick."""
    compared = 0
    for sql, question in questions()[:: rounds(1, quick=8)]:
        try:
            same = meaning(sql)
        except KeyholeError:
            continue
        compared += 1
        text = write_question_text(question, {}, keeps_constants=True)
        assert "\n" not in text
        assert meaning(text) == same, text
        (again,) = asking(text).questions
        assert write_question_text(again, {}, keeps_constants=True) == text
    assert compared >= rounds(50, quick=20)


def test_without_its_constants_nothing_that_was_quoted_is_left() -> None:
    for sql, question in questions():
        text = write_question_text(question, {}, keeps_constants=False)
        assert not [word for word in read_tokens(text) if word.kind == "string"], text
        numbers = {word.value for word in read_tokens(sql) if word.kind == "number"}
        assert {word.value for word in read_tokens(text) if word.kind == "number"} <= numbers


@pytest.mark.parametrize(
    ("sql", "redacted"),
    [
        (
            "select  country from sales -- of Ann\n where customer_id = 'C77' GROUP BY country having count ( * )>1000",
            "SELECT country FROM sales WHERE customer_id = ? GROUP BY country HAVING count(*) > 1000",
        ),
        (
            "SELECT country FROM sales WHERE customer_id IN ('C1', 'C2', 'C3') GROUP BY country HAVING count(*) > 10",
            "SELECT country FROM sales WHERE customer_id IN (?, ...) GROUP BY country HAVING count(*) > 10",
        ),
        (
            "SELECT country FROM sales GROUP BY country HAVING (count(*) FILTER (WHERE amount > 43) > 0.2 * count(*))"
            " AND (sum(amount) > 900 OR sum(CASE WHEN amount > 44 THEN 1 ELSE 0 END) > 20)",
            "SELECT country FROM sales GROUP BY country HAVING (count(*) FILTER (WHERE amount > ?) > 0.2 * count(*))"
            " AND (sum(amount) > 900 OR sum(CASE WHEN amount > ? THEN ? ELSE ? END) > 20)",
        ),
        (
            "SELECT country FROM sales GROUP BY country"
            " HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) > 20",
            "SELECT country FROM sales GROUP BY country"
            " HAVING percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) > 20",
        ),
        (
            "SELECT country FROM sales GROUP BY country HAVING count(*) IS DISTINCT FROM 7 AND count(*) > 8",
            "SELECT country FROM sales GROUP BY country HAVING count(*) IS DISTINCT FROM 7 AND count(*) > 8",
        ),
        (
            "select country from sales where amount > 45 group by country order by sum(amount) - 46 desc limit 5",
            "SELECT country FROM sales WHERE amount > ? GROUP BY country ORDER BY sum(amount) - ? DESC LIMIT 5",
        ),
        (
            "SELECT country FROM sales WHERE amount BETWEEN 17 AND -18 GROUP BY country HAVING count(*) > 41",
            "SELECT country FROM sales WHERE amount BETWEEN ? AND -? GROUP BY country HAVING count(*) > 41",
        ),
    ],
)
def test_constants_about_rows_are_left_out_and_thresholds_stay(sql: str, redacted: str) -> None:
    assert kept(sql, constants=False) == redacted


def test_parameters_are_what_they_stood_for() -> None:
    sql = "SELECT country FROM sales WHERE customer_id = $1 GROUP BY country HAVING count(*) > $2"
    assert kept(sql, constants=True, p1="O'Hara", p2=70).endswith(
        "WHERE customer_id = 'O''Hara' GROUP BY country HAVING count(*) > 70"
    )
    assert kept(sql, constants=False, p1="O'Hara", p2=70).endswith(
        "WHERE customer_id = ? GROUP BY country HAVING count(*) > 70"
    )
    assert kept(sql, constants=False, p1="O'Hara", p2="70").endswith("HAVING count(*) > ?")


def test_a_long_text_is_cut() -> None:
    named = ", ".join(f"'C{number}'" for number in range(1000))
    sql = f"SELECT country FROM sales WHERE customer_id IN ({named}) GROUP BY country HAVING count(*) > 10"
    assert len(kept(sql, constants=True)) == MOST_CHARACTERS + len(" ...")
    assert len(kept(sql, constants=False)) < 200


@given(
    st.from_regex(r"[QXZ]{3,8}[0-9]{2,4}", fullmatch=True),
    st.sampled_from(["'{}'", "E'{}'", "$${}$$", "$tag${}$tag$"]),
)
@examples(100, quick=10)
def test_no_name_gets_through_however_it_is_quoted(name: str, quote: str) -> None:
    written = quote.format(name)
    for place in (
        f"SELECT country FROM sales WHERE customer_id = {written} GROUP BY country HAVING count(*) > 10",
        f"SELECT country FROM sales GROUP BY country HAVING count(*) FILTER (WHERE customer_id = {written}) > 10",
        f"SELECT country FROM sales /* {name} */ GROUP BY country HAVING count(*) > 10 AND country = {written}",
    ):
        (question,) = asking(place).questions
        assert name not in write_question_text(question, {}, keeps_constants=False)
