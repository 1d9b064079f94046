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
from planner.scope.key_classes import find_stored_key
from planner.scope.name_resolution import JoinedTable, Scope, UnitTable


@dataclass(frozen=True, slots=True)
class Predicate:
    """A formula of thresholds that a question shows or sorts by, as it was written. It becomes a column of the answer.

    `name` is the name that the select list gives it as a whole item, else "".
    """

    text: str
    name: str
    tree: exp.Expr = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RankedExpression:
    """The ranking of a question's keys and the number of returned keys, as written; `limit` None returns all.

    The first `offset` keys are skipped. Keys with equal values of the keys in `partition` are ranked among themselves.
    If it `is_cut_elsewhere`, another part of the statement also drops ranks. If it `returns_all_rows`, keys beyond the
    limit are rows of the answer, too. Unless it `is_self_contained`, the statement outside the question reads the
    ranks: by windows, DISTINCT ON or OFFSET. NULL, if another group is missing, stands first if `puts_nulls_first`.
    """

    tree: exp.Expr
    descending: bool
    limit: exp.Expr | None
    offset: exp.Expr | None = None
    partition: tuple[str, ...] = ()
    is_cut_elsewhere: bool = False
    returns_all_rows: bool = False
    is_self_contained: bool = True
    puts_nulls_first: bool = False

    @property
    def limit_expressions(self) -> tuple[exp.Expr, ...]:
        """The expressions of the ranking's limit and offset."""
        return tuple(one for one in (self.limit, self.offset) if one is not None)


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """The content of a column that asks for a number. `kind` names it, and `words` say what holds for every group.

    `words` may be "at least 501". `item` is its place in the select list. The value for a group is `bound`, or one of
    `edges`: the one whose index is the number of predicates that are as `predicate_values` says. Unless it `is_plain`,
    only PostgreSQL can evaluate the expression around that value.
    """

    name: str
    item: int
    kind: Literal["null", "threshold", "bands"]
    words: str = ""
    is_plain: bool = True
    bound: Decimal | None = None
    edges: tuple[Decimal | None, ...] = ()
    predicate_values: tuple[tuple[int, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class NumberColumns:
    """The content of an answer's number columns. `unsorted_columns` are those by which ORDER BY cannot sort.

    `setting` is the value of `keyhole.numbers` that was in force. `banded_columns` are the columns whose band could be
    shown, and `provable_columns` those for which HAVING proves a bound.
    """

    setting: str
    columns: tuple[NumberColumn, ...] = ()
    unsorted_columns: tuple[str, ...] = ()
    banded_columns: tuple[str, ...] = ()
    provable_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShownKey:
    """One item of GROUP BY as it is shown: `sql` over the columns of the answer, or "" for a plain key.

    `name` is its name in the answer, `text` its identity as `write_identity` gives it, and `key_places` are the places
    of the keys that determine it.
    """

    name: str
    sql: str
    text: str
    key_places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownKeys:
    """The items of GROUP BY in order, and the text before and after the answer that their SQL needs."""

    items: tuple[ShownKey, ...]
    prefix: str
    suffix: str


RANK_COLUMN = "place in ranking"
"""The column of a ranking's answer that has the place of each key, counted from 1 in each partition."""


def name_predicate_column(number: int) -> str:
    """Return the name of a predicate's column in ledger and shadow, by its number, counted from 0."""
    return f"predicate {number + 1}"


@dataclass(frozen=True, slots=True)
class EmbeddedQuestion:
    """A question inside a statement: SELECT ... FROM ... HAVING, without ORDER BY and LIMIT of its answer.

    `offset` is the start of `text` in the statement as Keyhole reads it, 0-based. `tree` is its SELECT, or the first of
    a set operation; its positions are in that statement, before which there are `offset_before` characters. `alias`
    qualifies the table's columns. If the text is a stored question of the owner, `stored_question` is its name, and
    `parameters` are its parameters. `set_operation` has two sides if the text is a set operation of questions that is
    answered as one. `public_tables` are joined to `table`, which has their columns; `members` are the private tables
    that it joins. With a `unit_query` the question reads a subquery with one row per privacy unit and key, and `table`
    has its columns. `origin` gives the original places of its characters if rules have rewritten the statement.

    Without HAVING it lists the public values of its keys. `domain_refusal` is its refusal if it turns out to depend on
    rows. Each of `predicates` is a boolean column of the answer. If it is `ranked`, it returns the first few keys in
    order, and `text` includes the clauses that cut them. `declared_table` is the table with the owner's groupings, if
    WHERE may narrow its bounds. `numbers` are the number columns of its select list. `shown_keys` are its keys as they
    are shown, if some are computed. `unit_lists` are the lists of privacy units in its WHERE, and `unit_values` the
    subqueries whose values it reads. Once these are resolved, `conditions` are further conditions on its rows, besides
    WHERE.
    It `has_calendar` if the statement lists its groups, so that PostgreSQL has those without rows, too. It
    `has_zoned_calendar` if such a list is a series of times by the session's TimeZone.
    """

    text: str
    offset: int
    table: Table
    alias: str
    keys: tuple[Column, ...]
    stored_question: str | None
    set_operation: "SetOperation | None" = None
    parameters: tuple[StoredParameter, ...] = ()
    public_tables: tuple[JoinedTable, ...] = ()
    members: tuple[UnitTable, ...] = ()
    unit_query: "UnitQuery | None" = None
    origin: Origin | None = None
    offset_before: int = 0
    domain_refusal: KeyholeError | None = field(default=None, compare=False)
    predicates: tuple[Predicate, ...] = ()
    ranked: RankedExpression | None = field(default=None, compare=False)
    declared_table: Table | None = field(default=None, compare=False, repr=False)
    numbers: NumberColumns | None = None
    unit_lists: "tuple[tuple[UnitListQuery, ...], ...]" = ()
    unit_values: "tuple[UnitValuesQuery, ...]" = ()
    conditions: tuple[tuple[exp.Expr, Condition], ...] = field(default=(), compare=False, repr=False)
    shown_keys: ShownKeys | None = field(default=None, compare=False)
    has_calendar: bool = field(default=False, compare=False)
    has_zoned_calendar: bool = field(default=False, compare=False)
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)

    @property
    def scope(self) -> Scope:
        """The scope of names in the question."""
        listed = None if self.unit_query is None else self.unit_query.column_names
        return Scope(
            table=self.table,
            alias=self.alias,
            public_tables=self.public_tables,
            subquery_columns=listed,
            members=self.members,
        )

    @property
    def trees(self) -> tuple[exp.Expr, ...]:
        """The parsed parts of the question: its SELECT without ORDER BY and LIMIT, its predicates, and its ranking."""
        ranked = () if self.ranked is None else (self.ranked.tree,)
        return (self.tree, *(predicate.tree for predicate in self.predicates), *ranked)

    @property
    def all_trees(self) -> tuple[exp.Expr, ...]:
        """The parsed parts in `trees`, in a ranking's limit and offset, and in the subquery with one row per unit."""
        cut = () if self.ranked is None else self.ranked.limit_expressions
        return (*self.trees, *cut, *(() if self.unit_query is None else (self.unit_query.tree,)))

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The name and declared type of each column of the answer, in the key space's order.

        Classes of a key's values are answered by that key, with one value of each class. A table that is one group has
        one column, which says that it passes. The place in a ranking follows, and the predicates come last.
        """
        keys = tuple((find_stored_key(key, self.table.columns).name, key.declared) for key in self.keys)
        truths = tuple((name_predicate_column(number), "boolean") for number in range(len(self.predicates)))
        place = () if self.ranked is None else ((RANK_COLUMN, "integer"),)
        return (keys or ((WHOLE_TABLE, "boolean"),)) + place + truths

    @property
    def predicate_names(self) -> tuple[str, ...]:
        """The readable name of each predicate: its column name, unless another column has the same name."""
        taken = {name for name, _ in self.columns}
        names: list[str] = []
        for number, predicate in enumerate(self.predicates):
            names.append(predicate.name if predicate.name not in ("", *taken) else name_predicate_column(number))
            taken.add(names[-1])
        return tuple(names)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that have rewritten the statement, in the order of their first use."""
        return () if self.origin is None else tuple(dict.fromkeys(self.origin.rules))

    def shift_by(self, *, offset: int) -> "EmbeddedQuestion":
        """Return the question for a longer text in which its text starts `offset` characters later."""
        return replace(self, offset_before=self.offset_before + offset)

    def place_error(self, error: KeyholeError) -> KeyholeError:
        """Return a refusal of this question with its position in the whole statement."""
        written = error if self.origin is None else self.origin.place_error(error)
        return written.shift_position(offset=self.offset_before)

    def is_whole_statement(self, statement: str) -> bool:
        """Return True if the statement is this question, without any text before or after it."""
        return self.text == (statement if self.origin is None else self.origin.text.strip())


@dataclass(frozen=True, slots=True)
class UnitQuery:
    """A subquery that gives one row per privacy unit and key, in the FROM of a question or in a WITH query.

    `text` is its SELECT, which starts at `offset` in the statement, and `tree` the parsed SELECT. It reads `table`
    under the name `alias` and groups by `groups`. `column_names` maps the names of its columns to columns of the
    question's table. It `is_only_query` if the statement is a question after one WITH query and nothing else. Once it
    is resolved, `conditions` are its conditions on whole units: on its groups in WHERE, on totals in HAVING.
    `total_expressions` are expressions of totals as written, each with its name in the subquery. `declared_table` is
    the table with the owner's groupings.
    """

    text: str
    offset: int
    table: Table
    alias: str
    groups: tuple[Column, ...]
    column_names: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...] = ()
    is_only_query: bool = False
    total_expressions: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    declared_table: Table | None = field(default=None, compare=False, repr=False)
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnitListQuery:
    """A list of privacy units in a question's WHERE: the units with a row of `table` that satisfies `rows`.

    With `totals`, a unit is on the list if one of its groups of such rows, by the columns `groups`, has totals that
    satisfy the condition `totals`. If it `counts_empty_units`, a unit without rows has one empty group. `alias` is the
    name of the table in the subquery `tree`. If the list `is_negated`, it has all other units. `key_columns` and
    `comparison` are those of `UnitList`.
    """

    table: Table
    alias: str
    rows: tuple[exp.Expr, ...] = field(compare=False, repr=False)
    is_negated: bool
    groups: tuple[str, ...] = ()
    totals: exp.Expr | None = field(default=None, compare=False, repr=False)
    counts_empty_units: bool = False
    key_columns: tuple[tuple[str, str], ...] = ()
    comparison: tuple[str, str, str] | None = None
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnitValue:
    """A value of one unit's rows that a question reads, as the column `name` of its table: see `OwnValue`."""

    name: str
    kind: ValueKind
    column: str | None
    filter: exp.Expr | None = field(compare=False, repr=False)
    order: tuple[OwnOrder, ...] = ()
    steps: int = 1


@dataclass(frozen=True, slots=True)
class UnitValuesQuery:
    """A subquery with a row of `values` for each privacy unit that has rows of `table` that satisfy `rows`.

    `alias` is the name of that table in the subquery `tree`. The value named `presence_value` is NULL for a unit
    without such rows, whose rows are in no answer. `presence_value` is None if no unit lacks such rows, or if a LEFT
    JOIN keeps its rows. `having` is a condition on the values, over columns of the question's table. If it
    `keeps_rows`, the question is about those rows alone. If there is a place `rank_value`, it is about the first of
    them for each unit.
    """

    table: Table
    alias: str
    rows: tuple[exp.Expr, ...] = field(compare=False, repr=False)
    values: tuple[UnitValue, ...]
    presence_value: str | None
    having: exp.Expr | None = field(compare=False, repr=False)
    keeps_rows: bool = False
    rank_value: str | None = None
    tree: exp.Select = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SetOperation:
    """A set operation without ALL between two questions about one table with the same keys."""

    operation: Literal["union", "intersect", "except"]
    left: EmbeddedQuestion
    right: EmbeddedQuestion


def list_leaves(embedded: EmbeddedQuestion) -> Iterator[EmbeddedQuestion]:
    """Yield the question itself, or the sides of its set operations, from left to right."""
    if embedded.set_operation is None:
        yield embedded
    else:
        yield from list_leaves(embedded.set_operation.left)
        yield from list_leaves(embedded.set_operation.right)


@dataclass(frozen=True, slots=True)
class EmbeddedRelation:
    """A relation under `keyhole.` inside a statement, or a monitor's. Keyhole supplies its rows at run time.

    `monitor_position` is the 1-based position of a monitor's name in the statement.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    monitor_position: int | None = None
