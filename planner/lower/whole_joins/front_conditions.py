"""Conditions of WHERE, asked of the rows of one table before these are joined.

    SELECT n_name FROM customer JOIN orders ON ... JOIN lineitem ON ...
    WHERE o_orderdate >= '1994-01-01' AND o_orderdate < '1995-01-01' GROUP BY n_name HAVING ...

Six million lines meet the orders of one year, and not those of seven.

Guarantee: a row is left out in front of a join only if WHERE, which is asked behind it all the same, would leave out
every joined row that it is in. What is left is never nothing: one row more, with NULL in all columns but keys of the
join, is dropped by WHERE, as each condition here rejects a row of NULL.

References: docs/decisions/0041-whole-joins.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.catalog.model import Column, Computed, ComputedName, Derivation, SqlType, Table, Value
from planner.catalog.row_terms import RowTerm
from planner.lower.domain import LONGEST_LIST
from planner.lower.key_tests import pair_keys
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import add_anybody
from planner.question.condition import ALWAYS, Compare, Condition, Leaf, Within, all_of, columns, evaluate
from planner.question.model import Question


@dataclass(frozen=True, slots=True)
class FrontConditions:
    """Conditions on a table's stored rows, which are asked before these are joined, in the table's own names.

    `path` is what is asked of the table to which its path leads, `members` of those that it joins, by place.
    """

    own: Condition = ALWAYS
    path: "FrontConditions | None" = None
    members: tuple["FrontConditions", ...] = ()

    def __bool__(self) -> bool:
        """Return True if something is asked."""
        return self.own != ALWAYS or bool(self.path) or any(self.members)

    def of_path(self) -> "FrontConditions":
        """Return the conditions on the table to which the path leads."""
        return self.path or NOTHING

    def of_member(self, place: int) -> "FrontConditions":
        """Return the conditions on a joined table."""
        return self.members[place] if self.members else NOTHING


NOTHING = FrontConditions()
_STRICT = frozenset(("column", "stored", "constant", "=", "<", "= by", "< by"))
"""Functions of a row that are NULL where an argument is."""
_ORDERED = (SqlType.INTEGER, SqlType.DATE, SqlType.TIMESTAMP)


def split_front(question: Question) -> FrontConditions:
    """Return the parts of WHERE, and of the values of keys, that one of the tables can be asked by itself.

    Parameters:
        question: one whose rows that WHERE does not keep decide about nothing.
    """
    table = question.table
    if table.own:
        return NOTHING  # a window reads all rows of a unit
    asked = [one for one in question.where.conjuncts() if _rejects_null(one, table)]
    asked += [one for column, values in pair_keys(question) for one in _restrict(column, values)]
    return _place(table, asked)


def ask_rows(row: RowSql, asked: Condition, *, shown: Sequence[str], keys: Sequence[str]) -> tuple[str, list[str]]:
    """Return a table's rows that satisfy a condition as a relation, and one row that is nobody's; and its keys' names.

    Parameters:
        shown: the columns that are carried on, as SQL.
        keys: the columns that it is joined by: of these the row has values, of others NULL.
    """
    names = [f"keyhole_b{i}" for i in range(len(keys))]
    read = [f"{row.column(key)} AS {name}" for key, name in zip(keys, names, strict=True)]
    where = "" if asked == ALWAYS else f" WHERE {row.holds(asked)}"
    rows = f"SELECT {', '.join([*read, *shown])} FROM {row.table.relation}{where}"
    columns_met = [row.table.column(key) for key in keys]
    return f"({add_anybody(rows, columns_met, beside=len(shown), dialect=row.dialect)}) AS asked", names


def _restrict(column: Column, values: Sequence[Value]) -> list[Condition]:
    """Return what rows with these values of a stored key satisfy; nothing if they are all that are public."""
    if column.derivation is not None or column.domain is None or not 0 < len(values) < len(column.domain):
        return []
    if len(values) <= LONGEST_LIST:
        return [Within(column.name, tuple(values))]
    ordered = sorted(values) if column.sql_type in _ORDERED else []
    return [Compare(column.name, ">=", ordered[0]), Compare(column.name, "<=", ordered[-1])] if ordered else []


def _rejects_null(condition: Condition, table: Table) -> bool:
    """Return True of a condition on stored values that does not hold where all of them are NULL."""
    read = columns(condition)
    strict = all(_is_null_of_null(table.column(name)) for name in table.with_bases(read))
    return bool(read) and strict and evaluate(condition, dict.fromkeys(read)) is not True


def _is_null_of_null(column: Column) -> bool:
    """Return True of a column that is stored, or computed of stored ones and NULL where one of these is."""
    match column.derivation:
        case None | Derivation():
            return not column.own
        case Computed(term):
            return _is_strict(term)
        case _:
            return False


def _is_strict(term: RowTerm) -> bool:
    return term.function in _STRICT and all(map(_is_strict, term.arguments))


def _place(table: Table, asked: Iterable[Condition]) -> FrontConditions:
    """Give each condition to the table that has all its columns, and leave out what none has."""
    asked = tuple(asked)
    if table.members:
        return FrontConditions(
            members=tuple(
                _place(member.table, _rename(asked, {named: own for own, named in member.columns}))
                for member in table.members
            )
        )
    if table.path is None:
        return FrontConditions(own=all_of(asked))
    brought = {here: there for there, here in table.path.brought}
    reached = {*brought, *table.unit}
    own = all_of(one for one in asked if not _list_bases(one) & reached)
    return FrontConditions(own=own, path=_place(table.path.table, _rename(asked, brought)))


def _rename(asked: Iterable[Condition], names: dict[str, str]) -> list[Condition]:
    """Return the conditions on columns with these names alone, by the names that stand for them."""

    def rename_term(term: RowTerm) -> RowTerm:
        if term.reads_stored:
            return replace(term, value=names[str(term.value)])
        return replace(term, arguments=tuple(map(rename_term, term.arguments)))

    def rename_column(name: str) -> str:
        if not isinstance(name, ComputedName):
            return names[name]
        assert isinstance(name.column.derivation, Computed), "see _is_null_of_null"
        return ComputedName.of(replace(name.column, derivation=Computed(rename_term(name.column.derivation.term))))

    def rename(leaf: Leaf) -> Condition:
        return replace(leaf, column=rename_column(leaf.column))

    return [one.mapped(rename) for one in asked if _list_bases(one) <= names.keys()]


def _list_bases(condition: Condition) -> frozenset[str]:
    """Return the columns that a condition reads: of a computed one those of which it is computed."""
    read = columns(condition)
    computed = [one.column.derivation for one in read if isinstance(one, ComputedName)]
    bases = (one.term.columns for one in computed if isinstance(one, Computed))
    return frozenset(one for one in read if not isinstance(one, ComputedName)).union(*bases)
