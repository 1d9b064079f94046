"""Every statement is passed, answered or refused with its code and position; refusals name the way out."""

import json
import re
from contextlib import suppress
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import CATALOGUE, KeyholeError
from planner.parser.lexer import Token, read_tokens, split_statements
from planner.statements.classify import (
    Asking,
    CopyStatement,
    ExecuteStatement,
    ExplainStatement,
    KeyholeSetting,
    PassThrough,
    PrepareStatement,
    Statement,
    classify,
)
from tests.effort import examples, rounds
from tests.in_turn import in_turn
from tests.planner.asked import refusal
from tests.planner.spec import SPEC, pairs
from tests.worlds.retail import retail


def _outcome(statement: Statement) -> str:
    match statement:
        case PassThrough(kind):
            return kind
        case KeyholeSetting(name, value, local):
            return f"{name} = {'default' if value is None else value}{' local' if local else ''}"
        case Asking():
            return "asking"
        case ExplainStatement(questions, form):
            return f"explaining {form}" + (f" of {len(questions)}" if len(questions) > 1 else "")
        case CopyStatement(copied):
            return f"copying {copied.query.strip()}"
        case PrepareStatement(text):
            return f"preparing {text}"
        case ExecuteStatement(name, given, _, count, explain):
            return f"{explain.lower()}executing {name} with {count}: {given}".rstrip(" :")


@in_turn(("sql", "outcome"), pairs("passed.sql"))
def test_allowed(sql: str, outcome: str) -> None:
    assert _outcome(classify(sql, retail())) == outcome


def _refusal(sql: str) -> KeyholeError:
    found = refusal(sql, guard="refuse")
    assert found is not None
    return found


@in_turn(("sql", "outcome"), pairs("refused.sql"))
def test_refused_with_code_and_position(sql: str, outcome: str) -> None:
    code, _, pointed = outcome.partition(" ")
    error = _refusal(sql)
    assert error.code == code, error
    if pointed:
        assert error.position is not None
        assert sql[error.position - 1 :].startswith(pointed), sql[error.position - 1 :]
    assert error.position is None or 1 <= error.position <= len(sql) + 1


@in_turn(("sql", "outcome"), pairs("refused.sql"))
def test_a_shown_statement_is_itself_allowed(sql: str, outcome: str) -> None:
    hint = (_refusal(sql).hint or "").removeprefix("Instead you can ask: ")
    if hint.startswith("SELECT"):
        assert all(isinstance(classify(way, retail()), Asking) for way in hint.split("  or  "))
    if hint.startswith("SET keyhole."):
        assert all(isinstance(classify(way, retail()), KeyholeSetting) for way in hint.split("  or  "))


def test_introspection_of_real_clients_passes() -> None:
    catalog = retail()
    for query in json.loads((SPEC / "catalog_queries.json").read_text()):
        for statement in split_statements(query["sql"]):
            assert isinstance(classify(statement.text, catalog), PassThrough), query


def test_a_position_counts_in_the_whole_text() -> None:
    sql = "SELECT 1;\n  -- é\n SELECT country, count(*) FROM sales GROUP BY country"
    second = split_statements(sql)[1]
    with pytest.raises(KeyholeError) as error:
        classify(second.text, retail())
    moved = error.value.shift_position(offset=second.offset)
    assert moved.position is not None
    assert sql[moved.position - 1 :].startswith("count(*)")


@in_turn(
    ("sql", "texts"),
    [
        ("", []),
        (" ; ;-- nothing\n;", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT ';' ; SELECT \";\"", ["SELECT ';'", 'SELECT ";"']),
        ("SELECT E'\\';' ; SELECT 2", ["SELECT E'\\';'", "SELECT 2"]),
        ("SELECT $a$;$$;$a$; SELECT 2", ["SELECT $a$;$$;$a$", "SELECT 2"]),
        ("SELECT 1 /* ; /* ; */ ; */; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT 1 -- ;\n + 2", ["SELECT 1 -- ;\n + 2"]),
        ("SELECT $1;SELECT a$1", ["SELECT $1", "SELECT a$1"]),
    ],
)
def test_split(sql: str, texts: list[str]) -> None:
    assert [statement.text for statement in split_statements(sql)] == texts
    for statement in split_statements(sql):
        assert sql[statement.offset :].startswith(statement.text)


@given(st.text(alphabet="abz_'\"$;-/*\\eE1 \n().,:=<>\u00e9", max_size=40))
def test_the_lexer_reads_all_of_a_text_or_refuses_it(sql: str) -> None:
    found: tuple[Token, ...] = ()
    with suppress(KeyholeError):
        found = read_tokens(sql)
    for earlier, later in pairwise(found):
        assert earlier.end <= later.start
    for token in found:
        assert 0 <= token.start < token.end <= len(sql)
        assert not re.fullmatch(r"\s+", sql[token.start : token.end])


_WORDS = sorted({word for name in ("refused.sql", "questions.sql") for sql, _ in pairs(name) for word in sql.split()})


@given(st.lists(st.sampled_from(_WORDS), max_size=14))
@examples(300)
def test_any_words_are_classified_or_refused_with_a_catalogued_error(words: list[str]) -> None:
    error = refusal(" ".join(words))
    assert error is None or error.code in CATALOGUE


@given(st.sampled_from([sql for sql, _ in pairs("questions.sql")]), st.randoms(use_true_random=False))
@examples(300)
def test_any_damage_to_a_question_is_classified_or_refused(sql: str, random: Random) -> None:
    words = sql.split()
    for _ in range(random.randint(1, 3)):
        words[random.randrange(len(words))] = random.choice([*_WORDS, "", "(", ")", "NOT"])
    error = refusal(" ".join(words))
    assert error is None or error.code in CATALOGUE


@pytest.mark.parametrize("depth", [20, 200, 5000])
def test_nesting_is_followed_or_refused(depth: int) -> None:
    error = refusal(f"SELECT country FROM sales GROUP BY country HAVING {'(' * depth}count(*) > 5{')' * depth}")
    assert error is None or error.code == "KH100"


@pytest.mark.parametrize("length", [50, rounds(5000, quick=2000)])
def test_long_formulas_are_followed_or_refused(length: int) -> None:
    atoms = " AND ".join(f"count(*) > {i + 1}" for i in range(length))
    error = refusal(f"SELECT country FROM sales GROUP BY country HAVING {atoms}")
    assert error is None or error.code in ("KH100", "KH211")
