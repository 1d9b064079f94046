"""An outer join that keeps every row of a public table, with the private table first.

SELECT w.ward FROM wards w LEFT JOIN visits v ON v.ward = w.ward AND v.age > 65
GROUP BY w.ward HAVING count(v.id) < 10

SELECT w.ward FROM visits v JOIN wards w ON v.ward = w.ward
GROUP BY w.ward HAVING count(v.id) FILTER (WHERE v.age > 65) < 10

Guarantee: Keyhole gives the same groups for both, whatever the rows are: each value that stands in the public table
is a group, with private rows or without. In the row that PostgreSQL makes up for a public row without any, all private
columns are NULL. So each aggregate must be of something that is NULL there, and WHERE must not ask for NULL: else
nothing changes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.catalog.catalog import Catalog
from planner.extract.extract_refusals import refuse_missing_groups
from planner.extract.outer_joins.missing_rows import counts_nothing, list_aggregates
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import find_token
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import find_offset, locate_name, read_alias, read_name, strip_parentheses

_ASKS_FOR_NULL = (exp.Is, exp.Coalesce, exp.Case, exp.NullSafeEQ, exp.NullSafeNEQ)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of FROM: the private one, and the first public one, as columns are qualified by them."""

    private: str
    columns: frozenset[str]
    others: frozenset[str]

    def is_private(self, column: exp.Column) -> bool:
        """Return True if a column is certainly the private table's."""
        qualifier = read_name(column.args.get("table"))
        if qualifier:
            return qualifier == self.private
        return read_name(column.this) in self.columns - self.others


def read_private_first(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that put the private table of an outer join first.

    Return none for a SELECT without such a join.

    Raises KH107 if the declared groups lack a value of the public table.
    """
    select, join = read.select, _find_outer_join(read)
    if join is None or select.find(exp.Window, exp.Subquery) is not None:
        return ()
    tables = _name_tables(read)
    on, using = join.args.get("on"), join.args.get("using") or ()
    if tables is None or bool(on) is bool(using) or len(using) > 1:
        return ()
    parts = list(_list_conjuncts(on))
    joining = [part for part in parts if _is_joining(part, tables)]
    others = [part for part in parts if not any(part is one for one in joining)]
    aggregates = list(list_aggregates(select))
    where = select.args.get("where")
    if (on and len(joining) != 1) or not all(_reads_private_alone(part, tables) for part in others):
        return ()
    if not aggregates or not all(counts_nothing(one, tables.is_private) for one in aggregates):
        return ()
    if where is not None and any(_reads_private(one, tables) for one in where.find_all(*_ASKS_FOR_NULL)):
        return ()
    _check_groups(read, parts=joining, using=using, tables=tables)
    edits = [*_swap_tables(read, join), *_write_inner_join(read, join)]
    if using:
        edits += _write_on_for_using(read, join, tables)
    elif on is not None and others:
        edits += _move_conditions(read, on, joining[0], others, aggregates)
    return tuple(edits)


def _check_groups(read: PrivateRead, *, parts: Sequence[exp.Expr], using: Sequence[exp.Expr], tables: _Tables) -> None:
    """Refuse a join by a declared key without a group for each public row."""
    columns = [column for part in parts for column in part.find_all(exp.Column)]
    own = next((column.this for column in columns if tables.is_private(column)), *using[:1])
    other = next((column for column in columns if not tables.is_private(column)), *using[:1])
    domain = next((one.domain for one in read.table.columns if one.name == read_name(own)), None)
    called = read_name(other.this if isinstance(other, exp.Column) else other)
    qualifier = read_name(other.args.get("table"))
    joined = {read_name(node.this) for node in read.select.find_all(exp.Table) if qualifier in ("", read_alias(node))}
    if domain is None:
        return
    for public in read.catalog.public_tables:
        places = [place for place, column in enumerate(public.columns) if column.name == called]
        if public.name in joined and any(row[place] not in domain for place in places for row in public.rows):
            raise refuse_missing_groups(public, called, read_name(own), own)


def _find_outer_join(read: PrivateRead) -> exp.Join | None:
    """Return the join that keeps each row of the first table, with the private one on its right, or the reverse."""
    joins = read.select.args.get("joins") or []
    parent = read.node.parent
    if isinstance(parent, exp.Join):
        return parent if _is_side(parent, "LEFT") and isinstance(read.select.args["from_"].this, exp.Table) else None
    first = next(iter(joins), None)
    return first if first is not None and _is_side(first, "RIGHT") and isinstance(first.this, exp.Table) else None


def _is_side(join: exp.Join, side: str) -> bool:
    return str(join.side or "").upper() == side and str(join.kind or "").upper() in ("", "OUTER") and not join.method


def _name_tables(read: PrivateRead) -> _Tables | None:
    """Return the tables of FROM. Return None if a table other than the private one is not public."""
    nodes = [read.select.args["from_"].this, *(join.this for join in read.select.args.get("joins") or [])]
    others: set[str] = set()
    for node in nodes:
        if node is read.node:
            continue
        found = _list_columns(node, read.catalog)
        if found is None:
            return None
        others |= found
    columns = frozenset(column.name for column in read.table.columns)
    return _Tables(read_alias(read.node), columns, frozenset(others))


def _list_columns(node: exp.Expr, catalog: Catalog) -> set[str] | None:
    if not isinstance(node, exp.Table):
        return None
    public = next((one for one in catalog.public_tables if one.name == read_name(node.this)), None)
    return None if public is None else {column.name for column in public.columns}


def _list_conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    inner = None if node is None else strip_parentheses(node)
    if isinstance(inner, exp.And):
        yield from _list_conjuncts(inner.this)
        yield from _list_conjuncts(inner.expression)
    elif node is not None:
        yield node


def _is_joining(part: exp.Expr, tables: _Tables) -> bool:
    """Return True if a condition is an equality of a private column with another table's."""
    inner = strip_parentheses(part)
    if not isinstance(inner, exp.EQ) or inner.args.get("negate"):
        return False
    sides = strip_parentheses(inner.this), strip_parentheses(inner.expression)
    found = [tables.is_private(column) for side in sides for column in side.find_all(exp.Column)]
    return len(found) == 2 and sorted(found) == [False, True]


def _reads_private(node: exp.Expr, tables: _Tables) -> bool:
    return any(tables.is_private(column) for column in node.find_all(exp.Column))


def _reads_private_alone(node: exp.Expr, tables: _Tables) -> bool:
    read = list(node.find_all(exp.Column))
    return bool(read) and all(map(tables.is_private, read)) and node.find(exp.Query, exp.AggFunc) is None


def _find_span(read: PrivateRead, node: exp.Table) -> tuple[int, int]:
    """Return the first token of a table in FROM, and the one past its alias."""
    first = find_token(read.tokens, locate_name(node))
    alias = node.args.get("alias")
    last = alias.this if alias is not None and alias.this is not None else node.this
    return first, find_token(read.tokens, find_offset(last)) + 1


def _swap_tables(read: PrivateRead, join: exp.Join) -> Iterator[Edit]:
    """Yield the private table in the place of the first one, unless it is that."""
    first = read.select.args["from_"].this
    if join.this is not read.node:
        return
    places = [_find_span(read, node) for node in (first, join.this)]
    texts = [(read.tokens[begin].start, read.tokens[past - 1].end) for begin, past in places]
    for (start, end), (other, past) in zip(texts, texts[::-1], strict=True):
        yield Edit.from_text(start, end, read.text[other:past], other)


def _write_inner_join(read: PrivateRead, join: exp.Join) -> Iterator[Edit]:
    """Yield the edits that write JOIN for LEFT OUTER JOIN."""
    at = _find_span(read, join.this)[0] - 1
    last = at - 1
    first = last - 1 if read.tokens[last].is_word("outer") else last
    yield Edit.from_text(read.tokens[first].start, read.tokens[at].start, "")


def _write_on_for_using(read: PrivateRead, join: exp.Join, tables: _Tables) -> Iterator[Edit]:
    """Yield the edits that write ON for USING. Its column is that of the table whose rows are all kept."""
    column = join.args["using"][0]
    called = read_name(column if isinstance(column, exp.Identifier) else column.this)
    public = join.this if join.this is not read.node else read.select.args["from_"].this
    owner = quote_identifier(read_alias(public))
    at = find_token(read.tokens, find_offset(column if isinstance(column, exp.Identifier) else column.this))
    equal = f"ON {quote_identifier(tables.private)}.{quote_identifier(called)} = {owner}.{quote_identifier(called)}"
    yield Edit.from_text(read.tokens[at - 2].start, read.tokens[at + 1].end, equal)
    for found in read.select.find_all(exp.Column):
        if read_name(found.this) == called and not found.args.get("table"):
            start = find_offset(found.this)
            yield Edit.from_text(start, start, f"{owner}.")


def _move_conditions(
    read: PrivateRead, on: exp.Expr, joining: exp.Expr, others: Sequence[exp.Expr], aggregates: Sequence[exp.Expr]
) -> Iterator[Edit]:
    """Yield the edits that move ON's conditions on private rows, beside the equality, into FILTER of each aggregate."""
    past = len(read.tokens)
    filtered = [one.expression.this for one in aggregates if isinstance(one, exp.Filter)]
    plain = [one for one in aggregates if not isinstance(one, exp.Filter)]
    searched = [SearchedNode(one, 0, past) for one in (on, joining, *others, *filtered, *plain)]
    found = find_spans(searched, read.text, read.tokens)
    texts = [(read.tokens[first].start, read.tokens[past - 1].end) for first, past in found]
    (start, end), (begin, finish), *rest = texts
    conditions = " AND ".join(f"({read.text[one:two]})" for one, two in rest[: len(others)])
    yield Edit.from_text(start, end, read.text[begin:finish], begin)
    for one, two in rest[len(others) : len(others) + len(filtered)]:
        yield Edit.from_text(one, two, f"({read.text[one:two]}) AND {conditions}", one)
    for _, two in rest[len(others) + len(filtered) :]:
        yield Edit.from_text(two, two, f" FILTER (WHERE {conditions})", rest[0][0])
