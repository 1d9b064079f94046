"""What a name or expression of a question refers to: an exposed column, by name or by a derived column's expression."""

from dataclasses import dataclass

from sqlglot import exp

from planner.catalog import Column, Derivation, SqlType, Table
from planner.errors import KeyholeError
from planner.syntax import bare, name, position


@dataclass(frozen=True, slots=True)
class Scope:
    """A question's table and the name under which its columns may be qualified."""

    table: Table
    alias: str

    def qualifies(self, column: exp.Column) -> bool:
        """Whether the column's qualifier, if any, names the question's table."""
        if column.args.get("db") is not None and (name(column.args["db"]) != "public" or self.alias != self.table.name):
            return False
        qualifier = name(column.args.get("table"))
        return qualifier in ("", self.alias)


def _base(node: exp.Expr, scope: Scope) -> str | None:
    node = bare(node)
    if isinstance(node, exp.Cast) and _kind(node) == "TIMESTAMP":
        node = bare(node.this)
        column = _plain(node, scope)
        return column.name if column is not None and column.sql_type is SqlType.TIMESTAMP else None
    column = _plain(node, scope)
    return None if column is None else column.name


def _kind(node: exp.Cast) -> str:
    kind = node.to.this
    return str(kind.value) if isinstance(kind, exp.DataType.Type) and not node.to.expressions else ""


def _plain(node: exp.Expr, scope: Scope) -> Column | None:
    """The column that a plain reference names. Raises KH201."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    at = position(node)
    if not scope.qualifies(node):
        qualifier = name(node.args.get("table"))
        raise KeyholeError(
            "KH201",
            f'"{qualifier}" does not name the table of this question',
            detail="A question reads one table and nothing around it.",
            hint=f"Qualify its columns with {scope.alias}, or not at all.",
            position=at,
        )
    return scope.table.column(name(node.this), position=at)


def derivation(node: exp.Expr, scope: Scope) -> Derivation | None:
    """The derivation that an expression writes out, if it is one."""
    match node:
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            function, part, inner = "date_trunc", str(node.unit).lower().strip("'"), node.this
            part = "week" if part.startswith("week") else part
        case exp.Extract():
            function, part, inner = "extract", str(node.this).lower().strip("'"), node.expression
        case exp.Cast() if _kind(node) == "DATE":
            function, part, inner = "date", "", node.this
        case exp.Date() if not node.expressions and node.args.get("zone") is None:
            function, part, inner = "date", "", node.this
        case _:
            return None
    base = _base(inner, scope) if isinstance(inner, exp.Expr) else None
    return None if base is None else Derivation(function=function, part=part, column=base)


def referenced(node: exp.Expr, scope: Scope) -> Column | None:
    """The exposed column that the node is, or None for any other expression. Raises KH201 for an unknown name."""
    node = bare(node)
    plain = _plain(node, scope)
    if plain is not None:
        return plain
    written = derivation(node, scope)
    if written is None:
        return None
    found = next((column for column in scope.table.columns if column.derivation == written), None)
    if found is None and written.function == "date":
        base = scope.table.column(written.column)
        return base if base.sql_type is SqlType.DATE else None
    return found
