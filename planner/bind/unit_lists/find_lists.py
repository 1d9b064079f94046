"""The subqueries of a WHERE that may list privacy units, as they stand in the text, with AND, OR and NOT between them.

    household IN (SELECT household FROM lines WHERE l_mode = 'air' EXCEPT SELECT household FROM orders)
    (SELECT count(*) FROM lines r WHERE r.household = l.household) >= 3 OR NOT EXISTS (...)

A condition of such subqueries alone is a conjunction of clauses: of each clause one list holds at least. A unit is on a
list or not, so that NOT, set operations and De Morgan's laws hold as for sets.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.from_clause import split_conjuncts
from planner.bind.unit_lists.key_pairs import list_key_columns
from planner.catalog.catalog import Table
from planner.parser.tree import read_name, strip_parentheses

MOST_CLAUSES = 32  # of one condition, and lists in one of them: each list is joined once with every row
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between, exp.Is, exp.In)
_ON_SET = frozenset(("this", "expression", "distinct"))


@dataclass(frozen=True, slots=True)
class AskedList:
    """A condition of WHERE on one subquery: IN, = ANY, EXISTS, or a comparison in which `query` is a value.

    If it `is_absent`, the condition holds for units that are not on the list. If it `is_negated`, the condition is the
    NOT of a comparison, and unknown for the same rows as the comparison.
    """

    condition: exp.Expr
    query: exp.Select
    is_absent: bool
    is_negated: bool = False

    @property
    def members(self) -> list[exp.Expr]:
        """The columns that IN looks for in the subquery's rows. Empty for EXISTS and comparisons."""
        if not isinstance(self.condition, exp.In | exp.EQ | exp.NEQ) or self.is_value:
            return []
        node = strip_parentheses(self.condition.this)
        return [strip_parentheses(one) for one in node.expressions] if isinstance(node, exp.Tuple) else [node]

    @property
    def is_value(self) -> bool:
        """True if the subquery gives one value, which the condition compares."""
        around = self.query.parent
        while isinstance(around, exp.Subquery | exp.Paren):
            around = around.parent
        return not isinstance(around, exp.In | exp.Exists | exp.Any | exp.All | exp.SetOperation)


ListClauses: TypeAlias = tuple[tuple[AskedList, ...], ...]


def find_lists(node: exp.Expr) -> ListClauses | None:
    """Return the clauses of a condition on lists of units. Return None for any other condition.

    The condition holds if every clause has at least one list that holds.
    """
    try:
        return _read_clauses(node, is_absent=False)
    except RecursionError:
        return None


def is_list(node: exp.Expr) -> bool:
    """Return True for a conjunct of WHERE that asks for lists of units, once the question's form is right."""
    return find_lists(node) is not None


def _read_clauses(node: exp.Expr, *, is_absent: bool) -> ListClauses | None:
    found = strip_parentheses(node)
    is_absent = is_absent is not bool(found.args.get("negate"))
    match found:
        case exp.Not():
            return _read_clauses(found.this, is_absent=not is_absent)
        case exp.And() | exp.Or():
            sides = (_read_clauses(side, is_absent=is_absent) for side in (found.this, found.expression))
            return _combine(*sides, all_hold=isinstance(found, exp.And) is not is_absent)
        case exp.In() if found.args.get("query") is not None:
            return _read_members(found, found.args.get("query"), is_absent=is_absent)
        case exp.Exists():
            inner = _unwrap(found.this)
            return ((AskedList(found, inner, is_absent),),) if isinstance(inner, exp.Select) else None
        case exp.EQ() if isinstance(found.expression, exp.Any):
            return _read_members(found, found.expression.this, is_absent=is_absent)
        case exp.NEQ() if isinstance(found.expression, exp.All):
            return _read_members(found, found.expression.this, is_absent=not is_absent)
        case _ if isinstance(found, _COMPARISONS):
            value = _find_value(found)
            return None if value is None else ((AskedList(found, value, is_absent=False, is_negated=is_absent),),)
        case _:
            return None


def _combine(left: ListClauses | None, right: ListClauses | None, *, all_hold: bool) -> ListClauses | None:
    """Return both conditions joined by AND or OR. Return None if the result is too long."""
    if left is None or right is None:
        return None
    both = left + right if all_hold else tuple(one + other for one in left for other in right)
    return both if len(both) <= MOST_CLAUSES and all(len(one) <= MOST_CLAUSES for one in both) else None


def _unwrap(node: exp.Expr | None) -> exp.Expr | None:
    while isinstance(node, exp.Paren) or (isinstance(node, exp.Subquery) and not _has_more(node, frozenset(("this",)))):
        node = node.this
    return node


def _has_more(node: exp.Expr, known: frozenset[str]) -> bool:
    return any(value for key, value in node.args.items() if key not in known)


def _read_members(asked: exp.Expr, query: exp.Expr | None, *, is_absent: bool) -> ListClauses | None:
    """Read the lists of a subquery after IN, which may be a set operation."""
    query = _find_set(_unwrap(query))
    if isinstance(query, exp.Select):
        return ((AskedList(asked, query, is_absent),),)
    if not isinstance(query, exp.SetOperation) or _has_more(query, _ON_SET):
        return None
    is_except = isinstance(query, exp.Except)
    if is_except and not query.args.get("distinct"):
        return None  # EXCEPT ALL counts how often each stands there
    left = _read_members(asked, query.this, is_absent=is_absent)
    right = _read_members(asked, query.expression, is_absent=is_absent is not is_except)
    return _combine(left, right, all_hold=isinstance(query, exp.Union) is is_absent)


def _find_set(query: exp.Expr | None) -> exp.Expr | None:
    """Return the set operation whose columns a SELECT shows unchanged. Return any other query unchanged."""
    if not isinstance(query, exp.Select) or _has_more(query, frozenset(("expressions", "from_", "distinct"))):
        return query
    source, distinct = query.args["from_"].this if query.args.get("from_") else None, query.args.get("distinct")
    below = source.this if isinstance(source, exp.Subquery) else None
    if not isinstance(below, exp.SetOperation) or (distinct is not None and distinct.args.get("on") is not None):
        return query
    alias = None if source is None else source.args.get("alias")
    first: exp.Expr = below
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if (alias is not None and alias.args.get("columns")) or not isinstance(first, exp.Select):
        return query
    outer, inner = ([read_name(strip_parentheses(one).this) for one in part.expressions] for part in (query, first))
    return below if outer == inner and all(outer) else query


def _find_value(comparison: exp.Expr) -> exp.Select | None:
    """Return the subquery in a comparison that adds up rows, if it is the only one and nothing else reads a column."""
    queries = [query for query in comparison.find_all(exp.Query) if not isinstance(query, exp.Subquery)]
    inner = queries[0] if len(queries) == 1 else None
    if not isinstance(inner, exp.Select):
        return None
    around = inner.parent
    if not isinstance(around, exp.Subquery) or _has_more(around, frozenset(("this",))):
        return None
    if len(inner.expressions) != 1 or not contains_aggregate(inner.expressions[0]):
        return None
    hidden = {id(column) for column in inner.find_all(exp.Column)}
    return inner if all(id(column) in hidden for column in comparison.find_all(exp.Column)) else None


def find_listing_tables(tree: exp.Expr, private: Mapping[int, Table], *, idle: frozenset[int]) -> frozenset[int]:
    """Return the ids of the tables that lists of units read, in the WHERE of any SELECT from a private table.

    Parameters:
        private: the private tables of the tree, by the ids of their nodes.
        idle: the ids of tables whose rows are never read. A SELECT that reads only these is no question.
    """
    found: set[int] = set()
    for select in tree.find_all(exp.Select):
        read = (node for node in list_sources(select) if id(node) not in idle)
        outer = [table for node in read if (table := private.get(id(node))) is not None]
        where = select.args.get("where")
        if not outer or where is None:
            continue
        for part in split_conjuncts(where.this):
            for listed in (one for clause in find_lists(part) or () for one in clause):
                inside = [
                    table for node in list_read_tables(listed.query) if (table := private.get(id(node))) is not None
                ]
                if asks_of_units(listed, [*outer, *inside]):
                    found |= {id(node) for node in list_read_tables(listed.query) if id(node) in private}
    return frozenset(found)


def list_sources(select: exp.Select) -> Iterator[exp.Table]:
    """Yield the tables of a SELECT's FROM."""
    from_ = select.args.get("from_")
    nodes = [] if from_ is None else [from_.this]
    nodes += [join.this for join in select.args.get("joins") or ()]
    return (node for node in nodes if isinstance(node, exp.Table))


def list_selects(inner: exp.Select) -> Iterator[exp.Select]:
    """Yield a list's SELECT and the subqueries that it reads in FROM, from the outside in."""
    yield inner
    from_ = inner.args.get("from_")
    below = None if from_ is None else from_.this
    if isinstance(below, exp.Subquery) and isinstance(below.this, exp.Select):
        yield from list_selects(below.this)


def list_read_tables(inner: exp.Select) -> Iterator[exp.Table]:
    """Yield the tables that a list reads, itself or through subqueries in FROM."""
    return (node for select in list_selects(inner) for node in list_sources(select))


def asks_of_units(listed: AskedList, outer: list[Table]) -> bool:
    """Return True if a subquery lists units.

    Otherwise it is a question of its own, whose answered keys or numbers are compared with rows.
    """
    if isinstance(listed.condition, exp.Exists):
        return True
    units = {unit for table in outer for unit in table.unit if table.get_column(unit).domain is None}
    if not listed.is_value:
        named = {read_name(one.this) for one in listed.members if isinstance(one, exp.Column)}
        units |= list_key_columns(outer)
        return bool(named & units) or listed.query.args.get("having") is None
    units = {unit for table in outer for unit in table.unit} | list_key_columns(outer)
    where = listed.query.args.get("where")
    for part in split_conjuncts(None if where is None else where.this):
        sides = [strip_parentheses(part.this), strip_parentheses(part.expression)] if isinstance(part, exp.EQ) else []
        if all(isinstance(side, exp.Column) for side in sides) and any(read_name(side.this) in units for side in sides):
            return True
    return False
