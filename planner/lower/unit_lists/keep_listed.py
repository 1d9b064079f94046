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
from planner.lower.whole_joins.fences import add_anybody, fence_rows
from planner.lower.whole_joins.front_conditions import FrontConditions, ask_rows
from planner.question.condition import ALWAYS, Condition, columns
from planner.question.model import ListedRows, ListedTotals

_ENDS = (("min", "least"), ("max", "most"))


def keep_listed(row: RowSql, *, asked: Condition = ALWAYS, is_asked: bool = False) -> RowSql:
    """Return the rows of listed units alone, or the rows as they are if their table has no lists.

    What is dear was computed for all rows before: whose rows are left decides about no row's cost.

    Parameters:
        row: of a table without members, and with its units' columns stored.
        asked: what is asked of stored rows before they meet a list.
        is_asked: this, or something before, leaves out rows.

    Raises KH214 where the conditions of a list could cost more on one row than any may.
    """
    table, dialect = row.table, row.dialect
    if not table.lists:
        return row
    usable = [column for column in table.columns if column.derivation is None and column.sql_type is not SqlType.OTHER]
    computed = (row.measures, row.conditions, row.truths, row.numbers)
    shown = [dialect.spelling.identifier(column.name) for column in usable]
    shown += dict.fromkeys(name for names in computed for name in names.values())
    joined, names, steps, on_all = [], {}, [table.steps], []
    relation, of_row = table.relation, {name: row.column(name) for name in _list_compared(table)}
    if is_asked and all(listed.compared is None for listed in table.listed):
        relation, found = ask_rows(row, FrontConditions(asked), shown=shown, keys=tuple(of_row))
        of_row = dict(zip(of_row, found, strict=True))
    only = [clause[0] for clause in table.lists if len(clause) == 1 and not clause[0].absent]
    for i, listed in enumerate(table.listed):
        met = " AND ".join([*_met(table, listed, i, of_row), *_compare(listed, i, of_row)])
        named, is_only = f"keyhole_l{i}_on", replace(listed, absent=False) in only
        units, read = _list_units(listed, i, dialect, is_only=is_only)
        joined.append(f"{'JOIN' if is_only else 'LEFT JOIN'} {units} ON {met}")
        steps.append(read)
        names[replace(listed, absent=False)] = named
        on_all += [f"{named} = 1"] if is_only else []
    if on_all:  # a row whose unit is not on the list has none: a test of the list alone would be asked before the join
        unit = dialect.spelling.identifier(table.unit[0])
        shown[shown.index(unit)] = f"CASE WHEN {' AND '.join(on_all)} THEN {unit} END AS {unit}"
    tests = [_test(clause, names) for clause in table.lists if len(clause) > 1 or clause[0].absent]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    relation = (
        f"(SELECT {', '.join(shown)} FROM {relation} {' '.join(joined)}{where}"
        f" /* the rows of units that are on every list, or on none that is NOT IN */{fence_rows(dialect)}) AS listed"
    )
    return replace(row, table=replace(table, relation=relation, lists=(), steps=merge_steps(*steps)))


def _list_compared(table: Table) -> dict[str, None]:
    """The columns of a row that are compared with those of lists."""
    found = dict.fromkeys(table.unit)
    for listed in table.listed:
        found |= dict.fromkeys(name for name, _ in listed.by)
        found |= {} if listed.compared is None else {listed.compared[1]: None}
    return found


def _met(table: Table, listed: UnitList, number: int, of_row: Mapping[str, str]) -> list[str]:
    """That a row has the unit and the key that a list has."""
    equal = [f"{of_row[name]} = keyhole_l{number}_{j}" for j, name in enumerate(table.unit)]
    return equal + [f"{of_row[name]} = keyhole_l{number}_k{j}" for j, (name, _) in enumerate(listed.by)]


def _compare(listed: UnitList, number: int, of_row: Mapping[str, str]) -> list[str]:
    """That some value on a list stands to the row's as is asked: the least does, or the greatest."""
    if listed.compared is None:
        return []
    operator, name, _ = listed.compared
    least, most, value = f"keyhole_l{number}_least", f"keyhole_l{number}_most", of_row[name]
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


def _list_units(listed: UnitList, number: int, dialect: Dialect, *, is_only: bool) -> tuple[str, tuple[NamedStep, ...]]:
    """The relation with one row for each unit on the list, where `keyhole_l0_on` is 1, and the steps that it reads.

    Some unit has a row in any case, with NULL there.

    Parameters:
        is_only: rows that meet no 1 there are dropped, so that this unit may have two rows.
    """
    names = [f"keyhole_l{number}_{j}" for j in range(len(listed.table.unit))]
    names += [f"keyhole_l{number}_k{j}" for j in range(len(listed.by))]
    shown = [*names, f"max(keyhole_on) AS keyhole_l{number}_on"]
    columns = [listed.table.column(name) for name in (*listed.table.unit, *(inside for _, inside in listed.by))]
    values = [] if listed.compared is None else ["keyhole_value"]
    if values:
        shown += [f"{function}(keyhole_value) AS keyhole_l{number}_{end}" for function, end in _ENDS]
    match listed.rule:
        case ListedRows() as rule:
            found, steps = _with_a_row(listed, rule, names, dialect)
        case ListedTotals() as rule:
            found, steps = _with_totals(listed, rule, names, dialect)
        case _:
            raise KeyholeError("KH900", "a list of privacy units by a rule that is not known")
    if is_only and not values:
        rows = f"SELECT {', '.join(names)}, 1 AS keyhole_l{number}_on FROM {found} GROUP BY {', '.join(names)}"
        return f"({add_anybody(rows, columns, beside=1, dialect=dialect)}) AS listed{number}", steps
    rows = f"SELECT {', '.join([*names, '1 AS keyhole_on', *values])} FROM {found}"
    rows = add_anybody(rows, columns, beside=1 + len(values), dialect=dialect)
    relation = f"(SELECT {', '.join(shown)} FROM ({rows}) AS or_anybody GROUP BY {', '.join(names)}) AS listed{number}"
    return relation, steps


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
