"""Texts that Keyhole's parser and PostgreSQL might understand differently."""

import pytest

from tests.planner.asked import refusal

ASK = "SELECT country FROM sales {} GROUP BY country HAVING {}"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        # three arguments: in the time zone named, which no derived column is
        (ASK.format("WHERE date_trunc('month', invoice_date, 'Asia/Tokyo') = '2011-01-01'", "count(*) > 5"), "KH205"),
        (ASK.format("WHERE invoice_date >= date_trunc('day', now(), 'Asia/Tokyo')", "count(*) > 5"), "KH205"),
        (
            "SELECT country FROM sales GROUP BY country, date_trunc('month', invoice_date, 'Asia/Tokyo') "
            "HAVING count(*) > 5",
            "KH202",
        ),
        # PostgreSQL's absolute value, the parser's parameter
        (ASK.format("", "count(*) > @ 5"), "KH106"),
        (ASK.format("WHERE quantity > @1", "count(*) > $1"), "KH106"),
    ],
)
def test_what_would_mean_something_else_is_refused(sql: str, code: str) -> None:
    """The refusal comes from the text alone."""
    error = refusal(sql)
    assert error is not None
    assert error.code == code


@pytest.mark.parametrize(
    "sql",
    [
        r"""SELECT U&"\0073et_config"('standard_conforming_strings', 'off', false)""",
        r"""SELECT U&"!0073et_config" UESCAPE '!' ('standard_conforming_strings', 'off', false)""",
        r"""SELECT * FROM u&"s\0061les" """,
        r"""SET U&"r\006Fle" = postgres""",
    ],
)
def test_no_name_hides_behind_escapes(sql: str) -> None:
    """Functions, settings and tables are recognised by name, so a name is written as it is."""
    error = refusal(sql)
    assert error is not None
    assert error.code == "KH100"


@pytest.mark.parametrize(
    "sql", [r"""SELECT U&'d\0061t' UESCAPE '!'""", 'SELECT name FROM U&"regions"', "SELECT 1 uescape"]
)
def test_escapes_in_texts_are_left_alone(sql: str) -> None:
    """What only a text holds is PostgreSQL's own business."""
    assert refusal(sql) is None
