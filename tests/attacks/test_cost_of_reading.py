"""Reading a client's text takes time and memory in proportion to its length.

A pattern that tries things again would take longer than the suite's limit here, and freeze every session of the process
there: a regular expression runs with the interpreter's lock held.
"""

import tracemalloc
from contextlib import suppress

import pytest

from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens, split_statements
from planner.values.array_literals import read_members
from tests.in_turn import in_turn

MANY = 100_000
LONG = {
    "dashes behind an escape string": "SELECT E''" + "--" * MANY,
    "comments behind an escape string": "SELECT E'' " + "-- -" * MANY,
    "spaces behind an escape string": "SELECT E''\n" + " " * MANY + "x",
    "comment lines behind an escape string": "SELECT E''\n" + "--\n" * MANY + "x",
    "an open string of quotes": "SELECT '" + "''" * MANY,
    "an open escape string": "SELECT E'" + "\\'" * MANY,
    "an open name": 'SELECT "' + '""' * MANY,
    "open comments": "SELECT " + "/*" * MANY,
    "an open dollar quote": "SELECT $a$" + "$b$" * MANY,
    "operators": "SELECT " + "+-" * MANY,
    "dots": "SELECT " + "." * MANY,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_no_text_is_read_twice(text: str) -> None:
    with suppress(KeyholeError):  # of what never ends
        assert split_statements(text)


@pytest.mark.parametrize("text", ["'" + "a" * MANY + "'", "E'" + "\\n" * MANY + "'", '"' + '""' * MANY + '"'])
def test_a_long_literal_is_held_a_few_times_over_at_most(text: str) -> None:
    tracemalloc.start()
    try:
        assert len(read_tokens(text)) == 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 * len(text)


@pytest.mark.parametrize("text", ["E'\\'", "E'a''", "SELECT E'a\\' || b\"c\\"])
def test_an_escape_string_that_never_ends_is_not_read_as_a_name_and_a_plain_string(text: str) -> None:
    with pytest.raises(KeyholeError, match="not closed"):
        read_tokens(text)


@pytest.mark.parametrize("text", ["{" + " " * MANY, "{" + "a " * MANY, '{"' + "\\" * MANY, "{" + "a," * MANY])
def test_an_array_that_never_ends_is_none(text: str) -> None:
    assert read_members(text) is None


@in_turn(
    ("text", "expected"),
    [
        ("{}", []),
        ("{ }", []),
        ("{ a b , NULL,c}", ["a b", None, "c"]),
        ('{" a ","x\\"y",""}', [" a ", 'x"y', ""]),
        ("{a, ,b}", None),
        ("{a,}", None),
        ("{{a}}", None),
    ],
)
def test_arrays_are_read_as_postgresql_reads_them(text: str, expected: list[str | None] | None) -> None:
    assert read_members(text) == expected
