"""A subquery over a public table after IN or EXISTS, as the list of its pinned values.

WHERE country IN (SELECT name FROM regions WHERE region = 'West')
WHERE country IN ('France', 'United Kingdom')

WHERE NOT EXISTS (SELECT 1 FROM regions r WHERE r.name = country AND r.region = 'West')
WHERE NOT ((country IN ('France', 'United Kingdom')) IS TRUE)
"""

from collections.abc import Iterator
from datetime import date
from functools import reduce
from itertools import chain

from sqlglot import exp

from planner.catalog.model import Catalog, PublicTable, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.refusals import subquery_in_list
from planner.parser.clauses import clauses, closing_index
from planner.parser.edits import Edit
from planner.parser.lexer import Token
from planner.parser.spans import Searched, spans
from planner.parser.tree import MOST_CHARACTERS, bare, contains, name
from planner.predicates.condition import row_condition
from planner.question.condition import evaluate
from planner.scope.names import Scope
from planner.values.expressions import uses_clock
from planner.values.model import Given
from planner.values.spelling import STANDARD

MOST_VALUES = 1_000  # of one subquery: they become text of the question; a longer list stays a subquery
_PLAIN = frozenset(("expressions", "from_", "where", "distinct"))
_ON_TABLE = frozenset(("this", "db", "alias"))
_TYPES = frozenset({SqlType.TEXT, SqlType.INTEGER, SqlType.DATE})


def inline_public_lists(read: PrivateRead) -> tuple[Edit, ...]:
    """The changes that list what subqueries in WHERE select from public tables; none for any other subquery."""
    where = read.select.args.get("where")
    if where is None:
        return ()
    found: list[Edit] = []
    length = 0
    lists = (change for one in where.find_all(exp.In) for change in _inline_list(one, read.tokens, read.catalog))
    for change in chain(lists, (change for one in where.find_all(exp.Exists) for change in _inline_exists(one, read))):
        found.append(change)
        length += len(change.text)
        if length > MOST_CHARACTERS:
            return ()
    return tuple(found)


def _inline_list(node: exp.In, tokens: tuple[Token, ...], catalog: Catalog) -> Iterator[Edit]:
    query = node.args.get("query")
    inner = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(inner, exp.Select):
        return
    try:
        found = _values(inner, catalog)
        if found is None:
            return
        at = _table(inner)
        assert at is not None
        first = clauses(at, tokens).select - 1
    except KeyholeError:
        return
    if first < 1 or not tokens[first].is_symbol("(") or not tokens[first - 1].is_word("in"):
        return
    yield Edit.of(tokens[first].start, tokens[closing_index(tokens, first)].end, f"({', '.join(found)})")


def _inline_exists(node: exp.Exists, read: PrivateRead) -> Iterator[Edit]:
    """A test for a public row whose column equals one of this row, as a test for the list of such values."""
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    table = _table(inner) if isinstance(inner, exp.Select) else None
    where = inner.args.get("where")
    if table is None or where is None or name(table.this) in _hidden(read.select):
        return
    public = next((one for one in read.catalog.public_tables if one.name == name(table.this)), None)
    if public is None:
        return
    alias = table.args.get("alias")
    called = name(alias.this) if alias is not None and alias.this is not None else public.name
    own = {column.name for column in public.columns}

    def is_own(column: exp.Column) -> bool:
        qualifier = name(column.args.get("table"))
        return qualifier == called if qualifier else name(column.this) in own

    outside: list[exp.Expr] = []
    kept: list[exp.Expr] = []
    for part in _list_conjuncts(where.this):
        (kept if all(map(is_own, part.find_all(exp.Column))) else outside).append(part)
    if len(outside) != 1 or not isinstance(equal := bare(outside[0]), exp.EQ):
        return
    sides = [bare(equal.this), bare(equal.expression)]
    if not (isinstance(sides[0], exp.Column) and is_own(sides[0])):
        sides.reverse()
    key, other = sides
    if not isinstance(key, exp.Column) or not is_own(key) or any(map(is_own, other.find_all(exp.Column))):
        return
    asked = exp.Select(expressions=[key.copy()], from_=inner.args["from_"].copy())
    if kept:
        asked.set("where", exp.Where(this=reduce(lambda a, b: exp.And(this=a, expression=b), (k.copy() for k in kept))))
    try:
        found = _values(asked, read.catalog, skip_nulls=True)
        (first, past), (begin, end) = spans(
            [Searched(node, 0, len(read.tokens)), Searched(other, 0, len(read.tokens))], read.text, read.tokens
        )
    except KeyholeError:
        return
    if found is None or any(value and key not in (*_PLAIN, "limit") for key, value in inner.args.items()):
        return
    text = read.text[read.tokens[begin].start : read.tokens[end - 1].end]
    tested = f"(({text} IN ({', '.join(found)})) IS TRUE)"
    yield Edit.of(read.tokens[first].start, read.tokens[past - 1].end, tested, read.tokens[begin].start)


def _list_conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    inner = bare(node)
    if isinstance(inner, exp.And):
        yield from _list_conjuncts(inner.this)
        yield from _list_conjuncts(inner.expression)
    else:
        yield node


def _table(select: exp.Select) -> exp.Table | None:
    source = select.args.get("from_")
    return source.this if source is not None and isinstance(source.this, exp.Table) else None


def _hidden(select: exp.Select) -> set[str]:
    """The names of WITH queries, which hide tables."""
    return {name(cte.args["alias"].this) for cte in select.root().find_all(exp.CTE)}


def _values(select: exp.Select, catalog: Catalog, *, skip_nulls: bool = False) -> list[str] | None:
    """What the subquery gives, as constants in SQL; None where that is not plain, or holds NULL, or is nothing."""
    node = _table(select)
    if node is None or any(value for key, value in select.args.items() if key not in _PLAIN):
        return None
    if any(value for key, value in node.args.items() if key not in _ON_TABLE):
        return None
    alias = node.args.get("alias")
    hidden = _hidden(select)
    public = next((one for one in catalog.public_tables if one.name == name(node.this)), None)
    if public is None or name(node.args.get("db")) not in ("", "public") or public.name in hidden:
        return None
    if (alias is not None and alias.args.get("columns")) or len(select.expressions) != 1:
        return None
    called = name(alias.this) if alias is not None and alias.this is not None else public.name
    scope = Scope(table=_as_table(public), alias=called)
    shown = bare(select.expressions[0].unalias())
    if not isinstance(shown, exp.Column) or isinstance(shown.this, exp.Star):
        return None
    column = scope.column(shown)
    if column.sql_type not in _TYPES or column.declared.startswith(("character(", "bpchar")):
        return None
    values: dict[Value, None] = {}
    for row in _rows(select, scope, public):  # of which there may be a million
        value = row[column.name]
        if value is None and skip_nulls:
            continue
        if value is None or len(values) > MOST_VALUES:
            return None
        values[value] = None
    if not 0 < len(values) <= MOST_VALUES:
        return None
    return [STANDARD.constant(value, column=column) for value in values]


def _rows(select: exp.Select, scope: Scope, public: PublicTable) -> Iterator[dict[str, Value | None]]:
    names = [column.name for column in public.columns]
    where = select.args.get("where")
    if where is not None and (contains(where, exp.Query, exp.Parameter) or uses_clock(where)):
        raise subquery_in_list()
    given = Given(parameters={}, today=date.min)
    condition = None if where is None else row_condition(where.this, scope, given)
    for row in public.rows:
        values = dict(zip(names, row, strict=True))
        if condition is None or evaluate(condition, values) is True:
            yield values


def _as_table(public: PublicTable) -> Table:
    """The public table as one whose rows conditions may be asked of."""
    return Table(
        name=public.name,
        relation="",
        columns=public.columns,
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="explicit",
        seed="",
    )
