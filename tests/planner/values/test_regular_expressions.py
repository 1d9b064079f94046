"""Regular expressions as LIKE patterns: what a real PostgreSQL matches by one it matches by the others."""

import random

import psycopg

from planner.values.regular_expressions import patterns_of_expression, patterns_of_similar

_PIECES = (
    "a",
    "b",
    "_",
    "%",
    ".",
    ".*",
    "^",
    "$",
    "|",
    "(",
    ")",
    "-",
    "\\.",
    "\\_",
    "\\\\",
    "\\d",
    "[ab]",
    "a+",
    " ",
    '"',
    "é",
)
_TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "ba",
    "a_b",
    "aXb",
    "a%",
    "%",
    "_",
    "a.b",
    "a-b",
    "ab\nab",
    "\\",
    "a|b",
    "(a)",
    "^a$",
    "é",
    'b"',
    "d",
]
_DRAWN = 1_500


def test_like_patterns_match_what_the_expression_matches(postgres_url: str) -> None:
    """Random expressions over twenty texts; exact: no false alarm is possible."""
    drawn = random.Random(20261129)
    written = ["".join(drawn.choices(_PIECES, k=drawn.randint(1, 6))) for _ in range(_DRAWN)]
    written += ["^(a|b)$", "^(a|_b)", "^a|b$", "a{1}", "***=a", "(?i)a", "^(?:a)$", "a.*?", "x"]
    with psycopg.connect(postgres_url) as connection:
        for operator, read in (("~", patterns_of_expression), ("SIMILAR TO", patterns_of_similar)):
            known = [(one, list(like)) for one in dict.fromkeys(written) if (like := read(one)) is not None]
            assert len(known) > _DRAWN / 10
            for one, made in known:
                different = connection.execute(
                    f"SELECT t FROM unnest(%s::text[]) t WHERE (t {operator} %s) <> (t LIKE ANY (%s::text[]))".encode(),
                    (_TEXTS, one, made),
                ).fetchall()
                assert different == [], (operator, one, made)


def test_what_says_more_is_none() -> None:
    for written in (
        "[ab]",
        "a+",
        "a*",
        "a?",
        "a{2}",
        "\\d",
        "\\ma",
        "(a)",
        "a(b|c)",
        "^*",
        "a|",
        "",
        ".+",
        "(?i)a",
        "a\\",
    ):
        assert patterns_of_expression(written) is None, written
    for written in ("(a|b)c", "a+", "\\d", "a|", "[a]%", "a{1}", "a\\"):
        assert patterns_of_similar(written) is None, written
