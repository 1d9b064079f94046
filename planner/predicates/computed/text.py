"""A term as text, which names its column: one name for each term over the same table."""

from planner.catalog.row_terms import ROUNDED_DOUBLES, RowTerm, TermKind
from planner.parser.lexer import spell_name

_WITH_UNIT = frozenset(("same", "rest")) | ROUNDED_DOUBLES
_INFIX = frozenset(("+", "-", "*", "/", "=", "<", "||"))


def spell(term: RowTerm) -> str:
    """Return the expression as text, which serves as its column's name.

    Equal texts mean equal expressions of the same table.
    """
    arguments = [spell(one) for one in term.arguments]
    match term.function:
        case "constant":
            return _spell_constant(term)
        case "text":
            return str(term.value)
        case "column" if term.kind is TermKind.EXACT:
            return f"{spell_name(str(term.value))}({len(str(term.limit))},{term.scale})"
        case "column" | "stored":
            return spell_name(str(term.value)) + ("" if term.function == "column" else "@")
        case "part" | "start" | "moved":
            of = spell_name(str(term.value)) if term.reads_stored else arguments[1]
            return f"{term.function}({arguments[0]} {of})"
        case "+" if term.arguments[1].function == "negate":
            return f"({arguments[0]} - {spell(term.arguments[1].arguments[0])})"
        case function if function in _INFIX:
            return f"({arguments[0]} {function} {arguments[1]})"
        case "number":
            digits = f".{len(str(term.limit)) - term.scale}.{term.scale}" if term.scale else ""
            return f"number({arguments[0]} {term.kind.value}{digits})"
        case function:
            unit = f" {term.kind.value}.{term.scale}" if function in _WITH_UNIT else ""
            return f"{function}({', '.join(arguments)}{unit})"


def _spell_constant(term: RowTerm) -> str:
    if term.kind is TermKind.TEXT:
        return "'" + str(term.value).replace("'", "''") + "'"
    if term.kind is TermKind.FLOATING:
        return repr(term.value)
    return f"{term.value}" + (f"e-{term.scale}" if term.scale else "")
