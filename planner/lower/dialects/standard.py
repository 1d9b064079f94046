"""The SQL that DuckDB and PostgreSQL share, and Spark for the most part in words of its own."""

from string import ascii_lowercase, ascii_uppercase

from planner.values.spelling import STANDARD


def truncate_moment(part: str, moment: str) -> str:
    """Return the beginning of the moment's hour, day, week, month, quarter or year."""
    return f"date_trunc({STANDARD.text(part)}, {moment})"


def extract_part(part: str, moment: str) -> str:
    """Return a part of the moment as a number."""
    return f"extract({part} FROM {moment})"


def like(expression: str, pattern: str) -> str:
    """Return the SQL of a test if the text matches a pattern whose escape is the backslash."""
    escape = r" ESCAPE '\'" if "\\" in pattern else ""
    return f"{expression} LIKE {STANDARD.text(pattern)}{escape}"


def translate_case(function: str, text: str) -> str:
    """Return a text with its ASCII letters small, or capitals."""
    letters = (ascii_uppercase, ascii_lowercase)
    old, new = letters if function == "lower" else letters[::-1]
    return f"translate({text}, '{old}', '{new}')"


def total(expression: str, _: int) -> str:
    """Return the sum of whole numbers: both engines add up in a wider type than the numbers have."""
    return f"sum({expression})"


def extreme_double(function: str, expression: str) -> str:
    """Return the least or greatest double of a group: a NaN is greater than all numbers."""
    return f"{function}({expression})"


def pick_digits(digits: str, place: str, width: int) -> str:
    """Return the SQL of some characters of a text of digits, from a place on; NULL where that is."""
    return f"substring('{digits}', {place}, {width})"
