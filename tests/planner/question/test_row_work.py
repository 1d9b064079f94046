"""What conditions may cost on one row: patterns are counted, and what is too much is refused before data is touched."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Catalog, Column, SqlType
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.condition import Compare, Condition, Like, Not, join_any
from planner.question.row_work import MOST_PATTERN_WORK, UNNOTICED_TESTS, are_expensive, bound_pattern_work, is_searched
from planner.values.like import collapse_wildcards, matches_pattern, read_lengths
from tests.effort import examples
from tests.planner.asked import asked
from tests.worlds.retail import retail

PATTERNS = st.text(alphabet="ab%_\\é", max_size=12).filter(lambda text: (len(text) - len(text.rstrip("\\"))) % 2 == 0)
TEXTS = st.text(alphabet="abé%_\\", max_size=12)
NOTE = Column("note", SqlType.TEXT, "text")


@given(PATTERNS, TEXTS)
@examples(2000)
def test_collapsed_patterns_match_the_same_texts(pattern: str, text: str) -> None:
    collapsed = collapse_wildcards(pattern)
    assert matches_pattern(text, collapsed) == matches_pattern(text, pattern)
    assert collapse_wildcards(collapsed) == collapsed
    lengths = read_lengths(collapsed)
    if lengths is not None:
        least, more = lengths
        assert matches_pattern(text, pattern) == (len(text) >= least if more else len(text) == least)


@pytest.mark.parametrize(
    ("pattern", "collapsed"),
    [
        ("%___Q0%", "___%Q0%"),
        ("%_%_%", "__%"),
        ("a%%_b", "a_%b"),
        ("%" + "_" * 180 + "Q0%", "_" * 180 + "%Q0%"),
        (r"\%_%\_", r"\%_%\_"),
    ],
)
def test_blanks_stand_before_what_is_looked_for(pattern: str, collapsed: str) -> None:
    assert collapse_wildcards(pattern) == collapsed


def comparisons(text: str, patterns: list[str]) -> int:
    """How many characters are compared by the naive search of every part, at every place, from the last one found."""
    made = 0
    for pattern in patterns:
        head, *behind = collapse_wildcards(pattern).split("%")
        made += len(head)
        at = len(head)
        for part in behind:
            while part and at + len(part) <= len(text):
                found = next((i for i, letter in enumerate(part) if letter not in ("_", text[at + i])), len(part))
                made += min(found + 1, len(part))
                if found == len(part):
                    at += len(part)
                    break
                at += 1
    return made


@given(st.lists(st.text(alphabet="ab%_", max_size=8), max_size=6), st.text(alphabet="ab", max_size=30))
@examples(1000)
def test_no_text_takes_more_than_is_counted(patterns: list[str], text: str) -> None:
    column = replace(NOTE, max_length=max(len(text), 1))
    assert comparisons(text, patterns) <= bound_pattern_work(patterns, column)


@pytest.mark.parametrize(
    ("pattern", "looked_for"), [("flu%", False), ("flu", False), ("_l_%", False), ("%flu", True), ("f%u", True)]
)
def test_what_stands_behind_a_percent_is_looked_for(pattern: str, *, looked_for: bool) -> None:
    assert is_searched(pattern) is looked_for


def test_a_pattern_that_begins_with_text_costs_no_more_than_it_is_long() -> None:
    assert bound_pattern_work(["flu%"], NOTE) == bound_pattern_work(["flu%"], replace(NOTE, max_length=1)) == 4


def test_spellings_of_a_word_cost_as_much_as_can_be_alike_at_one_place() -> None:
    spelled = [f"%{a}{b}%" for a in "aA" for b in "bB"]
    assert bound_pattern_work(spelled, replace(NOTE, max_length=100)) == 4 + 100 * (4 + 2)


def noted(max_length: int | None = None) -> Catalog:
    """The retail world, whose sales have a note."""
    catalog = retail()
    note = replace(NOTE, max_length=max_length)
    tables = tuple(
        replace(table, columns=(*table.columns, note)) if table.name == "sales" else table for table in catalog.tables
    )
    return replace(catalog, tables=tables)


def question(condition: str) -> str:
    return f"SELECT country FROM sales GROUP BY country HAVING count(*) FILTER (WHERE {condition}) > 400"


DEAR = {
    "many patterns": " OR ".join(f"note LIKE '%{'a' * 9}{i}%'" for i in range(100)),
    "the reported attack": "quantity = 7 AND ("
    + " OR ".join(f"note LIKE '%{'_' * 18}Q{i}%'" for i in range(900))
    + ")",
    "a long one": f"note LIKE '%{'a' * 500}%'",
    "very many prefixes": " OR ".join(f"note LIKE 'a{i}%'" for i in range(1001)),
    "very many percents": f"note LIKE '{'%a' * 101}'",
}


@pytest.mark.parametrize("condition", DEAR.values(), ids=DEAR)
def test_too_dear_questions_are_refused_with_what_to_do(condition: str) -> None:
    bound = asked(question(condition), catalog=noted())
    for dialect in (DUCKDB, POSTGRES):
        with pytest.raises(KeyholeError) as caught:
            plan_question(bound, dialect=dialect)
        assert caught.value.code == "KH214"
        assert "note up to 500 characters" in str(caught.value.detail)
        assert "max_length" in str(caught.value.hint)


def test_shorter_texts_leave_room_for_more_patterns() -> None:
    sql = question(f"note LIKE '%{'a' * 500}%'")
    plan_question(asked(sql, catalog=noted(100)), dialect=DUCKDB)


def test_six_letters_in_every_spelling_have_room_at_the_default_length() -> None:
    plan_question(asked(question("note ILIKE '%abcdef%'"), catalog=noted()), dialect=DUCKDB)


def test_few_tests_stay_where_they_were_and_many_are_dear() -> None:
    table = retail().tables[0]

    def tests(count: int) -> tuple[Condition, ...]:
        return (join_any(Compare("quantity", "=", i) for i in range(count)),)

    assert not are_expensive(tests(UNNOTICED_TESTS), table)
    assert are_expensive(tests(UNNOTICED_TESTS + 1), table)


def test_the_limit_is_the_same_however_conditions_are_put_together() -> None:
    table = replace(retail().tables[0], columns=(NOTE,))
    chance = random.Random(5)
    patterns: list[Condition] = [Like("note", f"%{chance.choice('ab') * 9}{i:02}%") for i in range(40)]
    work = bound_pattern_work(
        [leaf.pattern for one in patterns for leaf in one.walk_leaves() if isinstance(leaf, Like)], NOTE
    )
    assert work > MOST_PATTERN_WORK
    together = [join_any(patterns)], [join_any(Not(one) for one in patterns)], patterns
    for conditions in together:
        with pytest.raises(KeyholeError, match="KH214"):
            are_expensive(conditions, table)
