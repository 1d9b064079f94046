"""A table with values of each unit's own rows as stored columns, as a relation.

Guarantee: each row of the table is there once, whatever the tables hold. A unit's values are computed from the rows
that have all columns of that unit, so no other unit's row influences them. Nothing in them can fail on a row. They are
joined to every row before any row is left out, so the rows that a question asks for do not change any row's cost.

Proof: docs/proofs/unit_values.md.
"""

from dataclasses import replace
from fractions import Fraction

from planner.catalog.catalog import Column, NamedStep, SqlType, Table, UnitValues
from planner.errors import KeyholeError
from planner.functionals.unit_rows import find_parts_of_step, make_existence
from planner.lower.computed_conditions import compute_conditions
from planner.lower.dialects.dialect import Dialect
from planner.lower.joins import join_lookups, join_members
from planner.lower.kept.named_steps import merge_steps
from planner.lower.key_tests import write_where_tests
from planner.lower.measure import make_row_value
from planner.lower.member_conditions import MemberConditions
from planner.lower.read_columns import OF_ALL_ROWS, keep_columns
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import add_any_row, write_row_fence
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions
from planner.question.condition import ALWAYS, find_columns
from planner.question.question import OwnOrder, OwnValue, Term, ValuesOfRows
from planner.values.sql_literals import write_decimal, write_integer


def join_with_values(
    table: Table, *, dialect: Dialect, among: MemberConditions | None = None, front: FrontConditions = NOTHING
) -> Table:
    """Return the join of a table's members, with the units' own values stored beside each row.

    Parameters:
        among: as for `join_members`.
        front: as for `join_members`. Not used if there are such values.

    Raises KH214 if the conditions of a value could cost more on one row than any may.
    """
    own = {column.name for column in table.columns if column.is_unit_value}
    if not own:
        return join_members(table, dialect=dialect, among=among, front=front)
    plain = replace(table, columns=tuple(one for one in table.columns if one.name not in own), own=())
    joined = join_members(plain, dialect=dialect, among=among)
    return _store(table, joined, dialect)


def _store(table: Table, joined: Table, dialect: Dialect) -> Table:
    """Return the joined rows with a column for each value."""
    identifier = dialect.spelling.quote_identifier
    joined_row = _compute_windows(RowSql(table=joined, dialect=dialect), [_get_rule(one) for one in table.own])
    row, stored = RowSql(table=joined_row.table, dialect=dialect), _list_stored_columns(joined)
    shown = [identifier(column.name) for column in stored]
    relations, steps = [], [joined.steps]
    for i, values in enumerate(table.own):
        rule = _get_rule(values)
        grouped = [one for one in rule.values if one.kind in OF_ALL_ROWS]
        shown += [
            f"{_write_window_value(one, rule, joined_row)} AS {identifier(one.name)}"
            for one in rule.values
            if one not in grouped
        ]
        if grouped:
            shown += [
                f"{_write_in_units(f'keyhole_v{i}_{j}', table.get_column(one.name), one, dialect)}"
                f" AS {identifier(one.name)}"
                for j, one in enumerate(grouped)
            ]
            met = " AND ".join(f"{row.write_column(name)} = keyhole_w{i}_{j}" for j, name in enumerate(table.unit))
            found, read = _compute_values(values.table, replace(rule, values=tuple(grouped)), i, dialect, known=table)
            relations.append(f"LEFT JOIN {found} ON {met}")
            steps.append(read)
    relation = (
        f"(SELECT {', '.join(shown)} FROM {' '.join([joined_row.table.relation, *relations])}"
        f" /* each row with the values of its unit's own rows */{write_row_fence(dialect)}) AS with_values"
    )
    known = {column.name: column for column in joined.columns}
    columns = [known.pop(column.name, column) for column in table.columns]
    return replace(joined, relation=relation, columns=(*columns, *known.values()), steps=merge_steps(*steps))


def _get_rule(values: UnitValues) -> ValuesOfRows:
    if not isinstance(values.rule, ValuesOfRows):
        raise KeyholeError("KH900", "the rule for the values of a privacy unit is unknown")
    return values.rule


def _list_stored_columns(table: Table) -> list[Column]:
    return [column for column in table.columns if column.derivation is None and column.sql_type is not SqlType.OTHER]


def _compute_windows(row: RowSql, rules: list[ValuesOfRows]) -> RowSql:
    """Return the rows with the expensive conditions of windows computed."""
    asked = [rule.where for rule in rules if any(one.kind not in OF_ALL_ROWS for one in rule.values)]
    return compute_conditions(row, ALWAYS, [make_existence(Term(1, None, where, 0)) for where in asked])


def _write_window_value(value: OwnValue, rule: ValuesOfRows, row: RowSql) -> str:
    """Return SQL for a row's value of a window over the unit's rows, NULL for a row that fails the rule's condition."""
    units = [row.write_column(name) for name in row.table.unit]
    kept = None if rule.where == ALWAYS else f"CASE WHEN {row.write_condition(rule.where)} THEN 1 ELSE 0 END"
    partition = ", ".join([*units, *([] if kept is None else [kept])])
    order = [_write_order(one, row) for one in value.order]
    if value.kind != "rank":
        order += _list_tie_order(row, {one.column for one in value.order})
    window = f"OVER (PARTITION BY {partition} ORDER BY {', '.join(order)})"
    read = "" if value.column is None else row.write_column(value.column)
    match value.kind:
        case "place":
            found = row.dialect.spelling.write_cast(f"row_number() {window}", "bigint")
        case "rank":
            found = row.dialect.spelling.write_cast(f"rank() {window}", "bigint")
        case "first":
            found = f"first_value({read}) {window}"
        case "earlier":
            found = f"lag({read}, {value.steps}) {window}"
        case "later":
            found = f"lead({read}, {value.steps}) {window}"
        case _:
            raise KeyholeError("KH900", "the kind of a window function is unknown")
    return found if kept is None else f"CASE WHEN {kept} = 1 THEN {found} END"


def _write_order(by: OwnOrder, row: RowSql) -> str:
    column = row.table.get_column(by.column)
    text = column.sql_type is SqlType.TEXT and not column.enumerated
    value = row.write_cut_text(by.column) if text else row.write_ordered_column(by.column)
    falling = " DESC" if by.descending else ""
    return f"{value}{row.dialect.byte_order if text else ''}{falling} NULLS {'FIRST' if by.nulls_first else 'LAST'}"


def _list_tie_order(row: RowSql, known: set[str]) -> list[str]:
    """Return the order of rows that are equal by the given order.

    It reads everything that questions see, and is the same for every question. Rows that are still equal are equal to
    every question.
    """
    seen = sorted(
        one.name for one in _list_stored_columns(row.table) if one.name not in known and one.name not in row.table.unit
    )
    order = [_write_order(OwnOrder(name, descending=False, nulls_first=True), row) for name in seen]
    long = [name for name in seen if row.table.get_column(name).sql_type is SqlType.TEXT]
    return [
        *order,
        *(f"{row.write_column(name)}{row.dialect.byte_order} NULLS FIRST" for name in long),
    ]  # a lookup sees more


def _write_in_units(value: str, column: Column, kind: OwnValue, dialect: Dialect) -> str:
    """Return SQL for a value in the user's units. Sums and means are counted in steps."""
    if kind.kind not in ("total", "mean") or column.sql_type is SqlType.INTEGER or column.grid is None:
        return value
    scale = max(0, -int(column.grid.normalize().as_tuple().exponent))
    return (
        f"{dialect.spelling.write_cast(value, 'numeric(19,0)')} * {write_decimal(Fraction(column.grid), scale=scale)}"
    )


def _compute_values(
    table: Table, rule: ValuesOfRows, number: int, dialect: Dialect, *, known: Table
) -> tuple[str, tuple[NamedStep, ...]]:
    """Return SQL for the relation with one row for each unit that has a row, with its values, and its steps.

    One constant unit has a row in any case, which is NULL unless one of its rows exists.

    Parameters:
        known: the question's table, which has the values as columns.
    """
    asked_of = frozenset().union(find_columns(rule.where), *(find_columns(one.where) for one in rule.values))
    narrow = keep_columns(table, [*asked_of, *(one.column for one in rule.values if one.column is not None)])
    stored = join_lookups(join_members(narrow, dialect=dialect), dialect=dialect)
    asked = [make_existence(Term(1, None, one.where, 0)) for one in rule.values]
    row = compute_conditions(RowSql(table=stored, dialect=dialect), rule.where, asked)
    units = [row.write_column(name) for name in table.unit]
    names = [f"keyhole_w{number}_{j}" for j in range(len(units))]
    tests = [*(f"({unit}) IS NOT NULL" for unit in units), *write_where_tests(row, rule.where)]
    read = [f"{unit} AS {name}" for unit, name in zip(units, names, strict=True)]
    read += [f"{_write_value(one, row)} AS keyhole_x{j}" for j, one in enumerate(rule.values)] + ["1 AS keyhole_on"]
    computed = [
        f"{_write_aggregate(one, f'keyhole_x{j}', row, known)} AS keyhole_v{number}_{j}"
        for j, one in enumerate(rule.values)
    ]
    rows = f"SELECT {', '.join(read)} FROM {row.table.relation} WHERE {' AND '.join(tests)}"
    rows = add_any_row(
        rows, [table.get_column(name) for name in table.unit], beside=len(rule.values) + 1, dialect=dialect
    )
    found = (
        f"(SELECT {', '.join([*names, *computed])}"
        f" FROM ({rows}) AS rows_of_units"
        f" GROUP BY {', '.join(names)}) AS values{number}"
    )
    return found, row.table.steps


def _write_value(value: OwnValue, row: RowSql) -> str:
    """Return SQL for the value that a row adds, NULL if none."""
    added = "1" if value.column is None else _write_column(row.table.get_column(value.column), value, row)
    return added if value.where == ALWAYS else f"CASE WHEN {row.write_condition(value.where)} THEN {added} END"


def _write_column(column: Column, value: OwnValue, row: RowSql) -> str:
    if value.kind in ("total", "mean"):
        measure = make_row_value(row, column)
        return measure.sql if measure.steps == 1 else f"({measure.sql}) * {write_integer(measure.steps)}"
    return row.write_cut_text(column.name) if column.sql_type is SqlType.TEXT else row.write_column(column.name)


def _write_aggregate(value: OwnValue, added: str, row: RowSql, known: Table) -> str:
    cast = row.dialect.spelling.write_cast
    match value.kind:
        case "least" | "greatest":
            function = "min" if value.kind == "least" else "max"
            if known.get_column(value.name).sql_type is SqlType.DOUBLE:
                return row.dialect.find_extreme_double(function, added)
            return f"{function}({added})"
        case "rows":
            return f"CASE WHEN count(keyhole_on) > 0 THEN {cast(f'count({added})', 'bigint')} END"
        case "values":
            return f"CASE WHEN count(keyhole_on) > 0 THEN {cast(f'count(DISTINCT {added})', 'bigint')} END"
        case "total" | "mean":
            return _write_sum(value, added, row, known.get_column(value.name))
        case _:
            raise KeyholeError("KH900", "the kind of a privacy unit's value is unknown")


def _write_sum(value: OwnValue, added: str, row: RowSql, column: Column) -> str:
    """Return SQL for a sum or mean in steps of its column, within the column's bounds, NULL if there are no values."""
    dialect = row.dialect
    assert value.column is not None, "a measure"
    assert column.bounds is not None, "a measure"
    measure, step = make_row_value(row, row.table.get_column(value.column)), Fraction(column.grid or 1)
    low, high = (int(Fraction(end) / step) for end in column.bounds)
    if value.kind == "total":
        found = dialect.sum_whole(added, max(-measure.low, measure.high, 1))
    else:  # above the least value, so that nothing is negative and all engines round down alike
        parts = find_parts_of_step(measure.low, measure.high)
        whole = dialect.spelling.write_cast(f"({added}) - {write_integer(measure.low)}", "bigint")
        above, count = (
            f"{dialect.sum_whole(whole, measure.high - measure.low + 1)} * {write_integer(parts)}",
            f"count({added})",
        )
        halves = (dialect.divide_large(one, count) for one in (above, f"{above} + {count} - 1"))
        found = f"{' + '.join(halves)} + {write_integer(2 * parts * measure.low)}"
    clipped = f"LEAST(GREATEST({found}, {write_integer(low)}), {write_integer(high)})"
    return f"CASE WHEN count({added}) > 0 THEN {dialect.spelling.write_cast(clipped, 'bigint')} END"
