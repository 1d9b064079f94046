"""Subqueries with one row for each privacy unit, of which a question that they are joined to reads values.

    WITH first AS (SELECT patient_id, min(month) AS cohort FROM visits GROUP BY patient_id)
    SELECT f.cohort, v.month FROM visits v JOIN first f USING (patient_id)
    GROUP BY 1, 2 HAVING count(DISTINCT v.patient_id) > 100

The subquery stands in FROM or JOIN, or in a WITH query that is read there. It groups the rows of one private table. Its
keys, and whether they are the privacy unit, are judged where its values are read (`read_values.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES, contains_aggregate
from planner.catalog.catalog import Table
from planner.parser.subquery_readers import list_references
from planner.parser.tree import read_alias, read_name, strip_parentheses


@dataclass(frozen=True, slots=True)
class ValueSource:
    """A subquery of a question's FROM, with its join. `cte` is the WITH query if `node` is the name of one."""

    node: exp.Expr
    inner: exp.Select
    table: exp.Table
    join: exp.Join | None
    cte: exp.CTE | None
    alias: str


def find_value_tables(tree: exp.Expr, private: Mapping[int, Table], *, idle: frozenset[int]) -> frozenset[int]:
    """Return the ids of the private tables whose units' values a question reads. They are parts of the question.

    Parameters:
        private: the private tables of the tree, by the ids of their nodes.
        idle: the ids of tables whose rows are never read.
    """
    found: set[int] = set()
    for select in tree.find_all(exp.Select):
        if not select.args.get("joins"):
            continue
        beside = [
            node for node, _ in list_from_sources(select) if isinstance(node, exp.Table) and _find_cte(node) is None
        ]
        if not any(id(node) not in idle and id(node) in private for node in beside):
            continue
        for source in find_sources(select):
            if id(source.table) in private and reads_values(select, source):
                found.add(id(source.table))
    return frozenset(found)


def find_sources(select: exp.Select) -> tuple[ValueSource, ...]:
    """Return the grouped subqueries of a SELECT's FROM and JOIN that read one table each."""
    return tuple(source for node, join in list_from_sources(select) if (source := _read_source(node, join)) is not None)


def list_from_sources(select: exp.Select) -> Iterator[tuple[exp.Expr, exp.Join | None]]:
    """Yield the sources of FROM and JOIN, each with its join. The first source has no join. The first has none."""
    from_ = select.args.get("from_")
    if from_ is not None:
        yield from_.this, None
    for join in select.args.get("joins") or ():
        yield join.this, join


def _read_source(node: exp.Expr, join: exp.Join | None) -> ValueSource | None:
    cte: exp.CTE | None = None
    inner: exp.Expr | None = None
    if isinstance(node, exp.Subquery):
        inner = node.this
    elif isinstance(node, exp.Table):
        cte = _find_cte(node)
        inner = None if cte is None else cte.this
    while isinstance(inner, exp.Subquery | exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.Select) or inner.args.get("group") is None or inner.args.get("joins"):
        return None
    from_ = inner.args.get("from_")
    if from_ is None or not isinstance(from_.this, exp.Table) or _find_cte(from_.this) is not None:
        return None
    if not any(contains_aggregate(item) for item in inner.expressions):
        return None
    called = read_alias(node)
    return ValueSource(node, inner, from_.this, join, cte, called) if called else None


def _find_cte(node: exp.Table) -> exp.CTE | None:
    """Return the WITH query that a name in FROM stands for."""
    if node.args.get("db") is not None:
        return None
    query: exp.Expr | None = node.parent
    while query is not None:  # the innermost WITH that has the name, as PostgreSQL finds it
        with_ = query.args.get("with_")
        ctes: list[exp.CTE] = [] if with_ is None else with_.expressions
        for cte in ctes:
            if read_name(cte.args["alias"].this) == read_name(node.this) and any(
                one is node for one in list_references(cte)
            ):
                return cte
        query = query.parent
    return None


def reads_values(select: exp.Select, source: ValueSource) -> bool:
    """Return True if the question reads a value that the subquery computes, not only its keys."""
    computed = {find_value_name(item) for item in source.inner.expressions if contains_aggregate(item)}
    return any(
        read_name(column.args.get("table")) in ("", source.alias) and read_name(column.this) in computed
        for column in list_columns(select)
    )


def list_columns(select: exp.Select) -> Iterator[exp.Column]:
    """Yield the columns that a SELECT reads outside the subqueries of its FROM and WITH."""
    hidden = {id(node) for one, _ in list_from_sources(select) if not isinstance(one, exp.Table) for node in one.walk()}
    with_ = select.args.get("with_")
    if with_ is not None:
        hidden |= {id(node) for node in with_.walk()}
    for column in select.find_all(exp.Column):
        if id(column) not in hidden and not isinstance(column.this, exp.Star):
            yield column


def find_value_name(item: exp.Expr) -> str:
    """Return PostgreSQL's name for an item of a select list. Return an empty text if it is not certain."""
    if isinstance(item, exp.Alias):
        return read_name(item.args["alias"])
    node = strip_parentheses(item)
    if isinstance(node, exp.Filter):
        node = strip_parentheses(node.this)
    if isinstance(node, exp.Column):
        return read_name(node.this)
    return node.sql_name().lower() if isinstance(node, AGGREGATES) and isinstance(node, _NAMED) else ""


_NAMED = (exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg)
