"""The join that a question lacks, where it names a column of another private table with the same privacy units."""

from collections.abc import Sequence
from dataclasses import replace

from planner.bind.unit_join import have_same_units, order_tables
from planner.catalog.catalog import Catalog, Table, UnitPath
from planner.errors import KeyholeError, UnknownColumn
from planner.parser.lexer import spell_name


def offer_join(error: KeyholeError, table: Table, catalog: Catalog, *, alias: str) -> KeyholeError:
    """Return the refusal with a join in the hint, if a table that may be joined has the unknown column.

    The result depends on the refusal and the policy only. Any other refusal is returned unchanged.

    Parameters:
        table: the private table that the question reads.
        alias: the question's name for it.
    """
    if not isinstance(error, UnknownColumn) or table.members or table.is_joined_along_path:
        return error
    on_path = replace(table, lists=()).stored_tables[1:]
    for place, reached in enumerate(on_path):
        if any(column.name == error.column for column in reached.columns):
            hint = _describe_steps(error.column, table, on_path[: place + 1], alias)
            return UnknownColumn(error.column, error.message, detail=error.detail, hint=hint, position=error.position)
    if table.row_cap is not None:
        return error
    for other in order_tables(catalog.tables):
        if other.name == table.name or other.row_cap is not None or not have_same_units((table, other)):
            continue
        if any(column.name == error.column for column in other.columns):
            return UnknownColumn(
                error.column,
                error.message,
                detail=error.detail,
                hint=_describe_join(error.column, table, other, alias),
                position=error.position,
            )
    return error


def describe_step(path: UnitPath, own: str, reached: str) -> str:
    """Return the SQL condition that joins a table with the next table on the path to its unit.

    `own` and `reached` are the names of the two tables.
    """
    pairs = zip(path.from_columns, path.to_columns, strict=True)
    return " AND ".join(f"{spell_name(own)}.{spell_name(a)} = {spell_name(reached)}.{spell_name(b)}" for a, b in pairs)


def _describe_steps(column: str, table: Table, on_path: Sequence[Table], alias: str) -> str:
    joined: list[str] = []
    for before, own, reached in zip((table, *on_path), (alias, *(one.name for one in on_path)), on_path, strict=False):
        assert before.path is not None
        joined.append(f"JOIN {spell_name(reached.name)} ON {describe_step(before.path, own, reached.name)}")
    return (
        f"{spell_name(column)} lies in {spell_name(on_path[-1].name)}: add {' '.join(joined)} after "
        f"{spell_name(alias)}."
    )


def _describe_join(column: str, table: Table, other: Table, alias: str) -> str:
    own, joined = spell_name(alias), spell_name(other.name)
    if table.unit == other.unit:
        condition = f"USING ({', '.join(map(spell_name, table.unit))})"
    else:
        pairs = zip(table.unit, other.unit, strict=True)
        condition = "ON " + " AND ".join(f"{own}.{spell_name(a)} = {joined}.{spell_name(b)}" for a, b in pairs)
    merged = table.unit if table.unit == other.unit else ()
    both = [one.name for one in table.columns if one.name not in merged and one.name in {c.name for c in other.columns}]
    qualified = f" Both have {', '.join(map(spell_name, both))}: write {own}.{spell_name(both[0])}." if both else ""
    return f"{spell_name(column)} lies in {joined}: add JOIN {joined} {condition} after {own}.{qualified}"
