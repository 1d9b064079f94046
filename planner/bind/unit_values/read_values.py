"""Values from subqueries with one row for each privacy unit, read as columns of the question's own table.

Each value is a function of the rows of one unit, in one table with the same units. So nobody's rows decide about
another's, whatever the question does with it: groups by it, compares rows with it, or adds it up. Rows whose unit is
NULL belong to nobody: they have no value, and are in no value.

Proof: docs/proofs/unit_values.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from typing import TypeAlias

from sqlglot import exp

from planner.bind.from_clause import IN_GROUPED_QUERY, ON_TABLE, find_private_table, split_conjuncts
from planner.bind.unit_join import apply_bounds, have_same_units
from planner.bind.unit_values.find_sources import ValueSource, find_sources, find_value_name, list_columns, reads_values
from planner.bind.unit_values.unit_value_refusals import (
    refuse_clause_in_values,
    refuse_foreign_values,
    refuse_mixed_units,
    refuse_order,
    refuse_unbounded_value,
    refuse_unit_of_left_join,
    refuse_unknown_value,
    refuse_values_of_rows,
)
from planner.catalog.catalog import Catalog, Column, Derivation, Lookup, MergedKeys, SqlType, Table, ValueGroups
from planner.errors import KeyholeError
from planner.functionals.unit_rows import LARGEST_STEPS, scale_value
from planner.parser.tree import contains_type, is_star, read_alias, read_name, strip_parentheses, write_node
from planner.question.products import find_steps
from planner.question.question import OwnOrder, ValueKind
from planner.scope.embedded import UnitValue, UnitValuesQuery
from planner.scope.group_by import list_grouped_columns
from planner.scope.name_resolution import Scope, UnitTable, find_column
from planner.values.decimals import convert_to_exact_decimal

_ORDERED = frozenset({SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE, SqlType.DATE, SqlType.TIMESTAMP})
_NUMBERS = frozenset({SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE})
_TIMES = frozenset({SqlType.DATE, SqlType.TIMESTAMP})
MOST_STEPS = 100  # rows between a row and the one that lag or lead reads
_LONGEST_NAME = 48  # bytes of a column's name before a digest: PostgreSQL keeps 63 of a name
_Edge: TypeAlias = tuple[str, str, int]
"""Two tables of FROM that an equality joins by the unit's column of a place."""


def list_read_sources(select: exp.Select, catalog: Catalog) -> tuple[ValueSource, ...]:
    """Return the subqueries of a question whose values it reads."""
    return tuple(
        source
        for source in find_sources(select)
        if find_private_table(source.table, catalog) is not None and reads_values(select, source)
    )


def read_values(
    select: exp.Select, sources: Sequence[ValueSource], scope: Scope, catalog: Catalog
) -> tuple[Scope, tuple[UnitValuesQuery, ...]]:
    """Return the scope with the values that a question reads as columns, and the subqueries that they come from.

    Parameters:
        scope: the scope of the question's other tables.

    Raises KH107, KH201.
    """
    if not sources:
        return scope, ()
    names: dict[str, str] = {}
    queries: list[UnitValuesQuery] = []
    shown: list[tuple[ValueSource, Mapping[str, str]]] = []
    read = frozenset(read_name(column.this) for column in list_columns(select))
    for source in sources:
        query, columns, listed = _read_source(source, scope.table, catalog, names, read=read)
        scope = replace(scope, table=add_columns(scope.table, columns))
        queries.append(query)
        shown.append((source, listed))
    members = scope.members or (_as_member(scope),)
    merged = {source.alias: frozenset(_list_using(source, select, shown)) for source, _ in shown}
    members += tuple(
        UnitTable(source.alias, "", tuple(listed.items()), merged[source.alias]) for source, listed in shown
    )
    scope = replace(scope, members=members)
    _check_joins(select, shown, scope, catalog)
    return scope, tuple(queries)


def _as_member(scope: Scope) -> UnitTable:
    """Return the question's one private table as a member of its FROM."""
    made = Lookup | MergedKeys | ValueGroups
    own = [
        one.name for one in scope.table.columns if not isinstance(one.derivation, made) and not _is_value(one, scope)
    ]
    return UnitTable(scope.alias, scope.table.name, tuple((called, called) for called in own), frozenset())


def _is_value(column: Column, scope: Scope) -> bool:
    return any(scope.table.get_column(one).is_unit_value for one in scope.table.include_bases([column.name]))


def add_columns(table: Table, columns: Iterable[Column]) -> Table:
    """Return the table with the columns that it does not have yet added."""
    known = {column.name for column in table.columns}
    return replace(table, columns=(*table.columns, *(one for one in columns if one.name not in known)))


def _read_source(
    source: ValueSource, outer: Table, catalog: Catalog, names: dict[str, str], *, read: frozenset[str]
) -> tuple[UnitValuesQuery, list[Column], dict[str, str]]:
    """Return the subquery's rows and values, the values' columns, and the question's names for the subquery's columns.

    Parameters:
        names: the name of each value, by its meaning. New ones are added.
        read: the names that the question reads. Other values are not computed.
    """
    inner, table = source.inner, find_private_table(source.table, catalog)
    assert table is not None
    _check_units(outer, table, source.node)
    _check_form(source)
    own = Scope(table=table, alias=read_alias(source.table))
    try:
        groups = list_grouped_columns(inner, own)
    except KeyholeError as error:
        raise error if error.code == "KH201" else refuse_mixed_units(table, inner) from None
    if {one.name for one in groups} != set(table.unit):
        raise refuse_mixed_units(table, inner)
    where, having = inner.args.get("where"), inner.args.get("having")
    values = ValueColumns(table, outer, own, "" if where is None else write_node(where.this), names)
    listed: dict[str, str] = {}
    for item in inner.expressions:
        node = strip_parentheses(item.this if isinstance(item, exp.Alias) else item)
        called = find_value_name(item)
        found = None if is_star(node) else find_column(node, own)
        if found is not None and found in groups:
            listed[called or found.name] = outer.unit[table.unit.index(found.name)]
        elif called and called not in read:
            continue
        elif called:
            listed[called] = values.add(node)
        else:
            raise refuse_unknown_value(node, table)
    asked_whole = None if having is None else values.replace_by_columns(having.this)
    is_inner = source.join is None or not source.join.side
    if asked_whole is not None and not is_inner:
        raise refuse_clause_in_values("having with LEFT JOIN", inner)
    query = UnitValuesQuery(
        table=table,
        alias=own.alias,
        rows=tuple(split_conjuncts(None if where is None else where.this)),
        values=tuple(values.asked),
        presence_value=values.add_presence() if is_inner else None,
        having=asked_whole,
        tree=inner,
    )
    return replace(query, values=tuple(values.asked)), values.columns, listed


@dataclass(slots=True)
class ValueColumns:
    """The values of one subquery that a question has read so far, and their columns.

    `names` has the name of each value of all subqueries, by its meaning. `rows` is the text of the subquery's WHERE.
    """

    table: Table
    outer: Table
    own: Scope
    rows: str
    names: dict[str, str]
    asked: list[UnitValue] = field(default_factory=list)
    columns: list[Column] = field(default_factory=list)

    @property
    def covers_all_units(self) -> bool:
        """True if every unit of the question has rows from which the values are computed."""
        return self.table.name == self.outer.name and not self.rows

    def add(self, node: exp.Expr) -> str:
        """Return the name of the column with the value of an aggregate over a unit's rows.

        Raise KH107 for an aggregate that is no such value.
        """
        value = _read_value(node, self.own)
        if value is None:
            raise refuse_unknown_value(node, self.table)
        return self._add_value(*value, is_always_there=self.covers_all_units)

    def add_row_number(self, order: tuple[OwnOrder, ...]) -> str:
        """Return the name of the column with each row's number among the unit's rows in this order, counted from 1."""
        return self._add_value("place", None, None, order=order, is_always_there=False)

    def add_window(self, node: exp.Window) -> str:
        """Return the name of the column with the value of a window function over a unit's rows.

        Raise KH107 for a window that is no such value.
        """
        units = [find_column(one, self.own) for one in node.args.get("partition_by") or ()]
        if {one.name for one in units if one is not None} != set(self.table.unit) or None in units:
            raise refuse_mixed_units(self.table, node)
        order, called = node.args.get("order"), node.this
        if node.args.get("spec") is not None or node.args.get("alias") is not None:
            raise refuse_clause_in_values("a frame or a named window", node)
        if order is None:
            return self.add(called)
        by = read_order(order.expressions, self.own)
        match called:
            case exp.RowNumber():
                return self.add_row_number(by)
            case exp.Rank() if not called.expressions:
                return self._add_value("rank", None, None, order=by, is_always_there=False)
            case exp.FirstValue() | exp.Lag() | exp.Lead() if called.args.get("default") is None:
                column = find_column(called.this, self.own)
                steps = called.args.get("offset")
                number = 1 if steps is None else int(str(steps.this)) if is_whole_number(steps) else 0
                if column is None or column.sql_type is SqlType.OTHER or not 0 < number <= MOST_STEPS:
                    raise refuse_unknown_value(node, self.table)
                kind: ValueKind = "first" if isinstance(called, exp.FirstValue) else "later"
                kind = "earlier" if isinstance(called, exp.Lag) else kind
                return self._add_value(kind, column, None, order=by, steps=number, is_always_there=False)
            case _:
                raise refuse_unknown_value(node, self.table)

    def add_presence(self) -> str | None:
        """Return the name of a column that is NULL for units without rows in the subquery.

        Return None if every unit has rows.
        """
        return None if self.covers_all_units else self._add_value("rows", None, None, is_always_there=False)

    def replace_by_columns(self, node: exp.Expr) -> exp.Expr:
        """Return an expression with each aggregate replaced by the column that holds its value."""

        def put(inner: exp.Expr) -> exp.Expr:
            if not isinstance(inner, exp.Filter | exp.AggFunc):
                return inner
            return exp.Column(this=exp.Identifier(this=self.add(inner), quoted=True))

        return node.copy().transform(put, copy=False)

    def _add_value(
        self,
        kind: ValueKind,
        column: Column | None,
        filter_: exp.Expr | None,
        *,
        is_always_there: bool,
        order: tuple[OwnOrder, ...] = (),
        steps: int = 1,
    ) -> str:
        of = "" if column is None else column.name
        said = "" if filter_ is None else write_node(filter_)
        text = f"{kind} {steps} {of} by {order} of {self.table.name} where {self.rows} and {said}"
        made = self.names.get(text)
        if made is None:
            made = _name_value(
                kind, column, self.table, self.outer, {*self.names.values(), *(one.name for one in self.outer.columns)}
            )
            self.names[text] = made
        if all(one.name != made for one in self.asked):
            self.asked.append(UnitValue(made, kind, of or None, filter_, order, steps))
            self.columns += _make_columns(made, kind, column, self.table, is_always_there=is_always_there)
        return made


def _check_units(outer: Table, table: Table, node: exp.Expr) -> None:
    if outer.is_row_unit or table.is_row_unit:
        raise refuse_values_of_rows(outer if outer.is_row_unit else table, node)
    if not have_same_units((outer, table)):
        raise refuse_foreign_values(outer, table, node)


def _check_form(source: ValueSource) -> None:
    inner = source.inner
    for node, known in ((inner, IN_GROUPED_QUERY), (source.table, ON_TABLE)):
        if (extra := next((key for key, value in node.args.items() if value and key not in known), None)) is not None:
            raise refuse_clause_in_values(extra.strip("_"), inner)
    for part in (inner.args.get("where"), *inner.expressions):
        if part is not None and contains_type(part, exp.Query):
            raise refuse_clause_in_values("a subquery", part)
    if inner.args.get("distinct") is not None and inner.args["distinct"].args.get("on") is not None:
        raise refuse_clause_in_values("distinct on", inner)
    alias = source.node.args.get("alias")
    own = source.table.args.get("alias")
    for named in (alias, own, None if source.cte is None else source.cte.args.get("alias")):
        if named is not None and named.args.get("columns"):
            raise refuse_clause_in_values("column aliases", source.node)
    if source.cte is not None and source.cte.parent is not None and source.cte.parent.args.get("recursive"):
        raise refuse_clause_in_values("recursive", source.node)


def _read_value(node: exp.Expr, own: Scope) -> tuple[ValueKind, Column | None, exp.Expr | None] | None:
    """Return an aggregate's kind, its column, and its FILTER. Return None if it is no value of a unit's rows."""
    call, filter_ = node, None
    if isinstance(node, exp.Filter):
        call, filter_ = strip_parentheses(node.this), node.expression.this
    match call:
        case exp.Count() if call.args.get("big_int") is not False and not call.expressions:
            if isinstance(call.this, exp.Star):
                return "rows", None, filter_
            if isinstance(call.this, exp.Distinct):
                several = call.this.expressions
                column = find_column(several[0], own) if len(several) == 1 else None
                return None if column is None or column.sql_type is SqlType.OTHER else ("values", column, filter_)
            column = None if call.this is None else find_column(call.this, own)
            return None if column is None else ("rows", column, filter_)
        case exp.Min() | exp.Max() if not call.expressions:
            column = find_column(call.this, own)
            if column is None or column.sql_type not in _ORDERED:
                return None
            return "least" if isinstance(call, exp.Min) else "greatest", column, filter_
        case exp.Sum() | exp.Avg() if not call.expressions:
            column = find_column(call.this, own)
            if column is None or column.sql_type not in _NUMBERS:
                return None
            if find_steps(column) is None:
                raise refuse_unbounded_value(node, column.name)
            return "total" if isinstance(call, exp.Sum) else "mean", column, filter_
        case _:
            return None


_CALLED: Mapping[ValueKind, str] = {
    "least": "min({})",
    "greatest": "max({})",
    "values": "count(DISTINCT {})",
    "total": "sum({})",
    "mean": "avg({})",
    "rows": "count({})",
    "place": "row_number()",
    "rank": "rank()",
    "first": "first_value({})",
    "earlier": "lag({})",
    "later": "lead({})",
}


OF_EACH_ROW: tuple[ValueKind, ...] = ("place", "rank", "first", "earlier", "later")
"""Kinds of values that a window over a unit's rows gives each row; those of all others the rows come to together."""


def is_whole_number(node: exp.Expr) -> bool:
    """Return True if the node is a literal whole number."""
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit()


def read_order(items: Iterable[exp.Expr], own: Scope) -> tuple[OwnOrder, ...]:
    """Return the order of a unit's rows. Raise KH107 for an item that is not a column."""
    found: list[OwnOrder] = []
    for item in items:
        node = strip_parentheses(item.this) if isinstance(item, exp.Ordered) else strip_parentheses(item)
        column = find_column(node, own)
        if column is None or column.sql_type is SqlType.OTHER:
            raise refuse_order(item, own.table)
        descending = bool(item.args.get("desc"))
        found.append(OwnOrder(column.name, descending, bool(item.args.get("nulls_first"))))
    return tuple(found)


def _name_value(kind: ValueKind, column: Column | None, table: Table, outer: Table, taken: set[str]) -> str:
    """Return a short name for a value, in ASCII, that no other column has."""
    source = "" if table.name == outer.name else f" of {table.name}"
    text = f"{_CALLED[kind].format('*' if column is None else column.name)}{source} per {outer.unit_text}"
    if len(text.encode()) > _LONGEST_NAME or not text.isascii():
        text = (
            f"{text.encode('ascii', 'replace').decode()[: _LONGEST_NAME - 9]} {sha256(text.encode()).hexdigest()[:8]}"
        )
    found, number = text, 2
    while found in taken:
        found, number = f"{text} ({number})", number + 1
    return found


def _make_columns(
    called: str, kind: ValueKind, column: Column | None, table: Table, *, is_always_there: bool
) -> Iterator[Column]:
    """Yield a value as a column of the question's table, and the parts of a time for which the policy has lists.

    Parameters:
        is_always_there: every unit of the question has rows that the value is of.
    """
    determined = kind not in ("place", "rank", "earlier", "later")
    if kind in ("total", "mean") and column is not None:
        yield _make_sum(called, kind, column, table)
        return
    if kind in ("rows", "values") or column is None:
        most = Decimal(max(_find_most_rows(table), 1))
        yield Column(
            called,
            SqlType.INTEGER,
            "bigint",
            bounds=(Decimal(0 if determined else 1), most),
            grid=Decimal(1),
            required=is_always_there,
            is_unit_value=True,
            is_determined=determined,
        )
        return
    yield replace(
        column,
        name=called,
        derivation=None,
        per_unit=None,
        immutable=False,
        prunable=False,
        comment=None,
        ledger="",
        stored=None,
        required=False,
        bands=(),
        enumerated=False,
        is_unit_value=True,
        is_determined=determined,
    )
    for one in table.columns if column.sql_type in _TIMES else ():
        derived = one.derivation
        if isinstance(derived, Derivation) and derived.column == column.name and one.domain is not None:
            part = f"{derived.function}({derived.part} {called})".replace("( ", "(")
            made = replace(one, name=part, derivation=replace(derived, column=called), ledger="", comment=None)
            yield replace(made, immutable=False, prunable=False, bands=(), per_unit=None, required=False)


def _make_sum(called: str, kind: ValueKind, column: Column, table: Table) -> Column:
    """Return the sum or the mean of a measure's values, in decimals."""
    step, low, high = scale_value(kind, column, most=_find_most_rows(table))
    exact = convert_to_exact_decimal(step)
    assert exact is not None, "a grid is a decimal number"
    if max(-low, high) >= LARGEST_STEPS:
        raise KeyholeError(
            "KH203",
            f"{called} has more steps of its grid between its bounds than an integer can hold",
            hint="Have the owner declare narrower bounds or a coarser grid.",
        )
    kind_of, declared = SqlType.INTEGER, "bigint"
    if step.denominator != 1:
        scale = max(0, -int(exact.normalize().as_tuple().exponent))
        kind_of, declared = SqlType.NUMERIC, f"numeric(38,{scale})"
    return Column(
        called,
        kind_of,
        declared,
        bounds=(exact * low, exact * high),
        grid=exact,
        is_unit_value=True,
        is_determined=True,
    )


def _find_most_rows(table: Table) -> int:
    """Return the most rows of one unit that count in the whole table, as the owner declares it."""
    bounded = apply_bounds(table, ())
    if bounded.row_cap is not None:
        return bounded.row_cap.rows
    return bounded.rows_per_unit or 1


def _list_using(
    source: ValueSource, select: exp.Select, shown: Sequence[tuple[ValueSource, Mapping[str, str]]]
) -> Iterator[str]:
    """Yield the subquery's columns that USING leaves out of unqualified names."""
    nodes = {id(one.node) for one, _ in shown}
    first = select.args["from_"].this
    for join in select.args.get("joins") or ():
        if join.this is source.node or (first is source.node and id(join.this) not in nodes):
            yield from (
                read_name(one if isinstance(one, exp.Identifier) else one.this) for one in join.args.get("using") or ()
            )


def _check_joins(
    select: exp.Select, shown: Sequence[tuple[ValueSource, Mapping[str, str]]], scope: Scope, catalog: Catalog
) -> None:
    """Check that each subquery is joined on the whole unit. Raise KH107 otherwise."""
    own = {source.alias for source, _ in shown}
    inner = [part for join in select.args["joins"] if not join.side for part in split_conjuncts(join.args.get("on"))]
    where = select.args.get("where")
    inner += list(split_conjuncts(None if where is None else where.this))
    edges = [edge for part in inner if (edge := _read_edge(part, scope)) is not None]
    edges += [edge for join in select.args["joins"] if not join.side for edge in _read_using(join, select, scope)]
    for source, _ in shown:
        join = source.join
        if join is None or not join.side:
            continue
        if str(join.side).upper() != "LEFT":
            raise refuse_clause_in_values(f"{join.side} JOIN", source.node)
        parts = list(split_conjuncts(join.args.get("on")))
        met = [_read_edge(part, scope) for part in parts]
        if None in met:
            raise refuse_clause_in_values("another condition ON a LEFT JOIN", source.node)
        edges += [edge for edge in met if edge is not None and source.alias in edge[:2]]
        edges += list(_read_using(join, select, scope))
        _check_reads_of_unit(source, join, select, scope, catalog)
    for place in range(len(scope.table.unit)):
        reached = {member.alias for member in scope.members} - own
        joined = [{one, other} for one, other, at in edges if at == place]
        while grown := {alias for both in joined if both & reached for alias in both} - reached:
            reached |= grown
        for source, _ in shown:
            if source.alias not in reached:
                raise refuse_mixed_units(scope.table, source.node)


def _check_reads_of_unit(
    source: ValueSource, join: exp.Join, select: exp.Select, scope: Scope, catalog: Catalog
) -> None:
    """Raise KH107 if the question reads a unit column of a table behind LEFT JOIN outside the join's own condition."""
    on = join.args.get("on")
    known = set() if on is None else {id(column) for column in on.find_all(exp.Column)}
    for column in list_columns(select):
        found = None if id(column) in known else _find_unit(column, scope)
        if found is not None and found[0] == source.alias and not _is_inner_column(column, select, catalog):
            raise refuse_unit_of_left_join(source.alias, read_name(column.this), column)


def _is_inner_column(column: exp.Column, select: exp.Select, catalog: Catalog) -> bool:
    """Return True if a plain name in a subquery of a SELECT is that of a column of the subquery's own tables."""
    inner = column.find_ancestor(exp.Select)
    if inner is None or inner is select or column.args.get("table") is not None:
        return False
    tables = (find_private_table(node, catalog) for node in inner.find_all(exp.Table))
    called = read_name(column.this)
    return any(called in {one.name for one in table.columns} for table in tables if table is not None)


def _read_edge(part: exp.Expr, scope: Scope) -> _Edge | None:
    if not isinstance(part, exp.EQ) or part.args.get("negate"):
        return None
    found = [_find_unit(side, scope) for side in (part.this, part.expression)]
    (one, place), (other, there) = (end or ("", -1) for end in found)
    return (one, other, place) if None not in found and place == there and one != other else None


def _find_unit(node: exp.Expr, scope: Scope) -> tuple[str, int] | None:
    """Return the table of FROM and the place in the unit of a plain column."""
    column = strip_parentheses(node)
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        return None
    called, qualifier = read_name(column.this), read_name(column.args.get("table"))
    owners = [
        (member.alias, dict(member.columns)[called])
        for member in scope.members
        if called in dict(member.columns)
        and (qualifier == member.alias or (not qualifier and called not in member.merged_columns))
    ]
    if len(owners) != 1 or owners[0][1] not in scope.table.unit:
        return None
    return owners[0][0], scope.table.unit.index(owners[0][1])


def _read_using(join: exp.Join, select: exp.Select, scope: Scope) -> Iterator[_Edge]:
    """Yield the equalities of USING between a table and the ones before it."""
    before = [select.args["from_"].this]
    for one in select.args["joins"]:
        if one is join:
            break
        before.append(one.this)
    left = {read_alias(node) for node in before}
    for identifier in join.args.get("using") or ():
        called = read_name(identifier if isinstance(identifier, exp.Identifier) else identifier.this)
        units = {
            member.alias: scope.table.unit.index(dict(member.columns)[called])
            for member in scope.members
            if dict(member.columns).get(called) in scope.table.unit
        }
        own = read_alias(join.this)
        for other in left:
            if own in units and other in units and units[own] == units[other]:
                yield own, other, units[own]
