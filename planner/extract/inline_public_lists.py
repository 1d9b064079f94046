"""A subquery over a public table after IN, as the list of its pinned values.

WHERE country IN (SELECT name FROM regions WHERE region = 'West')
WHERE country IN ('France', 'United Kingdom')
"""

from collections.abc import Iterator
from datetime import date

from sqlglot import exp

from planner.catalog.model import Catalog, PublicTable, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.refusals import subquery_in_list
from planner.parser.clauses import clauses, closing_index
from planner.parser.edits import Edit
from planner.parser.lexer import Token
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
    for change in (change for one in where.find_all(exp.In) for change in _inline_list(one, read.tokens, read.catalog)):
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


def _table(select: exp.Select) -> exp.Table | None:
    source = select.args.get("from_")
    return source.this if source is not None and isinstance(source.this, exp.Table) else None


def _values(select: exp.Select, catalog: Catalog) -> list[str] | None:
    """What the subquery gives, as constants in SQL; None where that is not plain, or holds NULL, or is nothing."""
    node = _table(select)
    if node is None or any(value for key, value in select.args.items() if key not in _PLAIN):
        return None
    if any(value for key, value in node.args.items() if key not in _ON_TABLE):
        return None
    alias = node.args.get("alias")
    hidden = {name(cte.args["alias"].this) for cte in select.root().find_all(exp.CTE)}
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
