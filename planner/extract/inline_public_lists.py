"""A subquery over a public table after IN or EXISTS, as the list of its pinned values.

WHERE country IN (SELECT name FROM regions WHERE region = 'West')
WHERE country IN ('France', 'United Kingdom')

WHERE NOT EXISTS (SELECT 1 FROM regions r WHERE r.name = country AND r.region = 'West')
WHERE NOT ((country IN ('France', 'United Kingdom')) IS TRUE)

And a subquery that counts or adds up pinned values, as the number that it is.

HAVING count(*) > 100 * (SELECT count(*) FROM regions WHERE region = 'West')
HAVING count(*) > 100 * (2)
"""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal, localcontext
from functools import reduce
from itertools import chain

from sqlglot import exp

from planner.catalog.catalog import Catalog, PublicTable, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.extract.extract_refusals import refuse_public_list
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import find_clauses, find_closing
from planner.parser.edits import Edit
from planner.parser.lexer import Token
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import MOST_CHARACTERS, contains_type, read_alias, read_name, strip_parentheses, write_node
from planner.predicates.condition import read_row_condition
from planner.question.condition import evaluate
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from planner.values.expressions import uses_clock
from planner.values.spelling import STANDARD

MOST_VALUES = 1_000  # of one subquery: they become text of the question; a longer list stays a subquery
_PLAIN = frozenset(("expressions", "from_", "where", "distinct"))
_ON_TABLE = frozenset(("this", "db", "alias"))
_AGGREGATING = frozenset(("expressions", "from_", "where"))
_CALLS = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_MOST_ROWS = 20_000  # of a table whose values are added up, each time that a statement is read
_MOST_SUBQUERIES = 30  # of one SELECT: together they read as many rows as one list may
_TYPES = frozenset({SqlType.TEXT, SqlType.INTEGER, SqlType.DATE})


def inline_public_lists(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that write the values of public subqueries in WHERE as lists. Other subqueries stay."""
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


def inline_public_values(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that replace public subqueries by their numbers and dates. Other subqueries stay."""
    where, having = (read.select.args.get(clause) for clause in ("where", "having"))
    shown = [one for one in read.select.expressions if not isinstance(one, exp.Subquery)]
    read_in = (*shown, *(one for one in (where, having) if one is not None))
    nodes = [node for clause in read_in for node in clause.find_all(exp.Subquery)]
    if len(nodes) > _MOST_SUBQUERIES:
        return ()
    found: list[Edit] = []
    for node in nodes:
        value = _compute_value(node.this, read.catalog) if isinstance(node.this, exp.Select) else None
        if value is None or node.find_ancestor(exp.Select) is not read.select:
            continue
        try:
            ((first, past),) = find_spans([SearchedNode(node, 0, len(read.tokens))], read.text, read.tokens)
        except KeyholeError:
            return ()
        found.append(Edit.from_text(read.tokens[first].start, read.tokens[past - 1].end, f"({value})"))
    return tuple(found)


def _compute_value(select: exp.Select, catalog: Catalog) -> str | None:
    """Return the value of a subquery of public aggregates, as SQL. Return None for NULL and other subqueries."""
    node = _find_table(select)
    if node is None or any(value for key, value in select.args.items() if key not in _AGGREGATING):
        return None
    public = _find_public_table(node, select, catalog)
    if public is None or len(public.rows) > _MOST_ROWS or len(select.expressions) != 1:
        return None
    scope = Scope(table=_make_table(public), alias=read_alias(node))
    shown = strip_parentheses(select.expressions[0].unalias())
    try:
        rows = list(_list_rows(select, scope, public))
        found = {id(one): _write_aggregate(one, rows, scope) for one in _list_calls(shown)}
    except KeyholeError:
        return None
    if not found or None in found.values() or contains_type(shown, exp.Query, exp.Filter, exp.Window):
        return None
    read = {id(column) for one in _list_calls(shown) for column in one.find_all(exp.Column)}
    if any(id(column) not in read for column in shown.find_all(exp.Column)):
        return None
    texts = [text for text in found.values() if text is not None]
    copied: exp.Expr = exp.Tuple(expressions=[shown.copy()]).expressions[0]
    for one, text in zip(list(_list_calls(copied)), texts, strict=True):
        value = exp.Paren(this=exp.Var(this=text))
        if one is copied:
            return text
        one.replace(value)
    return write_node(copied)


def _list_calls(node: exp.Expr) -> Iterator[exp.Expr]:
    return node.find_all(*_CALLS)


def _write_aggregate(call: exp.Expr, rows: list[dict[str, Value | None]], scope: Scope) -> str | None:
    """Return an aggregate of exact numbers or dates as PostgreSQL types it, as SQL.

    Return None for another one, and for NULL.
    """
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Star):
        return f"{len(rows)}::bigint"
    if not isinstance(call.this, exp.Column) or isinstance(call.this.this, exp.Star):
        return None
    column = scope.resolve_column(call.this)
    values = [value for row in rows if (value := row[column.name]) is not None]
    if isinstance(call, exp.Count):
        return None if call.expressions else f"{len(values)}::bigint"
    if call.expressions or column.sql_type not in (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DATE):
        return None
    if not values or any(isinstance(value, Decimal) and not value.is_finite() for value in values):
        return None
    wide = {"integer": "", "smallint": ""}.get(column.declared, "::bigint")
    if isinstance(call, exp.Min | exp.Max):
        found = (min if isinstance(call, exp.Min) else max)(values)
        return f"{found}{wide}" if isinstance(found, int) else STANDARD.write_constant(found, column=column)
    if column.sql_type is SqlType.DATE:
        return None
    with localcontext(prec=60):
        total = sum((Decimal(value) for value in values if isinstance(value, int | Decimal)), Decimal(0))
    if isinstance(call, exp.Avg):
        return f"{total:f}::numeric / {len(values)}"
    return f"{total:f}::bigint" if not wide and column.sql_type is SqlType.INTEGER else f"{total:f}::numeric"


def _find_public_table(node: exp.Table, select: exp.Select, catalog: Catalog) -> PublicTable | None:
    """Return the public table that a subquery reads by a plain name."""
    if any(value for key, value in node.args.items() if key not in _ON_TABLE):
        return None
    alias = node.args.get("alias")
    public = next((one for one in catalog.public_tables if one.name == read_name(node.this)), None)
    if (
        public is None
        or read_name(node.args.get("db")) not in ("", "public")
        or public.name in _list_hidden_names(select)
    ):
        return None
    return None if alias is not None and alias.args.get("columns") else public


def _inline_list(node: exp.In, tokens: tuple[Token, ...], catalog: Catalog) -> Iterator[Edit]:
    query = node.args.get("query")
    inner = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(inner, exp.Select):
        return
    try:
        found = _list_values(inner, catalog)
        if found is None:
            return
        at = _find_table(inner)
        assert at is not None
        first = find_clauses(at, tokens).select - 1
    except KeyholeError:
        return
    if first < 1 or not tokens[first].is_symbol("(") or not tokens[first - 1].is_word("in"):
        return
    yield Edit.from_text(tokens[first].start, tokens[find_closing(tokens, first)].end, f"({', '.join(found)})")


def _inline_exists(node: exp.Exists, read: PrivateRead) -> Iterator[Edit]:
    """Yield the edits that write EXISTS of a public row with an equal column as a test for a list of values."""
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    table = _find_table(inner) if isinstance(inner, exp.Select) else None
    where = inner.args.get("where")
    if table is None or where is None or read_name(table.this) in _list_hidden_names(read.select):
        return
    public = next((one for one in read.catalog.public_tables if one.name == read_name(table.this)), None)
    if public is None:
        return
    called = read_alias(table)
    own = {column.name for column in public.columns}

    def is_own(column: exp.Column) -> bool:
        qualifier = read_name(column.args.get("table"))
        return qualifier == called if qualifier else read_name(column.this) in own

    outside: list[exp.Expr] = []
    kept: list[exp.Expr] = []
    for part in _list_conjuncts(where.this):
        (kept if all(map(is_own, part.find_all(exp.Column))) else outside).append(part)
    if len(outside) != 1 or not isinstance(equal := strip_parentheses(outside[0]), exp.EQ):
        return
    sides = [strip_parentheses(equal.this), strip_parentheses(equal.expression)]
    if not (isinstance(sides[0], exp.Column) and is_own(sides[0])):
        sides.reverse()
    key, other = sides
    if not isinstance(key, exp.Column) or not is_own(key) or any(map(is_own, other.find_all(exp.Column))):
        return
    asked = exp.Select(expressions=[key.copy()], from_=inner.args["from_"].copy())
    if kept:
        asked.set("where", exp.Where(this=reduce(lambda a, b: exp.And(this=a, expression=b), (k.copy() for k in kept))))
    try:
        found = _list_values(asked, read.catalog, skips_nulls=True)
        (first, past), (begin, end) = find_spans(
            [SearchedNode(node, 0, len(read.tokens)), SearchedNode(other, 0, len(read.tokens))], read.text, read.tokens
        )
    except KeyholeError:
        return
    if found is None or any(value and key not in (*_PLAIN, "limit") for key, value in inner.args.items()):
        return
    text = read.text[read.tokens[begin].start : read.tokens[end - 1].end]
    tested = f"(({text} IN ({', '.join(found)})) IS TRUE)"
    yield Edit.from_text(read.tokens[first].start, read.tokens[past - 1].end, tested, read.tokens[begin].start)


def _list_conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    inner = strip_parentheses(node)
    if isinstance(inner, exp.And):
        yield from _list_conjuncts(inner.this)
        yield from _list_conjuncts(inner.expression)
    else:
        yield node


def _find_table(select: exp.Select) -> exp.Table | None:
    source = select.args.get("from_")
    return source.this if source is not None and isinstance(source.this, exp.Table) else None


def _list_hidden_names(select: exp.Select) -> set[str]:
    """Return the names of WITH queries, which hide tables."""
    return {read_name(cte.args["alias"].this) for cte in select.root().find_all(exp.CTE)}


def _list_values(select: exp.Select, catalog: Catalog, *, skips_nulls: bool = False) -> list[str] | None:
    """Return a subquery's values as SQL constants. Return None if it is not plain, is empty, or holds NULL."""
    node = _find_table(select)
    if node is None or any(value for key, value in select.args.items() if key not in _PLAIN):
        return None
    public = _find_public_table(node, select, catalog)
    if public is None or len(select.expressions) != 1:
        return None
    scope = Scope(table=_make_table(public), alias=read_alias(node))
    shown = strip_parentheses(select.expressions[0].unalias())
    if not isinstance(shown, exp.Column) or isinstance(shown.this, exp.Star):
        return None
    column = scope.resolve_column(shown)
    if column.sql_type not in _TYPES or column.declared.startswith(("character(", "bpchar")):
        return None
    values: dict[Value, None] = {}
    for row in _list_rows(select, scope, public):  # of which there may be a million
        value = row[column.name]
        if value is None and skips_nulls:
            continue
        if value is None or len(values) > MOST_VALUES:
            return None
        values[value] = None
    if not 0 < len(values) <= MOST_VALUES:
        return None
    return [STANDARD.write_constant(value, column=column) for value in values]


def _list_rows(select: exp.Select, scope: Scope, public: PublicTable) -> Iterator[dict[str, Value | None]]:
    names = [column.name for column in public.columns]
    where = select.args.get("where")
    if where is not None and (contains_type(where, exp.Query, exp.Parameter) or uses_clock(where)):
        raise refuse_public_list()
    given = ConstantContext(parameters={}, today=date.min)
    condition = None if where is None else read_row_condition(where.this, scope, given)
    for row in public.rows:
        values = dict(zip(names, row, strict=True))
        if condition is None or evaluate(condition, values) is True:
            yield values


def _make_table(public: PublicTable) -> Table:
    """Return the public table as one whose rows conditions may be asked of."""
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
