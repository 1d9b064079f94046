"""A table's rows of the privacy units that are on its lists, as a relation.

Guarantee: each row of the table is there once if its unit is on every list that is not absent and on no absent list.
Otherwise it is not there, whatever the listed tables hold. Each list is a relation with one row for each unit, so the
join multiplies nothing, and its conditions cannot fail on a row. A unit's rows decide only about the unit's own rows.

Proof: docs/proofs/unit_lists.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto

from planner.catalog.catalog import NamedStep, SqlType, Table, UnitList, UnitPath
from planner.errors import KeyholeError
from planner.lower.computed_conditions import compute_conditions
from planner.lower.dialects.dialect import Dialect
from planner.lower.functional import FunctionalSql
from planner.lower.joins import join_lookups, join_members
from planner.lower.kept.named_steps import merge_steps
from planner.lower.key_tests import write_where_tests
from planner.lower.read_columns import keep_columns, list_summed_columns
from planner.lower.row import RowSql
from planner.lower.unit_paths.reach import list_owners
from planner.lower.unit_rows import StoredTotals, list_needed_functionals, write_unit_columns
from planner.lower.whole_joins.fences import add_any_row, write_row_fence, write_whole_read
from planner.lower.whole_joins.front_conditions import FrontConditions, ask_rows
from planner.question.condition import ALWAYS, Condition, find_columns
from planner.question.question import ListedRows, ListedTotals

_ENDS = (("min", "least"), ("max", "most"))


def keep_listed_units(row: RowSql, known: Table, *, asked: Condition = ALWAYS, is_asked: bool = False) -> RowSql:
    """Return the rows whose units are on the lists of their table. Without lists, return the rows unchanged.

    Expensive conditions are computed for all rows before, so the lists do not change any row's cost.

    Parameters:
        row: of a table without members, with its units' columns stored.
        known: the table before it was joined, and before its units were reached.
        asked: the tests on stored rows before they are joined with a list.
        is_asked: True if these tests, or an earlier step, leave out rows.

    Raises KH214 if the conditions of a list could cost more on one row than any may.
    """
    table, dialect = row.table, row.dialect
    if not table.lists:
        return row
    usable = [column for column in table.columns if column.derivation is None and column.sql_type is not SqlType.OTHER]
    computed = (row.measures, row.conditions, row.truths, row.numbers)
    shown = [dialect.spelling.quote_identifier(column.name) for column in usable]
    shown += dict.fromkeys(name for names in computed for name in names.values())
    joined, names, steps, on_all, whole = [], {}, [table.steps], [], []
    relation, of_row = table.relation, {name: row.write_column(name) for name in _list_compared_columns(table)}
    if is_asked and all(listed.comparison is None for listed in table.unit_lists):
        relation, found = ask_rows(row, FrontConditions(asked), shown=shown, keys=tuple(of_row))
        of_row = dict(zip(of_row, found, strict=True))
    only = [clause[0] for clause in table.lists if len(clause) == 1 and not clause[0].is_negated]
    for i, listed in enumerate(table.unit_lists):
        way = _choose_list_join(known, listed)
        met = " AND ".join(
            [*_write_meeting_tests(table, listed, i, of_row, way=way), *_write_value_tests(listed, i, of_row)]
        )
        named, is_only = f"keyhole_l{i}_on", replace(listed, is_negated=False) in only
        units, read = _write_units(listed, i, dialect, is_only=is_only, way=way)
        joined.append(f"{'JOIN' if is_only else 'LEFT JOIN'} {units} ON {met}")
        steps.append(read)
        if way is _ListJoin.KEY_OF_OWNER:
            owners, read = list_owners(listed.table, dialect=dialect)
            steps.append(read)
            if owners is not None:
                beside, is_owner = _join_owner(table, listed, i, of_row, owners)
                joined.append(beside)
                whole.append(write_whole_read(owners.name))  # also where no row is on the list
                named = f"CASE WHEN {is_owner} THEN {named} END"
        names[replace(listed, is_negated=False)] = named
        on_all += [f"{named} = 1"] if is_only else []
    if on_all:  # a row whose unit is not on the list has none: a test of the list alone would be asked before the join
        unit = dialect.spelling.quote_identifier(table.unit[0])
        shown[shown.index(unit)] = f"CASE WHEN {' AND '.join(on_all)} THEN {unit} END AS {unit}"
    tests = whole + [
        _write_list_test(clause, names) for clause in table.lists if len(clause) > 1 or clause[0].is_negated
    ]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    relation = (
        f"(SELECT {', '.join(shown)} FROM {relation} {' '.join(joined)}{where}"
        f" /* the rows of units that are on every list, or on none that is NOT IN */"
        f"{write_row_fence(dialect)}) AS listed"
    )
    return replace(row, table=replace(table, relation=relation, lists=(), steps=merge_steps(*steps)))


def _list_compared_columns(table: Table) -> dict[str, None]:
    """Return the columns of a row that are compared with columns of lists."""
    found = dict.fromkeys(table.unit)
    for listed in table.unit_lists:
        found |= dict.fromkeys(name for name, _ in listed.key_columns)
        found |= {} if listed.comparison is None else {listed.comparison[1]: None}
    return found


class _ListJoin(Enum):
    """The columns by which a row is joined with a list.

    `UNIT`: its unit, and its key if the list has one. `KEY_OF_UNIT`: the key that leads to its own unit.
    `KEY_OF_OWNER`: the key that leads other rows to its unit, if this row is the one that counts for its key.
    """

    UNIT = auto()
    KEY_OF_UNIT = auto()
    KEY_OF_OWNER = auto()


def _choose_list_join(known: Table, listed: UnitList) -> _ListJoin:
    """Return the columns by which rows of a table are joined with a list.

    A list by the key that leads its rows to their unit need not reach units. All its rows with one key are of one unit,
    which is the row's own.
    """
    path = listed.table.path
    if path is None or listed.table.members:
        return _ListJoin.UNIT
    outside = {inside: name for name, inside in listed.key_columns}
    reached = {*listed.table.unit, *(here for _, here in path.added_columns)}
    table = listed.rule.rows.table if isinstance(listed.rule, ListedTotals) else listed.table
    read = table.include_bases([*outside, *_list_rule_columns(listed)])
    if read & reached or not outside.keys() >= set(path.from_columns):
        return _ListJoin.UNIT
    met = tuple(outside[name] for name in path.from_columns)
    if not known.members:
        return _find_key_role(known, met, path)
    for member in known.members:
        names = {named: own for own, named in member.columns}
        if names.keys() >= set(met):
            return _find_key_role(member.table, tuple(names[name] for name in met), path)
    return _ListJoin.UNIT


def _find_key_role(known: Table, key: tuple[str, ...], path: UnitPath) -> _ListJoin:
    """Return the role of a key for a row of one table, if the key may lead to units along a path."""
    if known.name == path.table.name and key == path.to_columns:
        return _ListJoin.KEY_OF_OWNER
    own = known.path
    if own is None or (own.table.name, own.to_columns) != (path.table.name, path.to_columns):
        return _ListJoin.UNIT
    brought = dict(own.added_columns)
    ways = (own.from_columns, tuple(brought.get(name) for name in own.to_columns))
    return _ListJoin.KEY_OF_UNIT if key in ways else _ListJoin.UNIT


def _list_rule_columns(listed: UnitList) -> Iterator[str]:
    """Yield the columns of the listed table that a rule reads."""
    if listed.comparison is not None:
        yield listed.comparison[2]
    match listed.rule:
        case ListedRows(where):
            yield from find_columns(where)
        case ListedTotals(rows, groups):
            yield from (*groups, *find_columns(rows.where), *list_summed_columns(list_needed_functionals(rows)))


def _join_owner(
    table: Table, listed: UnitList, number: int, of_row: Mapping[str, str], owners: NamedStep
) -> tuple[str, str]:
    """Return SQL for a join with the owners of repeated keys, and for the test that a row's unit owns its key."""
    assert listed.table.path is not None
    outside = {inside: name for name, inside in listed.key_columns}
    keys = [of_row[outside[name]] for name in listed.table.path.from_columns]
    name = f"owners{number}"
    met = " AND ".join(f"{key} = {name}.keyhole_r{j}" for j, key in enumerate(keys))
    same = " AND ".join(f"{name}.keyhole_p{j} = {of_row[unit]}" for j, unit in enumerate(table.unit))
    return f"LEFT JOIN {owners.name} AS {name} ON {met}", f"{name}.keyhole_r0 IS NULL OR {same}"


def _write_meeting_tests(
    table: Table, listed: UnitList, number: int, of_row: Mapping[str, str], *, way: _ListJoin
) -> list[str]:
    """Return SQL for the tests that a row has the unit and the key of a list's row."""
    units = table.unit if way is _ListJoin.UNIT else ()
    equal = [f"{of_row[name]} = keyhole_l{number}_{j}" for j, name in enumerate(units)]
    return equal + [f"{of_row[name]} = keyhole_l{number}_k{j}" for j, (name, _) in enumerate(listed.key_columns)]


def _write_value_tests(listed: UnitList, number: int, of_row: Mapping[str, str]) -> list[str]:
    """Return SQL for the test that some value on a list compares with the row's value.

    The least or the greatest decides.
    """
    if listed.comparison is None:
        return []
    operator, name, _ = listed.comparison
    least, most, value = f"keyhole_l{number}_least", f"keyhole_l{number}_most", of_row[name]
    match operator:
        case "<>":
            return [f"({least} <> {value} OR {most} <> {value})"]
        case "<" | "<=":
            return [f"{least} {operator} {value}"]
        case _:
            return [f"{most} {operator} {value}"]


def _write_list_test(clause: tuple[UnitList, ...], names: Mapping[UnitList, str]) -> str:
    """Return SQL for the test that a row's unit is on one of these lists, or is not on an absent one."""
    tests = [f"{names[replace(one, is_negated=False)]} IS {'' if one.is_negated else 'NOT '}NULL" for one in clause]
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"


def _write_units(
    listed: UnitList, number: int, dialect: Dialect, *, is_only: bool, way: _ListJoin
) -> tuple[str, tuple[NamedStep, ...]]:
    """Return SQL for a relation with one row for each unit on the list, where `keyhole_l0_on` is 1, and its steps.

    One constant unit has a row in any case, with NULL there.

    Parameters:
        is_only: True if rows that find no 1 there are dropped, so that the constant unit may have two rows.
        way: if rows are joined by a key that leads to units, there is a row for each key.
    """
    units = listed.table.unit if way is _ListJoin.UNIT else ()
    names = [f"keyhole_l{number}_{j}" for j in range(len(units))]
    names += [f"keyhole_l{number}_k{j}" for j in range(len(listed.key_columns))]
    shown = [*names, f"max(keyhole_on) AS keyhole_l{number}_on"]
    columns = [listed.table.get_column(name) for name in (*units, *(inside for _, inside in listed.key_columns))]
    values = [] if listed.comparison is None else ["keyhole_value"]
    if values:
        shown += [f"{function}(keyhole_value) AS keyhole_l{number}_{end}" for function, end in _ENDS]
    match listed.rule:
        case ListedRows() as rule:
            read = listed if way is _ListJoin.UNIT else replace(listed, table=_remove_path(listed.table))
            found, steps = _write_units_of_rows(read, rule, names, dialect)
        case ListedTotals() as rule:
            if way is not _ListJoin.UNIT:
                rule = replace(rule, rows=replace(rule.rows, table=_remove_path(rule.rows.table)))
            found, steps = _write_units_of_totals(listed, rule, names, dialect)
        case _:
            raise KeyholeError("KH900", "the rule for a list of privacy units is unknown")
    if is_only and not values:
        rows = f"SELECT {', '.join(names)}, 1 AS keyhole_l{number}_on FROM {found} GROUP BY {', '.join(names)}"
        return f"({add_any_row(rows, columns, beside=1, dialect=dialect)}) AS listed{number}", steps
    rows = f"SELECT {', '.join([*names, '1 AS keyhole_on', *values])} FROM {found}"
    rows = add_any_row(rows, columns, beside=1 + len(values), dialect=dialect)
    relation = f"(SELECT {', '.join(shown)} FROM ({rows}) AS or_anybody GROUP BY {', '.join(names)}) AS listed{number}"
    return relation, steps


def _write_units_of_rows(
    listed: UnitList, rule: ListedRows, names: Sequence[str], dialect: Dialect
) -> tuple[str, tuple[NamedStep, ...]]:
    """Return SQL for the units of the rows that the rule selects, and the steps that it reads."""
    read = [*listed.table.unit, *(inside for _, inside in listed.key_columns)]
    if listed.comparison is not None:
        read.append(listed.comparison[2])
        names = [*names, "keyhole_value"]
    stored = _read_listed_table(listed.table, [*read, *find_columns(rule.where)], dialect)
    row = compute_conditions(stored, rule.where, ())
    units = [row.write_column(name) for name in read]
    tests = [*(f"({unit}) IS NOT NULL" for unit in units), *write_where_tests(row, rule.where)]
    shown = ", ".join(f"{unit} AS {name}" for unit, name in zip(units, names, strict=True))
    found = f"(SELECT {shown} FROM {row.table.relation} WHERE {' AND '.join(tests)}) AS rows_of_units"
    return found, row.table.steps


def _remove_path(table: Table) -> Table:
    """Return the table as one whose rows have no unit."""
    return replace(table, unit=(), path=None)


def _read_listed_table(table: Table, read: Iterable[str], dialect: Dialect) -> RowSql:
    """Return a row of a listed table with the columns that are read."""
    table = keep_columns(table, read)
    return RowSql(table=join_lookups(join_members(table, dialect=dialect), dialect=dialect), dialect=dialect)


def _write_units_of_totals(
    listed: UnitList, rule: ListedTotals, names: Sequence[str], dialect: Dialect
) -> tuple[str, tuple[NamedStep, ...]]:
    """Return SQL for the units, and their keys, with a group of rows whose totals the rule selects, and its steps."""
    rows = rule.rows
    needed = list_needed_functionals(rows)
    keys = [inside for _, inside in listed.key_columns]
    others = [name for name in rule.groups if name not in keys]
    grouped = [*rows.table.unit, *keys, *others]
    read = [*grouped, *find_columns(rows.where), *list_summed_columns(needed)]
    row = compute_conditions(_read_listed_table(replace(rows.table, lists=()), read, dialect), rows.where, needed)
    summed = [FunctionalSql.from_functional(row, one, where=ALWAYS, among=rows.where) for one in needed]
    called = [*names, *(f"g{i}" for i in range(len(others)))]
    shown = [f"{row.write_column(name)} AS {alias}" for name, alias in zip(grouped, called, strict=True)]
    shown += [
        f"{one.sum_rows(added=one.write_added(), present=one.write_present())} AS t{i}" for i, one in enumerate(summed)
    ]
    present = [f"({row.write_column(name)}) IS NOT NULL" for name in (*rows.table.unit, *keys)]
    tests = " AND ".join([*present, *write_where_tests(row, rows.where)])
    places = ", ".join(map(str, range(1, len(called) + 1)))
    totals = f"(SELECT {', '.join(shown)} FROM {row.table.relation} WHERE {tests} GROUP BY {places}) AS totals"
    clipped = ", ".join(write_unit_columns(rows, called, dialect))
    stored = StoredTotals.from_rows(rule.totals_table, rows, dict(zip(grouped, called, strict=True)))
    holds = stored.read_condition(rule.holds)
    units = compute_conditions(
        stored.make_row(rule.totals_table, f"(SELECT {clipped} FROM {totals}) AS units", dialect),
        holds,
        (),
        beside=names,
    )
    kept = " AND ".join(write_where_tests(units, holds)) or "TRUE"
    return f"(SELECT {', '.join(names)} FROM {units.table.relation} WHERE {kept}) AS rows_of_units", row.table.steps
