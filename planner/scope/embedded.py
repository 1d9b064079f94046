"""The parts of a statement that Keyhole answers: questions, monitors, and the relations under `keyhole.`."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from sqlglot import exp

from planner.catalog.catalog import Column, StoredParameter, Table
from planner.catalog.key_space import WHOLE_TABLE
from planner.errors import KeyholeError
from planner.parser.edits import Origin
from planner.question.condition import Condition
from planner.question.question import OwnOrder, ValueKind
from planner.scope.key_classes import stored_key
from planner.scope.name_resolution import JoinedTable, Scope, UnitTable


@dataclass(frozen=True, slots=True)
class Predicate:
    """A formula of thresholds that a question shows or sorts by, as it was written: a column of its answer.

    `name` is the one that the select list gives it where it is a whole item, else "".
    """

    text: str
    name: str
    tree: exp.Expr = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RankedExpression:
    """The ranking of a question's keys and the number of returned ones, as it was written; `limit` None: all.

    The first `offset` of these are passed over. Those with equal values of the keys in `partition` are ranked among
    themselves. With `any_cut` the places are cut elsewhere, too, and with `every_row` keys beyond the limit are rows.
    Unless it is `alone`, text around the question reads the places: windows, DISTINCT ON or OFFSET.
    """

    tree: exp.Expr
    descending: bool
    limit: exp.Expr | None
    offset: exp.Expr | None = None
    partition: tuple[str, ...] = ()
    any_cut: bool = False
    every_row: bool = False
    alone: bool = True

    @property
    def cuts(self) -> tuple[exp.Expr, ...]:
        """The expressions that cut it."""
        return tuple(one for one in (self.limit, self.offset) if one is not None)


@dataclass(frozen=True, slots=True)
class ToldNumber:
    """The meaning of a number's column: `kind`, and in words its fact about every group ("at least 501").

    `item` is its place in the select list. Every group has the `bound`, or the one of `edges` at the number of
    predicates that are as `reached` says. Unless it `is_plain`, PostgreSQL alone can run what stands around that.
    """

    name: str
    item: int
    kind: Literal["null", "threshold", "bands"]
    words: str = ""
    is_plain: bool = True
    bound: Decimal | None = None
    edges: tuple[Decimal | None, ...] = ()
    reached: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class ToldNumbers:
    """The meaning of an answer's columns of numbers, by column; `unsorted` are those that ORDER BY names in vain.

    `chosen` is the setting that was in force. `banded` are the columns whose band could be shown, and `provable` those
    of which HAVING proves a bound.
    """

    chosen: str
    columns: tuple[ToldNumber, ...] = ()
    unsorted: tuple[str, ...] = ()
    banded: tuple[str, ...] = ()
    provable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownKey:
    """One item of GROUP BY as it is shown: `sql` over the columns of the answer; "" for a key as it stands.

    `name` is what an answer calls it, `text` its `known_text`, and `reads` are the places of the keys that decide it.
    """

    name: str
    sql: str
    text: str
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownKeys:
    """The items of GROUP BY in their order, and what stands before and behind the answer for their SQL to read it."""

    items: tuple[ShownKey, ...]
    before: str
    behind: str


PLACE = "place in ranking"
"""The column of a ranking's answer that has the place of each key, counted from 1 in each partition."""


def predicate_column(number: int) -> str:
    """Return the name of a predicate's column in ledger and shadow, by its number, counted from 0."""
    return f"predicate {number + 1}"


@dataclass(frozen=True, slots=True)
class Embedded:
    """A question inside a statement: SELECT ... FROM ... HAVING, without what orders or cuts its answer.

    `offset` is where `text` starts in the statement as Keyhole reads it, 0-based. `tree` is its SELECT, the first of a
    set operation, with positions in that statement, before which `shift` characters stand. `alias` is the name that
    qualifies the table's columns. `stored` is the stored question's name if the text is the owner's, and `parameters`
    are its own. `joined` are the two sides where the text is a set operation between questions that are answered as
    one. `looked_up` are the public tables that are joined to `table`, which has their columns; `members` the private
    ones that it joins. With `per_unit` the question reads a subquery that gives one row per privacy unit and key, and
    `table` has its columns. `origin` tells where its characters stood in the statement as it was written, if rules
    have rewritten that. Without HAVING it lists the public values of its keys, and `unless_public` is its refusal if it
    turns out to say something of rows. With `predicates` its answer has a column of truths for each. With `ranked` it
    returns the first few keys in their order, and `text` goes on to what cuts them. `declared` is the table with what
    the owner declares for groupings, if WHERE may narrow its bounds. `numbers` are the sizes that its select list
    shows, and what stands in their columns. `shown_keys` are its keys as they are shown, if some are computed. `lists`
    are the lists of privacy units that its WHERE asks for, and `own` the subqueries whose values it reads; `conditions`
    are, once these are resolved, what it asks of rows beside its WHERE.
    """

    text: str
    offset: int
    table: Table
    alias: str
    keys: tuple[Column, ...]
    stored: str | None
    joined: "Joined | None" = None
    parameters: tuple[StoredParameter, ...] = ()
    looked_up: tuple[JoinedTable, ...] = ()
    members: tuple[UnitTable, ...] = ()
    per_unit: "UnitQuery | None" = None
    origin: Origin | None = None
    shift: int = 0
    unless_public: KeyholeError | None = field(default=None, compare=False)
    predicates: tuple[Predicate, ...] = ()
    ranked: RankedExpression | None = field(default=None, compare=False)
    declared: Table | None = field(default=None, compare=False, repr=False)
    numbers: ToldNumbers | None = None
    lists: "tuple[tuple[UnitListQuery, ...], ...]" = ()
    own: "tuple[UnitValuesQuery, ...]" = ()
    conditions: tuple[tuple[exp.Expr, Condition], ...] = field(default=(), compare=False, repr=False)
    shown_keys: ShownKeys | None = field(default=None, compare=False)
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)

    @property
    def scope(self) -> Scope:
        """Return the scope of names in the question."""
        listed = None if self.per_unit is None else self.per_unit.listed
        return Scope(table=self.table, alias=self.alias, joined=self.looked_up, listed=listed, members=self.members)

    @property
    def trees(self) -> tuple[exp.Expr, ...]:
        """All that was read of it: its SELECT without what orders and cuts the answer, and what of that it asks for."""
        ranked = () if self.ranked is None else (self.ranked.tree,)
        return (self.tree, *(predicate.tree for predicate in self.predicates), *ranked)

    @property
    def all_trees(self) -> tuple[exp.Expr, ...]:
        """`trees`, and those of the subquery that gives one row per unit and of what cuts a ranking."""
        cut = () if self.ranked is None else self.ranked.cuts
        return (*self.trees, *cut, *(() if self.per_unit is None else (self.per_unit.tree,)))

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and declared type of each column of the answer, in the key space's order.

        Classes of a key's values are answered by that key, with one value of each class. A table that is one group has
        one column, that it passes. The place in a ranking comes behind, and predicates last.
        """
        keys = tuple((stored_key(key, self.table.columns).name, key.declared) for key in self.keys)
        truths = tuple((predicate_column(number), "boolean") for number in range(len(self.predicates)))
        place = () if self.ranked is None else ((PLACE, "integer"),)
        return (keys or ((WHOLE_TABLE, "boolean"),)) + place + truths

    @property
    def predicate_names(self) -> tuple[str, ...]:
        """Return the readable name of each predicate: the one that was given to it if no other column has it."""
        taken = {name for name, _ in self.columns}
        names: list[str] = []
        for number, predicate in enumerate(self.predicates):
            names.append(predicate.name if predicate.name not in ("", *taken) else predicate_column(number))
            taken.add(names[-1])
        return tuple(names)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that have rewritten its statement, by the order in which each first did."""
        return () if self.origin is None else tuple(dict.fromkeys(self.origin.rules))

    def shift_by(self, *, offset: int) -> "Embedded":
        """Return the same question in a longer text that starts `offset` characters earlier."""
        return replace(self, shift=self.shift + offset)

    def place_error(self, error: KeyholeError) -> KeyholeError:
        """Return a refusal of this question, pointing into the text that holds its statement."""
        written = error if self.origin is None else self.origin.place_error(error)
        return written.shift_position(offset=self.shift)

    def is_all_of(self, statement: str) -> bool:
        """Return True if the statement is this question and nothing around it."""
        return self.text == (statement if self.origin is None else self.origin.text.strip())


@dataclass(frozen=True, slots=True)
class UnitQuery:
    """A subquery that gives one row per privacy unit and key, in the FROM of a question or in a WITH query.

    `text` is its SELECT, which starts at `offset` in the statement, and `tree` that as it was read. It reads `table`
    under the name `alias` and groups by `groups`. `listed` are the names of its columns, each with the column of the
    question's table that it is.
    `alone` if the statement is a question behind one WITH query and nothing else. `conditions`, once it is resolved,
    are what it says of whole units: of its groups in WHERE, of totals in HAVING. `composed` are expressions of totals
    as they are written, each with its name in the subquery. `declared` is the table with what the owner declares for
    groupings.
    """

    text: str
    offset: int
    table: Table
    alias: str
    groups: tuple[Column, ...]
    listed: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...] = ()
    alone: bool = False
    composed: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    declared: Table | None = field(default=None, compare=False, repr=False)
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnitListQuery:
    """A list of privacy units that a question's WHERE asks for: those with a row of `table` that satisfies `rows`.

    With `totals` they are those with a group of such rows, by the columns `groups`, of which that holds. `of_none` says
    that a unit without rows has one group, of none. `alias` is the name of the table in the subquery `tree`. If the
    list is `absent`, units are meant that are not on it. `by` and `compared` are those of `UnitList`.
    """

    table: Table
    alias: str
    rows: tuple[exp.Expr, ...] = field(compare=False, repr=False)
    absent: bool
    groups: tuple[str, ...] = ()
    totals: exp.Expr | None = field(default=None, compare=False, repr=False)
    of_none: bool = False
    by: tuple[tuple[str, str], ...] = ()
    compared: tuple[str, str, str] | None = None
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AskedValue:
    """A value of one unit's rows that a question reads, as the column `name` of its table: see `OwnValue`."""

    name: str
    kind: ValueKind
    column: str | None
    filter: exp.Expr | None = field(compare=False, repr=False)
    order: tuple[OwnOrder, ...] = ()
    steps: int = 1


@dataclass(frozen=True, slots=True)
class UnitValuesQuery:
    """A subquery with a row for each privacy unit that has rows of `table` that satisfy `rows`: these rows' `values`.

    `alias` is the name of that table in the subquery `tree`. The value `present` is NULL for a unit without such rows,
    whose rows are in no answer; None where there is no such unit, or where a LEFT JOIN keeps its rows. `having` is what
    it asks of values, over columns of the question's table. If it `stays`, the question is about those rows alone, and
    of each unit about the first by the place `first`, if there is one.
    """

    table: Table
    alias: str
    rows: tuple[exp.Expr, ...] = field(compare=False, repr=False)
    values: tuple[AskedValue, ...]
    present: str | None
    having: exp.Expr | None = field(compare=False, repr=False)
    stays: bool = False
    first: str | None = None
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Joined:
    """A set operation without ALL between two questions of one table with the same keys."""

    operation: Literal["union", "intersect", "except"]
    left: Embedded
    right: Embedded


def leaves(embedded: Embedded) -> Iterator[Embedded]:
    """Yield the question itself, or the sides of its set operations, from left to right."""
    if embedded.joined is None:
        yield embedded
    else:
        yield from leaves(embedded.joined.left)
        yield from leaves(embedded.joined.right)


@dataclass(frozen=True, slots=True)
class EmbeddedVirtual:
    """A relation under `keyhole.` inside a statement, or a monitor's; Keyhole supplies its rows at run time.

    `monitor_at`: of a monitor, where its name stands in the statement, 1-based.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    monitor_at: int | None = None
