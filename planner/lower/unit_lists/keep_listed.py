"""A table's rows of the privacy units that are on its lists, as a relation.

Guarantee: each row of the table stands there once if its unit is on every list that is not absent and on none that is,
and not at all else, whatever the listed tables hold. Each list is a relation with one row for each unit, so that the
join multiplies nothing, and its conditions cannot fail on a row. A unit's rows decide about its own rows alone.

Proof: docs/proofs/unit_lists.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.catalog.model import NamedStep, SqlType, Table, UnitList
from planner.errors import KeyholeError
from planner.lower.computed_conditions import compute_conditions
from planner.lower.dialects.model import Dialect
from planner.lower.functional import FunctionalSql
from planner.lower.joins import join_lookups, join_members
from planner.lower.kept.named_steps import merge_steps
from planner.lower.key_tests import where_tests
from planner.lower.read_columns import keep_columns, list_summed
from planner.lower.row import RowSql
from planner.lower.unit_rows import StoredTotals, list_needed, unit_columns
from planner.question.condition import ALWAYS, columns
from planner.question.model import ListedRows, ListedTotals

_ENDS = (("min", "least"), ("max", "most"))


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
    joined, names, steps = [], {}, [table.steps]
    only = [clause[0] for clause in table.lists if len(clause) == 1 and not clause[0].absent]
    for i, listed in enumerate(table.listed):
        met = " AND ".join([*_met(row, listed, i), *_compare(row, listed, i)])
        kind = "JOIN" if replace(listed, absent=False) in only else "LEFT JOIN"
        units, read = _list_units(listed, i, dialect)
        joined.append(f"{kind} {units} ON {met}")
        steps.append(read)
        names[replace(listed, absent=False)] = f"keyhole_l{i}_0"
    tests = [_test(clause, names) for clause in table.lists if len(clause) > 1 or clause[0].absent]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    relation = (
        f"(SELECT {', '.join(shown)} FROM {table.relation} {' '.join(joined)}{where}"
        f" /* the rows of units that are on every list, or on none that is NOT IN */) AS listed"
    )
    return replace(row, table=replace(table, relation=relation, lists=(), steps=merge_steps(*steps)))


def _met(row: RowSql, listed: UnitList, number: int) -> list[str]:
    """That a row has the unit and the key that a list has."""
    equal = [f"{row.column(name)} = keyhole_l{number}_{j}" for j, name in enumerate(row.table.unit)]
    return equal + [f"{row.column(name)} = keyhole_l{number}_k{j}" for j, (name, _) in enumerate(listed.by)]


def _compare(row: RowSql, listed: UnitList, number: int) -> list[str]:
    """That some value on a list stands to the row's as is asked: the least does, or the greatest."""
    if listed.compared is None:
        return []
    operator, name, _ = listed.compared
    least, most, value = f"keyhole_l{number}_least", f"keyhole_l{number}_most", row.column(name)
    match operator:
        case "<>":
            return [f"({least} <> {value} OR {most} <> {value})"]
        case "<" | "<=":
            return [f"{least} {operator} {value}"]
        case _:
            return [f"{most} {operator} {value}"]


def _test(clause: tuple[UnitList, ...], names: Mapping[UnitList, str]) -> str:
    """That a row's unit is on one of these lists, or is not on one that is absent."""
    tests = [f"{names[replace(one, absent=False)]} IS {'' if one.absent else 'NOT '}NULL" for one in clause]
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"


def _list_units(listed: UnitList, number: int, dialect: Dialect) -> tuple[str, tuple[NamedStep, ...]]:
    """The relation with one row for each unit on the list, and the steps that it reads."""
    names = [f"keyhole_l{number}_{j}" for j in range(len(listed.table.unit))]
    names += [f"keyhole_l{number}_k{j}" for j in range(len(listed.by))]
    shown = list(names)
    if listed.compared is not None:
        shown += [f"{function}(keyhole_value) AS keyhole_l{number}_{end}" for function, end in _ENDS]
    match listed.rule:
        case ListedRows() as rule:
            found, steps = _with_a_row(listed, rule, names, dialect)
        case ListedTotals() as rule:
            found, steps = _with_totals(listed, rule, names, dialect)
        case _:
            raise KeyholeError("KH900", "a list of privacy units by a rule that is not known")
    return f"(SELECT {', '.join(shown)} FROM {found} GROUP BY {', '.join(names)}) AS listed{number}", steps


def _with_a_row(
    listed: UnitList, rule: ListedRows, names: Sequence[str], dialect: Dialect
) -> tuple[str, tuple[NamedStep, ...]]:
    """The units of the rows that the rule asks for."""
    read = [*listed.table.unit, *(inside for _, inside in listed.by)]
    if listed.compared is not None:
        read.append(listed.compared[2])
        names = [*names, "keyhole_value"]
    stored = _read_listed(listed.table, [*read, *columns(rule.where)], dialect)
    row = compute_conditions(stored, rule.where, ())
    units = [row.column(name) for name in read]
    tests = [*(f"({unit}) IS NOT NULL" for unit in units), *where_tests(row, rule.where)]
    shown = ", ".join(f"{unit} AS {name}" for unit, name in zip(units, names, strict=True))
    found = f"(SELECT {shown} FROM {row.table.relation} WHERE {' AND '.join(tests)}) AS rows_of_units"
    return found, row.table.steps


def _read_listed(table: Table, read: Iterable[str], dialect: Dialect) -> RowSql:
    """A row of a listed table, with the columns that are read of it."""
    table = keep_columns(table, read)
    return RowSql(table=join_lookups(join_members(table, dialect=dialect), dialect=dialect), dialect=dialect)


def _with_totals(
    listed: UnitList, rule: ListedTotals, names: Sequence[str], dialect: Dialect
) -> tuple[str, tuple[NamedStep, ...]]:
    """The units, and their keys, with a group of rows whose totals the rule asks for."""
    rows = rule.rows
    needed = list_needed(rows)
    keys = [inside for _, inside in listed.by]
    others = [name for name in rule.groups if name not in keys]
    grouped = [*rows.table.unit, *keys, *others]
    read = [*grouped, *columns(rows.where), *list_summed(needed)]
    row = compute_conditions(_read_listed(replace(rows.table, lists=()), read, dialect), rows.where, needed)
    summed = [FunctionalSql.of(row, one, where=ALWAYS, among=rows.where) for one in needed]
    called = [*names, *(f"g{i}" for i in range(len(others)))]
    shown = [f"{row.column(name)} AS {alias}" for name, alias in zip(grouped, called, strict=True)]
    shown += [f"{one.sum_rows(added=one.added_sql(), present=one.present())} AS t{i}" for i, one in enumerate(summed)]
    present = [f"({row.column(name)}) IS NOT NULL" for name in (*rows.table.unit, *keys)]
    tests = " AND ".join([*present, *where_tests(row, rows.where)])
    places = ", ".join(map(str, range(1, len(called) + 1)))
    totals = f"(SELECT {', '.join(shown)} FROM {row.table.relation} WHERE {tests} GROUP BY {places}) AS totals"
    clipped = ", ".join(unit_columns(rows, called, dialect))
    stored = StoredTotals.of(rule.shown, rows, dict(zip(grouped, called, strict=True)))
    holds = stored.read_condition(rule.holds)
    units = compute_conditions(
        stored.row(rule.shown, f"(SELECT {clipped} FROM {totals}) AS units", dialect), holds, (), beside=names
    )
    kept = " AND ".join(where_tests(units, holds)) or "TRUE"
    return f"(SELECT {', '.join(names)} FROM {units.table.relation} WHERE {kept}) AS rows_of_units", row.table.steps
