"""Conditions of WHERE, tested on the rows of one table before these are joined.

    SELECT n_name FROM customer JOIN orders ON ... JOIN lineitem ON ...
    WHERE o_orderdate >= '1994-01-01' AND o_orderdate < '1995-01-01' GROUP BY n_name HAVING ...

Six million lines are joined with the orders of one year instead of seven. Lines of suppliers in Asia are found by
public rows, in front of the same join.

Guarantee: a row is left out in front of a join only if WHERE would leave out every joined row that it is in. WHERE is
tested again behind the join. The remaining rows are never empty: there is one more row, with NULL in all columns except
keys of the join. WHERE drops it, because each condition here rejects a row of NULL.

References: docs/decisions/0041-whole-joins.md.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.catalog.catalog import Column, Computed, ComputedName, Derivation, SqlType, Table, Value
from planner.catalog.row_terms import RowTerm
from planner.lower.domain import LONGEST_LIST
from planner.lower.key_tests import pair_keys, write_where_tests
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import add_any_row, write_row_fence
from planner.question.condition import (
    ALWAYS,
    Compare,
    Condition,
    Leaf,
    Not,
    Within,
    evaluate,
    find_columns,
    join_all,
    join_any,
)
from planner.question.question import Question


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """The values of a stored `column` that public rows demand. `select` is SQL that returns them."""

    column: str
    select: str


@dataclass(frozen=True, slots=True)
class FrontConditions:
    """Conditions on a table's stored rows that are tested before the table is joined, in the table's own names.

    `public_keys` are the values that public rows demand of the private ones. `path` has the conditions on the table to
    which the path leads. `members` has those on the joined tables, in their order.
    """

    own: Condition = ALWAYS
    public_keys: tuple[PublicKeys, ...] = ()
    path: "FrontConditions | None" = None
    members: tuple["FrontConditions", ...] = ()

    def __bool__(self) -> bool:
        """Return True if there are any tests."""
        return self.has_own or bool(self.path) or any(self.members)

    @property
    def has_own(self) -> bool:
        """True if there are conditions on the table's own rows."""
        return self.own != ALWAYS or bool(self.public_keys)

    def find_path_conditions(self) -> "FrontConditions":
        """Return the conditions on the table to which the path leads."""
        return self.path or NOTHING

    def find_member_conditions(self, place: int) -> "FrontConditions":
        """Return the conditions on a joined table."""
        return self.members[place] if self.members else NOTHING


NOTHING = FrontConditions()
_STRICT = frozenset(("column", "stored", "constant", "=", "<", "= by", "< by"))
"""Functions of a row that are NULL if an argument is NULL."""
_ORDERED = (SqlType.INTEGER, SqlType.DATE, SqlType.TIMESTAMP)


def split_front(question: Question, *, found: Sequence[PublicKeys] = ()) -> FrontConditions:
    """Return the parts of WHERE, and of the restriction of keys, that each table can test by itself before the join.

    Parameters:
        question: one for which rows that WHERE drops affect nothing.
        found: the values that public rows demand of a row's stored columns. They are tested if tables are joined
            anyway.
    """
    table = question.table
    if table.own:
        return NOTHING  # a window reads all rows of a unit
    asked = list(question.where.list_conjuncts())
    asked += [one for column, values in pair_keys(question) for one in _restrict(column, values)]
    return _place_conditions(table, asked, found if table.reads_several_tables else ())


def ask_rows(
    row: RowSql, front: FrontConditions, *, shown: Sequence[str], keys: Sequence[str]
) -> tuple[str, list[str]]:
    """Return SQL for a table's rows that satisfy its own conditions, with one extra row, and its join keys' names.

    Parameters:
        shown: the columns that later steps need, as SQL.
        keys: the columns by which the table is joined. The extra row has values of these, and NULL in others.
    """
    names = [f"keyhole_b{i}" for i in range(len(keys))]
    read = [f"{row.write_column(key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    source, tests = test_rows(row, front)
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    rows = f"SELECT {', '.join([*read, *shown])} FROM {source}{where}"
    columns_met = [row.table.get_column(key) for key in keys]
    return f"({add_any_row(rows, columns_met, beside=len(shown), dialect=row.dialect)}) AS asked", names


def test_rows(row: RowSql, front: FrontConditions) -> tuple[str, list[str]]:
    """Return SQL for the relation of a table's rows, and the SQL tests of its own conditions on them.

    Public keys are joined through a relation that has one more value, which may or may not occur. So an engine reads
    that relation whichever rows exist.
    """
    tests = write_where_tests(row, front.own)
    if not front.public_keys:
        return row.table.relation, tests
    own, identifier = _list_own_columns(row.table), row.dialect.spelling.quote_identifier
    names = [f"keyhole_a{i}" for i in range(len(front.public_keys))]
    looked_up = [row.table.get_column(one.column) for one in front.public_keys]
    read = [f"{row.write_column(one.name)} AS {name}" for one, name in zip(looked_up, names, strict=True)]
    stored = [identifier(one.name) for one in row.table.columns if one.derivation is None and one.name in own]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    rows = f"SELECT {', '.join([*read, *stored])} FROM {row.table.relation}{where}"
    met = add_any_row(rows, looked_up, beside=len(stored), dialect=row.dialect)
    kept = " AND ".join(f"{name} IN ({one.select})" for one, name in zip(front.public_keys, names, strict=True))
    # a test from outside would leave out that row in front of the public keys
    return f"(SELECT {', '.join(stored)} FROM ({met}) AS met WHERE {kept}{write_row_fence(row.dialect)}) AS known", []


def _restrict(column: Column, values: Sequence[Value]) -> list[Condition]:
    """Return the conditions that rows with these values of a stored key satisfy, or nothing for all public values."""
    if column.derivation is not None or column.domain is None or not 0 < len(values) < len(column.domain):
        return []
    if len(values) <= LONGEST_LIST:
        return [Within(column.name, tuple(values))]
    ordered = sorted(values) if column.sql_type in _ORDERED else []
    return [Compare(column.name, ">=", ordered[0]), Compare(column.name, "<=", ordered[-1])] if ordered else []


def _imply(condition: Condition, table: Table, names: Collection[str]) -> Condition:
    """Return a condition on the named columns alone that is true for every row for which the given condition is true.

    It is not true if all of these columns are NULL. Return ALWAYS if there is no such condition.
    """

    def imply_test(test: Leaf | Not) -> Condition:
        read = find_columns(test)
        is_known = bool(read) and all(_is_null_of_null(table.get_column(name)) for name in table.include_bases(read))
        return test if is_known and _list_bases(test) <= set(names) else ALWAYS

    implied = condition.fold_literals(imply_test, every=join_all, some=join_any, wanted=True)
    read = find_columns(implied)
    return implied if read and evaluate(implied, dict.fromkeys(read)) is not True else ALWAYS


def _is_null_of_null(column: Column) -> bool:
    """Return True for a stored column, or one computed from stored ones that is NULL if one of these is."""
    match column.derivation:
        case None | Derivation():
            return not column.is_unit_value
        case Computed(term):
            return _is_strict(term)
        case _:
            return False


def _is_strict(term: RowTerm) -> bool:
    return term.function in _STRICT and all(map(_is_strict, term.arguments))


def _place_conditions(table: Table, asked: Iterable[Condition], found: Iterable[PublicKeys]) -> FrontConditions:
    """Return, for each table, the conditions on its columns alone that are implied, and the public keys of its rows."""
    asked, found = tuple(asked), tuple(found)

    def hand_on(there: Table, names: dict[str, str]) -> FrontConditions:
        implied = join_all(_imply(one, table, names) for one in asked)
        keys = [replace(one, column=names[one.column]) for one in found if one.column in names]
        return _place_conditions(there, _rename(implied.list_conjuncts(), names), keys)

    if table.members:
        of_members = (hand_on(one.table, {named: own for own, named in one.columns}) for one in table.members)
        return FrontConditions(members=tuple(of_members))
    brought = {} if table.path is None else {here: there for there, here in table.path.added_columns}
    names = _list_own_columns(table)
    own = join_all(_imply(one, table, names) for one in asked)
    of_own = tuple(one for one in found if one.column in names)
    return FrontConditions(own, of_own, path=None if table.path is None else hand_on(table.path.table, brought))


def _list_own_columns(table: Table) -> frozenset[str]:
    """Return the columns of a row that are stored in its own table, before its path adds others."""
    reached = () if table.path is None else (*table.unit, *(here for _, here in table.path.added_columns))
    return frozenset(column.name for column in table.columns).difference(reached)


def _rename(asked: Iterable[Condition], names: Mapping[str, str]) -> list[Condition]:
    """Return the conditions with their columns renamed."""

    def rename_term(term: RowTerm) -> RowTerm:
        if term.reads_stored:
            return replace(term, value=names[str(term.value)])
        return replace(term, arguments=tuple(map(rename_term, term.arguments)))

    def rename_column(name: str) -> str:
        if not isinstance(name, ComputedName):
            return names[name]
        assert isinstance(name.column.derivation, Computed), "see _is_null_of_null"
        return ComputedName.from_column(
            replace(name.column, derivation=Computed(rename_term(name.column.derivation.term)))
        )

    def rename(leaf: Leaf) -> Condition:
        return replace(leaf, column=rename_column(leaf.column))

    return [one.map_leaves(rename) for one in asked]


def _list_bases(condition: Condition) -> frozenset[str]:
    """Return the columns that a condition reads. A computed column is replaced by those from which it is computed."""
    read = find_columns(condition)
    computed = [one.column.derivation for one in read if isinstance(one, ComputedName)]
    bases = (one.term.columns for one in computed if isinstance(one, Computed))
    return frozenset(one for one in read if not isinstance(one, ComputedName)).union(*bases)
