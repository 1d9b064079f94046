"""E'...' and U&'...' strings: what PostgreSQL reads in them, in a text where every other character keeps its place."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.errors import KeyholeError
from planner.parser.escape_strings import replace_escapes
from planner.parser.lexer import read_tokens
from tests.effort import examples

_PIECES = ("a", "é", "''", r"\'", r"\\", r"\n", r"\t", r"\b", r"\q", r"\x41", r"\x4", r"\101", r"\7", r"\u00e9", "\n")
_MORE = (r"\U0001F600", r"\ud83d\ude00", r"\xc3\xa9", r"\47", r"\x27", "-- x", "$1", '"', "%", "$$")


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as open_one:
        yield open_one


@given(pieces=st.lists(st.sampled_from((*_PIECES, *_MORE)), max_size=8), prefix=st.sampled_from(("E", "e")))
@examples(200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_plain_string_is_what_postgresql_reads(
    connection: psycopg.Connection[Any], pieces: list[str], prefix: str
) -> None:
    sql = f"SELECT {prefix}'{''.join(pieces)}' AS x, 1"
    plain = replace_escapes(sql, read_tokens(sql))
    assert len(plain) == len(sql)
    assert plain.startswith("SELECT ")
    assert plain.endswith(" AS x, 1")
    with connection.cursor() as cursor:
        (read, _) = cursor.execute(sql.encode()).fetchone() or (None, None)
    (value,) = [token.value for token in read_tokens(plain) if token.kind == "string"]
    assert value == read


@pytest.mark.parametrize("text", [r"E'\ud800'", r"E'\000'", r"E'\xff'", r"E'\U00110000'", r"E'\u12'"])
def test_what_is_no_character_is_refused(text: str) -> None:
    with pytest.raises(KeyholeError, match="KH100"):
        replace_escapes(f"SELECT {text}", read_tokens(f"SELECT {text}"))


_UNICODE = (
    "a",
    "é",
    "''",
    r"\\",
    r"\0041",
    r"\00e9",
    r"\+000041",
    r"\+01F600",
    r"\D83D\DE00",
    r"\0027",
    "\n",
    "$1",
    "--",
)
_MISTAKES = (r"\004", r"\zzzz", r"\D83D", r"\DE00", r"\0000", r"\+110000", r"\+00004", "\\")


@given(
    pieces=st.lists(st.sampled_from((*_UNICODE, *_UNICODE, *_MISTAKES)), max_size=6),
    escape=st.sampled_from(("", "\\", "!", "^", "]", "-", "+", "a", " ", "ab", "", "é", "''")),
)
@examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_unicode_escapes_are_those_of_postgresql(
    connection: psycopg.Connection[Any], pieces: list[str], escape: str
) -> None:
    """The same text, or the same mistake at the same place."""
    behind = f"\nuescape /* ' */ '{escape}'" if escape else ""
    inside = "".join(pieces) if escape in ("", "\\") else "".join(pieces).replace("\\", escape)
    sql = f"SELECT u&'{inside}'{behind} AS x, 1"
    mistake, read = None, None
    try:
        (read, _) = connection.execute(sql.encode()).fetchone() or (None, None)
    except psycopg.Error as error:
        mistake = error
    if mistake is not None:
        with pytest.raises(KeyholeError) as caught:
            replace_escapes(sql, read_tokens(sql))
        told = caught.value
        assert (told.code, told.sqlstate) == ("KH100", mistake.sqlstate)
        assert (told.message, told.hint) == (mistake.diag.message_primary, mistake.diag.message_hint)
        return
    plain = replace_escapes(sql, read_tokens(sql))
    assert len(plain) == len(sql)
    assert plain.endswith(" AS x, 1")
    assert plain.count("\n") == sql.count("\n")
    (value,) = [token.value for token in read_tokens(plain) if token.kind == "string"]
    assert value == read


@pytest.mark.parametrize("text", ["SELECT 'E''\\n'", "SELECT \"E'\", 'x\\n'", "SELECT 1 -- E'\\n'"])
def test_what_is_no_such_string_is_left_alone(text: str) -> None:
    assert replace_escapes(text, read_tokens(text)) == text


@pytest.mark.parametrize("gap", ["\n", " \r ", " -- it's\n\t", "\n--'\n  "])
def test_a_string_in_several_pieces_is_refused_since_the_escapes_go_on(gap: str) -> None:
    """To PostgreSQL the second piece is an E'...' string as well: its quotes do not end where they seem to."""
    with pytest.raises(KeyholeError, match="KH100"):
        read_tokens(f"SELECT E'a'{gap}'\\''; NOTIFY x; SELECT ''")
    assert len(read_tokens(f"SELECT 'a'{gap}'b'")) == 3
    assert len(read_tokens("SELECT E'a' 'b'")) == 3
