"""The WHERE that a question shares with the totals beside it; the rest of its WHERE, written as FILTERs.

    SELECT ward FROM visits WHERE emergency GROUP BY ward HAVING count(*) > 0.1 * (SELECT count(*) FROM visits)

    SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE emergency) > 0.1 * (SELECT count(*) FROM visits)

Both count the same rows. PostgreSQL leaves out a group of which WHERE leaves no row. Keyhole lists every group that the
policy lists in either form, and counts it as 0. So only conditions that say nothing about keys are written as FILTERs.
A unit's rows are bounded before any WHERE is applied.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from planner.catalog.catalog import SqlType, Table
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.keep_groups import keep_groups
from planner.extract.subqueries.move_keys_to_where import compares_key
from planner.extract.subqueries.same_groups import (
    find_name,
    find_source,
    is_plain,
    list_conjuncts,
    list_key_names,
    spell_all,
    strip_qualifiers,
)
from planner.groups.inhabited.column_roots import find_roots
from planner.parser.clauses import Clauses, find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import Token
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import find_conjuncts
from planner.parser.tree import contains_type, read_name, strip_parentheses
from planner.scope.functional_dependencies import map_key_values
from planner.scope.group_by import resolve_item
from planner.scope.name_resolution import Scope

_CALLS = (exp.AggFunc, exp.Filter, exp.WithinGroup)


@dataclass(frozen=True, slots=True)
class SharedRows:
    """The conditions on rows that a question shares with its totals. `shared` has their texts.

    `moved` are the other conditions of the question, which hold in its own aggregates alone. `edits` write them there.
    The conditions of `by_key` choose groups, and move to the outer query.
    """

    shared: frozenset[str]
    moved: tuple[exp.Expr, ...] = ()
    edits: tuple[Edit, ...] = ()
    by_key: tuple[exp.Expr, ...] = ()

    def list_further(self, conditions: Sequence[exp.Expr]) -> tuple[exp.Expr, ...] | None:
        """Return the conditions of a total that its question does not share.

        Return None if the total reads more rows.
        """
        if not self.shared <= spell_all(conditions):
            return None
        return tuple(one for one in conditions if not spell_all([one]) <= self.shared)

    def filter_own(self, size: exp.Expr) -> exp.Expr:
        """Return an expression of aggregates in which each aggregate has the question's own conditions as FILTER."""
        return filter_aggregates(size, self.moved)


def find_shared_rows(read: PrivateRead, totals: Sequence[exp.Select], *, wraps: bool) -> SharedRows:
    """Return the conditions on rows that a question shares with some scalar subqueries.

    The question keeps its whole WHERE if every total has all of it, or if some part of it cannot move.

    Parameters:
        wraps: a query may be written around the question, which chooses groups by their keys.
    """
    own = spell_all(list_conjuncts(read.select))
    shared = own
    for total in totals:
        rows = _find_rows(total)
        if rows is not None and is_same_table(rows.args["from_"].this, read):
            shared &= spell_all(list_conjuncts(rows))
    if not totals or (shared == own and not wraps):
        return SharedRows(own)
    try:
        return _move(read, shared, wraps=wraps) or SharedRows(own)
    except KeyholeError:
        return SharedRows(own)


def is_same_table(source: exp.Expr, read: PrivateRead) -> bool:
    """Return True if a source in FROM is the question's table."""
    return (
        isinstance(source, exp.Table)
        and is_plain(source)
        and [read_name(source.args.get(part)) for part in ("db", "this")]
        == [read_name(read.node.args.get(part)) for part in ("db", "this")]
    )


def filter_aggregates(node: exp.Expr, conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Return an expression in which each aggregate reads only the rows that satisfy the conditions.

    Columns have no qualifiers.
    """
    copied: exp.Expr = exp.Paren(this=strip_qualifiers(node))
    for whole in _list_calls(copied) if conditions else ():
        called = whole.this if isinstance(whole, exp.Filter) else whole
        said = [whole.expression.this.copy()] if isinstance(whole, exp.Filter) else []
        both = [exp.Paren(this=strip_qualifiers(one)) for one in (*said, *conditions)]
        whole.replace(exp.Filter(this=called.copy(), expression=exp.Where(this=exp.and_(*both))))
    found: exp.Expr = copied.this
    return found


def reads_keys(condition: exp.Expr, read: PrivateRead) -> bool:
    """Return True if a condition reads columns that keys are computed from, so some groups may lose all their rows."""
    scope = Scope(read.table, find_name(read.node))
    grouped = read.select.args["group"].expressions
    keys = [resolve_item(strip_parentheses(one), read.select, scope) for one in grouped]
    return may_empty_groups(condition, keys, read.table)


def may_empty_groups(condition: exp.Expr, grouped: Sequence[exp.Expr], table: Table) -> bool:
    """Return True if a condition may leave some groups without rows.

    Such a condition restricts columns that the keys are computed from.
    """
    known = {column.name: column for column in table.columns}
    names = {read_name(column.this) for item in grouped for column in item.find_all(exp.Column)}
    compared = {read_name(column.this) for column in condition.find_all(exp.Column)}
    if not compared or not names | compared <= set(known):
        return True
    keys = [known[name] for name in names]
    roots = frozenset[str]().union(*(find_roots(key, table) for key in keys))
    return any(
        roots & find_roots(known[name], table)
        or any(map_key_values(known[name], key, key.domain or ()) is not None for key in keys)
        for name in compared
    )


def _find_rows(total: exp.Select) -> exp.Select | None:
    """Return the SELECT in a scalar subquery that reads rows: itself, or a grouped query in its FROM."""
    source = find_source(total)
    if isinstance(source, exp.Subquery):
        return source.this if isinstance(source.this, exp.Select) and find_source(source.this) is not None else None
    return None if source is None else total


def _move(read: PrivateRead, shared: frozenset[str], *, wraps: bool) -> SharedRows | None:
    """Return the rows with the edits that write all conditions but the shared ones elsewhere; None if impossible."""
    select, tokens = read.select, read.tokens
    group = select.args.get("group")
    if group is None or any(value for key, value in group.args.items() if key != "expressions"):
        return None
    place = find_clauses(read.node, tokens)
    if not matches_tree(place, select, tokens):
        return None
    found, in_having = (find_conjuncts(select, place, tokens, clause=clause) for clause in ("where", "having"))
    if found is None:
        return None
    kept = [span for span, node in found if spell_all([strip_parentheses(node)]) <= shared]
    moved = [(span, strip_parentheses(node)) for span, node in found if span not in kept]
    grouped = list_key_names(select)
    by_key = [node for _, node in moved if _chooses_groups(node, grouped, read)]
    rows = [(span, node) for span, node in moved if node not in by_key]
    if any(contains_type(node, exp.Query) or (reads_keys(node, read) and not _is_true(node)) for _, node in rows):
        return None
    last = [(span, node) for span, node in in_having or () if _chooses_groups(node, grouped, read)]
    by_key += [node for _, node in last]
    if not moved and not last:
        return None
    order = select.args.get("order")
    known = [part for part in (*select.expressions, select.args.get("having"), order) if part is not None]
    if any(contains_type(part, exp.Window, exp.Grouping) for part in known):
        return None  # a window reads the groups that WHERE leaves
    is_wrapped = bool(by_key) and wraps  # sizes in ORDER BY then move as well
    calls = [call for part in known if part is not order or not is_wrapped for call in _list_calls(part)]
    edits = _write_filters(calls, rows, place, read) if rows else []
    where = place.find_mark("where")
    if moved and where is not None:
        start, end = tokens[where - 1].end, tokens[found[-1][0][1] - 1].end
        left = " AND ".join(_write(span, read) for span in kept)
        edits.append(Edit.from_text(start, end, f" WHERE {left}" if left else "", tokens[where].start))
    if is_wrapped:
        removed, filters = [span for span, _ in last], [node for _, node in rows]
        own = partial(filter_aggregates, conditions=filters) if filters else None
        around = keep_groups(by_key, removed, in_having or (), place, read, filter_own=own)
        if around is None:
            return None
        edits += around
    return SharedRows(shared, tuple(node for _, node in rows), tuple(edits), () if wraps else tuple(by_key))


def _write_filters(
    calls: Sequence[exp.Expr],
    rows: Sequence[tuple[tuple[int, int], exp.Expr]],
    place: Clauses,
    read: PrivateRead,
) -> list[Edit]:
    """Return the edits that let calls of aggregates read the rows of some conditions alone. Raise KH106."""
    text, tokens = read.text, read.tokens
    spans = find_spans([SearchedNode(one, place.select, len(tokens)) for one in calls], text, tokens)
    spelled = " AND ".join(_write(span, read) for span, _ in rows)
    further = f"({spelled})" if isinstance(rows[0][1], exp.Or) else spelled
    origin = tokens[rows[0][0][0]].start
    edits: list[Edit] = []
    for call, (first, past) in zip(calls, spans, strict=True):
        end = tokens[past - 1].end
        if not isinstance(call, exp.Filter):
            edits.append(Edit.from_text(end, end, f" FILTER (WHERE {spelled})", origin))
            continue
        said, closing = tokens[_find_filter(first, past, tokens)].end, tokens[past - 1].start
        edits.append(Edit.from_text(said, said, " ("))
        edits.append(Edit.from_text(closing, closing, f") AND {further}", origin))
    return edits


def _chooses_groups(condition: exp.Expr, grouped: frozenset[str], read: PrivateRead) -> bool:
    """Return True for a comparison of a listed key with constants, which PostgreSQL can also make around the groups.

    The order of texts depends on a collation, which may be another one there. Values of other keys follow from WHERE.
    """
    names = {read_name(column.this) for column in condition.find_all(exp.Column)}
    listed = {column.name: column.sql_type for column in read.table.columns if column.domain is not None}
    if not names <= grouped & set(listed) or not compares_key(condition) or contains_type(condition, exp.Parameter):
        return False
    is_ordered = contains_type(condition, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
    return not is_ordered or all(listed[name] is not SqlType.TEXT for name in names)


def _is_true(condition: exp.Expr) -> bool:
    """Return True for `true` and `1 = 1`, as tools write them."""
    if isinstance(condition, exp.EQ):
        return isinstance(condition.this, exp.Literal) and condition.this == condition.expression
    return isinstance(condition, exp.Boolean) and bool(condition.this)


def _find_filter(first: int, past: int, tokens: tuple[Token, ...]) -> int:
    """Return the index of WHERE in the FILTER of a call. Raise KH106 if there is none."""
    depth = 0
    for at in range(first, past - 2):
        if depth == 0 and tokens[at].is_word("filter") and tokens[at + 2].is_word("where"):
            return at + 2
        depth += tokens[at].is_symbol("(") - tokens[at].is_symbol(")")
    raise KeyholeError("KH106", "a FILTER in this statement cannot be located", hint="Write it more simply.")


def _write(span: tuple[int, int], read: PrivateRead) -> str:
    return read.text[read.tokens[span[0]].start : read.tokens[span[1] - 1].end]


def _list_calls(part: exp.Expr) -> Iterator[exp.Expr]:
    """Return the outermost aggregates of an expression, each with its FILTER, but not those of subqueries."""
    within = part.walk(prune=lambda node: isinstance(node, (exp.Query, *_CALLS)))
    return iter([node for node in within if isinstance(node, _CALLS)])
