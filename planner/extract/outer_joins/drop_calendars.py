"""A question with a row for every value of a calendar, as one over the private table alone.

    SELECT c.day FROM generate_series(DATE '2025-09-01', DATE '2025-12-31', interval '1 day') AS c(day)
    LEFT JOIN swipes s ON s.day = c.day AND s.granted GROUP BY c.day HAVING count(s.swipe_id) < 50

    SELECT s.day::timestamptz AS day FROM swipes s GROUP BY s.day
    HAVING count(s.swipe_id) FILTER (WHERE s.granted) < 50

Guarantee: Keyhole gives the same groups for both, whatever the rows are. It lists every value of a key, with rows or
without, as LEFT JOIN does. In the row that PostgreSQL makes up for a value without rows, all private columns are NULL.
So each aggregate must be of something that is NULL there, and WHERE must not ask for NULL.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlglot import exp

from planner.bind.from_clause import split_conjuncts
from planner.extract.outer_joins.calendar_columns import find_key, is_ambiguous, replace_columns, write_values
from planner.extract.outer_joins.calendar_refusals import (
    check_keys_independent,
    refuse_aggregate,
    refuse_calendar,
    refuse_condition,
    refuse_count,
    refuse_hidden_column,
    refuse_missing_values,
    refuse_null_test,
    refuse_own_key,
    refuse_public_condition,
    refuse_subquery,
    refuse_unlisted_key,
)
from planner.extract.outer_joins.listed_keys import ListedKey, read_listed_key
from planner.extract.outer_joins.made_up_rows import can_count_column, counts_rows, is_zero_sum
from planner.extract.outer_joins.missing_rows import counts_nothing, is_never_true, list_aggregates
from planner.extract.outer_joins.public_lists import Listed, PublicList, is_column_of, is_written_list, read_public_list
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.share_rows import may_empty_groups
from planner.parser.clauses import Clauses, find_clauses_from, find_token, matches_tree
from planner.parser.edits import Edit
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import find_conjuncts, find_enclosing_from
from planner.parser.tree import (
    find_offset,
    locate_name,
    read_alias,
    read_name,
    strip_parentheses,
    write_node,
)
from planner.scope.group_by import resolve_item
from planner.scope.key_expressions import evaluate_rows
from planner.scope.key_values import NotExact, TypedValue
from planner.scope.name_resolution import Scope


@dataclass(frozen=True, slots=True)
class _Calendar:
    """The public lists of a FROM with the keys that they are joined with, and ON's other conditions.

    `kept` is a public table of which further columns are read, if there is one. The conditions of WHERE in `settled`
    have left the lists the values of which they are true.
    """

    read: PrivateRead
    keys: tuple[ListedKey, ...]
    others: tuple[exp.Expr, ...]
    kept: exp.Table | None
    names: frozenset[str]
    settled: frozenset[int]

    @property
    def counted(self) -> str:
        """The text of a column that is NULL in the row of an empty group, and in no other."""
        return write_node(next(iter(self.keys[0].expression.find_all(exp.Column))))

    def is_own(self, column: exp.Column) -> bool:
        """Return True if a column is certainly the private table's."""
        return _is_own_column(column, self.read, self.names)


def drop_calendars(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that drop calendars from a FROM, with their columns as the private table's keys.

    Return none for other SELECTs. Raises KH107 for a calendar that cannot be dropped.
    """
    return _drop(read, keeps_every_value=True)


def drop_filtered_calendars(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that drop calendars, if WHERE leaves out values without rows, as PostgreSQL reads it.

    Raises KH107 for a calendar that cannot be dropped.
    """
    return _drop(read, keeps_every_value=False)


def _drop(read: PrivateRead, *, keeps_every_value: bool) -> tuple[Edit, ...]:
    select, join = read.select, read.node.parent
    group = select.args.get("group")
    if not isinstance(join, exp.Join) or str(join.side or "").upper() != "LEFT" or join.method or group is None:
        return ()
    joins = select.args["joins"]
    nodes = [select.args["from_"].this, *(one.this for one in joins[:-1])]
    crossed = all(str(one.kind or "").upper() == "CROSS" and not one.side for one in joins[:-1])
    if any(value for key, value in group.args.items() if key != "expressions"):
        return ()
    if joins[-1] is not join or not crossed or not any(map(is_written_list, nodes)):
        return ()
    using = {read_name(one if isinstance(one, exp.Identifier) else one.this) for one in join.args.get("using") or ()}
    calendar = _read_calendar(read, nodes, list(split_conjuncts(join.args.get("on"))), using)
    if calendar is None or _is_read_by_subquery(calendar):
        return ()
    if is_ambiguous(select, calendar.keys, {one.name for one in read.table.columns} - using):
        return ()
    _check(calendar)
    where = select.args.get("where")
    is_filtered = where is not None and any(map(calendar.is_own, where.find_all(exp.Column)))
    if is_filtered == keeps_every_value:
        return ()
    source = _find_from(read)
    place = find_clauses_from(source, read.tokens)
    if not matches_tree(place, select, read.tokens):
        return ()
    return tuple(_list_edits(calendar, place))


def _find_from(read: PrivateRead) -> int:
    at = find_enclosing_from(read.tokens, find_token(read.tokens, locate_name(read.node)))
    assert at is not None, "a joined table stands in a FROM"
    return at


def _is_own_column(column: exp.Column, read: PrivateRead, names: frozenset[str]) -> bool:
    qualifier, called = read_name(column.args.get("table")), read_name(column.this)
    if qualifier:
        return qualifier == read_alias(read.node)
    return called not in names and any(one.name == called for one in read.table.columns)


def _read_calendar(
    read: PrivateRead, nodes: Sequence[exp.Expr], conditions: Sequence[exp.Expr], using: Iterable[str]
) -> _Calendar | None:
    """Return the lists of a FROM with their keys. Return None if a source is no list. Raises KH107."""
    lists: list[tuple[exp.Expr, PublicList]] = []
    settled: set[int] = set()
    for node in nodes:
        listed = read_public_list(node, read.catalog)
        if listed is None and is_written_list(node):
            raise refuse_calendar(node)
        if listed is None:
            return None
        lists.append((node, listed))
    where = read.select.args.get("where")
    said = list(split_conjuncts(None if where is None else where.this))
    names = frozenset(name for _, one in lists for name in (one.columns or (one.column,)))
    conditions = [*conditions, *_write_using(using, [listed for _, listed in lists], read)]
    keys: list[ListedKey] = []
    kept: list[exp.Expr] = []
    for node, listed in lists:
        key = read_listed_key(listed, conditions, read, lambda column: _is_own_column(column, read, names))
        if not listed.kind and (key is None or _reads_further_columns(key.source, read.select)):
            kept.append(node)
        elif key is None:
            raise refuse_unlisted_key(listed, read)
        else:
            named = [one for one in said if _reads_list(one, key.source)]
            settled |= set(map(id, named))
            keys.append(replace(key, source=_keep_values(key.source, named)))
    if missing := next((key for key in keys if key.missing_values), None):
        raise refuse_missing_values(missing)
    check_keys_independent([key.expression for key in keys], read.table, at=nodes[0])
    links = {id(one) for key in keys for one in key.links}
    if len(kept) > 1 or not all(isinstance(one, exp.Table) for one in kept):
        return None
    others = tuple(one for one in conditions if id(one) not in links)
    table = kept[0] if kept else None
    kept_table = table if isinstance(table, exp.Table) else None
    return _Calendar(read, tuple(keys), others, kept_table, names, frozenset(settled))


def _write_using(using: Iterable[str], lists: Sequence[PublicList], read: PrivateRead) -> Iterator[exp.Expr]:
    """Yield the equalities that USING stands for."""
    for name in using:
        for listed in lists:
            if name in (listed.columns or (listed.column,)):
                sides = [exp.to_identifier(one, quoted=True) for one in (read_alias(read.node), listed.alias)]
                yield exp.EQ(
                    this=exp.column(exp.to_identifier(name, quoted=True), table=sides[0]),
                    expression=exp.column(exp.to_identifier(name, quoted=True), table=sides[1]),
                )


def _reads_list(condition: exp.Expr, listed: PublicList) -> bool:
    """Return True for a condition on a list's column alone."""
    columns = list(condition.find_all(exp.Column))
    return bool(columns) and all(is_column_of(column, listed) for column in columns)


def _keep_values(listed: PublicList, conditions: Sequence[exp.Expr]) -> PublicList:
    """Return a list with the values of which conditions are true. Raise KH107 if one cannot be computed."""
    kind = "timestamp" if listed.kind == "timestamptz" else listed.kind
    for one in conditions:
        names = {write_node(column) for column in one.find_all(exp.Column)}
        try:
            rows = [dict.fromkeys(names, _type_value(kind, value)) for value in listed.values]
            truths = evaluate_rows(strip_parentheses(one), rows)
        except NotExact:
            raise refuse_condition(one) from None
        kept = [value for value, truth in zip(listed.values, truths, strict=True) if truth.raw is True]
        listed = replace(listed, values=tuple(kept))
    return listed


def _type_value(kind: str, value: Listed) -> TypedValue:
    return TypedValue(kind, value.date() if kind == "date" and isinstance(value, datetime) else value)


def _is_read_by_subquery(calendar: _Calendar) -> bool:
    """Return True if a subquery in an expression may read a list's column."""
    select = calendar.read.select
    sources = {id(one) for part in (select.args["from_"], *select.args["joins"]) for one in part.walk()}
    named = {key.source.alias for key in calendar.keys}
    return any(
        read_name(column.args.get("table")) in named
        for query in select.find_all(exp.Query)
        if query is not select and id(query) not in sources and not isinstance(query.parent, exp.CTE)
        for column in query.find_all(exp.Column)
    )


def _reads_further_columns(listed: PublicList, select: exp.Select) -> bool:
    """Return True if a SELECT reads further columns of a public table."""
    others = set(listed.columns) - {listed.column}
    for column in select.find_all(exp.Column):
        qualifier, called = read_name(column.args.get("table")), read_name(column.this)
        if (qualifier == listed.alias and called != listed.column) or (not qualifier and called in others):
            return True
    return False


def _check(calendar: _Calendar) -> None:
    """Raise KH107 if the row that LEFT JOIN makes up for an empty group would count."""
    read, is_own = calendar.read, calendar.is_own
    select = read.select
    scope = Scope(read.table, read_alias(read.node))
    for item in select.args["group"].expressions:
        for column in resolve_item(strip_parentheses(item), select, scope).find_all(exp.Column):
            if is_own(column):
                raise refuse_own_key(column)
    where = select.args.get("where")
    for one in split_conjuncts(None if where is None else where.this):
        if any(map(is_own, one.find_all(exp.Column))) and not is_never_true(one, is_own):
            raise refuse_null_test(one, calendar.counted)
        if id(one) not in calendar.settled and any(
            find_key(column, calendar.keys) for column in one.find_all(exp.Column)
        ):
            raise refuse_condition(one)
    for one in calendar.others:
        if one.find(exp.Query, exp.AggFunc) is not None:
            raise refuse_subquery(one)
        link = strip_parentheses(one)
        of_sides = (link.this, link.expression) if isinstance(link, exp.EQ) else (link,)
        own = [all(map(is_own, side.find_all(exp.Column))) and side.find(exp.Column) is not None for side in of_sides]
        if calendar.kept is not None and not any(own):
            raise refuse_public_condition(one)
    for whole in _list_own_aggregates(select):
        _check_aggregate(whole, calendar)


def _is_grouped(key: ListedKey, calendar: _Calendar) -> bool:
    """Return True if the groups are the list's own values, and not periods of them or groups of another list."""
    select, read = calendar.read.select, calendar.read
    scope = Scope(read.table, read_alias(read.node))
    for item in select.args["group"].expressions:
        node = resolve_item(strip_parentheses(item), select, scope)
        while isinstance(node, exp.Cast | exp.Paren):
            node = node.this
        if isinstance(node, exp.Column) and find_key(node, calendar.keys) is key:
            return True
    return False


def _check_aggregate(whole: exp.Expr, calendar: _Calendar) -> None:
    """Raise KH107 for an aggregate that the made-up row changes, and KH201 for a count of a hidden column."""
    read, is_own = calendar.read, calendar.is_own
    known = {one.name for one in read.table.columns}
    for column in filter(is_own, whole.find_all(exp.Column)):
        if isinstance(column.parent, exp.Count) and read_name(column.this) not in known:
            raise refuse_hidden_column(column, read.table, calendar.counted)
    if counts_nothing(whole, is_own):
        return
    if not counts_rows(whole) and not is_zero_sum(whole, calendar.is_own):
        raise refuse_aggregate(whole)
    if counts_rows(whole) and not can_count_column(whole, read.select):
        raise refuse_count(whole, calendar.counted)


def _list_own_aggregates(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the aggregates over rows, and none of the windows over groups or of subqueries."""
    for whole in list_aggregates(select):
        is_window = isinstance(whole.parent, exp.Window) and whole.arg_key == "this"
        if not is_window and whole.find_ancestor(exp.Select) is select:
            yield whole


def _list_edits(calendar: _Calendar, place: Clauses) -> Iterator[Edit]:
    read = calendar.read
    tokens = read.tokens
    to_where, to_filter = _part_conditions(calendar)
    added = [
        *(write_values(key, key.expression, is_grouped=_is_grouped(key, calendar)) for key in calendar.keys),
        *(f"({_spell(one, calendar)})" for one in to_where),
    ]
    added = [one for one in added if one]
    where = place.find_mark("where")
    past = min((index for _, index in place.marks), default=place.end)
    source = _write_source(read.node, read)
    if calendar.kept is not None:
        on = " AND ".join(f"({_spell(one, calendar)})" for one in calendar.others) or "true"
        source = f"{_write_source(calendar.kept, read)} LEFT JOIN {source} ON {on}"
    more = f" WHERE {' AND '.join(added)}" if added and where is None else ""
    start = find_token(tokens, locate_name(read.node))
    yield Edit.from_text(tokens[place.source].end, tokens[past - 1].end, f" {source}{more}", tokens[start].start)
    if added and where is not None:
        end = min((index for _, index in place.marks if index > where), default=place.end)
        yield Edit.from_text(tokens[where].end, tokens[where].end, " (")
        yield Edit.from_text(tokens[end - 1].end, tokens[end - 1].end, f") AND {' AND '.join(added)}")
    settled = list(_find_settled_conditions(calendar, place))
    yield from (Edit.from_text(start, end, "true") for start, end in settled)
    for edit in replace_columns(read.select, place, calendar.keys, tokens):
        if not any(start <= edit.start < end for start, end in settled):
            yield edit
    yield from _edit_aggregates(calendar, to_filter)


def _find_settled_conditions(calendar: _Calendar, place: Clauses) -> Iterator[tuple[int, int]]:
    """Yield where the conditions of WHERE stand that the lists' values meet already."""
    tokens = calendar.read.tokens
    for (first, past), node in find_conjuncts(calendar.read.select, place, tokens) or ():
        parts = list(split_conjuncts(node))
        if parts and all(id(one) in calendar.settled for one in parts):
            yield tokens[first].start, tokens[past - 1].end


def _part_conditions(calendar: _Calendar) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Return ON's other conditions: those that leave no group without rows by its key, and those for FILTER."""
    if calendar.kept is not None:
        return [], []
    grouped = [key.expression for key in calendar.keys]
    to_where: list[exp.Expr] = []
    to_filter: list[exp.Expr] = []
    for one in calendar.others:
        own = all(map(calendar.is_own, one.find_all(exp.Column)))
        moves = own and not may_empty_groups(one, grouped, calendar.read.table)
        (to_where if moves else to_filter).append(one)
    return to_where, to_filter


def _write_source(node: exp.Table, read: PrivateRead) -> str:
    """Return the text of a table of FROM with its alias."""
    alias = node.args.get("alias")
    last = alias.this if alias is not None and alias.this is not None else node.this
    start = read.tokens[find_token(read.tokens, locate_name(node))].start
    return read.text[start : read.tokens[find_token(read.tokens, find_offset(last))].end]


def _spell(node: exp.Expr, calendar: _Calendar) -> str:
    """Return a condition as text, with keys in the place of the lists' columns."""
    copied: exp.Expr = exp.Paren(this=node.copy())
    for column in list(copied.find_all(exp.Column)):
        key = find_key(column, calendar.keys)
        if key is not None and not calendar.is_own(column):
            column.replace(exp.Paren(this=key.expression.copy()))
    return write_node(copied.this)


def _edit_aggregates(calendar: _Calendar, conditions: Sequence[exp.Expr]) -> Iterator[Edit]:
    """Yield the edits of aggregates: FILTERs, count(column) for count(*), and 0 for a sum of none."""
    read, tokens = calendar.read, calendar.read.tokens
    more = " AND ".join(f"({_spell(one, calendar)})" for one in conditions)
    for whole in _list_own_aggregates(read.select):
        called = whole.this if isinstance(whole, exp.Filter) else whole
        counts_all = counts_rows(whole) and not counts_nothing(whole, calendar.is_own)
        is_zero = not counts_all and not counts_nothing(whole, calendar.is_own)
        if not (more or counts_all or is_zero):
            continue
        searched = [SearchedNode(whole, 0, len(tokens))]
        if isinstance(whole, exp.Filter):
            searched.append(SearchedNode(whole.expression.this, 0, len(tokens)))
        (first, past), *inner = find_spans(searched, read.text, tokens)
        end = tokens[past - 1].end
        tail = f" FILTER (WHERE {more})" if more and called is whole else ""
        if counts_all:
            yield Edit.from_text(tokens[first].start, end, f"count({calendar.counted}){tail}")
            continue
        if more and inner:
            yield Edit.from_text(tokens[inner[0][0]].start, tokens[inner[0][0]].start, "(")
            yield Edit.from_text(tokens[inner[0][1] - 1].end, tokens[inner[0][1] - 1].end, f") AND {more}")
        if is_zero:
            yield Edit.from_text(tokens[first].start, tokens[first].start, "coalesce(")
            tail += ", 0)"
        if tail:
            yield Edit.from_text(end, end, tail)
