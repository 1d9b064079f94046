"""Thresholds around ranks or several queries, and what is computed of sizes, moved into the grouped subquery below.

WITH a AS (SELECT region, ward, count(*) AS n FROM visits GROUP BY 1, 2),
b AS (SELECT region, ward, n, rank() OVER (PARTITION BY region ORDER BY n DESC) AS place FROM a)
SELECT ward FROM b WHERE place = 1 AND n > 300

WITH a AS (SELECT region, ward, count(*) AS n, count(*) > 300 AS "predicate 1" FROM visits GROUP BY 1, 2),
b AS (SELECT region, ward, n, rank() OVER (PARTITION BY region ORDER BY n DESC) AS place, a."predicate 1" FROM a)
SELECT ward FROM b WHERE place = 1 AND b."predicate 1"

SELECT ward, n * 100.0 / sum(n) OVER () AS share
FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING count(*) > 300) t
SELECT ward, t.share AS share
FROM (SELECT ward, count(*) AS n, count(*) * 100.0 / sum(count(*)) OVER () AS share FROM visits ...) t

PostgreSQL gives the same for both: a row carries its columns through every query between. Ranks are among all groups in
both, with and without the threshold. Where no query between ranks or cuts, WHERE moves into HAVING.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.aggregates.cell_windows import reads_groups
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_predicates import find_movable, name_moved_expression
from planner.extract.push_down_thresholds import (
    IN_QUESTION,
    Conjunct,
    SelectItem,
    add_thresholds,
    find_mentioned_item,
    find_settled_predicates,
    list_outer_conjuncts,
    may_be_unit_query,
    plan_beside_sizes,
    plan_push,
    spell_as_having,
    write_settled_predicates,
)
from planner.extract.ranks.push_down_ranks import is_plain_star
from planner.parser.clauses import Clauses, find_clauses, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import Token, quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, find_unaliased_end, list_readers
from planner.parser.tree import contains_type, is_star, read_name, strip_parentheses
from planner.scope.embedded import name_predicate_column
from planner.scorecard.find import find_predicates, shows_size
from planner.scorecard.shown_numbers import find_default_name, is_carried, is_rank_window

_PASSES_ON = frozenset(("expressions", "from_", "with_", "where", "order", "limit", "offset"))
_MOST_AROUND = 8  # queries around one another through which a size is followed


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a query: all names in order, None for an uncertain one, and those of the grouped subquery."""

    names: tuple[str | None, ...]
    items: Mapping[str, SelectItem]
    expressions: Mapping[str, exp.Expr]


@dataclass(frozen=True, slots=True)
class _MovedPart:
    """A moved part of an outer query, by its tokens.

    `inner_column` is its column inside, `inner_text` its text there, and `outer_text` how the outer query reads the
    column.
    """

    first: int
    stop: int
    inner_column: str
    inner_text: str
    outer_text: str


def push_through_queries(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that move thresholds through several nested queries into the innermost SELECT."""
    return () if read.catalog.defaults.numbers == "refuse" else plan_beside_sizes(read, _plan_edits)


def _plan_edits(read: PrivateRead) -> list[Edit]:
    select, tokens = read.select, read.tokens
    if any(value for key, value in select.args.items() if key not in IN_QUESTION) or may_be_unit_query(read):
        return []
    first_node = select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else read.node, tokens)
    if not matches_tree(place, select, tokens):
        return []
    columns, passed, taken = _list_columns(select, place, tokens), list[Reader](), set[str | None]()
    reader = _find_reader(select, place, tokens)
    while reader is not None and columns is not None and len(passed) < _MOST_AROUND:
        taken.update(columns.names)
        between = [select, *(one.select for one in passed)]
        kept = any(_ranks_or_cuts(one) for one in between) and (bool(passed) or not _can_push(read))
        if passed and not kept and (changes := _move_to_having(reader, columns, place, read)):
            return changes
        moved = _find_moved_predicates(reader, columns, taken, read) if kept or passed else []
        moved = moved or _find_numbers(reader, columns, taken, read, skips_windows=kept or bool(passed))
        if moved:
            return _show(moved, [*passed, reader], columns, place, read)
        columns = _read_passed_columns(reader, columns)
        passed.append(reader)
        reader = _find_reader(reader.select, reader.clauses, tokens)
    return []


def _find_reader(select: exp.Select, place: Clauses, tokens: tuple[Token, ...]) -> Reader | None:
    """Return the one query that reads a SELECT alone."""
    if not isinstance(select.parent, exp.Subquery | exp.CTE):
        return None
    found = list_readers(select, place.select, tokens)
    if (
        found is None
        or len(found) != 1
        or not found[0].is_only_source
        or not found[0].alias
        or found[0].has_inner_queries()
    ):
        return None
    return found[0]


def _can_push(read: PrivateRead) -> bool:
    """Return True if the conditions around the subquery can move into its HAVING."""
    windows = (window for item in read.select.expressions for window in item.find_all(exp.Window))
    return all(map(reads_groups, windows)) and plan_push(read, takes_predicates=True) is not None


def _ranks_or_cuts(select: exp.Select) -> bool:
    cuts = any(select.args.get(clause) is not None for clause in ("limit", "offset"))
    return cuts or any(contains_type(item, exp.Window) for item in select.expressions)


def _list_columns(select: exp.Select, place: Clauses, tokens: tuple[Token, ...]) -> _Columns | None:
    """Return the columns of the grouped subquery: its keys and sizes, and the names of all else that it shows."""
    names: list[str | None] = []
    items: dict[str, SelectItem] = {}
    expressions: dict[str, exp.Expr] = {}
    if len(select.expressions) != len(place.items) or any(map(is_star, select.expressions)):
        return None
    for item, (first, past) in zip(select.expressions, place.items, strict=True):
        node = item.unalias()
        called = item.alias_or_name if not isinstance(item, exp.Alias) else read_name(item.args["alias"])
        if not isinstance(item, exp.Alias):
            called = read_name(strip_parentheses(node).this) if isinstance(strip_parentheses(node), exp.Column) else ""
        names.append(called or None)
        windows = list(node.find_all(exp.Window))
        over_all = select.args.get("having") is None and all(map(reads_groups, windows))
        if called and (over_all or not windows):
            formula = find_predicates(node) == (strip_parentheses(node),)
            items[called] = SelectItem(called, first, find_unaliased_end(item, past, tokens), shows_size(node), formula)
            expressions[called] = node
    return _Columns(tuple(names), items, expressions) if _are_distinct(names) else None


def _are_distinct(names: Sequence[str | None]) -> bool:
    known = [one for one in names if one is not None]
    return len(set(known)) == len(known)


def _read_passed_columns(reader: Reader, columns: _Columns) -> _Columns | None:
    """Return the columns of a query that only passes on another's columns. Return None if it does more."""
    if any(value for key, value in reader.select.args.items() if key not in _PASSES_ON):
        return None
    names: list[str | None] = []
    items: dict[str, SelectItem] = {}
    expressions: dict[str, exp.Expr] = {}
    for item in reader.select.expressions:
        if is_star(item):
            names += columns.names
            carried = [name for name in columns.items if not _reads_other_groups(name, columns)]
            items |= {name: columns.items[name] for name in carried}
            expressions |= {name: columns.expressions[name] for name in carried}
            continue
        node = strip_parentheses(item.unalias())
        inner = read_name(node.this) if isinstance(node, exp.Column) else ""
        called = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else inner
        names.append(called or None)
        if (
            called
            and inner in columns.items
            and _is_column_of(node, reader)
            and not _reads_other_groups(inner, columns)
        ):
            items[called] = replace(columns.items[inner], name=called)
            expressions[called] = columns.expressions[inner]
    return _Columns(tuple(names), items, expressions) if _are_distinct(names) else None


def _reads_other_groups(name: str, columns: _Columns) -> bool:
    """Return True if a column reads other groups, which conditions of queries between may leave out."""
    return contains_type(columns.expressions[name], exp.Window)


def _is_column_of(column: exp.Expr, reader: Reader) -> bool:
    return column.args.get("db") is None and read_name(column.args.get("table")) in ("", reader.alias)


def _move_to_having(reader: Reader, columns: _Columns, place: Clauses, read: PrivateRead) -> list[Edit]:
    """Return the changes that move the conditions that WHERE joins by AND."""
    text, tokens, room = read.text, read.tokens, EditBudget(read.text)
    conjuncts = list_outer_conjuncts(reader, columns.items, tokens, columns.expressions) or ()
    moving = [one for one in conjuncts if one.can_move]
    if not moving:
        return []
    spelled = [spell_as_having(one, reader, columns.items, room, text, tokens) for one in moving]
    changes = [Edit.from_text(tokens[one.first].start, tokens[one.stop - 1].end, "true") for one in moving]
    settled = find_settled_predicates(reader, columns.items, conjuncts, tokens)
    changes += write_settled_predicates(
        {columns.items[name].first: (columns.items[name], value) for name, value in settled.items()}.values(), tokens
    )
    return [*changes, *add_thresholds(read.select, place, spelled, tokens[moving[0].first].start, tokens)]


def _find_moved_predicates(
    reader: Reader, columns: _Columns, taken: Set[str | None], read: PrivateRead
) -> list[_MovedPart]:
    """Return the predicates over sizes in a query's list, WHERE and ORDER BY.

    `taken` are the names of all columns below.
    """
    tokens = read.tokens
    found = [
        (SearchedNode(node, first, past), is_item, in_where)
        for part, first, past, in_where in _list_parts(reader, tokens)
        for node, is_item in find_movable(part, reader, columns.items, columns.expressions)
        if _is_known(node, reader, columns)
    ]
    places = find_spans([one for one, _, _ in found], read.text, tokens)
    known, room = {one for one in taken if one is not None}, EditBudget(read.text)
    called: dict[exp.Expr, str] = {}
    moved = _join_conditions(reader, columns, known, read)
    known |= {one.inner_column for one in moved}
    joined = {index for one in moved for index in range(one.first, one.stop)}
    for (one, is_item, in_where), (first, past) in zip(found, places, strict=True):
        if first in joined:
            continue
        if one.node not in called:
            called[one.node] = name_moved_expression(
                one.node, known, number=len(called), is_item=is_item and not in_where
            )
            known.add(called[one.node])
        conjunct = Conjunct(first, past, can_move=True)
        spelled = spell_as_having(conjunct, reader, columns.items, room, read.text, tokens)
        column = f"{quote_identifier(reader.alias)}.{quote_identifier(called[one.node])}"
        moved.append(_MovedPart(first, past, called[one.node], spelled, column if in_where else f"({column} OR false)"))
    return moved


def _join_conditions(reader: Reader, columns: _Columns, known: Set[str], read: PrivateRead) -> list[_MovedPart]:
    """Return the conditions of WHERE as one predicate, which errs as seldom as one.

    Return none if one predicate is all that it reads.
    """
    text, tokens, room = read.text, read.tokens, EditBudget(read.text)
    conjuncts = list_outer_conjuncts(reader, columns.items, tokens, columns.expressions) or ()
    found = [one for one in conjuncts if one.is_formula]
    if not found or (len(found) == 1 and _reads_one_column(found[0], tokens)):
        return []
    spelled = [spell_as_having(one, reader, columns.items, room, text, tokens) for one in found]
    whole = spelled[0] if len(spelled) == 1 else " AND ".join(f"({one})" for one in spelled)
    called = next(one for number in range(len(known) + 1) if (one := name_predicate_column(number)) not in known)
    column = f"{quote_identifier(reader.alias)}.{quote_identifier(called)}"
    return [
        _MovedPart(one.first, one.stop, called, whole, "true" if index else column) for index, one in enumerate(found)
    ]


def _reads_one_column(condition: Conjunct, tokens: tuple[Token, ...]) -> bool:
    """Return True for a column, with or without its table, in any parentheses."""
    names = [token for token in tokens[condition.first : condition.stop] if token.kind != "symbol"]
    return len(names) <= 2 and all(token.is_name and not token.is_word("not") for token in names)


def _find_numbers(
    reader: Reader, columns: _Columns, taken: Set[str | None], read: PrivateRead, *, skips_windows: bool
) -> list[_MovedPart]:
    """Return the items of a query's list that compute something from sizes.

    If it `skips_windows`, windows are left out, since they read other rows.
    """
    select, tokens, room = reader.select, read.tokens, EditBudget(read.text)
    known, moved = {one for one in taken if one is not None}, list[_MovedPart]()
    where = select.args.get("where")
    plain = set(select.args) - {key for key, value in select.args.items() if not value} <= _PASSES_ON
    if not plain or (where is not None and not (isinstance(where.this, exp.Boolean) and where.this.this)):
        skips_windows = True
    for item, (first, past) in zip(select.expressions, reader.clauses.items, strict=True):
        node, windows = item.unalias(), list(item.find_all(exp.Window))
        sizes = [
            one for column in node.find_all(exp.Column) if (one := find_mentioned_item(column, reader, columns.items))
        ]
        if not plain or not any(columns.items[one].is_aggregate for one in sizes) or is_carried(node):
            continue
        if not _is_known(node, reader, columns) or (windows and skips_windows) or any(map(is_rank_window, windows)):
            continue
        if any(not _is_over_rows(one) for one in node.find_all(exp.AggFunc)):
            return []
        if contains_type(node, exp.Query) or any(
            True for _ in find_movable(node, reader, columns.items, columns.expressions)
        ):
            continue
        end = find_unaliased_end(item, past, tokens)
        shown = (
            read_name(item.args["alias"]) if isinstance(item, exp.Alias) else find_default_name(node, tokens[first:end])
        )
        called = shown if shown not in known and shown.isidentifier() else _choose_unused_name(known)
        known.add(called)
        spelled = spell_as_having(Conjunct(first, end, can_move=True), reader, columns.items, room, read.text, tokens)
        label = "" if isinstance(item, exp.Alias) or called == shown else f" AS {quote_identifier(shown)}"
        column = f"{quote_identifier(reader.alias)}.{quote_identifier(called)}{label}"
        moved.append(_MovedPart(first, end, called, spelled, column))
    return moved


def _is_over_rows(call: exp.Expr) -> bool:
    """Return True if a window function leaves the rows as they are."""
    above = call.parent.parent if isinstance(call.parent, exp.Filter) else call.parent
    return isinstance(above, exp.Window)


def _choose_unused_name(known: Set[str]) -> str:
    return next(one for number in range(1, len(known) + 2) if (one := f"number {number}") not in known)


def _is_known(node: exp.Expr, reader: Reader, columns: _Columns) -> bool:
    """Return True if an expression reads keys and sizes of the grouped subquery, and nothing else."""
    return all(find_mentioned_item(column, reader, columns.items) is not None for column in node.find_all(exp.Column))


def _list_parts(reader: Reader, tokens: tuple[Token, ...]) -> Iterator[tuple[exp.Expr, int, int, bool]]:
    for item, (first, past) in zip(reader.select.expressions, reader.clauses.items, strict=True):
        yield item, first, past, False
    place = reader.clauses
    if (where := reader.select.args.get("where")) is not None and (mark := place.find_mark("where")) is not None:
        later = [index for _, index in place.marks if index > mark]
        yield where, mark, min(later, default=place.end), True
    if (order := reader.select.args.get("order")) is not None:
        yield order, place.end, len(tokens), False


def _show(
    moved: Sequence[_MovedPart], around: Sequence[Reader], columns: _Columns, place: Clauses, read: PrivateRead
) -> list[Edit]:
    """Return the changes that show the moved expressions in the subquery and in each query up to the last one."""
    tokens, reader, changes = read.tokens, around[-1], list[Edit]()
    for one in moved:
        changes.append(Edit.from_text(tokens[one.first].start, tokens[one.stop - 1].end, one.outer_text))
    names = dict.fromkeys(one.inner_column for one in moved)
    for between in around[:-1]:
        if not any(map(is_star, between.select.expressions)):
            table = quote_identifier(between.alias)
            listed = "".join(f", {table}.{quote_identifier(called)}" for called in names)
            changes.append(_append(listed, between.clauses, tokens))
    listed = "".join(
        f", {spelled} AS {quote_identifier(called)}"
        for called, spelled in {one.inner_column: one.inner_text for one in moved}.items()
    )
    changes.append(_append(listed, place, tokens, tokens[moved[0].first].start))
    for item, (first, past) in zip(reader.select.expressions, reader.clauses.items, strict=True):
        if is_star(item):
            if None in columns.names or not is_plain_star(item):
                return []
            table = quote_identifier(reader.alias)
            written = ", ".join(f"{table}.{quote_identifier(one)}" for one in columns.names if one is not None)
            changes.append(Edit.from_text(tokens[first].start, tokens[past - 1].end, written))
    return changes


def _append(listed: str, place: Clauses, tokens: tuple[Token, ...], origin: int | None = None) -> Edit:
    end = tokens[place.items[-1][1] - 1].end
    return Edit.from_text(end, end, listed, origin)
