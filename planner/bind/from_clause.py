"""The tables of a question's FROM, and the equalities that may join them."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.bind.bind_refusals import (
    refuse_ambiguous_using,
    refuse_join_kind,
    refuse_joined_with_query,
    refuse_left_join_conditions,
    refuse_natural_join,
    refuse_non_table,
    refuse_private_on_right,
    refuse_renamed_columns,
    refuse_same_alias,
    refuse_several_equalities,
    refuse_unknown_using,
    refuse_unpinned_table,
)
from planner.catalog.catalog import Catalog, PublicTable, Table
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, find_position, read_alias, read_name, read_table, strip_parentheses

# sqlglot's names of what a table of FROM may have, and a subquery that filters the rows of one table and groups them
ON_TABLE = frozenset(("this", "db", "catalog", "alias"))
IN_GROUPED_QUERY = frozenset(("expressions", "from_", "where", "group", "having", "distinct"))
_ON_JOIN = frozenset(("this", "on", "using", "side", "kind", "pivots"))


@dataclass(frozen=True, slots=True)
class Relation:
    """One table of FROM, private or public."""

    node: exp.Table
    alias: str
    table: Table | PublicTable
    join: exp.Join | None

    @property
    def public(self) -> PublicTable | None:
        """The relation's table if it is public, else None."""
        return self.table if isinstance(self.table, PublicTable) else None

    @property
    def private(self) -> Table | None:
        """The relation's table if it is private, else None."""
        return self.table if isinstance(self.table, Table) else None

    @property
    def names(self) -> frozenset[str]:
        """The names of the relation's columns."""
        return frozenset(column.name for column in self.table.columns)

    def looks_up_unit(self, called: str) -> bool:
        """Return True if a column of this name identifies the unit, and a path leads from this table to it."""
        return self.private is not None and self.private.path is not None and called in self.private.unit

    @property
    def is_outer(self) -> bool:
        """Return True if this table is joined by LEFT JOIN, so that rows without a partner in it stay."""
        return self.join is not None and bool(self.join.side)


@dataclass(frozen=True, slots=True)
class Equality:
    """An equality that may join two tables."""

    left: exp.Expr
    right: exp.Expr
    at: int | None
    is_using: bool = False

    def columns(self) -> Iterator[exp.Column]:
        """Yield the column on each side of the equality."""
        yield from self.left.find_all(exp.Column)
        yield from self.right.find_all(exp.Column)


@dataclass(frozen=True, slots=True)
class FromClause:
    """A FROM of several tables.

    `inner_equalities` are the equalities of WHERE, ON and USING that hold in every row. `outer_equalities` are those
    of each LEFT JOIN, by the table's alias. `merged_columns` are the columns of each table that USING leaves out of
    unqualified names.
    """

    relations: tuple[Relation, ...]
    inner_equalities: tuple[Equality, ...]
    outer_equalities: Mapping[str, tuple[Equality, ...]]
    merged_columns: Mapping[str, frozenset[str]]

    @property
    def mentioned_columns(self) -> set[str]:
        """The names of the columns in the clause's equalities."""
        found = [*self.inner_equalities, *(one for several in self.outer_equalities.values() for one in several)]
        return {read_name(column.this) for equality in found for column in equality.columns()}

    def find_owners(self, node: exp.Expr) -> set[str]:
        """Return the tables whose columns an expression reads. Return none if a name is unknown or ambiguous."""
        return _find_owners(node, self.relations, self.merged_columns)

    def find_owner(self, node: exp.Expr) -> tuple[str, str] | None:
        """Return the table and name of a plain column. Return None for other expressions and unknown columns."""
        column = strip_parentheses(node)
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
            return None
        owners = self.find_owners(column)
        relation = next((one for one in self.relations if owners == {one.alias}), None)
        if relation is None or read_name(column.this) not in relation.names:
            return None
        if column.args.get("db") is not None and (read_name(column.args["db"]), relation.alias) != (
            "public",
            relation.table.name,
        ):
            return None
        return relation.alias, read_name(column.this)


def read_from_clause(select: exp.Select, catalog: Catalog, *, beside: Collection[int] = ()) -> FromClause:
    """Read the tables that a SELECT joins. Raise KH107, KH201, KH213.

    Parameters:
        beside: the ids of nodes in FROM that are not tables, such as subqueries of values.
    """
    relations = _read_relations(select, catalog, beside)
    merged: dict[str, set[str]] = {relation.alias: set() for relation in relations}
    inner: list[Equality] = []
    outer: dict[str, tuple[Equality, ...]] = {}
    for index, relation in enumerate(relations):
        if relation.join is None:
            continue
        conditions = list(split_conjuncts(relation.join.args.get("on")))
        found = [Equality(part.this, part.expression, find_position(part)) for part in conditions if _is_equality(part)]
        using = relation.join.args.get("using") or ()
        found += [_read_using(relations[: index + 1], identifier, merged) for identifier in using]
        if not relation.is_outer:
            inner += found
            continue
        if relation.private is not None and len(found) < len(conditions):
            raise refuse_left_join_conditions(relation.node)
        if len(found) < len(conditions) or (relation.private is None and not found):
            raise refuse_several_equalities(relation.node)
        outer[relation.alias] = tuple(found)
    where = select.args.get("where")
    for part in split_conjuncts(None if where is None else where.this):
        inner += [Equality(one.this, one.expression, find_position(one)) for one in _list_equalities(part)]
    _hide_reached_units(relations, merged)
    return FromClause(relations, tuple(inner), outer, {alias: frozenset(names) for alias, names in merged.items()})


def _hide_reached_units(relations: Sequence[Relation], merged: dict[str, set[str]]) -> None:
    """Leave out of unqualified names the unit's columns that a table finds by a path, if another table shows them.

    The source has no such columns in that table, so an analyst who knows the source does not qualify them.
    """

    def has_unit(relation: Relation, called: str) -> bool:
        return called in relation.names and called not in merged[relation.alias]

    for relation in relations:
        for called in filter(relation.looks_up_unit, sorted(relation.names)):
            others = [one for one in relations if one is not relation and has_unit(one, called)]
            if has_unit(relation, called) and any(
                called in one.private.unit for one in others if one.private is not None
            ):
                merged[relation.alias].add(called)


def find_private_table(node: exp.Table, catalog: Catalog) -> Table | None:
    """Return the private table that a name in FROM refers to, without a schema or in `public`."""
    return catalog.find_table(read_name(node.this)) if read_name(node.args.get("db")) in ("", "public") else None


def _read_relations(select: exp.Select, catalog: Catalog, beside: Collection[int]) -> tuple[Relation, ...]:
    nodes: list[tuple[exp.Expr, exp.Join | None]] = [(select.args["from_"].this, None)]
    nodes += [(join.this, join) for join in select.args["joins"]]
    nodes = [pair for pair in nodes if id(pair[0]) not in beside]
    nodes[0] = (nodes[0][0], None)
    hidden = {read_name(cte.args["alias"].this) for cte in select.root().find_all(exp.CTE)}
    found: list[Relation] = []
    before = False
    for node, join in nodes:
        if not isinstance(node, exp.Table) or any(v for k, v in node.args.items() if v and k not in ON_TABLE):
            raise refuse_non_table(node)
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise refuse_renamed_columns(node)
        table = _find_table(node, catalog, hidden)
        private = isinstance(table, Table)
        if join is not None:
            _check_kind(join, node, table, before=before)
        found.append(Relation(node, read_alias(node), table, join))
        before = before or private
    for called, times in Counter(relation.alias for relation in found).items():
        if times > 1:
            again = [relation.node for relation in found if relation.alias == called][-1]
            raise refuse_same_alias(called, again)
    return tuple(found)


def _check_kind(join: exp.Join, node: exp.Table, table: Table | PublicTable, *, before: bool) -> None:
    private = isinstance(table, Table)
    side, kind = str(join.side or "").upper(), str(join.kind or "").upper()
    unknown = [key for key, value in join.args.items() if value and key not in _ON_JOIN]
    if join.args.get("method"):
        raise refuse_natural_join(node)
    if unknown or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise refuse_join_kind(side or kind, node, are_private=before and private)
    if side == "LEFT" and not before:
        column = next(iter(table.unit if isinstance(table, Table) else ()), table.columns[0].name)
        raise refuse_private_on_right(node, column=f"{spell_name(read_alias(node))}.{spell_name(column)}")


def _find_table(node: exp.Table, catalog: Catalog, hidden: set[str]) -> Table | PublicTable:
    _, database, schema, called = read_table(node)
    known = schema in ("", "public") and database in ("", catalog.database)
    if known and schema == "" and called in hidden:
        raise refuse_joined_with_query(called, node)
    private = catalog.find_table(called) if known else None
    if private is not None:
        return private
    public = next((table for table in catalog.public_tables if known and table.name == called), None)
    if public is None:
        raise refuse_unpinned_table(called, node)
    return public


def _read_using(relations: tuple[Relation, ...], identifier: exp.Expr, merged: dict[str, set[str]]) -> Equality:
    """Read USING as an equality. Only one of the two columns keeps its unqualified name."""
    called = read_name(identifier if isinstance(identifier, exp.Identifier) else identifier.this)
    *before, this = relations
    left = [one for one in before if called in one.names and called not in merged[one.alias]]
    if len(left) > 1:  # the source shows a unit in the table that has it stored, and not where it is found by a path
        left = [one for one in left if not one.looks_up_unit(called)] or left[-1:]
    if called not in this.names or not left:
        lacking = [this] if called not in this.names else before
        raise refuse_unknown_using(called, [one.table.name for one in lacking], identifier)
    if len(left) != 1:
        raise refuse_ambiguous_using(called, identifier)
    hidden = this if this.public is not None or left[0].private is not None else left[0]
    merged[hidden.alias].add(called)
    first, second = (exp.column(called, table=one.alias, quoted=True) for one in (left[0], this))
    return Equality(first, second, find_position(identifier), is_using=True)


def _find_owners(node: exp.Expr, relations: tuple[Relation, ...], merged: Mapping[str, Collection[str]]) -> set[str]:
    owners: set[str] = set()
    for column in node.find_all(exp.Column):
        called, qualifier = read_name(column.this), read_name(column.args.get("table"))
        if qualifier:
            owners.add(qualifier)
            continue
        found = [one.alias for one in relations if called in one.names and called not in merged[one.alias]]
        if len(found) != 1:
            return set()
        owners.add(found[0])
    return owners


def _list_equalities(condition: exp.Expr) -> list[exp.Expr]:
    """Return the equalities that hold wherever a condition does.

    For an equality it is that one. For OR they are the equalities that all parts share.
    """
    if not isinstance(condition, exp.Or) or condition.args.get("negate"):
        return [condition] if _is_equality(condition) else []
    found, *others = (
        [one for part in split_conjuncts(side) for one in _list_equalities(part)]
        for side in (condition.this, condition.expression)
    )
    return [one for one in found if all(one in other for other in others)]


def _is_equality(part: exp.Expr) -> bool:
    """Return True if the expression is an equality of two expressions with columns."""
    if not isinstance(part, exp.EQ) or part.args.get("negate"):
        return False
    return all(contains_type(side, exp.Column) for side in (part.this, part.expression))


def split_conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that an expression joins by AND, or the expression itself. Yield none for None."""
    if node is None:
        return
    inner = strip_parentheses(node)
    if isinstance(inner, exp.And) and not inner.args.get("negate"):
        yield from split_conjuncts(inner.this)
        yield from split_conjuncts(inner.expression)
    else:
        yield inner
