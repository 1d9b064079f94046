"""A subquery that joins tables or is joined, and only filters and projects, merged into the SELECT that reads it.

SELECT region FROM (SELECT s.*, c.region FROM sales s JOIN countries c ON s.country = c.name WHERE gift) v
GROUP BY region HAVING count(*) > 5
SELECT c.region FROM sales s JOIN countries c ON s.country = c.name WHERE s.gift
GROUP BY c.region HAVING count(*) > 5

SELECT c.region FROM (SELECT country FROM sales WHERE gift) v JOIN countries c ON v.country = c.name ...
SELECT c.region FROM sales v JOIN countries c ON v.country = c.name WHERE v.gift ...

A unit's rows are bounded before any WHERE is applied, so that a filter means the same in either place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.bind.from_clause import FromClause, read_from_clause
from planner.bind.shown_expressions import computes_each_row
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.pull_up_subqueries import (
    add_condition,
    find_output_name,
    is_grouped_by,
    is_sorted_by,
    keep_output_name,
    remove_cte,
    requalify,
    takes_constant,
)
from planner.parser.clauses import Clauses, find_clauses, find_token, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import Token, spell_name
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, find_unaliased_end, list_readers
from planner.parser.tree import (
    contains_type,
    find_offset,
    is_star,
    list_nodes,
    locate_name,
    read_alias,
    read_name,
    strip_parentheses,
)

_PLAIN = frozenset(("expressions", "from_", "joins", "where"))
_OUTER = ("RIGHT", "FULL")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the subquery: an expression of its select list, or a table's column that its star shows.

    It `is_plain` if it is a table's own column.
    """

    node: exp.Expr
    owner: str
    first: int
    stop: int
    is_plain: bool


@dataclass(frozen=True, slots=True)
class _Inner:
    """The subquery: its tables, and its columns by name. A name that it shows twice stands for None."""

    select: exp.Select
    clauses: Clauses
    tables: FromClause
    shown: Mapping[str, _Column | None]
    items: tuple[tuple[str, exp.Expr], ...]

    @property
    def is_single(self) -> bool:
        return len(self.tables.relations) == 1


@dataclass(frozen=True, slots=True)
class _Around:
    """The other sources of a reader: each table's alias with its columns, None if unknown, and the names of USING."""

    names: Mapping[str, frozenset[str] | None]
    using: frozenset[str]

    def find_owners(self, called: str) -> list[str]:
        return [alias for alias, names in self.names.items() if names is not None and called in names]

    @property
    def is_known(self) -> bool:
        return all(names is not None for names in self.names.values())


def pull_up_joins(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that merge one subquery into its reader. Return none if that would change the meaning.

    Guarantee: PostgreSQL gives the same rows for both.
    """
    for select in _find_subqueries(read):
        try:
            changes = _pull_up(select, read)
        except KeyholeError:
            continue
        if changes:
            return changes
    return ()


def _find_subqueries(read: PrivateRead) -> Iterator[exp.Select]:
    """Yield the SELECT that reads the private table, if it is a subquery.

    Then yield the subqueries that join public tables.
    """
    select = read.select
    if isinstance(select.parent, exp.Subquery | exp.CTE):
        yield select
    joins = select.args.get("joins") or ()
    for source in (select.args["from_"].this, *(join.this for join in joins)) if joins else ():
        found = source.this if isinstance(source, exp.Subquery) else _find_with_query(source)
        if isinstance(found, exp.Select):
            yield found


def _find_with_query(source: exp.Expr) -> exp.Expr | None:
    if not isinstance(source, exp.Table) or source.args.get("db") is not None:
        return None
    every = (one for one in list_nodes(source.root()) if isinstance(one, exp.CTE))
    ctes = [cte for cte in every if read_name(cte.args["alias"].this) == read_name(source.this)]
    return ctes[0].this if len(ctes) == 1 else None


def _pull_up(select: exp.Select, read: PrivateRead) -> tuple[Edit, ...]:
    inner = _read_inner(select, read)
    if inner is None:
        return ()
    found = list_readers(select, inner.clauses.select, read.tokens)
    if not found:
        return ()
    if select is not read.select:  # other readers of public tables are no question
        found = tuple(reader for reader in found if reader.select is read.select)
    elif all(reader.is_only_source for reader in found) and inner.is_single:
        return ()  # `pull_up_subqueries` has that
    room = EditBudget(read.text)
    changes: list[Edit] = []
    for reader in found:
        made = _edit_reader(reader, inner, room, read)
        if made is None:
            return ()
        changes += made
    if isinstance(select.parent, exp.CTE) and _is_read_by(select.parent, found):
        changes.append(remove_cte(select.parent, inner.clauses, read.tokens))
    return tuple(changes)


def _is_read_by(cte: exp.CTE, found: Sequence[Reader]) -> bool:
    """Return True if these are all that read a WITH query."""
    called = read_name(cte.args["alias"].this)
    named = [
        node
        for node in cte.root().find_all(exp.Table)
        if read_name(node.this) == called and node.args.get("db") is None
    ]
    return len(named) == len(found)


def _read_inner(select: exp.Select, read: PrivateRead) -> _Inner | None:
    """Return the subquery, if it only joins, filters and projects tables."""
    tokens, first = read.tokens, select.args.get("from_")
    if first is None or not isinstance(first.this, exp.Table):
        return None
    if any(value for key, value in select.args.items() if key not in _PLAIN):
        return None
    where = select.args.get("where")
    if where is not None and contains_type(where, exp.Query, exp.AggFunc, exp.Window):
        return None
    place = find_clauses(first.this, tokens)
    closed = place.end < len(tokens) and tokens[place.end].is_symbol(")")
    if not closed or not matches_tree(place, select, tokens) or len(select.expressions) != len(place.items):
        return None
    whole = select if select.args.get("joins") else _copy_source(select)
    tables = read_from_clause(whole, read.catalog)
    shown: dict[str, _Column | None] = {}
    items: list[tuple[str, exp.Expr]] = []
    for item, (begin, past) in zip(select.expressions, place.items, strict=True):
        found = _read_star(item, tables) if is_star(item) else _read_item(item, begin, past, tables, tokens)
        if found is None:
            return None
        for called, column in found:
            shown[called] = None if called in shown else column
        items.append(("" if is_star(item) else found[0][0], item))
    return _Inner(select, place, tables, shown, tuple(items))


def _copy_source(select: exp.Select) -> exp.Select:
    """Return the same SELECT of one table, as one that joins nothing."""
    copied = exp.Select(from_=select.args["from_"].copy(), joins=[])
    copied.parent = select.parent  # by which WITH queries are known
    return copied


def _read_star(item: exp.Expr, tables: FromClause) -> list[tuple[str, _Column]] | None:
    """Return the columns that `t.*` or `*` shows. `*` shows a USING column once.

    Return None for a star with EXCEPT or REPLACE, or of no table.
    """
    star = item.this if isinstance(item, exp.Column) else item
    if any(star.args.values()):
        return None
    qualifier = read_name(item.args.get("table")) if isinstance(item, exp.Column) else ""
    found = []
    for relation in tables.relations:
        if qualifier not in ("", relation.alias):
            continue
        bands = relation.private.band_columns if relation.private is not None else ()
        for called in (*(one.name for one in relation.table.columns), *(one.name for one in bands)):
            if qualifier or called not in tables.merged_columns[relation.alias]:
                node = exp.column(called, quoted=True)
                found.append((called, _Column(node, relation.alias, 0, 0, is_plain=True)))
    return found or None


def _read_item(
    item: exp.Expr, first: int, past: int, tables: FromClause, tokens: tuple[Token, ...]
) -> list[tuple[str, _Column]] | None:
    """Return a column of the subquery by its name. Return None for other expressions and uncertain names."""
    node = item.this if isinstance(item, exp.Alias) else item
    called = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else ""
    past = find_unaliased_end(item, past, tokens)
    if not all(tables.find_owner(column) for column in node.find_all(exp.Column)):
        return None
    owner = tables.find_owner(node)
    if owner is not None:
        return [(called or owner[1], _Column(node, owner[0], first, past, is_plain=True))]
    if not called or not computes_each_row(node):
        return None
    return [(called, _Column(node, "", first, past, is_plain=False))]


class _Spelling:
    """The spelling of the subquery's columns where it is read."""

    def __init__(self, reader: Reader, inner: _Inner, room: EditBudget, read: PrivateRead) -> None:
        self._inner, self._room, self._text, self._tokens = inner, room, read.text, read.tokens
        self._alias = reader.alias if inner.is_single else ""

    def find_alias(self, relation: str) -> str:
        """Return the qualifier of a table's columns: a table that is alone takes the subquery's name."""
        return self._alias or relation

    def spell(self, node: exp.Expr, first: int, past: int) -> str:
        """Return an expression of the subquery, every column qualified."""
        owned = [(column, self._inner.tables.find_owner(column)) for column in node.find_all(exp.Column)]
        columns = [(column, self.find_alias(owner[0])) for column, owner in owned if owner is not None]
        return requalify(columns, first, past, self._room, self._text, self._tokens)

    def spell_column(self, column: _Column) -> str:
        if column.stop == 0:
            own = read_name(strip_parentheses(column.node).this)
            written = f"{spell_name(self.find_alias(column.owner))}.{spell_name(own)}"
            self._room.reserve(len(written))
            return written
        written = self.spell(column.node, column.first, column.stop)
        return written if column.is_plain else f"({written})"

    def spell_select_list(self, around: _Around) -> str | None:
        """Return the select list, each column under its name.

        Return None for a star that cannot be written in the place of one.
        """
        parts: list[str] = []
        tables = self._inner.tables
        for called, item in self._inner.items:
            if called:
                column = self._inner.shown[called]
                if column is None:
                    return None
                parts.append(f"{self.spell_column(column)} AS {spell_name(called)}")
            elif isinstance(item, exp.Column):
                parts.append(f"{spell_name(self.find_alias(read_name(item.args.get('table'))))}.*")
            elif not any(tables.merged_columns.values()):
                parts += [f"{spell_name(self.find_alias(one.alias))}.*" for one in tables.relations]
            elif around.names:
                return None
            else:
                parts.append("*")
        return ", ".join(parts)


def _edit_reader(reader: Reader, inner: _Inner, room: EditBudget, read: PrivateRead) -> list[Edit] | None:
    """Return the changes to one SELECT that reads the subquery."""
    text, tokens, select = read.text, read.tokens, reader.select
    if reader.alias == "" or len(select.expressions) != len(reader.clauses.items) or select.args.get("laterals"):
        return None
    around = _read_around(reader, read.catalog)
    if around is None or not _fits_join(reader, inner, around):
        return None
    spelling = _Spelling(reader, inner, room, read)
    changes = _write_columns(reader, inner, around, spelling, read)
    if changes is None:
        return None
    first, last = tokens[reader.first].start, tokens[_find_last_token(reader, tokens)].end
    place = inner.clauses
    past = place.find_mark("where") or place.end
    begin, end = tokens[place.source + 1].start, tokens[past - 1].end
    source = text[begin:end]
    if inner.is_single:
        node = inner.tables.relations[0].node
        source = f"{text[begin : tokens[find_token(tokens, find_offset(node.this))].end]} AS {spell_name(reader.alias)}"
    room.reserve(len(source))
    changes.append(Edit.from_text(first, last, f" {source} ", begin))
    where = inner.select.args.get("where")
    if where is not None:
        condition = spelling.spell(where.this, past + 1, place.end)
        source_join = reader.node.parent
        if isinstance(source_join, exp.Join) and source_join.side:
            changes.extend(_add_to_join(source_join, condition, past, read))
        else:
            changes.extend(add_condition(reader, condition, past, tokens))
    return changes


def _add_to_join(join: exp.Join, condition: str, first: int, read: PrivateRead) -> Iterator[Edit]:
    """Yield the edits that add a condition, after the token at `first`, to the ON of a join that keeps failing rows."""
    ((begin, past),) = find_spans([SearchedNode(join.args["on"], 0, len(read.tokens))], read.text, read.tokens)
    start, end = read.tokens[begin].start, read.tokens[past - 1].end
    yield Edit.from_text(start, start, "(")
    yield Edit.from_text(end, end, f") AND ({condition})", read.tokens[first + 1].start)


def _find_last_token(reader: Reader, tokens: tuple[Token, ...]) -> int:
    """Return the last token of the relation that is read, its alias included."""
    alias = reader.node.args.get("alias")
    return find_token(tokens, find_offset(alias.this)) if reader.is_named and alias is not None else reader.last


def _list_sources(select: exp.Select) -> list[exp.Expr]:
    return [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]


def _read_around(reader: Reader, catalog: Catalog) -> _Around | None:
    """Return the other tables that a reader reads. Return None if one is not known."""
    names: dict[str, frozenset[str] | None] = {}
    hidden = {read_name(cte.args["alias"].this) for cte in reader.select.root().find_all(exp.CTE)}
    for source in _list_sources(reader.select):
        if source is reader.node:
            continue
        if not isinstance(source, exp.Table | exp.Subquery):
            return None
        alias = source.args.get("alias")
        called = read_alias(source)
        if not called or called in (*names, reader.alias) or (alias is not None and alias.args.get("columns")):
            return None
        names[called] = _list_columns(source, catalog, hidden)
    return _Around(names, frozenset(_list_using(reader.select)))


def _list_using(select: exp.Select) -> Iterator[str]:
    for join in select.args.get("joins") or ():
        for one in join.args.get("using") or ():
            yield read_name(one if isinstance(one, exp.Identifier) else one.this)


def _list_columns(source: exp.Table | exp.Subquery, catalog: Catalog, hidden: set[str]) -> frozenset[str] | None:
    """Return the columns of a table, or those that a subquery or WITH query shows. Return None if unknown."""
    if isinstance(source, exp.Table) and (source.args.get("db") is not None or read_name(source.this) not in hidden):
        found = catalog.find_table(read_name(source.this))
        if found is not None:
            own = frozenset(column.name for column in found.columns)
            return own | {band.name for band in found.band_columns}
        public = next((one for one in catalog.public_tables if one.name == read_name(source.this)), None)
        return None if public is None else frozenset(column.name for column in public.columns)
    query = source.this if isinstance(source, exp.Subquery) else _find_with_query(source)
    if not isinstance(query, exp.Select) or query.args.get("from_") is None:
        return None
    names: set[str] = set()
    for item in query.expressions:
        if is_star(item):
            inner = [_list_columns(one, catalog, hidden) for one in _list_sources(query) if isinstance(one, exp.Table)]
            if any(one is None for one in inner) or len(inner) < len(_list_sources(query)):
                return None
            names.update(*(one for one in inner if one is not None))
        else:
            names.add(find_output_name(item))
    return frozenset(names) if all(names) else None


def _fits_join(reader: Reader, inner: _Inner, around: _Around) -> bool:
    """Return True if the subquery's tables and conditions may stand in the reader's FROM and WHERE."""
    joins = reader.select.args.get("joins") or ()
    if any(str(join.side or "").upper() in _OUTER or join.method for join in joins):
        return False
    if not inner.is_single and {one.alias for one in inner.tables.relations} & set(around.names):
        return False
    for called in around.using:  # each must be a column of the subquery's one table, under its own name
        column = inner.shown.get(called)
        if (
            not inner.is_single
            or column is None
            or not column.is_plain
            or read_name(strip_parentheses(column.node).this) != called
        ):
            return False
    source = reader.node.parent
    if not isinstance(source, exp.Join):
        return inner.is_single or not joins or not (_has_comma(reader.select) or _has_comma(inner.select))
    if not inner.is_single:
        return False
    plain = all(column is not None and column.is_plain for column in inner.shown.values())
    filtered = inner.select.args.get("where") is not None
    return not source.side or (plain and (not filtered or source.args.get("on") is not None))


def _has_comma(select: exp.Select) -> bool:
    joins = select.args.get("joins") or ()
    return any(not (one.kind or one.side or one.args.get("on") or one.args.get("using")) for one in joins)


def _list_own_columns(reader: Reader) -> list[exp.Column] | None:
    """Return the columns in the outer SELECT and its joins, without those of its sources.

    Return None if the SELECT has a subquery elsewhere.
    """
    select = reader.select
    hidden = {
        id(node) for source in _list_sources(select) if not isinstance(source, exp.Table) for node in source.walk()
    }
    with_ = select.args.get("with_")
    if with_ is not None:
        hidden |= {id(node) for node in with_.walk()}
    if any(id(node) not in hidden and node is not select for node in select.find_all(exp.Query)):
        return None
    return [column for column in select.find_all(exp.Column) if id(column) not in hidden]


def _write_columns(
    reader: Reader, inner: _Inner, around: _Around, spelling: _Spelling, read: PrivateRead
) -> list[Edit] | None:
    """Return the changes to the columns that the outer SELECT reads. Return None if a column's table is not known."""
    select, tokens = reader.select, read.tokens
    changes: dict[int, Edit] = {}
    columns = _list_own_columns(reader)
    if columns is None:
        return None
    for column in columns:
        if isinstance(column.this, exp.Star):
            if column.parent is not select or read_name(column.args.get("table")) not in (reader.alias, *around.names):
                return None
            continue
        made = _write_column(column, reader, inner, around, spelling, tokens)
        if made is None:
            return None
        changes |= made
    for item, (first, past) in zip(select.expressions, reader.clauses.items, strict=True):
        if not is_star(item) or (isinstance(item, exp.Column) and read_name(item.args.get("table")) != reader.alias):
            continue
        star = item.this if isinstance(item, exp.Column) else item
        written = spelling.spell_select_list(around)
        if written is None or any(star.args.values()):
            return None
        if not isinstance(item, exp.Column) and around.names:
            if around.using:
                return None
            stars = [f"{spell_name(alias)}.*" for alias in around.names]
            at = _list_sources(select).index(reader.node)
            written = ", ".join([*stars[:at], written, *stars[at:]])
        changes[tokens[first].start] = Edit.from_text(tokens[first].start, tokens[past - 1].end, written)
    return list(changes.values())


def _write_column(
    column: exp.Column, reader: Reader, inner: _Inner, around: _Around, spelling: _Spelling, tokens: tuple[Token, ...]
) -> dict[int, Edit] | None:
    """Return the changes for one mention of a column, by offset. Return None if its table is not known."""
    select, called, qualifier = reader.select, read_name(column.this), read_name(column.args.get("table"))
    if column.args.get("db") is not None or qualifier not in ("", reader.alias, *around.names):
        return None
    if qualifier in around.names or (qualifier == "" and called in around.using):
        return {}
    outputs = [find_output_name(item) for item in select.expressions]
    if qualifier == "" and called in outputs and is_sorted_by(column, select):
        return {}
    at = tokens[find_token(tokens, find_offset(column.this))]
    others = around.find_owners(called) if qualifier == "" else []
    pulled = any(called in relation.names for relation in inner.tables.relations)
    if called not in inner.shown:
        return _write_other(column, outputs, around, others, is_pulled_up=pulled, select=select, at=at)
    shown = inner.shown[called]
    if shown is None or others or (qualifier == "" and not around.is_known):
        return None
    if not shown.is_plain and not contains_type(shown.node, exp.Column) and not takes_constant(column, shown.node):
        return None
    labelled: dict[int, Edit] | None = {}
    if not shown.is_plain or read_name(strip_parentheses(shown.node).this) != called:
        labelled = keep_output_name(column, reader, tokens)
    if labelled is None:
        return None
    start = tokens[find_token(tokens, locate_name(column))].start
    return {start: Edit.from_text(start, at.end, spelling.spell_column(shown)), **labelled}


def _write_other(
    column: exp.Column,
    outputs: Sequence[str],
    around: _Around,
    others: Sequence[str],
    *,
    is_pulled_up: bool,
    select: exp.Select,
    at: Token,
) -> dict[int, Edit] | None:
    """Return the changes to a column that the subquery does not show.

    It is qualified if its tables have one of that name.
    """
    if read_name(column.args.get("table")):
        return None
    if len(others) == 1:
        return {at.start: Edit.from_text(at.start, at.start, f"{spell_name(others[0])}.")} if is_pulled_up else {}
    called = read_name(column.this)
    if not others and outputs.count(called) == 1 and is_grouped_by(column, select) and around.is_known:
        return {at.start: Edit.from_text(at.start, at.end, str(outputs.index(called) + 1))}
    return {} if not others and not is_pulled_up and not around.is_known else None
