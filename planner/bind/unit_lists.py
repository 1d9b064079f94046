"""Conditions on whole privacy units: the units that have a row in a table, or that have none.

    SELECT ward FROM visits WHERE patient_id IN (SELECT patient_id FROM visits WHERE ward = 'icu')
    GROUP BY ward HAVING count(DISTINCT patient_id) >= 50

Whether a unit is on such a list follows from its own rows alone, so that nobody's rows decide about another's. The list
is a subquery behind IN, = ANY or EXISTS, or their negation. It reads one table with the same units, and equates all
columns of the unit. Rows whose unit is NULL belong to nobody: they put nobody on a list, and no list has them.

Proof: docs/proofs/unit_lists.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.from_clause import alias_of, conjuncts
from planner.bind.refusals import foreign_list, list_clause, list_of_rows, list_within, not_by_listed_unit
from planner.bind.unit_join import same_units
from planner.catalog.model import Catalog, Table, UnitList
from planner.parser.tree import bare, name
from planner.predicates.condition import row_condition
from planner.question.condition import ALWAYS, all_of
from planner.question.condition_text import canonical
from planner.question.model import ListedRows
from planner.scope.embedded import Embedded, UnitListQuery
from planner.scope.names import Scope, find_column
from planner.values.model import Given

_IN_LIST = frozenset(("expressions", "from_", "where", "group", "distinct"))
_ON_TABLE = frozenset(("this", "db", "catalog", "alias"))


def find_list(node: exp.Expr) -> tuple[exp.Expr, exp.Select, bool] | None:
    """Return what a conjunct asks of a subquery, the subquery, and whether it is negated; None for any other conjunct.

    What is asked is IN, = ANY or EXISTS.
    """
    found, absent = bare(node), False
    while isinstance(found, exp.Not):
        found, absent = bare(found.this), not absent
    inner: exp.Expr | None = None
    if isinstance(found, exp.In):
        inner = found.args.get("query")
    elif isinstance(found, exp.Exists):
        inner = found.this
    elif isinstance(found, exp.EQ) and isinstance(found.expression, exp.Any):
        inner = found.expression.this
    while isinstance(inner, exp.Subquery | exp.Paren):
        inner = inner.this
    return (found, inner, absent) if isinstance(inner, exp.Select) else None


def find_listing_tables(
    tree: exp.Expr, find_table: Callable[[exp.Table], Table | None], *, idle: frozenset[int]
) -> frozenset[int]:
    """Return the ids of the tables that lists of units read, in the WHERE of any SELECT from a private table.

    Parameters:
        find_table: the private table that a name stands for, if it stands for one.
        idle: the ids of tables of which no row is read: what reads them alone is no question.
    """
    found: set[int] = set()
    for select in tree.find_all(exp.Select):
        read = (node for node in _sources(select) if id(node) not in idle)
        outer = [table for node in read if (table := find_table(node)) is not None]
        where = select.args.get("where")
        if not outer or where is None:
            continue
        for part in conjuncts(where.this):
            listed = find_list(part)
            if listed is not None and _asks_of_units(listed[0], listed[1], outer):
                found |= {id(node) for node in _sources(listed[1]) if find_table(node) is not None}
    return frozenset(found)


def _sources(select: exp.Select) -> Iterator[exp.Table]:
    from_ = select.args.get("from_")
    nodes = [] if from_ is None else [from_.this]
    nodes += [join.this for join in select.args.get("joins") or ()]
    return (node for node in nodes if isinstance(node, exp.Table))


def _asks_of_units(asked: exp.Expr, inner: exp.Select, outer: list[Table]) -> bool:
    """Return True unless the subquery is a question of its own, whose answered keys rows are compared with."""
    if isinstance(asked, exp.Exists):
        return True
    units = {unit for table in outer for unit in table.unit if table.column(unit).domain is None}
    named = {name(one.this) for one in _members(asked) if isinstance(one, exp.Column)}
    return bool(named & units) or inner.args.get("having") is None


def _members(asked: exp.Expr) -> list[exp.Expr]:
    node = bare(asked.this)
    return [bare(one) for one in node.expressions] if isinstance(node, exp.Tuple) else [node]


def read_lists(select: exp.Select, scope: Scope, catalog: Catalog) -> tuple[UnitListQuery, ...]:
    """Return the lists of units that a question's WHERE asks for. Raises KH107, KH201."""
    where = select.args.get("where")
    found: list[UnitListQuery] = []
    for part in conjuncts(None if where is None else where.this):
        listed = find_list(part)
        table = None if listed is None else _listed_table(listed[1], catalog)
        if listed is not None and table is not None and _asks_of_units(*listed[:2], [scope.table]):
            asked, inner, absent = listed
            found.append(_read_list(asked, inner, table, scope, absent=absent))
    return tuple(found)


def _listed_table(inner: exp.Select, catalog: Catalog) -> Table | None:
    """Return the private table that a subquery reads first."""
    source = next(_sources(inner), None)
    if source is None or name(source.args.get("db")) not in ("", "public"):
        return None
    return next((one for one in catalog.tables if one.name == name(source.this)), None)


def _read_list(asked: exp.Expr, inner: exp.Select, table: Table, scope: Scope, *, absent: bool) -> UnitListQuery:
    outer = scope.table
    if outer.row_unit or table.row_unit:
        raise list_of_rows(outer if outer.row_unit else table, inner)
    if not same_units((outer, table)):
        raise foreign_list(outer, table, inner)
    own = Scope(table=table, alias=alias_of(_check_form(inner)))
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    if not isinstance(asked, exp.Exists):
        shown = [bare(one.this if isinstance(one, exp.Alias) else one) for one in inner.expressions]
        if len(shown) != len(_members(asked)):
            raise not_by_listed_unit(outer, table, inner)
        pairs += zip(_members(asked), shown, strict=True)
    where = inner.args.get("where")
    rows: list[exp.Expr] = []
    for part in conjuncts(None if where is None else where.this):
        if isinstance(part, exp.EQ) and (pair := _across(part, own)) is not None:
            pairs.append(pair)
        elif (query := part.find(exp.Query)) is not None:
            raise list_within(query)
        else:
            rows.append(part)
    places = [_unit_place(pair, scope, own) for pair in pairs]
    if None in places or set(places) != set(range(len(outer.unit))):
        wrong = (pair[0] for pair, place in zip(pairs, places, strict=True) if place is None)
        raise not_by_listed_unit(outer, table, next(wrong, inner))
    return UnitListQuery(table=table, alias=own.alias, rows=tuple(rows), absent=absent, tree=inner)


def _check_form(inner: exp.Select) -> exp.Table:
    """Return the table that a list reads. Raises KH107 for what is no list of rows of one table."""
    source, *others = _sources(inner)
    if others:
        raise list_clause("join", inner)
    for node, known in ((inner, _IN_LIST), (source, _ON_TABLE)):
        if (extra := next((key for key, value in node.args.items() if value and key not in known), None)) is not None:
            raise list_clause(extra.strip("_"), inner)
    distinct, group = inner.args.get("distinct"), inner.args.get("group")
    if distinct is not None and distinct.args.get("on") is not None:
        raise list_clause("distinct on", inner)
    if group is not None and any(value for key, value in group.args.items() if key != "expressions"):
        raise list_clause("group", group)
    if (shown := next((one for one in inner.expressions if contains_aggregate(one)), None)) is not None:
        raise list_clause("an aggregate", shown)
    return source


def _unit_place(pair: tuple[exp.Expr, exp.Expr], scope: Scope, own: Scope) -> int | None:
    """Return the place in the unit of the two columns that are equated; None if they are not of one place."""
    outer, inner = find_column(pair[0], scope), find_column(pair[1], own)
    if outer is None or inner is None or outer.name not in scope.table.unit or inner.name not in own.table.unit:
        return None
    place = scope.table.unit.index(outer.name)
    return place if own.table.unit.index(inner.name) == place else None


def _across(equality: exp.EQ, own: Scope) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the column of the question and that of the subquery that an equality is between, if it is."""
    left, right = bare(equality.this), bare(equality.expression)
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None
    inside = [_belongs(one, own) for one in (left, right)]
    if all(inside) or not any(inside):
        return None
    return (right, left) if inside[0] else (left, right)


def _belongs(column: exp.Column, own: Scope) -> bool:
    """Return True if a name inside the subquery is that of a column of its own."""
    if column.args.get("table") is None:
        return own.knows(name(column.this))
    return own.qualifies(column)


def resolve_lists(embedded: Embedded, given: Given) -> tuple[Embedded, tuple[str, ...]]:
    """Return the question over the rows of listed units only, and the NOTICEs about its lists.

    Raises KH2xx for what WHERE inside a list may not say, with positions in the question's statement.
    """
    if not embedded.lists:
        return embedded, ()
    found = {made.meaning + str(made.absent): made for made in (_resolve(one, given) for one in embedded.lists)}
    lists = tuple(found[key] for key in sorted(found))
    declared = None if embedded.declared is None else replace(embedded.declared, lists=lists)
    told: tuple[str, ...] = ()
    if any(one.absent for one in lists):
        unit = embedded.table.unit_text
        told = (f"rows without {unit} belong to nobody: they are on no list, and NOT IN means NOT EXISTS",)
    return replace(embedded, table=replace(embedded.table, lists=lists), declared=declared), told


def _resolve(query: UnitListQuery, given: Given) -> UnitList:
    scope = Scope(table=query.table, alias=query.alias)
    where = all_of(one for part in query.rows for one in row_condition(part, scope, given).conjuncts())
    meaning = "a row" if where == ALWAYS else f"a row where {canonical(where)}"
    return UnitList(table=query.table, meaning=meaning, rule=ListedRows(where), absent=query.absent)


def is_list(node: exp.Expr) -> bool:
    """Return True for a conjunct of WHERE that asks for a list of units, once the question's form is right."""
    return find_list(node) is not None
