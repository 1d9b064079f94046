"""FROM and JOIN of a question: its private table, extended by the columns of the public tables that are joined to it.

Private tables are joined with each other along the keys by which rows find their privacy unit (`path_join`), or on all
columns of that unit, where the owner promises that these name the same people (`unit_join`). The result is the
question's table. A public table is joined by equality with a
column of it that the pinned copy shows to be unique and not NULL, so that every private row finds one public row at
most. Everything else is refused: it could count a row twice.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.bind.bind_refusals import (
    refuse_join_of_types,
    refuse_long_column,
    refuse_repeating_key,
    refuse_several_equalities,
    refuse_unjoined_table,
    refuse_unknown_join_column,
)
from planner.bind.composite_keys import join_by_composite_key
from planner.bind.from_clause import Equality, FromClause, Relation, read_from_clause, split_conjuncts
from planner.bind.lookup_columns import JOINED_TYPES, NotUnique, is_too_long, make_lookup_column, read_unique_values
from planner.bind.unit_equalities import join_private_tables
from planner.bind.unit_lists.find_lists import is_list
from planner.catalog.catalog import Catalog, Column, Lookup, PublicTable, Table
from planner.errors import KeyholeError
from planner.parser.tree import find_position, read_alias, read_name, strip_parentheses
from planner.predicates.condition import read_row_condition
from planner.question.condition import Condition
from planner.scope.name_resolution import JoinedTable, Scope, find_column
from planner.values.constant import ConstantContext


@dataclass(frozen=True, slots=True)
class _JoinKey:
    """A join with a public table: its key, the column of the tables before it, and where that stands.

    With several `column_pairs` of columns that are equal, `public` has a key that stands for all of them.
    """

    public: PublicTable
    key: str
    base: Column
    column_pairs: tuple[tuple[str, str], ...]
    equalities: tuple[Equality, ...]


def read_joins(
    select: exp.Select, node: exp.Table, table: Table, catalog: Catalog, *, beside: Collection[int] = ()
) -> Scope:
    """Return the scope of a question: its table with looked-up columns, and the names in it.

    Parameters:
        beside: the ids of nodes in FROM that are not tables.

    Raises KH107 for a join that could count a row twice. Allowed are many-to-one joins with pinned public tables, and
    joins of private tables along a key or on the privacy unit. Raises KH201, KH213.
    """
    if len(select.args.get("joins") or ()) == len(beside):
        return Scope(table=table, alias=read_alias(node))
    return _ScopeBuilder(select, read_from_clause(select, catalog, beside=beside)).build_scope()


class _ScopeBuilder:
    """The tables of one FROM: first the private ones joined on their unit, then the public ones one after the other."""

    def __init__(self, select: exp.Select, clause: FromClause) -> None:
        self._clause = clause
        self._own = join_private_tables(clause)
        self._done = self._own
        self._mentioned = clause.mentioned_columns | {read_name(column.this) for column in select.find_all(exp.Column)}

    def build_scope(self) -> Scope:
        waiting = [relation for relation in self._clause.relations if relation.public is not None]
        while waiting:
            for relation in waiting:
                found = self._find_join(relation)
                if found is not None:
                    self._join(relation, found)
                    waiting.remove(relation)
                    break
            else:
                raise refuse_unjoined_table(waiting[0].alias, waiting[0].node)
        return self._rename_columns()

    def _find_join(self, relation: Relation) -> _JoinKey | None:
        """Return the key by which the relation joins the tables so far. Return None if it does not yet. Raise KH107."""
        assert relation.public is not None
        own = {relation.alias for relation in self._clause.relations if relation.private is not None}
        reached = own | {joined.alias for joined in self._done.public_tables}
        equalities = (
            self._clause.outer_equalities[relation.alias] if relation.is_outer else self._clause.inner_equalities
        )
        met: list[tuple[str, Column, Equality]] = []
        for equality in equalities:
            left, right = strip_parentheses(equality.left), strip_parentheses(equality.right)
            for key, other in ((left, right), (right, left)):
                owners = self._clause.find_owners(other)
                if not isinstance(key, exp.Column) or self._clause.find_owners(key) != {relation.alias}:
                    continue
                if len(owners) != 1 or not owners <= reached:
                    continue
                base = find_column(other, self._done)
                if base is not None:
                    met.append((read_name(key.this), base, equality))
        return self._choose_key(relation, met, most=len(equalities))

    def _choose_key(
        self, relation: Relation, met: Sequence[tuple[str, Column, Equality]], *, most: int
    ) -> _JoinKey | None:
        """Return the first column that can join a public table, or all of them together. Raise KH107 if there is none.

        Parameters:
            met: columns of the public table, each with the column that it equals and the equality.
            most: the number of equalities. A LEFT JOIN uses all of them.
        """
        assert relation.public is not None
        refusal: KeyholeError | None = None
        for key, base, equality in met if not relation.is_outer or most == 1 else ():
            found = _JoinKey(relation.public, key, base, ((key, base.name),), (equality,))
            refusal = _refuse_join(found, relation.node)
            if refusal is None:
                return found
        several = {key: (base, equality) for key, base, equality in reversed(met)}
        if len(several) > 1 and (not relation.is_outer or len(several) == most):
            pairs = [(key, base) for key, (base, _) in several.items()]
            as_one = join_by_composite_key(relation.public, pairs, self._done)
            if as_one is not None:
                public, key, base = as_one
                named = tuple((key, base.name) for key, base in pairs)
                found = _JoinKey(public, key, base, named, tuple(equality for _, equality in several.values()))
                refusal = _refuse_join(found, relation.node)
                if refusal is None:
                    return found
        if relation.is_outer and most > 1:
            raise refuse_several_equalities(relation.node)
        if refusal is not None:
            raise refusal
        return None

    def _join(self, relation: Relation, found: _JoinKey) -> None:
        public, bases = found.public, dict(found.column_pairs)
        table, columns, met = self._done.table, [], None
        own = make_lookup_column(
            f"{relation.alias}.{found.key}", public, found.key, key=found.key, base=found.base, table=table
        )
        if not relation.is_outer and isinstance(own.derivation, Lookup) and not own.derivation.is_listed:
            table, met = replace(table, columns=(*table.columns, own)), own.name
        for column in public.columns:
            if column.name not in self._mentioned:
                continue
            base = table.get_column(bases[column.name]) if column.name in bases else None
            if base is not None and not relation.is_outer and base.domain is not None:
                columns.append((column.name, base.name))
                continue
            made = make_lookup_column(
                f"{relation.alias}.{column.name}", public, column.name, key=found.key, base=found.base, table=table
            )
            if is_too_long(made):
                raise refuse_long_column(public, column.name, relation.node)
            same = next((known for known in table.columns if known.derivation == made.derivation), None)
            if same is None:
                table = replace(table, columns=(*table.columns, made))
            columns.append((column.name, (same or made).name))
        joined = JoinedTable(
            alias=relation.alias,
            name=public.name,
            key=found.key,
            base=found.base.name,
            match_column=met,
            values=() if met is not None or relation.is_outer else read_unique_values(public, found.key),
            columns=tuple(columns),
            all_columns=relation.names,
            merged_columns=self._clause.merged_columns[relation.alias],
            is_outer=relation.is_outer,
            column_pairs=found.column_pairs,
            using_columns=tuple(self._list_further(relation, found)),
        )
        self._done = replace(self._done, table=table, public_tables=(*self._done.public_tables, joined))

    def _list_further(self, relation: Relation, found: _JoinKey) -> Iterator[tuple[str, str]]:
        """Yield the columns of USING by which the table is not joined, each with the table that it stands beside."""
        for one in self._clause.inner_equalities:
            sides = (
                {read_name(column.args["table"]): read_name(column.this) for column in one.columns()}
                if one.is_using
                else {}
            )
            hidden = sides.pop(relation.alias, None)
            if one not in found.equalities and hidden in self._clause.merged_columns[relation.alias]:
                yield from ((called, alias) for alias, called in sides.items())

    def _rename_columns(self) -> Scope:
        """Return looked-up columns under their own names, if no other column of the question has them."""
        own = [column.name for column in self._own.table.columns]
        publics = {named: public for joined in self._done.public_tables for public, named in joined.columns}
        made = [column.name for column in self._done.table.columns if column.name not in own and column.name in publics]
        times = Counter([*own, *(publics[named] for named in made)])
        names = {named: publics[named] if times[publics[named]] == 1 else named for named in made}
        taken = {*own, *made, *names.values(), *(joined.match_column for joined in self._done.public_tables)}
        for joined in self._done.public_tables:  # what nobody mentions is called the same whatever the table's alias
            called = f"{joined.name}.{joined.key}"
            if joined.match_column is not None and joined.match_column not in names and called not in taken:
                names[joined.match_column] = called
                taken.add(called)
        columns = tuple(
            replace(column, name=names.get(column.name, column.name)) for column in self._done.table.columns
        )
        return replace(
            self._done,
            table=replace(self._done.table, columns=columns),
            public_tables=tuple(
                replace(
                    joined,
                    base=names.get(joined.base, joined.base),
                    column_pairs=tuple((key, names.get(base, base)) for key, base in joined.column_pairs),
                    match_column=None
                    if joined.match_column is None
                    else names.get(joined.match_column, joined.match_column),
                    columns=tuple((public, names.get(named, named)) for public, named in joined.columns),
                )
                for joined in self._done.public_tables
            ),
        )


def read_row_conditions(
    select: exp.Select, scope: Scope, given: ConstantContext
) -> Iterator[tuple[exp.Expr, Condition]]:
    """Yield the row conditions of WHERE and of inner joins: each conjunct as written, with the condition that it means.

    Raise KH2xx.
    """
    for joined in scope.public_tables:
        if not joined.is_outer:
            yield scope.make_join_equality(joined), joined.make_condition()
            for part in _list_other_usings(joined):
                yield part, read_row_condition(part, scope, given)
    clauses = [join.args.get("on") for join in select.args.get("joins") or () if not join.side]
    where = select.args.get("where")
    for clause in (*clauses, None if where is None else where.this):
        for part in split_conjuncts(clause):
            if is_list(part):
                continue  # it is about whole units, whose rows are the question's table
            yield part, scope.read_membership(part) or read_row_condition(part, scope, given)


def _list_other_usings(joined: JoinedTable) -> Iterator[exp.Expr]:
    """Yield the equalities of USING that are not the join's key."""
    for called, beside in joined.using_columns:
        first, second = (exp.column(called, alias, quoted=True) for alias in (beside, joined.alias))
        yield exp.EQ(this=first, expression=second)


def _refuse_join(found: _JoinKey, node: exp.Table) -> KeyholeError | None:
    """Return why a public table cannot be joined by a column, if it cannot."""
    public = found.public
    key = next((column for column in public.columns if column.name == found.key), None)
    at = found.equalities[0].at or find_position(node)
    if key is None:
        return refuse_unknown_join_column(public, found.key, at=at)
    if key.sql_type is not found.base.sql_type or key.sql_type not in JOINED_TYPES:
        return refuse_join_of_types(public, key, found.base, at=at)
    try:
        read_unique_values(public, found.key)
    except NotUnique as problem:
        return refuse_repeating_key(public, found.key, problem=str(problem), at=at)
    return None
