"""Regular expressions as LIKE patterns: what a real PostgreSQL matches by one it matches by the others."""

import random

import duckdb
import psycopg

from planner.values.regular_expressions import convert_expression, convert_similar_pattern, write_plain_expression

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
_OF_CLASSES = (
    *(
        "a",
        "b",
        "ab",
        "-",
        "_",
        " ",
        "[0-9]",
        "[a-z]",
        "[^0-9]",
        "[ab_-]",
        "[A-Za-z0-9.]",
        "\\d",
        "\\.",
        "\\+",
        "\\(",
        "/",
    ),
    *("a+", "[0-9]+", "\\d*", "b?", "[a-z]{2}", "\\d{1,3}", "a{2,}", "(a)", "(\\.\\d+)?", "(ab)?", ".", "|"),
)


def test_like_patterns_match_what_the_expression_matches(postgres_url: str) -> None:
    """Random expressions over twenty texts; exact: no false alarm is possible."""
    drawn = random.Random(20261129)
    written = ["".join(drawn.choices(_PIECES, k=drawn.randint(1, 6))) for _ in range(_DRAWN)]
    written += ["^(a|b)$", "^(a|_b)", "^a|b$", "a{1}", "***=a", "(?i)a", "^(?:a)$", "a.*?", "x"]
    with psycopg.connect(postgres_url) as connection:
        for operator, read in (("~", convert_expression), ("SIMILAR TO", convert_similar_pattern)):
            known = [(one, list(like)) for one in dict.fromkeys(written) if (like := read(one)) is not None]
            assert len(known) > _DRAWN / 10
            for one, made in known:
                different = connection.execute(
                    f"SELECT t FROM unnest(%s::text[]) t WHERE (t {operator} %s) <> (t LIKE ANY (%s::text[]))".encode(),
                    (_TEXTS, one, made),
                ).fetchall()
                assert different == [], (operator, one, made)


def test_expressions_of_classes_match_alike_on_both_engines(postgres_url: str) -> None:
    """Random ones over thirty texts: as they are written, and as they are read for every engine; exact."""
    drawn = random.Random(20261130)
    inner = ["".join(drawn.choices(_OF_CLASSES, k=drawn.randint(1, 5))) for _ in range(_DRAWN)]
    written = [f"{drawn.choice(('^', ''))}{one}{drawn.choice(('$', ''))}" for one in inner]
    written += ["^[+-]?[0-9]+$", "^-?\\d+(\\.\\d+)?$", "^[A-Z]{2}-\\d{4}$", "[^0-9]", "^(ab)?c$"]
    known = {one: made for one in written if (made := write_plain_expression(one)) is not None}
    assert len(known) > _DRAWN / 10
    texts = [*_TEXTS, "0", "12", "-3.5", "a0", "AB-1234", "٣", "１２", "12\n", "\n", "a\u2028", "abc", "c", "aab+"]
    with psycopg.connect(postgres_url) as connection, duckdb.connect() as duck:
        for one, made in known.items():
            rows = connection.execute(
                'SELECT t COLLATE "C" ~ %s, t COLLATE "C" ~ %s FROM unnest(%s::text[]) t', (one, made, texts)
            ).fetchall()
            found = [duck.execute("SELECT regexp_matches(?, ?)", (text, made)).fetchone() for text in texts]
            for text, (theirs, ours), other in zip(texts, rows, found, strict=True):
                assert (theirs,) == (ours,) == other, (one, made, text)


def test_what_is_none_of_classes_alone() -> None:
    for written in (
        *(
            "(a+)+",
            "^(a+)*$",
            "a|b",
            "a.b",
            "[[:digit:]]",
            "[z-a]",
            "[a-Z]",
            "\\w",
            "\\ma",
            "(?i)a",
            "a+?",
            "a{3,2}",
            "",
        ),
        *("[a-z]*[a-z]*x", "^a*b*c*", "é", "[é]", "a{200}", "^^a", "a$b", "[&&a]", "[a-c-e]", "(a", "^*", "a" * 101),
    ):
        assert write_plain_expression(written) is None, written


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
        assert convert_expression(written) is None, written
    for written in ("(a|b)c", "a+", "\\d", "a|", "[a]%", "a{1}", "a\\"):
        assert convert_similar_pattern(written) is None, written
