"""The statement whose rows a rollup holds: the rows that count, each with the number of its unit's rows in its key.

Guarantee: it depends on nothing in a question but its table, its grouping columns and the keys that its WHERE fixes,
whatever their values. Measures are stored clipped and rounded.

References: docs/decisions/0006-rollups.md.
"""

from collections.abc import Sequence

from planner.catalog.catalog import Column, Product, SqlType, Table
from planner.lower.contribution_bounds import Bounding, write_not_null
from planner.lower.dialects.grid import INT8
from planner.lower.domain import write_restriction
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.measure import make_row_value
from planner.lower.row import RowSql
from planner.values.sql_literals import write_integer

COUNT = "keyhole_rows"
MOST = 2**31 - 1  # the end of integer, in which a rollup keeps counts; larger ones are only known to be large
_PLACE = "keyhole_place"
_MEASURE = "keyhole_measure_"
_NUMBERS = frozenset({SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE})


def build_rollup(bounding: Bounding, *, within: Sequence[Column] = ()) -> list[str]:
    """Return the statement whose rows the rollup holds.

    Parameters:
        within: fixed keys. A unit is bounded among its rows with one value of each, as if there were no others.
    """
    row, table = bounding.row, bounding.row.table
    spelling, cap = row.dialect.spelling, table.row_cap
    identifier = spelling.quote_identifier
    apart = [(f"w{i}", column) for i, column in enumerate(within)]
    grouped = [*bounding.groups, *apart]
    measures, stored = find_stored_measures(row), _list_stored_columns(table)
    columns = [f"{value} AS {name}" for name, value in measures.values()]
    columns += [f"{row.write_column(column.name)} AS {identifier(column.name)}" for column in stored]
    present = [write_not_null(row, column) for _, column in bounding.units]
    present += [
        write_restriction(row, c, c.domain or ()) or write_not_null(row, c) for c in (*bounding.keys.columns, *within)
    ]
    counted: list[str] = []
    if cap is not None:
        unique = table.get_column(cap.unique)
        present.append(write_not_null(row, unique))
        partition = ", ".join(row.write_column(column.name) for _, column in grouped)
        order = bounding.write_row_order(unique=unique)
        columns.append(f"row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS {_PLACE}")
        counted = [f"{_PLACE} <= {cap.rows}"]
    paired = [f"{identifier(column.name)} AS {alias}" for alias, column in grouped]
    matched = [f"eligible.{identifier(column.name)} = pairs.{alias}" for alias, column in grouped]
    steps = [
        "WITH",
        "-- rows with a privacy unit and a public key",
        "eligible AS (",
        *indent_blocks(write_select(columns), [f"FROM {table.relation}"], write_where(present)),
        "),",
        "-- how many rows each privacy unit has in each key",
        "pairs AS (",
        *indent_blocks(
            write_select([*paired, f"{spelling.write_cast(f'LEAST(count(*), {MOST})', 'integer')} AS {COUNT}"]),
            ["FROM eligible"],
            write_where(counted),
            write_group_by(len(paired)),
        ),
        ")" + ("," if bounding.chooses_groups else ""),
    ]
    if bounding.chooses_groups:
        steps += _choose_keys(bounding, [alias for alias, _ in apart])
    kept = [f"eligible.{name}" for name, _ in measures.values()]
    kept += [f"eligible.{identifier(column.name)}" for column in stored]
    return [
        *steps,
        "-- the rows that count",
        *write_select([f"pairs.{COUNT}", *kept]),
        f"FROM eligible JOIN {'chosen AS pairs' if bounding.chooses_groups else 'pairs'} ON {' AND '.join(matched)}",
        *write_where([f"eligible.{condition}" for condition in counted]),
        # an index finds few rows that lie together; DuckDB has none, and sorts by far slower below a LIMIT
        *([f"ORDER BY pairs.{COUNT}"] if row.dialect.is_faster_on_copies else []),
    ]


def find_stored_measures(row: RowSql) -> dict[str, tuple[str, str]]:
    """Return, by measure, the column with its clipped and rounded value, and this value as SQL for an integer."""
    found = {}
    for i, column in enumerate(row.table.columns):
        multiplied = isinstance(column.derivation, Product)  # computed of its factors, which are stored
        if column.bounds is None or column.sql_type not in _NUMBERS or column.grid is None or multiplied:
            continue
        value = make_row_value(row, column)
        largest = max(abs(value.low), abs(value.high))
        if largest < INT8:
            scaled = value.sql if value.steps == 1 else f"({value.sql}) * {write_integer(value.steps)}"
            found[column.name] = (f"{_MEASURE}{i}", row.dialect.cast_whole(scaled, largest))
    return found


def _choose_keys(bounding: Bounding, apart: Sequence[str]) -> list[str]:
    """Return the steps that keep at most G keys of each unit, within each value of fixed keys."""
    groups = bounding.row.table.groups_per_unit
    units = ", ".join([*(alias for alias, _ in bounding.units), *apart])
    ranked = f"row_number() OVER (PARTITION BY {units} ORDER BY {bounding.write_key_order()}) AS {_PLACE}"
    return [
        f"-- the keys of each privacy unit, in the order of md5; the first {groups} count",
        "ranked AS (",
        *indent_blocks([f"SELECT *, {ranked}", "FROM pairs"]),
        "),",
        f"chosen AS (SELECT * FROM ranked WHERE {_PLACE} <= {groups})",
    ]


def _list_stored_columns(table: Table) -> list[Column]:
    """Return the columns of a rollup's row. Columns of fixed width come first, since a row store finds them fastest."""
    usable = [column for column in table.columns if column.sql_type != SqlType.OTHER]
    return sorted(usable, key=lambda column: column.sql_type in (SqlType.TEXT, SqlType.NUMERIC))
