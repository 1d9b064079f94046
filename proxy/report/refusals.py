"""One refusal in two costumes: as psql prints it, and as a problem document (RFC 9457)."""

from typing import Any

from planner.errors import KeyholeError

_STATUS = {"KH0": 503, "KH1": 422, "KH2": 422, "KH3": 403, "KH4": 400, "KH5": 503, "KH9": 500}
"""By how a code begins; those below are of their own."""
_STATUS_OF = {
    "KH102": 403,
    "KH103": 403,
    "KH303": 422,
    "KH304": 422,
    "KH401": 401,
    "KH406": 503,
    "KH411": 503,
    "KH430": 429,
    "KH431": 422,
    "KH432": 409,
}
_BEFORE, _AFTER = 60, 30  # characters of a long line that are shown around a position: one line of a terminal


def http_status(error: KeyholeError) -> int:
    """The HTTP status that belongs to a catalogued refusal."""
    return _STATUS_OF.get(error.code, _STATUS[error.code[:3]])


def problem(error: KeyholeError, *, status: int | None = None) -> dict[str, Any]:
    """A problem document of RFC 9457, with the code, SQLSTATE, hint and position beside the standard members.

    Parameters:
        status: the HTTP status, where HTTP itself has a more telling one than the code's.
    """
    document: dict[str, Any] = {
        "type": f"urn:keyhole:error:{error.code}",
        "title": error.message,
        "status": http_status(error) if status is None else status,
        "code": error.code,
        "sqlstate": error.sqlstate,
        "meaning": error.entry.meaning,
    }
    extra = {"detail": error.detail, "hint": error.hint, "position": error.position}
    return document | {name: value for name, value in extra.items() if value is not None}


def as_psql_prints(error: KeyholeError, *, sql: str | None) -> str:
    """The refusal as psql would show it, with the offending line and a caret under the offending text."""
    lines = [f"ERROR:  {error.code}: {error.message}"]
    if sql is not None and error.position is not None and 1 <= error.position <= len(sql) + 1:
        lines += _pointed(sql, error.position - 1)
    if error.detail:
        lines.append(f"DETAIL:  {error.detail}")
    if error.hint:
        lines.append(f"HINT:  {error.hint}")
    return "\n".join(lines)


def _pointed(sql: str, offset: int) -> tuple[str, str]:
    """The line that `offset` stands in, cut to what surrounds it, and a caret below."""
    number = sql.count("\n", 0, offset)
    line = "".join(character if character.isprintable() else " " for character in sql.split("\n")[number])
    column = offset - (sql.rfind("\n", 0, offset) + 1)
    label = f"LINE {number + 1}: "
    if column > _BEFORE:
        label, line, column = f"{label}...", line[column - _BEFORE :], _BEFORE
    if len(line) > column + _AFTER and len(line) > _BEFORE + _AFTER:
        line = f"{line[: max(column, _BEFORE) + _AFTER]}..."
    return (label + line).rstrip(), " " * (len(label) + column) + "^"


def internal_error() -> KeyholeError:
    """What anything unforeseen becomes; the cause stays inside."""
    return KeyholeError("KH900", "an internal error", detail="Nothing is returned. What was reserved stays spent.")
