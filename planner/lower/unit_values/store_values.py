"""A table with values of each unit's own rows as stored columns, as a relation.

Guarantee: each row of the table stands there once, whatever the tables hold. A unit's values are computed of the rows
that have all columns of that unit, so that no other unit's row has a part in them. Nothing in them can fail on a row.
They stand beside every row before any row is left out, so that whose rows are asked for decides about no row's cost.

Proof: docs/proofs/unit_values.md.
"""

from dataclasses import replace

from planner.catalog.model import Column, SqlType, Table, UnitValues
from planner.errors import KeyholeError
from planner.functionals.unit_rows import one_row
from planner.lower.computed_conditions import compute_conditions
from planner.lower.dialects.model import Dialect
from planner.lower.joins import join_lookups, join_members
from planner.lower.key_tests import where_tests
from planner.lower.member_conditions import MemberConditions
from planner.lower.row import RowSql
from planner.question.condition import ALWAYS
from planner.question.model import OwnValue, Term, ValuesOfRows


def join_with_values(table: Table, *, dialect: Dialect, among: MemberConditions | None = None) -> Table:
    """Return the join of a table's members, with the units' own values stored beside each row.

    Parameters:
        among: as for `join_members`.

    Raises KH214 where the conditions of a value could cost more on one row than any may.
    """
    own = {column.name for column in table.columns if column.own}
    if not own:
        return join_members(table, dialect=dialect, among=among)
    plain = replace(table, columns=tuple(one for one in table.columns if one.name not in own), own=())
    joined = join_members(plain, dialect=dialect, among=among)
    return _store(table, joined, dialect)


def _store(table: Table, joined: Table, dialect: Dialect) -> Table:
    """The joined rows with a column for each value."""
    identifier, row = dialect.spelling.identifier, RowSql(table=joined, dialect=dialect)
    stored = [column for column in joined.columns if column.derivation is None and column.sql_type is not SqlType.OTHER]
    shown = [identifier(column.name) for column in stored]
    relations = []
    for i, values in enumerate(table.own):
        rule = values.rule
        if not isinstance(rule, ValuesOfRows):
            raise KeyholeError("KH900", "values of a privacy unit by a rule that is not known")
        shown += [f"keyhole_v{i}_{j} AS {identifier(one.name)}" for j, one in enumerate(rule.values)]
        met = " AND ".join(f"{row.column(name)} = keyhole_w{i}_{j}" for j, name in enumerate(table.unit))
        relations.append(f"LEFT JOIN {_compute_values(values, rule, i, dialect)} ON {met}")
    relation = (
        f"(SELECT {', '.join(shown)} FROM {joined.relation} {' '.join(relations)}"
        f" /* each row with the values of its unit's own rows */) AS with_values"
    )
    known = {column.name: column for column in joined.columns}
    columns = [known.pop(column.name, column) for column in table.columns]
    return replace(joined, relation=relation, columns=(*columns, *known.values()))


def _compute_values(values: UnitValues, rule: ValuesOfRows, number: int, dialect: Dialect) -> str:
    """The relation with one row for each unit that has a row, and what its rows come to."""
    stored = join_lookups(join_members(values.table, dialect=dialect), dialect=dialect)
    asked = [one_row(Term(1, None, one.where, 0)) for one in rule.values]
    row = compute_conditions(RowSql(table=stored, dialect=dialect), rule.where, asked)
    units = [row.column(name) for name in values.table.unit]
    names = [f"keyhole_w{number}_{j}" for j in range(len(units))]
    tests = [*(f"({unit}) IS NOT NULL" for unit in units), *where_tests(row, rule.where)]
    read = [f"{unit} AS {name}" for unit, name in zip(units, names, strict=True)]
    read += [f"{_read(one, row)} AS keyhole_x{j}" for j, one in enumerate(rule.values)]
    computed = [
        f"{_aggregate(one, f'keyhole_x{j}', dialect)} AS keyhole_v{number}_{j}" for j, one in enumerate(rule.values)
    ]
    return (
        f"(SELECT {', '.join([*names, *computed])}"
        f" FROM (SELECT {', '.join(read)} FROM {row.table.relation} WHERE {' AND '.join(tests)}) AS rows_of_units"
        f" GROUP BY {', '.join(names)}) AS values{number}"
    )


def _read(value: OwnValue, row: RowSql) -> str:
    """What a row adds to a value: NULL if nothing."""
    added = "1" if value.column is None else _read_column(row.table.column(value.column), row)
    return added if value.where == ALWAYS else f"CASE WHEN {row.holds(value.where)} THEN {added} END"


def _read_column(column: Column, row: RowSql) -> str:
    return row.cut_text(column.name) if column.sql_type is SqlType.TEXT else row.column(column.name)


def _aggregate(value: OwnValue, added: str, dialect: Dialect) -> str:
    match value.kind:
        case "least":
            return f"min({added})"
        case "greatest":
            return f"max({added})"
        case "rows":
            return dialect.spelling.cast(f"count({added})", "bigint")
        case "values":
            return dialect.spelling.cast(f"count(DISTINCT {added})", "bigint")
