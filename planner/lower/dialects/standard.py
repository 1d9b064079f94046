"""SQL that DuckDB and PostgreSQL share, and that Spark shares in part."""

from string import ascii_lowercase, ascii_uppercase

from planner.values.spelling import STANDARD


def truncate_moment(part: str, moment: str) -> str:
    """Return SQL for the beginning of the moment's hour, day, week, month, quarter or year."""
    return f"date_trunc({STANDARD.quote_text(part)}, {moment})"


def extract_part(part: str, moment: str) -> str:
    """Return SQL for a part of the moment as a number."""
    return f"extract({part} FROM {moment})"


def match_pattern(expression: str, pattern: str) -> str:
    """Return SQL for the test that the text matches a LIKE pattern whose escape is the backslash."""
    escape = r" ESCAPE '\'" if "\\" in pattern else ""
    return f"{expression} LIKE {STANDARD.quote_text(pattern)}{escape}"


def translate_case(function: str, text: str) -> str:
    """Return SQL for a text with its ASCII letters in lower or upper case."""
    letters = (ascii_uppercase, ascii_lowercase)
    old, new = letters if function == "lower" else letters[::-1]
    return f"translate({text}, '{old}', '{new}')"


def sum_whole(expression: str, _: int) -> str:
    """Return SQL for the sum of whole numbers. PostgreSQL and DuckDB sum in a wider type than that of the numbers."""
    return f"sum({expression})"


def find_extreme_double(function: str, expression: str) -> str:
    """Return SQL for the least or greatest double of a group. A NaN is greater than all numbers."""
    return f"{function}({expression})"


def pick_digits(digits: str, place: str, width: int) -> str:
    """Return SQL for `width` characters of a text of digits, from a place on. It is NULL if the place is NULL."""
    return f"substring('{digits}', {place}, {width})"
