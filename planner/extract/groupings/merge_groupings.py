"""A grouped subquery whose groups the query around puts together again, merged into that query.

SELECT month, sum(n) FROM (SELECT month, ward, count(*) AS n FROM visits WHERE age > 40 GROUP BY 1, 2) m
GROUP BY month HAVING sum(n) > 800
SELECT month, count(*)::numeric AS sum FROM visits WHERE age > 40 GROUP BY month HAVING count(*) > 800

SELECT ward, count(*) FROM (SELECT ward, day FROM visits GROUP BY ward, day HAVING max(cost) > 90) d
GROUP BY ward HAVING count(*) >= 3
SELECT ward, count(DISTINCT day) FILTER (WHERE cost > 90) AS count FROM visits
GROUP BY ward HAVING count(DISTINCT day) FILTER (WHERE cost > 90) >= 3

PostgreSQL gives the same for both where `day` is never NULL: sums of counts and of sums are those of all rows, so are
extremes of extremes, and the groups with a row beyond a threshold are the different values in such rows. But for groups
without any row, which PostgreSQL has none of.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.extract.hints.answerable_questions import INSTEAD
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import SelectItem, find_mentioned_item, list_items, spell_item
from planner.extract.subqueries.pull_up_subqueries import remove_cte
from planner.parser.clauses import Clauses, find_clauses, matches_tree
from planner.parser.edits import Edit, EditBudget, Origin
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, find_unaliased_end, list_readers
from planner.parser.tree import (
    contains_type,
    find_offset,
    find_position,
    find_start,
    is_star,
    read_alias,
    read_name,
    strip_parentheses,
    write_node,
)
from planner.scope.name_resolution import Scope, find_column
from planner.scorecard.shown_numbers import find_default_name

_IN_SUBQUERY = frozenset(("expressions", "from_", "joins", "where", "group", "having"))
_IN_READER = frozenset(("expressions", "from_", "with_", "group", "having", "order", "limit", "offset"))
_COMPARED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Ordered)
_SUMMED = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)
_EXTREMES = (exp.Max, exp.Min)
_STRICT = (exp.Column, exp.Identifier, exp.Cast, exp.DataType, exp.TimestampTrunc, exp.Extract, exp.Var, exp.Literal)


@dataclass(frozen=True, slots=True)
class _Inner:
    """The subquery: its columns by name, the keys that it groups by beside the outer query's, and its filter."""

    clauses: Clauses
    items: Mapping[str, SelectItem]
    expressions: Mapping[str, exp.Expr]
    further: tuple[str, ...]
    among: str | None


def merge_groupings(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that merge the SELECT into its only reader, which groups its rows again.

    Return none if the merged query would mean something else. Raises KH110, with the merged question, if they differ
    only in rows without a value.
    """
    if not isinstance(read.select.parent, exp.Subquery | exp.CTE) or read.select.args.get("group") is None:
        return ()
    try:
        levels = _find_levels(read)
        if levels is None:
            return ()
        changes, counted = _plan_merge(*levels, read)
        instead = None if changes else _suggest_total(*levels, read)
        sure = counted is None or all(_is_required(column, read) for column in counted.find_all(exp.Column))
    except KeyholeError:
        return ()
    if instead is not None:
        raise KeyholeError(
            "KH110",
            "a mean over a subquery's groups depends on how many of them have rows",
            detail="Keyhole adds up rows. A mean over all values of a key is the total over the number of the values.",
            hint=instead,
            position=find_position(read.select),
        )
    if not sure and levels[0].select.args.get("having") is None:
        return ()
    if counted is not None and not sure:
        merged = Origin(read.text).edit(changes, rule=merge_groupings.__name__).text.strip().rstrip(";")
        raise KeyholeError(
            "KH110",
            f"{write_node(counted)[:80]} may be NULL, and NULL would count as one more group",
            detail="Only the different values of a column can be counted, without NULL.",
            hint=f"{INSTEAD}{' '.join(merged.split())};",
            position=find_position(counted),
        )
    return tuple(changes)


def _find_levels(read: PrivateRead) -> tuple[Reader, _Inner] | None:
    """Return the only query that reads the subquery, and the subquery's columns."""
    select, tokens = read.select, read.tokens
    first_node = select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else read.node, tokens)
    found = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    if found is None or len(found) != 1 or not found[0].is_only_source or found[0].has_inner_queries():
        return None
    inner = _read_subquery(found[0], place, read)
    if inner is None or any(value for key, value in found[0].select.args.items() if key not in _IN_READER):
        return None
    return found[0], inner


def _suggest_total(reader: Reader, inner: _Inner, read: PrivateRead) -> str | None:
    """Return the question about the total, in the place of one about the mean of a subquery's groups.

    The further key needs public values: their number times the mean is the total.
    """
    having = reader.select.args.get("having")
    asked = None if having is None else strip_parentheses(having.this)
    if not isinstance(asked, exp.GT | exp.GTE | exp.LT | exp.LTE) or len(inner.further) != 1:
        return None
    call, threshold = strip_parentheses(asked.this), asked.expression
    column = strip_parentheses(call.this) if isinstance(call, exp.Avg) else None
    called = find_mentioned_item(column, reader, inner.items) if isinstance(column, exp.Column) else None
    if called is None or not isinstance(inner.expressions[called], exp.Count | exp.Sum) or inner.among is not None:
        return None
    key = find_column(inner.expressions[inner.further[0]], _make_scope(read))
    number = isinstance(threshold, exp.Literal) and not threshold.is_string
    if key is None or not key.domain or not number or read.select.args.get("where") is not None:
        return None
    by = [_find_key(one, reader.select, reader, inner.items) for one in reader.select.args["group"].expressions]
    names = ", ".join(write_node(inner.expressions[one]) for one in by)
    first, last = inner.clauses.source, (inner.clauses.find_mark("group") or inner.clauses.end) - 1
    source = read.text[read.tokens[first].start : read.tokens[last].end]
    total = exp.Mul(this=exp.Literal.number(len(key.domain)), expression=threshold.copy())
    twin = asked.copy()
    twin.set("this", inner.expressions[called].copy())
    twin.set("expression", total)
    return f"{INSTEAD}SELECT {names} {' '.join(source.split())} GROUP BY {names} HAVING {write_node(twin)};"


def _plan_merge(reader: Reader, inner: _Inner, read: PrivateRead) -> tuple[list[Edit], exp.Expr | None]:
    """Return the changes, and the expression whose different values are counted in them."""
    select, text, tokens, place = read.select, read.text, read.tokens, inner.clauses
    replaced = _replace_calls(reader, inner, read)
    if not replaced:
        return [], None
    counts = any(_counts_groups(call) for call in reader.select.find_all(exp.Count) if call.parent_select is not select)
    room, changes = EditBudget(text), [*replaced, *_spell_keys(reader, inner, replaced, read)]
    source, end = tokens[place.source + 1].start, tokens[(place.find_mark("group") or place.end) - 1].end
    room.reserve(end - source)
    marks = [index for _, index in reader.clauses.marks]
    last = tokens[min(marks, default=reader.clauses.end) - 1].end
    changes.append(Edit.from_text(tokens[reader.first].start, last, text[source:end], source))
    if isinstance(select.parent, exp.CTE):
        changes.append(remove_cte(select.parent, place, tokens))
    return changes, inner.expressions[inner.further[0]] if counts else None


def _read_subquery(reader: Reader, place: Clauses, read: PrivateRead) -> _Inner | None:
    """Return the shown columns of the subquery. Return None if the outer query groups by more than its keys."""
    select, group = read.select, reader.select.args.get("group")
    items = list_items(select, place, read.tokens)
    if items is None or group is None or any(value for key, value in select.args.items() if key not in _IN_SUBQUERY):
        return None
    expressions = {called: one.unalias() for called, one in zip(items, select.expressions, strict=True)}
    keys = {called for called, item in items.items() if not item.is_aggregate}
    read_by = [select.args["group"], *(expressions[called] for called in keys)]
    if {read_name(column.this) for node in read_by for column in node.find_all(exp.Column)} & set(read.table.unit):
        return None
    if any(contains_type(node, exp.Query) for node in expressions.values()):
        return None
    if not all(contains_type(expressions[called], exp.Column) for called in keys):
        return None
    by = {_find_key(one, reader.select, reader, items) for one in group.expressions}
    if not by <= keys:
        return None
    among = None
    if (having := select.args.get("having")) is not None and (
        among := _read_one_row_having(strip_parentheses(having.this))
    ) is None:
        return None
    if having is not None and len(keys) == len(items):
        return None  # a question whose groups are counted around it
    listed = {_find_grouped_column(one, select, items, expressions) for one in select.args["group"].expressions}
    further = tuple(sorted(keys - by)) if listed == keys else ()
    return _Inner(place, items, expressions, further, among)


def _find_key(grouped: exp.Expr, select: exp.Select, reader: Reader, items: Mapping[str, SelectItem]) -> str:
    """Return the subquery's column that the outer query groups by. Return an empty text for anything else."""
    node = _resolve_position(grouped, select)
    found = find_mentioned_item(node, reader, items) if isinstance(node, exp.Column) else None
    return found or ""


def _find_grouped_column(
    grouped: exp.Expr, select: exp.Select, items: Mapping[str, SelectItem], expressions: Mapping[str, exp.Expr]
) -> str:
    """Return the subquery's column that it groups by. Return an empty text if it shows none."""
    node = _resolve_position(grouped, select)
    known = [
        called
        for called, item in items.items()
        if not item.is_aggregate and strip_parentheses(expressions[called]) == node
    ]
    if not known and isinstance(node, exp.Column) and not node.args.get("table"):
        known = [called for called in items if called == read_name(node.this)]
    return known[0] if known else ""


def _resolve_position(grouped: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return the expression of an item of GROUP BY, if it is a place in the select list."""
    node = strip_parentheses(grouped)
    if isinstance(node, exp.Literal) and node.name.isdecimal() and 0 < int(node.name) <= len(select.expressions):
        return strip_parentheses(select.expressions[int(node.name) - 1].unalias())
    return node


def _read_one_row_having(having: exp.Expr) -> str | None:
    """Return the condition that one row of a group meets, for a HAVING that says that there is one."""
    call = strip_parentheses(having.this) if isinstance(having, exp.GT | exp.GTE | exp.LT | exp.LTE) else None
    column = strip_parentheses(call.this) if isinstance(call, _EXTREMES) else None
    if not isinstance(column, exp.Column) or contains_type(having.expression, exp.Column, exp.Query, exp.AggFunc):
        return None
    if type(having) not in ((exp.GT, exp.GTE) if isinstance(call, exp.Max) else (exp.LT, exp.LTE)):
        return None
    twin = having.copy()
    twin.set("this", column.copy())
    return write_node(twin)


def _replace_calls(reader: Reader, inner: _Inner, read: PrivateRead) -> list[Edit]:
    """Return the changes to the aggregates of the query around.

    Return none if one of them is of the subquery's groups themselves.
    """
    tokens, found = read.tokens, list[tuple[exp.Expr, SearchedNode]]()
    place = reader.clauses
    parts = list(zip(reader.select.expressions, place.items, strict=True))
    if (having := reader.select.args.get("having")) is not None:
        parts.append((having, (place.find_mark("having") or place.end, place.end)))
    if (order := reader.select.args.get("order")) is not None:
        parts.append((order, (place.end, len(tokens))))
    for part, (first, past) in parts:
        if is_star(part) or contains_type(part, exp.Window, exp.Filter):
            return []
        found += [(call, SearchedNode(call, first, past)) for call in part.find_all(exp.AggFunc)]
    changes: list[Edit] = []
    places = find_spans([one for _, one in found], read.text, tokens)
    for (call, _), (first, past) in zip(found, places, strict=True):
        written = _merge_call(call, reader, inner, read)
        if written is None:
            return []
        changes.append(Edit.from_text(tokens[first].start, tokens[past - 1].end, written))
    return changes


def _merge_call(call: exp.Expr, reader: Reader, inner: _Inner, read: PrivateRead) -> str | None:
    """Return an aggregate of the subquery's groups as an aggregate of its rows. Return None if there is none."""
    if _counts_groups(call):
        return _count_groups(inner, read)
    column = strip_parentheses(call.this) if isinstance(call.this, exp.Expr) else None
    called = find_mentioned_item(column, reader, inner.items) if isinstance(column, exp.Column) else None
    if called is None or inner.among is not None or not inner.items[called].is_aggregate:
        return None
    node = inner.expressions[called]
    kind = node.this if isinstance(node, exp.Filter) else node
    written = spell_item(inner.items[called], EditBudget(read.text), read.text, read.tokens)
    if isinstance(call, exp.Sum) and isinstance(kind, exp.Count) and not isinstance(kind.this, exp.Distinct):
        return written if isinstance(_find_enclosing_call(call), _COMPARED) else f"({written})::numeric"
    if isinstance(call, exp.Sum) and isinstance(kind, exp.Sum):
        if isinstance(_find_enclosing_call(call), _COMPARED):
            return written
        summed = (
            find_column(strip_parentheses(kind.this), _make_scope(read))
            if isinstance(strip_parentheses(kind.this), exp.Column)
            else None
        )
        if summed is None or summed.sql_type not in _SUMMED:
            return None
        return f"({written})::numeric" if summed.sql_type is SqlType.INTEGER else written
    return written if type(call) is type(kind) and isinstance(call, _EXTREMES) else None


def _counts_groups(call: exp.Expr) -> bool:
    return isinstance(call, exp.Count) and isinstance(call.this, exp.Star | exp.Literal)


def _find_enclosing_call(call: exp.Expr) -> exp.Expr | None:
    above = call.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return above


def _make_scope(read: PrivateRead) -> Scope:
    return Scope(table=read.table, alias=read_alias(read.node))


def _count_groups(inner: _Inner, read: PrivateRead) -> str | None:
    """Return the number of the subquery's groups, as the number of the different values of its one further key."""
    if len(inner.further) != 1 or read.select.args.get("joins"):
        return None
    (further,) = inner.further
    node = inner.expressions[further]
    if any(not isinstance(part, _STRICT) for part in node.walk()):
        return None
    written = spell_item(inner.items[further], EditBudget(read.text), read.text, read.tokens)
    among = "" if inner.among is None else f" FILTER (WHERE {inner.among})"
    return f"count(DISTINCT {written}){among}"


def _is_required(column: exp.Column, read: PrivateRead) -> bool:
    found = find_column(column, _make_scope(read))
    return found is not None and found.required


def _spell_keys(reader: Reader, inner: _Inner, replaced: list[Edit], read: PrivateRead) -> list[Edit]:
    """Return the outer query's changes for the subquery's keys, and for the names of replaced expressions."""
    text, tokens, select, room = read.text, read.tokens, reader.select, EditBudget(read.text)
    within = [(one.start, one.end) for one in replaced]
    outputs = {read_name(item.args["alias"]) for item in select.expressions if isinstance(item, exp.Alias)}
    outputs |= {
        read_name(one.this) for item in select.expressions if isinstance(one := strip_parentheses(item), exp.Column)
    }
    changes: list[Edit] = []
    for column in reader.list_columns():
        begin = find_start(column)
        called = find_mentioned_item(column, reader, inner.items)
        if begin is None or any(first <= begin < end for first, end in within):
            continue
        sorts = column.find_ancestor(exp.Order) is not None
        if sorts and not column.args.get("table") and read_name(column.this) in outputs:
            continue
        if called is None or inner.items[called].is_aggregate:
            if not sorts and column.find_ancestor(exp.Group) is None:
                raise KeyholeError("KH106", "a name that is none of the subquery's keys")
            continue
        end = find_offset(column.this)
        last = next(token.end for token in tokens if token.start <= end < token.end)
        changes.append(Edit.from_text(begin, last, spell_item(inner.items[called], room, text, tokens)))
    for item, (first, past) in zip(select.expressions, reader.clauses.items, strict=True):
        if not isinstance(item, exp.Alias):
            shown = strip_parentheses(item)
            label = (
                read_name(shown.this) if isinstance(shown, exp.Column) else find_default_name(item, tokens[first:past])
            )
            at = tokens[find_unaliased_end(item, past, tokens) - 1].end
            changes.append(Edit.from_text(at, at, f" AS {quote_identifier(label)}"))
    return changes
