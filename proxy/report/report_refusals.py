"""Refusals as psql shows them, and the error for unexpected failures."""

from planner.errors import KeyholeError

_BEFORE, _AFTER = 60, 30  # characters of a long line that are shown around a position: one line of a terminal


def write_as_psql(error: KeyholeError, *, sql: str | None) -> str:
    """Return a refusal as psql shows it, with the line of SQL and a caret below the position."""
    lines = [f"ERROR:  {error.code}: {error.message}"]
    if sql is not None and error.position is not None and 1 <= error.position <= len(sql) + 1:
        lines += _point_at(sql, error.position - 1)
    if error.detail:
        lines.append(f"DETAIL:  {error.detail}")
    if error.hint:
        lines.append(f"HINT:  {error.hint}")
    return "\n".join(lines)


def _point_at(sql: str, offset: int) -> tuple[str, str]:
    """Return the part of the line around `offset`, and a line with a caret below the character."""
    number = sql.count("\n", 0, offset)
    line = "".join(character if character.isprintable() else " " for character in sql.split("\n")[number])
    column = offset - (sql.rfind("\n", 0, offset) + 1)
    label = f"LINE {number + 1}: "
    if column > _BEFORE:
        label, line, column = f"{label}...", line[column - _BEFORE :], _BEFORE
    if len(line) > column + _AFTER and len(line) > _BEFORE + _AFTER:
        line = f"{line[: max(column, _BEFORE) + _AFTER]}..."
    return (label + line).rstrip(), " " * (len(label) + column) + "^"


def make_internal_error() -> KeyholeError:
    """Return the error for an unexpected failure, without its cause."""
    return KeyholeError("KH900", "an internal error", detail="Nothing is returned. The reserved budget stays spent.")
