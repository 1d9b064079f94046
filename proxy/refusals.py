"""One refusal, three costumes: as psql prints it, as a problem document (RFC 9457), as wire error fields."""

from typing import Any

from planner.errors import KeyholeError

_STATUS = {"KH0": 503, "KH1": 422, "KH2": 422, "KH3": 403, "KH4": 400, "KH5": 503, "KH9": 500}
_STATUS_OF = {"KH102": 403, "KH103": 403, "KH303": 422, "KH304": 422, "KH401": 401}


def http_status(error: KeyholeError) -> int:
    """The HTTP status that belongs to a catalogued refusal."""
    return _STATUS_OF.get(error.code, _STATUS[error.code[:3]])


def problem(error: KeyholeError) -> dict[str, Any]:
    """A problem document of RFC 9457, with the code, SQLSTATE, hint and position beside the standard members."""
    document: dict[str, Any] = {
        "type": f"urn:keyhole:error:{error.code}",
        "title": error.message,
        "status": http_status(error),
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
        before = sql[: error.position - 1]
        number = before.count("\n") + 1
        line = sql.splitlines()[number - 1] if sql.splitlines() else ""
        column = len(before) - (before.rfind("\n") + 1)
        label = f"LINE {number}: "
        lines += [label + line, " " * (len(label) + column) + "^"]
    if error.detail:
        lines.append(f"DETAIL:  {error.detail}")
    if error.hint:
        lines.append(f"HINT:  {error.hint}")
    return "\n".join(lines)
