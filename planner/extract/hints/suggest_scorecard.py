"""A statement that shows sizes, as the scorecard that it could be: each size as its band, or as a threshold.

And as a ranking where it is cut to the greatest.

    SELECT country, sum(amount) AS total FROM sales GROUP BY country ORDER BY sum(amount) DESC LIMIT 10
    SELECT country, width_bucket(sum(amount), ARRAY[5000, 10000]) AS total FROM sales GROUP BY country
    ORDER BY width_bucket(sum(amount), ARRAY[5000, 10000]) DESC LIMIT 10;

Thresholds are those that the owner declared, or follow from declared bounds: never from data.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.shown_expressions import check_shown_expressions, find_shown_aggregate
from planner.catalog.catalog import MOST_BANDS, Column
from planner.errors import KeyholeError
from planner.extract.hints.answerable_questions import INSTEAD, copy_where, excludes_emptiness, suggest_likely_threshold
from planner.extract.private_read import ParsedQuestion
from planner.parser.edits import Edit
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, read_limit, read_name, strip_parentheses, write_node
from planner.scope.group_by import list_grouped_expressions, read_group_by
from planner.scope.owner_bands import find_bands, strip_condition, write_band
from planner.scorecard.find import find_predicates, shows_size

# of a size: a band has none of them, nor a width_bucket of thresholds that do not rise
_WRAPPINGS = (exp.Paren, exp.Cast, exp.Round, exp.Coalesce, exp.Floor, exp.Ceil, exp.WidthBucket)


_MOST_RANKED = 100  # rows: tools cut all that they ask to hundreds or thousands, and do not mean the first of them
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between, exp.In)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """The replacement of a size, and the number of thresholds that it compares with."""

    edit: Edit
    thresholds: int


@dataclass(frozen=True, slots=True)
class _Size:
    """A size that a statement shows or sorts by: its expression, and between which tokens it stands."""

    node: exp.Expr
    first: int
    stop: int


def suggest_scorecard(place: ParsedQuestion) -> str | None:
    """Return the statement with a band or a threshold in the place of every size that it shows or sorts by.

    If the whole statement is not the question, return the question only, without ORDER BY and LIMIT. Return None if a
    size has neither a band nor a threshold, or if the statement would be refused for another reason.
    """
    if place.per_unit is not None or place.with_text or place.scope.subquery_columns is not None:
        return None
    whole = place.select.parent is None
    if not whole and _is_filtered_around(place):
        return None
    try:
        keys = read_group_by(place.select, place.scope)
        sizes = [*_list_shown_sizes(place), *(_list_sorted_sizes(place) if whole else ())]
        proposals = [_propose(size, place, keys) for size in sizes]
        _check_without_sizes(place)
    except KeyholeError:
        return None
    written = [proposed.edit for proposed in proposals if proposed is not None]
    thresholds = {proposed.edit.text: proposed.thresholds for proposed in proposals if proposed is not None}
    if not keys or not sizes or len(written) < len(sizes) or sum(thresholds.values()) > MOST_BANDS:
        return None
    if copy_where(place) != place.clauses.get_text("where", place.text, place.tokens):
        return None
    first, past = (0, len(place.tokens)) if whole else (place.clauses.select, place.clauses.end)
    return INSTEAD + _write(place, first, past, [*written, *_cut_having(place)])


def _is_filtered_around(place: ParsedQuestion) -> bool:
    """Return True if a query around the question compares its sizes: it asks for the groups that pass."""
    around = place.select.find_ancestor(exp.Select)
    while around is not None:
        where = around.args.get("where")
        if where is not None and contains_type(where, *_COMPARISONS):
            return True
        around = around.find_ancestor(exp.Select)
    return False


def _list_shown_sizes(place: ParsedQuestion) -> Iterator[_Size]:
    for item, (first, past) in zip(place.select.expressions, place.clauses.items, strict=False):
        if shows_size(item):
            yield _Size(item.unalias(), first, past)


def _list_sorted_sizes(place: ParsedQuestion) -> Iterator[_Size]:
    order = place.select.args.get("order")
    for item in () if order is None else order.expressions:
        if shows_size(item):
            yield _Size(item.this, place.clauses.end, len(place.tokens))


def _propose(size: _Size, place: ParsedQuestion, keys: tuple[Column, ...]) -> _Proposal | None:
    """Return the band or threshold that replaces a size. Return None if there is none."""
    call, tokens, text = size.node, place.tokens, place.text
    while isinstance(call, _WRAPPINGS):
        call = call.this
    ((first, past),) = find_spans([SearchedNode(call, size.first, size.stop)], text, tokens)
    aggregate = text[tokens[first].start : tokens[past - 1].end]
    if _reads_band(call, place):
        ((first, past),) = find_spans([SearchedNode(size.node, size.first, size.stop)], text, tokens)
        return _Proposal(Edit.from_text(tokens[first].start, tokens[past - 1].end, f"max({write_node(call.this)})"), 1)
    bands = find_bands(call, place.scope, {key.name for key in keys})
    if bands is not None:
        band = write_band(aggregate, bands)
    else:
        threshold = suggest_likely_threshold(strip_condition(call), place.scope)
        if threshold is None or _asks_threshold(place):  # it asks already, of this or of something else
            return None
        band = f"{aggregate} > {threshold}"
    ((first, past),) = find_spans([SearchedNode(size.node, size.first, size.stop)], text, tokens)
    edit = Edit.from_text(tokens[first].start, tokens[past - 1].end, band)
    return _Proposal(edit, 1 if bands is None else len(bands.thresholds))


def _reads_band(call: exp.Expr, place: ParsedQuestion) -> bool:
    """Return True if an aggregate is of a group's band, which is meaningful for some aggregates only."""
    column = call.this if isinstance(call, exp.AggFunc) else None
    known = {shown.name for shown in place.scope.table.band_columns}
    return isinstance(column, exp.Column) and read_name(column.this) in known


def _check_without_sizes(place: ParsedQuestion) -> None:
    """Raise the refusal that the question would still get if its counts and sums were not shown.

    That is KH101 for another aggregate, or an error of its columns.
    """
    masked: exp.Select = place.keys_only.copy()
    for item in masked.expressions:
        if shows_size(item):
            (item.this if isinstance(item, exp.Alias) else item).replace(exp.true())
    if place.select.parent is not None:
        masked.set("order", None)
    order = masked.args.get("order")
    for item in () if order is None else order.expressions:
        if shows_size(item):
            item.this.replace(exp.true())
    if find_shown_aggregate(masked) is not None:
        raise KeyholeError("KH101", "an aggregate is left")
    check_shown_expressions(masked, place.scope, *list_grouped_expressions(masked, place.scope))


def _asks_threshold(place: ParsedQuestion) -> bool:
    """Return True if HAVING compares aggregates with more than nothing."""
    having = place.select.args.get("having")
    return having is not None and contains_aggregate(having) and not excludes_emptiness(having)


def _cut_having(place: ParsedQuestion) -> tuple[Edit, ...]:
    """Return the edits that cut a HAVING which only says that there are rows, as tools write it."""
    tokens, at = place.tokens, place.clauses.find_mark("having")
    if at is None or _asks_threshold(place):
        return ()
    return (Edit.from_text(tokens[at - 1].end, tokens[place.clauses.end - 1].end, ""),)


def _write(place: ParsedQuestion, first: int, past: int, edits: list[Edit]) -> str:
    tokens, at = place.tokens, place.tokens[first].start
    parts = []
    for edit in sorted(edits):
        parts += [place.text[at : edit.start], edit.text]
        at = edit.end
    return f"{''.join((*parts, place.text[at : tokens[past - 1].end]))};"


def suggest_ranking(place: ParsedQuestion) -> str | None:
    """Return a ranking of the groups by the size by which the statement is sorted. The ranking shows no sizes.

    Return None if the statement is part of another one, is not cut to a few rows, uses DISTINCT, or is sorted by
    something else. Return None if the owner declared no bands of that size: a ranking then needs a tolerance that
    cannot be guessed.
    """
    select, limit, order = place.select, read_limit(place.select), place.select.args.get("order")
    alone = select.parent is None and not place.with_text and place.per_unit is None and not place.predicates
    alone = alone and select.args.get("distinct") is None  # which is sorted by what it shows
    if order is None or not alone or limit is None or not limit.name.isdecimal() or int(limit.name) > _MOST_RANKED:
        return None
    size = _find_sorted_size(order.expressions[0], select)
    kept = [item for item in select.expressions if not shows_size(item)]
    first_kept = select.expressions[: len(kept)] == kept  # so that numbers in GROUP BY mean what they meant
    try:
        keys = {key.name for key in read_group_by(select, place.scope)}
    except KeyholeError:
        return None
    if size is None or not kept or not first_kept or find_bands(size, place.scope, keys) is None:
        return None
    ranking: exp.Select = select.copy()
    ranking.set("expressions", [item.copy() for item in kept])
    ranking.set("offset", None)
    if not _asks_threshold(place):
        ranking.set("having", None)  # tools say that there are rows
    ordered = order.expressions[0].copy()
    ordered.set("this", size.copy())
    ranking.set("order", exp.Order(expressions=[ordered]))
    return f"{write_node(ranking)};"


def _find_sorted_size(ordered: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """Return the aggregate that a statement is sorted by, itself or by the name or number of its item."""
    node = strip_parentheses(ordered.this)
    items = select.expressions
    if isinstance(node, exp.Literal) and node.name.isdecimal() and 0 < int(node.name) <= len(items):
        node = strip_parentheses(items[int(node.name) - 1].unalias())
    elif isinstance(node, exp.Column) and not node.table:
        called = [
            one for one in items if isinstance(one, exp.Alias) and read_name(one.args["alias"]) == read_name(node.this)
        ]
        node = strip_parentheses(called[0].this) if called else node
    return node if shows_size(node) and not find_predicates(node) else None
