"""Refusals of subqueries whose values would not be those of one privacy unit."""

from sqlglot import exp

from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import find_position, write_short

_AS_COLUMN = "or have the source show the value as a column of a view."


def refuse_mixed_units(table: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for values that belong to something other than one whole unit.

    The subquery groups by other columns, or is joined on other columns.
    """
    unit = ", ".join(map(spell_name, table.unit))
    return KeyholeError(
        "KH107",
        f"the subquery's values are not computed from rows of one privacy unit ({table.unit_text})",
        detail="The rows of one privacy unit would decide about the rows of others.",
        hint=f"Group the subquery, or partition its windows, by {unit} alone, and join it on all of these columns. "
        f"Or ask the owner for another privacy_unit, {_AS_COLUMN}",
        position=find_position(node),
    )


def refuse_foreign_values(table: Table, other: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for values of a table whose units are not known to be the same people."""
    return KeyholeError(
        "KH107",
        f'values of the units of "{other.name}" cannot be joined with rows of "{table.name}"',
        detail="The owner does not say that their privacy units are the same: one unit could decide about many others.",
        hint=f"Ask the owner for same_unit_as in one of these tables, {_AS_COLUMN}",
        position=find_position(node),
    )


def refuse_values_of_rows(table: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for values of units in a table whose privacy unit is a row."""
    return KeyholeError(
        "KH107",
        f'a subquery cannot compute a value of several rows of "{table.name}": each row is its own privacy unit',
        detail="One row would decide about others.",
        hint=f"Ask the owner for a privacy_unit that says whose rows they are, {_AS_COLUMN}",
        position=find_position(node),
    )


def refuse_unknown_value(node: exp.Expr, table: Table) -> KeyholeError:
    """Return KH107 for an aggregate that a question may not read as a value of a unit's rows."""
    return KeyholeError(
        "KH107",
        f"rows cannot be compared with {write_short(node)} of one privacy unit",
        hint="Use count(*), count(x), count(DISTINCT x), and min(x), max(x) of numbers, dates and times, "
        f"each with FILTER, in one row for each {table.unit_text}; {_AS_COLUMN.removeprefix('or ')}",
        position=find_position(node),
    )


def refuse_order(node: exp.Expr, table: Table) -> KeyholeError:
    """Return KH107 for an order of a unit's rows by anything but a column."""
    return KeyholeError(
        "KH107",
        f"the rows of one {table.unit_text} cannot be ordered by {write_short(node)}",
        hint="Write ORDER BY columns of the private table, each with ASC or DESC and NULLS FIRST or LAST.",
        position=find_position(node),
    )


def refuse_unbounded_value(node: exp.Expr, column: str) -> KeyholeError:
    """Return KH203 for a sum or mean of a column without bounds."""
    return KeyholeError(
        "KH203",
        f"{write_short(node)} adds up values of {column}, which has no declared bounds",
        hint=f"Ask the owner for {spell_name(column)} = {{ bounds = [..., ...] }}.",
        position=find_position(node),
    )


def refuse_unit_of_left_join(alias: str, column: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for the unit's column of a LEFT JOIN's subquery that is read outside of the join's condition."""
    return KeyholeError(
        "KH107",
        f"{spell_name(alias)}.{spell_name(column)} of a LEFT JOIN may be read only in the condition of that join",
        detail="It is NULL if the subquery has no row. The question's own rows always have a privacy unit.",
        hint="Name the privacy unit's column of the private table instead. If the subquery has no row, its values "
        "are NULL, count(*) included.",
        position=find_position(node),
    )


def refuse_clause_in_values(clause: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a clause that the subquery may not contain."""
    return KeyholeError(
        "KH107",
        f"{clause.upper()} in a subquery of values per privacy unit is not supported",
        hint="Write SELECT the unit's columns and values FROM one private table WHERE ... GROUP BY the unit's columns.",
        position=find_position(node),
    )
