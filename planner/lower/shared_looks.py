"""Looks of several standing questions at one table as one statement.

Guarantee: each question's functionals have the same integers as in the question's own statement. Questions are joined
if table, keys, windows, bounding and the moment of the look are the same, so the same rows, groups and units count. If
their WHERE clauses differ, each becomes a condition of its question's sums, where it is tested anyway after groups are
chosen.

References: docs/proofs/units_over_a_horizon.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mechanisms.formula import TRUE
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.functionals.functional_identity import identify_sum
from planner.lower.dialects.dialect import Dialect
from planner.lower.functional import FunctionalSql, join_conditions
from planner.lower.joins import join_lookups, join_members
from planner.lower.row import RowSql
from planner.question.condition import ALWAYS
from planner.question.question import Functional, Question
from planner.question.row_work import are_expensive

MOST_SHARED = 64
"""The most functionals of one statement. Each adds work to every row, and with this many a hundred standing questions
take only a few scans."""


@dataclass(frozen=True, slots=True)
class SharedLook:
    """Several questions joined into one question, which one statement answers.

    `places` has a pair for each of them: its index among the given questions, and the indices of its functionals among
    those of `question`, in their order.
    """

    question: Question
    places: tuple[tuple[int, tuple[int, ...]], ...]


def share_scans(questions: Sequence[Question], *, dialect: Dialect) -> tuple[SharedLook, ...]:
    """Join the looks of several questions into few statements. Each question is in one of them.

    Questions over a subquery per unit are joined only if the subquery and WHERE are the same. A statement has at most
    `MOST_SHARED` functionals, unless one question has more. Questions are not joined if their work on a row together
    exceeds the limit of a single question.
    """
    groups: list[_Group] = []
    for number, question in enumerate(questions):
        alone = _Group.from_question(number, question, dialect)
        for i, group in enumerate(groups):
            together = group.join(alone)
            if together is not None:
                groups[i] = together
                break
        else:
            groups.append(alone)
    return tuple(group.make_look() for group in groups)


@dataclass(frozen=True, slots=True)
class _Group:
    """Questions that are answered together.

    `moved` has each one's functionals with WHERE added to their conditions, or None if that might change their bounds.
    """

    table: Table
    members: tuple[tuple[int, Question], ...]
    moved: tuple[tuple[Functional, ...] | None, ...]

    @staticmethod
    def from_question(number: int, question: Question, dialect: Dialect) -> "_Group":
        return _Group(question.table, ((number, question),), (_move_where(question, dialect),))

    def join(self, other: "_Group") -> "_Group | None":
        """Return both groups as one statement, or None if they cannot be joined."""
        first, second = self.members[0][1], other.members[0][1]
        if (first.keys, first.per_unit) != (second.keys, second.per_unit):
            return None
        if (first.as_of, first.in_time) != (second.as_of, second.in_time):
            return None
        table = _unite_columns(self.table, other.table)
        if table is None:
            return None
        together = _Group(table, (*self.members, *other.members), (*self.moved, *other.moved))
        return together if together.fits_statement() else None

    @property
    def has_one_where(self) -> bool:
        """True if all questions have the same WHERE, which then stays where it is."""
        return all(question.where == self.members[0][1].where for _, question in self.members)

    def list_functionals(self) -> Iterator[tuple[int, tuple[Functional, ...]]]:
        """Yield each question's functionals, as they are in the statement."""
        for (number, question), moved in zip(self.members, self.moved, strict=True):
            yield number, question.functionals if self.has_one_where or moved is None else moved

    def fits_statement(self) -> bool:
        """Return True if the questions may be one statement."""
        if not self.has_one_where and None in self.moved:
            return False
        look = self.make_look()
        if len(look.question.functionals) > MOST_SHARED:
            return False
        where = look.question.where
        try:
            are_expensive(
                (where, *(condition for f in look.question.functionals for condition in f.conditions)), self.table
            )
        except KeyholeError:
            return False
        return True

    def make_look(self) -> SharedLook:
        """Return the questions as one, in which equal sums are computed once."""
        places: dict[str, int] = {}
        found: list[Functional] = []
        standing = []
        for number, functionals in self.list_functionals():
            for one in functionals:
                if places.setdefault(identify_sum(one), len(found)) == len(found):
                    found.append(one)
            standing.append((number, tuple(places[identify_sum(one)] for one in functionals)))
        first = self.members[0][1]
        question = replace(
            first,
            table=self.table,
            where=first.where if self.has_one_where else ALWAYS,
            functionals=tuple(found),
            atoms=(),
            formula=TRUE,
            predicates=(),
            predicate_names=(),
            publicly_false_keys=(),
            publicly_null_keys=(),
            null_predicates=(),
            ranked=None,
        )
        return SharedLook(question, tuple(standing))


def _move_where(question: Question, dialect: Dialect) -> tuple[Functional, ...] | None:
    """Return the functionals with WHERE added to the conditions of their terms.

    Return None if the ranges of the summands, which follow from conditions, might become wider than they were.
    """
    if question.where == ALWAYS:
        return question.functionals
    if question.per_unit is not None:
        return None
    known = question.table
    row = RowSql(table=join_lookups(join_members(known, dialect=dialect), dialect=dialect), dialect=dialect)
    moved = tuple(
        one.map_conditions(lambda condition: join_conditions(question.where, condition)) for one in question.functionals
    )
    try:
        for one in moved:
            FunctionalSql.from_functional(row, one, where=ALWAYS, among=ALWAYS, known=known)
    except KeyholeError:
        return None
    return moved


def _unite_columns(one: Table, other: Table) -> Table | None:
    """Return the table with the columns of both, or None if they differ in anything else."""
    if one == other:
        return one
    if replace(one, columns=()) != replace(other, columns=()):
        return None
    by_name = {column.name: column for column in one.columns}
    if any(by_name.get(column.name, column) != column for column in other.columns):
        return None
    return replace(one, columns=(*one.columns, *(c for c in other.columns if c.name not in by_name)))
