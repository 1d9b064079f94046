"""A table's rows of the privacy units that are on its lists, as a relation.

Guarantee: each row of the table stands there once if its unit is on every list that is not absent and on none that is,
and not at all else, whatever the listed tables hold. Each list is a relation with one row for each unit, so that the
join multiplies nothing, and its conditions cannot fail on a row. A unit's rows decide about its own rows alone.

Proof: docs/proofs/unit_lists.md.
"""

from dataclasses import replace

from planner.catalog.model import SqlType, UnitList
from planner.errors import KeyholeError
from planner.lower.computed_conditions import compute_conditions
from planner.lower.dialects.model import Dialect
from planner.lower.joins import join_lookups, join_members
from planner.lower.key_tests import where_tests
from planner.lower.row import RowSql
from planner.question.model import ListedRows


def keep_listed(row: RowSql) -> RowSql:
    """Return the rows of listed units alone, or the rows as they are if their table has no lists.

    What is dear was computed for all rows before: whose rows are left decides about no row's cost.

    Parameters:
        row: of a table without members, and with its units' columns stored.

    Raises KH214 where the conditions of a list could cost more on one row than any may.
    """
    table, dialect = row.table, row.dialect
    if not table.lists:
        return row
    usable = [column for column in table.columns if column.derivation is None and column.sql_type is not SqlType.OTHER]
    computed = (row.measures, row.conditions, row.truths, row.numbers)
    shown = [dialect.spelling.identifier(column.name) for column in usable]
    shown += dict.fromkeys(name for names in computed for name in names.values())
    joined, tests = [], []
    for i, listed in enumerate(table.lists):
        met = " AND ".join(f"{row.column(name)} = keyhole_l{i}_{j}" for j, name in enumerate(table.unit))
        kind = "LEFT JOIN" if listed.absent else "JOIN"
        joined.append(f"{kind} {_list_units(listed, i, dialect)} ON {met}")
        tests += [f"keyhole_l{i}_0 IS NULL"] if listed.absent else []
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    relation = (
        f"(SELECT {', '.join(shown)} FROM {table.relation} {' '.join(joined)}{where}"
        f" /* the rows of units that are on every list, or on none that is NOT IN */) AS listed"
    )
    return replace(row, table=replace(table, relation=relation, lists=()))


def _list_units(listed: UnitList, number: int, dialect: Dialect) -> str:
    """The relation with one row for each unit on the list."""
    rule = listed.rule
    if not isinstance(rule, ListedRows):
        raise KeyholeError("KH900", "a list of privacy units by a rule that is not known")
    stored = join_lookups(join_members(listed.table, dialect=dialect), dialect=dialect)
    row = compute_conditions(RowSql(table=stored, dialect=dialect), rule.where, ())
    units = [row.column(name) for name in listed.table.unit]
    names = [f"keyhole_l{number}_{j}" for j in range(len(units))]
    tests = [*(f"({unit}) IS NOT NULL" for unit in units), *where_tests(row, rule.where)]
    shown = ", ".join(f"{unit} AS {name}" for unit, name in zip(units, names, strict=True))
    return (
        f"(SELECT {', '.join(names)} FROM (SELECT {shown} FROM {row.table.relation} WHERE {' AND '.join(tests)})"
        f" AS rows_of_units GROUP BY {', '.join(names)}) AS listed{number}"
    )
