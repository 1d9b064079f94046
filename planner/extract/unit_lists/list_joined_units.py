"""A join that only says whose rows count, as a list of privacy units in WHERE.

SELECT s.ward FROM stays s JOIN (SELECT DISTINCT patient FROM labs WHERE high) b ON b.patient = s.patient WHERE s.night
SELECT s.ward FROM stays s WHERE s.patient IN (SELECT b.patient FROM (SELECT DISTINCT ...) b) AND (s.night)

SELECT s.ward FROM stays s LEFT JOIN labs l ON l.patient = s.patient AND l.high WHERE l.patient IS NULL
SELECT s.ward FROM stays s WHERE s.patient NOT IN (SELECT l.patient FROM labs l WHERE l.high)

SELECT s.ward FROM stays s, (SELECT stay, count(*) AS n FROM labs GROUP BY stay) b WHERE b.stay = s.stay AND b.n > 3
SELECT s.ward FROM stays s WHERE s.stay IN (SELECT b.stay FROM (SELECT ...) b WHERE (b.n > 3)) AND TRUE

A join keeps the rows whose unit is found, once each if what is joined has one row for each unit: DISTINCT, a set
operation or GROUP BY of the unit's columns. An outer join of which a column that it equates IS NULL keeps the others.
No other column of what is joined may be read: a join that brings values or multiplies rows stays. Where a key within
the unit is equated, of which no value can be brought, conditions of WHERE on what is joined are the list's.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.from_clause import split_conjuncts
from planner.bind.unit_lists.key_pairs import list_key_columns
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import Clauses, find_clauses, find_item_end, find_opening, find_token, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.subquery_readers import find_conjuncts
from planner.parser.tree import contains_type, find_offset, read_name, strip_parentheses, write_node

_BEFORE = ("join", "left", "right", "full", "inner", "cross", "natural", "where", "group", "having", "order", "limit")
_AFTER = ("offset", "fetch", "union", "intersect", "except", "window", "for")
_ON_JOIN = frozenset(("this", "on", "using", "side", "kind"))
_ON_SOURCE = frozenset(("this", "alias"))


@dataclass(frozen=True, slots=True)
class _JoinedSource:
    """A joined source: its tokens with its alias, the query that gives its rows (None: a table), and ON's condition.

    `column_pairs` are equated columns of the question and of the source. Behind a comma, the equalities
    `where_equalities` of WHERE equate them. `row_conditions` are the conditions of ON on the source's rows. It
    `is_keyed` if the pairs are a key within the unit.
    """

    join: exp.Join
    alias: str
    first: int
    stop: int
    query: exp.Query | None
    column_pairs: tuple[tuple[exp.Column, str], ...]
    row_conditions: tuple[exp.Expr, ...]
    where_equalities: tuple[exp.Expr, ...] = ()
    is_keyed: bool = False

    @property
    def equated(self) -> frozenset[str]:
        return frozenset(column for _, column in self.column_pairs)


def list_joined_units(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that turn a join into a list of units, if the join only selects whose rows count.

    Return none without such a join.
    """
    select = read.select
    if select.args["from_"].this is not read.node or not select.args.get("joins") or read.table.is_row_unit:
        return ()
    try:
        place = find_clauses(read.node, read.tokens)
        if not matches_tree(place, select, read.tokens):
            return ()
        for join in select.args["joins"]:
            joined = _read_join(join, read)
            if joined is None:
                continue
            changes = tuple(_list_units(joined, place, read))
            if changes:
                return changes
    except KeyholeError:
        return ()
    return ()


def _read_join(join: exp.Join, read: PrivateRead) -> _JoinedSource | None:
    side, kind = str(join.side or "").upper(), str(join.kind or "").upper()
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER") or _has_more(join, _ON_JOIN):
        return None
    source = join.this
    alias = source.args.get("alias")
    if not isinstance(source, exp.Subquery | exp.Table) or _has_more(source, _ON_SOURCE):
        return None
    if alias is not None and alias.args.get("columns"):
        return None
    called = (
        read_name(alias.this) if alias is not None else read_name(source.this) if isinstance(source, exp.Table) else ""
    )
    query = source.this if isinstance(source, exp.Subquery) else _find_with_query(source)
    is_table = query is None and any(one.name == read_name(source.this) for one in read.catalog.tables)
    if not called or (query is None and not is_table):
        return None
    if not isinstance(query, exp.Query | None) or (query is not None and not _reads_private(query, read)):
        return None
    known = (table for table in read.catalog.tables if table.name == read_name(source.this))
    shown = {one.name for table in known for one in table.columns} if query is None else set(_list_shown(query))
    said, place = _read_on(join, called, shown, read), _find_source(source, read)
    if said is None or place is None:
        return None
    pairs, others, met = said
    keyed = {read_name(column.this) for column, _ in pairs} != set(read.table.unit)
    return _JoinedSource(join, called, *place, query, pairs, others, met, keyed)


def _has_more(node: exp.Expr, known: frozenset[str]) -> bool:
    return any(value for key, value in node.args.items() if key not in known)


def _find_with_query(node: exp.Table) -> exp.Query | None:
    """Return the WITH query that a name stands for, if it is one that others may stand in the place of."""
    found = [one for one in node.root().find_all(exp.CTE) if read_name(one.args["alias"].this) == read_name(node.this)]
    if len(found) != 1 or found[0].args["alias"].args.get("columns"):
        return None
    with_ = found[0].parent
    query = found[0].this
    return query if with_ is not None and not with_.args.get("recursive") and isinstance(query, exp.Query) else None


def _reads_private(query: exp.Query, read: PrivateRead) -> bool:
    names = {table.name for table in read.catalog.tables}
    for cte in read.query.tree.find_all(exp.CTE):  # each may read those before it
        if any(read_name(node.this) in names for node in cte.find_all(exp.Table)):
            names.add(read_name(cte.args["alias"].this))
    return any(read_name(node.this) in names for node in query.find_all(exp.Table))


def _list_shown(query: exp.Query) -> Iterator[str]:
    """Yield the names of a query's columns. A set operation has those of its first SELECT."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    for item in query.expressions if isinstance(query, exp.Select) else ():
        column = strip_parentheses(item)
        called = item.args["alias"] if isinstance(item, exp.Alias) else column.this
        yield read_name(called) if isinstance(item, exp.Alias) or isinstance(column, exp.Column) else ""


def _read_on(
    join: exp.Join, called: str, shown: set[str], read: PrivateRead
) -> tuple[tuple[tuple[exp.Column, str], ...], tuple[exp.Expr, ...], tuple[exp.Expr, ...]] | None:
    """Return the equalities of ON or USING, and its conditions on the joined rows alone.

    Equalities of WHERE may stand for ON behind a comma. Return None for anything else.
    """
    unit, where = set(read.table.unit), read.select.args.get("where")
    is_comma = not any(join.args.get(one) for one in ("on", "using", "side", "kind"))
    met: list[exp.Expr] = []
    pairs: list[tuple[exp.Column, str]] = []
    others: list[exp.Expr] = []
    for one in join.args.get("using") or ():
        identifier = one if isinstance(one, exp.Identifier) else one.this
        pairs.append((exp.column(identifier.copy()), read_name(identifier)))

    alone = len(read.select.args["joins"]) == 1
    only = shown - {column.name for column in read.table.columns} if alone else set[str]()

    def is_joined(column: exp.Column) -> bool:
        qualifier = read_name(column.args.get("table"))
        return column.args.get("db") is None and (
            qualifier == called or (not qualifier and read_name(column.this) in only)
        )

    for part in split_conjuncts(where.this if is_comma and where is not None else join.args.get("on")):
        columns = list(part.find_all(exp.Column))
        sides = [strip_parentheses(part.this), strip_parentheses(part.expression)] if isinstance(part, exp.EQ) else []
        if len(sides) == 2 and len(columns) == 2 and all(isinstance(side, exp.Column) for side in sides):
            inside = [side for side in columns if is_joined(side)]
            outside = [side for side in columns if not is_joined(side) and read_name(side.args.get("table"))]
            if len(inside) == len(outside) == 1:
                pairs.append((outside[0], read_name(inside[0].this)))
                met += [part] if is_comma else []
                continue
        if is_comma:
            continue
        if not all(map(is_joined, columns)) or contains_type(part, exp.Query) or contains_aggregate(part):
            return None
        others.append(part)
    equated = [read_name(column.this) for column, _ in pairs]
    if len(set(equated)) != len(equated) or not equated:
        return None
    if set(equated) != unit and not set(equated) <= list_key_columns(read.catalog.tables):
        return None
    return (tuple(pairs), tuple(others), tuple(met)) if {column for _, column in pairs} <= shown else None


def _find_source(source: exp.Expr, read: PrivateRead) -> tuple[int, int] | None:
    """Return the tokens of a source of FROM with its alias: the first, and the one past the last."""
    tokens, alias = read.tokens, source.args.get("alias")
    if isinstance(source, exp.Table):
        first = find_token(tokens, find_offset(source.this))
        return first, find_token(tokens, find_offset(alias.this)) + 1 if alias is not None else first + 1
    if alias is None:
        return None
    last = find_token(tokens, find_offset(alias.this))
    closing = last - 2 if tokens[last - 1].is_word("as") else last - 1
    opening = find_opening(tokens, closing) if tokens[closing].is_symbol(")") else None
    return None if opening is None else (opening, last + 1)


def _list_units(joined: _JoinedSource, place: Clauses, read: PrivateRead) -> Iterator[Edit]:
    tokens, select = read.tokens, read.select
    spans = find_conjuncts(select, place, tokens)
    if spans is None:
        return
    outer = bool(joined.join.side)
    tested = [(span, node, column) for span, node in spans if (column := _find_null_column(node, joined)) is not None]
    if (len(tested) != 1) if outer else bool(tested):
        return
    moved = [(span, node) for span, node in spans if joined.is_keyed and not outer and _is_of_joined(node, joined)]
    met = [(span, node) for span, node in spans if any(node is one for one in joined.where_equalities)]
    if len(met) != len(joined.where_equalities):
        return
    said = (*(node for _, node, _ in tested), *(node for _, node in (*moved, *met)))
    skipped = {id(column) for node in said for column in node.find_all(exp.Column)}
    changes = _replace_joined_columns(joined, skipped, read, is_outer=outer)
    unique = joined.query is not None and _has_one_row(joined.query, joined.equated)
    if changes is None or not (unique or (outer and tested[0][2] in joined.equated)):
        return
    others = [*joined.row_conditions, *(node for _, node in moved)]
    if outer and tested[0][2] not in joined.equated:
        named = (exp.to_identifier(one, quoted=True) for one in (tested[0][2], joined.alias))
        others.append(exp.Not(this=exp.Is(this=exp.column(*named), expression=exp.Null())))
    condition = _write_list(joined, others, read, is_absent=outer)
    origin = tokens[joined.first].start
    start = joined.first - 1
    while tokens[start - 1].is_word("left", "outer", "inner"):
        start -= 1
    past = find_item_end(tokens, joined.stop, before=(*_BEFORE, *_AFTER), stops_at_commas=True)
    yield Edit.from_text(tokens[start].start, tokens[past - 1].end, "")
    yield from changes
    if outer:
        (first, last), _, _ = tested[0]
        yield Edit.from_text(tokens[first].start, tokens[last - 1].end, condition, origin)
        return
    for i, ((first, last), _) in enumerate((*met, *moved)):
        yield Edit.from_text(tokens[first].start, tokens[last - 1].end, condition if met and i == 0 else "TRUE", origin)
    if met:
        return
    where = place.find_mark("where")
    later = [index for _, index in place.marks if where is None or index > where]
    end = tokens[min(later, default=place.end) - 1].end
    if where is None:
        yield Edit.from_text(end, end, f" WHERE {condition}", origin)
    else:
        yield Edit.from_text(tokens[where].end, tokens[where].end, f" {condition} AND (", origin)
        yield Edit.from_text(end, end, ")")


def _is_of_joined(node: exp.Expr, joined: _JoinedSource) -> bool:
    """Return True if a condition reads only columns of the joined source."""
    columns = list(node.find_all(exp.Column))
    alone = all(read_name(column.args.get("table")) == joined.alias for column in columns)
    return bool(columns) and alone and not contains_type(node, exp.Query) and not contains_aggregate(node)


def _find_null_column(node: exp.Expr, joined: _JoinedSource) -> str | None:
    """Return the column of the joined source that a condition tests for NULL."""
    found = strip_parentheses(node)
    if (
        not isinstance(found, exp.Is)
        or found.args.get("negate")
        or not isinstance(strip_parentheses(found.expression), exp.Null)
    ):
        return None
    column = strip_parentheses(found.this)
    if not isinstance(column, exp.Column) or read_name(column.args.get("table")) != joined.alias:
        return None
    return read_name(column.this)


def _replace_joined_columns(
    joined: _JoinedSource, skipped: set[int], read: PrivateRead, *, is_outer: bool
) -> list[Edit] | None:
    """Return the edits that write the question's own column in place of each joined column that equals it.

    Return None if the question reads any other joined column. `skipped` are ids of columns to leave as they are.
    """
    hidden = {id(column) for column in joined.join.find_all(exp.Column)} | skipped
    with_ = read.select.args.get("with_")
    if with_ is not None:
        hidden |= {id(column) for column in with_.find_all(exp.Column)}
    shown = set(_list_shown(joined.query)) if joined.query is not None else set()
    merged = {
        read_name(one if isinstance(one, exp.Identifier) else one.this) for one in joined.join.args.get("using") or ()
    }
    changes: list[Edit] = []
    for column in read.select.find_all(exp.Column):
        called, qualifier = read_name(column.this), read_name(column.args.get("table"))
        if id(column) in hidden or (qualifier and qualifier != joined.alias):
            continue
        if isinstance(column.this, exp.Star):
            return None
        within = column.parent_select is read.select
        if not qualifier:
            if called in shown - merged and within:
                return None
            continue
        own = next((one for one, other in joined.column_pairs if other == called), None)
        if own is None or is_outer or not within:
            return None
        start = read.tokens[find_token(read.tokens, find_offset(column.args["table"]))].start
        changes.append(
            Edit.from_text(
                start, read.tokens[find_token(read.tokens, find_offset(column.this))].end, _write_column(own)
            )
        )
    return None if any(isinstance(item, exp.Star) for item in read.select.expressions) else changes


def _has_one_row(query: exp.Query, equated: frozenset[str]) -> bool:
    """Return True if a query has one row at most for each value of these columns."""
    shown = list(_list_shown(query))
    if isinstance(query, exp.SetOperation):
        return bool(query.args.get("distinct")) and set(shown) == equated
    if not isinstance(query, exp.Select) or any(query.args.get(clause) for clause in ("limit", "offset", "joins")):
        return False
    distinct, group = query.args.get("distinct"), query.args.get("group")
    if distinct is not None:
        return distinct.args.get("on") is None and set(shown) == equated
    if group is None or _has_more(group, frozenset(("expressions",))):
        return False
    grouped = {_find_shown(item, query, shown) for item in group.expressions}
    return grouped <= equated


def _find_shown(item: exp.Expr, query: exp.Select, shown: list[str]) -> str | None:
    """Return the name under which the SELECT shows a grouped expression."""
    node = strip_parentheses(item)
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
        place = int(str(node.this)) - 1
        return shown[place] if 0 <= place < len(shown) else None
    for called, one in zip(shown, query.expressions, strict=True):
        inner = strip_parentheses(one.this if isinstance(one, exp.Alias) else one)
        if (
            isinstance(inner, exp.Column)
            and isinstance(node, exp.Column)
            and read_name(inner.this) == read_name(node.this)
        ):
            return called
    return None


def _write_list(joined: _JoinedSource, others: list[exp.Expr], read: PrivateRead, *, is_absent: bool) -> str:
    left = ", ".join(_write_column(column) for column, _ in joined.column_pairs)
    alias = quote_identifier(joined.alias)
    right = ", ".join(f"{alias}.{quote_identifier(column)}" for _, column in joined.column_pairs)
    source = read.text[read.tokens[joined.first].start : read.tokens[joined.stop - 1].end]
    where = f" WHERE {' AND '.join(f'({write_node(one)})' for one in others)}" if others else ""
    left = f"({left})" if len(joined.column_pairs) > 1 else left
    return f"{left} {'NOT ' if is_absent else ''}IN (SELECT {right} FROM {source}{where})"


def _write_column(column: exp.Column) -> str:
    qualifier = column.args.get("table")
    called = quote_identifier(read_name(column.this))
    return called if qualifier is None else f"{quote_identifier(read_name(qualifier))}.{called}"
