"""Thresholds that the query around a grouped subquery shows, groups or sorts by, moved into its select list.

SELECT ward, CASE WHEN n > 3000 THEN 'busy' ELSE 'calm' END
FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t

SELECT ward, CASE WHEN (t."predicate 1" OR false) THEN 'busy' ELSE 'calm' END
FROM (SELECT ward, count(*) > 3000 AS "predicate 1" FROM visits GROUP BY ward) t

A column that is read elsewhere stays, as a number that is not shown. PostgreSQL gives the same for both: a column has
the value of its expression, and OR false leaves it, NULL too, without giving an item around it the column's name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import (
    IN_QUESTION,
    Conjunct,
    SelectItem,
    drop_aggregates,
    find_mentioned_item,
    is_kept_side,
    list_items,
    list_outer_conjuncts,
    may_be_unit_query,
    plan_beside_sizes,
    reads_aggregates_elsewhere,
    reads_item,
    spell_as_having,
)
from planner.extract.ranks.expand_stars import is_plain_star, write_out_stars
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import is_star, read_name
from planner.scope.embedded import name_predicate_column
from planner.scorecard.find import find_predicates

_IN_READER = IN_QUESTION | {"with_", "limit", "offset", "distinct", "kind"}


@dataclass(frozen=True, slots=True)
class _MovedPart:
    """A moved part of the outer query, by its tokens.

    `inner_column` is its column inside, and `inner_text` its text there.
    """

    first: int
    stop: int
    inner_column: str
    inner_text: str


def push_down_predicates(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that move predicates from the only reader of a SELECT into the SELECT.

    Return none if there are no such predicates.
    """
    return plan_beside_sizes(read, _plan_moves)


def _plan_moves(read: PrivateRead) -> list[Edit]:
    select, node, text, tokens = read.select, read.node, read.text, read.tokens
    if not isinstance(select.parent, exp.Subquery | exp.CTE):
        return []
    if any(value for key, value in select.args.items() if key not in IN_QUESTION):
        return []
    first_node = select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else node, tokens)
    found = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    if found is None or len(found) != 1 or may_be_unit_query(read):
        return []
    (reader,) = found
    if any(value for key, value in reader.select.args.items() if key not in _IN_READER):
        return []
    items = list_items(select, place, tokens)
    if items is None or not reader.alias or not is_kept_side(reader) or _is_named_inside(reader, items):
        return []
    moved = list(_find_moved_formulas(reader, items, read))
    conjuncts = list_outer_conjuncts(reader, items, tokens)
    if not moved or conjuncts is None:
        return []
    spans = tuple(Conjunct(one.first, one.stop, can_move=True) for one in moved)
    stars = [item for item in reader.select.expressions if is_star(item)]
    if stars and not (reader.is_only_source and all(is_plain_star(item, reader) for item in stars)):
        return []
    apart = reads_aggregates_elsewhere(reader, items, (*conjuncts, *spans), tokens)
    if apart and read.catalog.defaults.numbers == "refuse":
        return []
    room = EditBudget(text)
    shown = dict.fromkeys(
        f", {spell_as_having(Conjunct(one.first, one.stop, can_move=True), reader, items, room, text, tokens)} "
        f"AS {quote_identifier(one.inner_column)}"
        for one in moved
    )
    end = tokens[place.items[-1][1] - 1].end
    changes = [Edit.from_text(tokens[one.first].start, tokens[one.stop - 1].end, one.inner_text) for one in moved]
    changes.append(Edit.from_text(end, end, "".join(shown), tokens[moved[0].first].start))
    changes += write_out_stars(reader, items, tokens)
    if not apart and not any(one.can_move for one in conjuncts):
        inside = drop_aggregates(select, place, items, tokens)
        if inside is None:
            return []
        changes += inside
    return changes


def _is_named_inside(reader: Reader, items: Mapping[str, SelectItem]) -> bool:
    """Return True if a further subquery contains the name of an aggregate. It may be that of a column of its own."""
    aggregates = {item.name for item in items.values() if item.is_aggregate}
    return any(
        read_name(column.this) in aggregates and column.find_ancestor(exp.Query) is not reader.select
        for column in reader.list_columns()
    )


def _find_moved_formulas(reader: Reader, items: Mapping[str, SelectItem], read: PrivateRead) -> Iterator[_MovedPart]:
    """Yield the largest formulas, and bands, over the subquery's aggregates in shown and sorted expressions."""
    known = {one.name for one in items.values()}
    called: dict[exp.Expr, str] = {}
    expressions = dict(zip(items, read.select.expressions, strict=True))
    searched = [
        (SearchedNode(node, first, past), is_item)
        for part, first, past in _list_parts(reader, read)
        for node, is_item in find_movable(part, reader, items, expressions)
        if all(reads_item(column, reader, items) for column in node.find_all(exp.Column))
    ]
    places = find_spans([one for one, _ in searched], read.text, read.tokens)
    for (one, is_item), (start, end) in zip(searched, places, strict=True):
        node = one.node
        if node not in called:
            called[node] = name_moved_expression(node, known, number=len(called), is_item=is_item)
            known.add(called[node])
        column = f"{quote_identifier(reader.alias)}.{quote_identifier(called[node])}"
        spelled = column if isinstance(node, exp.WidthBucket) else f"({column} OR false)"
        yield _MovedPart(start, end, called[node], spelled)


def _list_parts(reader: Reader, read: PrivateRead) -> Iterator[tuple[exp.Expr, int, int]]:
    for item, (first, past) in zip(reader.select.expressions, reader.clauses.items, strict=True):
        yield item, first, past
    if (group := reader.select.args.get("group")) is not None and (
        mark := reader.clauses.find_mark("group")
    ) is not None:
        yield group, mark, reader.clauses.find_mark("having") or reader.clauses.end
    if (order := reader.select.args.get("order")) is not None:
        yield order, reader.clauses.end, len(read.tokens)


def find_movable(
    part: exp.Expr, reader: Reader, items: Mapping[str, SelectItem], expressions: Mapping[str, exp.Expr]
) -> Iterator[tuple[exp.Expr, bool]]:
    """Yield the predicates and bands of a part that can move into the subquery.

    The flag is True for a whole, named item.

    A part with aggregates of its own stays, but its operands without aggregates may move.

    Parameters:
        expressions: the expression of each of the subquery's columns, by name.
    """
    if contains_aggregate(part):
        for child in part.iter_expressions():
            yield from find_movable(child, reader, items, expressions)
        return
    twin = part.copy()
    originals = {id(copied): node for node, copied in zip(list(part.walk()), list(twin.walk()), strict=True)}
    for copied in list(twin.find_all(exp.Column)):
        column = originals[id(copied)]
        called = find_mentioned_item(column, reader, items) if isinstance(column, exp.Column) else None
        if called is not None and items[called].is_aggregate:
            copied.replace(exp.Paren(this=expressions[called].unalias().copy()))
    found = [originals[id(node)] for node in find_predicates(twin) if id(node) in originals]
    inside = {id(node) for one in found for node in one.walk()}
    bands = [one for one in twin.find_all(exp.WidthBucket) if contains_aggregate(one.this)]
    found += [node for one in bands if id(node := originals[id(one)]) not in inside]
    for node in found:
        above = node.parent
        while isinstance(above, exp.Paren):
            above = above.parent
        yield node, isinstance(above, exp.Alias) and above.parent is reader.select


def name_moved_expression(node: exp.Expr, known: set[str], *, number: int, is_item: bool) -> str:
    """Return the name of a moved expression in the subquery: the name of its select item, or an unused name."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if is_item and isinstance(above, exp.Alias) and read_name(above.args["alias"]) not in known:
        return read_name(above.args["alias"])
    if isinstance(node, exp.WidthBucket) and "width_bucket" not in known:
        return "width_bucket"
    return next(one for more in range(len(known) + 1) if (one := name_predicate_column(number + more)) not in known)
