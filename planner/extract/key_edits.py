"""The edits that let a select list, ORDER BY and GROUP BY read the relation of answered keys in place of the tables."""

from collections.abc import Iterator

from sqlglot import exp

from planner.aggregates.order_statistics import is_truth
from planner.catalog.catalog import Column, Derivation, Lookup, MergedKeys, SqlType, Table, ValueGroups
from planner.extract.extract_refusals import refuse_empty_item, refuse_spelling
from planner.extract.private_read import ParsedQuestion
from planner.parser.clauses import find_closing, find_item_end, find_opening, find_token
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import find_offset, locate_name, read_name, strip_parentheses, write_node
from planner.scope.embedded import RANK_COLUMN, ShownKey, ShownKeys, name_predicate_column
from planner.scope.functional_dependencies import find_groups, write_lookup
from planner.scope.group_by import resolve_item
from planner.scope.key_classes import (
    find_cycle_key,
    find_plain_column,
    find_stand_in,
    read_key_expression,
    write_identity,
)
from planner.scope.key_times import write_in_cycle
from planner.scope.name_resolution import Scope, are_same_derivation, read_derivation
from planner.scope.number_keys import find_number, name_number
from planner.scope.truth_keys import find_truth, name_value

_CALLS = ("date_trunc", "extract", "date_part", "date")


def edit_keys(place: ParsedQuestion, keys: tuple[Column, ...]) -> list[Edit]:
    """Return edits of the select list and ORDER BY after which they read the relation of answered keys.

    Derived expressions become their column, and qualified names lose their schemas.
    """
    edits: list[Edit] = []
    select = place.select
    windows = select.args.get("windows") or ()
    for part in (*select.expressions, select.args.get("order"), select.args.get("distinct"), *windows):
        if part is not None:
            edits.extend(_edit_part(place, part, keys))
    edits.extend(_edit_predicates(place))
    edits.extend(_edit_ranking(place))
    if len(select.expressions) != len(place.clauses.items):
        raise refuse_empty_item(select)
    numbers = {one.item for one in place.numbers.shown}
    for index, (projection, (_, past)) in enumerate(zip(select.expressions, place.clauses.items, strict=True)):
        if index in numbers:
            continue
        label = _find_label(place, projection, keys)
        if label is not None:
            end = place.tokens[past - 1].end
            edits.append(Edit(end, end, (f" AS {quote_identifier(label)}",)))
    return edits


def _find_key(node: exp.Expr, scope: Scope, keys: tuple[Column, ...]) -> Column | None:
    written = read_derivation(node, scope)
    if written is None:
        return None
    parted = (scope.table.get_column(key.derivation.column) for key in keys if isinstance(key.derivation, ValueGroups))
    return next((key for key in (*keys, *parted) if are_same_derivation(key.derivation, written)), None)


def _edit_predicates(place: ParsedQuestion) -> Iterator[Edit]:
    """Yield edits that make every predicate its column, as a test: PostgreSQL names neither that nor a formula."""
    for shown in place.predicates:
        column = f"{quote_identifier(place.scope.alias)}.{quote_identifier(name_predicate_column(shown.number))}"
        yield Edit(place.tokens[shown.first].start, place.tokens[shown.stop - 1].end, (f"({column} = true)",))


def _edit_ranking(place: ParsedQuestion) -> Iterator[Edit]:
    """Yield edits that replace the ranking's measure by the column of places, the first of which comes first."""
    if (ranked := place.ranked) is not None:
        column = f"{quote_identifier(place.scope.alias)}.{quote_identifier(RANK_COLUMN)}"
        for first, past in ranked.spans:
            yield Edit(place.tokens[first].start, place.tokens[past - 1].end, (column,))


def _edit_part(place: ParsedQuestion, node: exp.Expr, keys: tuple[Column, ...]) -> list[Edit]:
    if any(shown.node is node for shown in place.predicates) or any(node is one for one in place.numbers.nodes):
        return []
    if place.ranked is not None and any(node is size for size in place.ranked.sizes):
        return []
    if (truth := find_truth(node, place.scope)) is not None and any(key.name == truth.name for key in keys):
        ((begin, past),) = find_spans([SearchedNode(node, 0, len(place.tokens))], place.text, place.tokens)
        held = f"{quote_identifier(place.scope.alias)}.{quote_identifier(name_value(truth))}"
        # as a test: PostgreSQL gives that no name
        return [Edit(place.tokens[begin].start, place.tokens[past - 1].end, (f"({held} = true)",))]
    if (number := find_number(node, place.scope)) is not None and any(key.name == number.name for key in keys):
        ((begin, past),) = find_spans([SearchedNode(node, 0, len(place.tokens))], place.text, place.tokens)
        value = f"{quote_identifier(place.scope.alias)}.{quote_identifier(name_number(number))}"
        if place.tokens[begin].is_word("date_part"):
            value += "::double precision"
        # as a sum: PostgreSQL gives that no name
        return [Edit(place.tokens[begin].start, place.tokens[past - 1].end, (f"(+{value})",))]
    column = _find_key(node, place.scope, keys)
    if column is not None:
        first, last = _find_key_span(place, node)
        cast = _write_cast(place, node, column, place.tokens[first].value)
        text = f"{quote_identifier(place.scope.alias)}.{quote_identifier(column.name)}{cast}"
        return [Edit(place.tokens[first].start, place.tokens[last].end, (text,))]
    if isinstance(node, exp.Column) and (found := find_stand_in(node, place.scope)) is not None and found in keys:
        read = place.scope.resolve_column(node)
        start = locate_name(node)
        end = place.tokens[find_token(place.tokens, find_offset(node.this))].end
        text = f"{quote_identifier(place.scope.alias)}.{quote_identifier(found.name)}::{read.declared}"
        return [Edit(start, end, (text,))]
    if isinstance(node, exp.Column) and (cycle := find_cycle_key(node, place.scope)) is not None:
        part, key, number = cycle
        start = locate_name(node)
        end = place.tokens[find_token(place.tokens, find_offset(node.this))].end
        named = f"{quote_identifier(place.scope.alias)}.{quote_identifier(number.name)}"
        read = place.scope.resolve_column(node)
        return (
            [Edit(start, end, (f"{write_in_cycle(part, named)}::{read.declared}",))]
            if any(one.name == key.name for one in keys)
            else []
        )
    if isinstance(node, exp.Column) and _is_in_parts(place, node, keys):
        start = locate_name(node)
        end = place.tokens[find_token(place.tokens, find_offset(node.this))].end
        named = f"{quote_identifier(place.scope.alias)}.{quote_identifier(place.scope.resolve_column(node).name)}"
        return [Edit(start, end, (named,))]
    if isinstance(node, exp.Column) and _has_names_of_its_own(place.scope) and _loses_meaning(place, node, keys):
        start = locate_name(node)
        end = place.tokens[find_token(place.tokens, find_offset(node.this))].end
        return [
            Edit(start, end, (write_lookup(place.scope.resolve_column(node), [key.name for key in keys], place.scope),))
        ]
    if isinstance(node, exp.Column) and node.args.get("db") is not None:
        start = find_offset(node.args.get("catalog") or node.args["db"])
        return [Edit(start, find_offset(node.args["table"]), ())]
    return [edit for child in node.iter_expressions() for edit in _edit_part(place, child, keys)]


def _write_cast(place: ParsedQuestion, node: exp.Expr, column: Column, spelled: str) -> str:
    """Return the type to which the derived column is cast, for the type of the expression as written."""
    if isinstance(node, exp.Extract):
        return "::double precision" if spelled == "date_part" else "::numeric"
    if not isinstance(node, exp.TimestampTrunc):
        return ""
    read = strip_parentheses(node.this)
    if isinstance(read, exp.Cast):
        return "::timestamp" if read.to.this == exp.DataType.Type.TIMESTAMP else "::timestamptz"
    return "::timestamptz" if _is_of_date(column, place.scope.table) else "::timestamp"


def _is_of_date(column: Column, table: Table) -> bool:
    """Return True if the column is derived from a date. PostgreSQL truncates it as midnight in the session's zone."""
    base = None if not isinstance(column.derivation, Derivation) else column.derivation.column
    return any(known.name == base and known.sql_type is SqlType.DATE for known in table.columns)


def _is_in_parts(place: ParsedQuestion, node: exp.Column, keys: tuple[Column, ...]) -> bool:
    """Return True for a reference to a joined table's column, if the question groups by parts of its values."""
    parted = {key.derivation.column for key in keys if isinstance(key.derivation, ValueGroups)}
    if not parted or not _has_names_of_its_own(place.scope) or isinstance(node.this, exp.Star):
        return False
    if (
        isinstance(node.parent, exp.Ordered)
        and node.args.get("table") is None
        and read_name(node.this) in _list_aliases(place)
    ):
        return False
    return place.scope.resolve_column(node).name in parted


def _has_names_of_its_own(scope: Scope) -> bool:
    return bool(scope.public_tables or scope.members) or scope.subquery_columns is not None


def _loses_meaning(place: ParsedQuestion, node: exp.Column, keys: tuple[Column, ...]) -> bool:
    """Return True if the reference would mean nothing to the relation that takes the place of the joined tables."""
    if (
        isinstance(node.parent, exp.Ordered)
        and node.args.get("table") is None
        and read_name(node.this) in _list_aliases(place)
    ):
        return False
    found = place.scope.resolve_column(node)
    shown = found.name == read_name(node.this) and found in keys
    return read_name(node.args.get("table")) not in ("", place.scope.alias) or not shown


def _list_aliases(place: ParsedQuestion) -> set[str]:
    return {read_name(item.args["alias"]) for item in place.select.expressions if isinstance(item, exp.Alias)}


def _find_label(place: ParsedQuestion, projection: exp.Expr, keys: tuple[Column, ...]) -> str | None:
    """Return the column name that PostgreSQL gives a derived expression. The column keeps that name after the edit."""
    node = strip_parentheses(projection)
    while isinstance(node, exp.Cast | exp.Case) and _find_key(node, place.scope, keys) is None:
        inner = node.args.get("default") if isinstance(node, exp.Case) else node.this
        if inner is None:
            return None
        node = strip_parentheses(inner)
    for shown in place.predicates:
        if shown.node is node and is_truth(node):
            return place.tokens[shown.first].value  # an aggregate's own name, where a formula has none
    if find_number(node, place.scope) is not None and isinstance(node, exp.Func):
        ((begin, _),) = find_spans([SearchedNode(node, 0, len(place.tokens))], place.text, place.tokens)
        return place.tokens[begin].value if place.tokens[begin + 1].is_symbol("(") else None
    if isinstance(node, exp.Column) and _has_names_of_its_own(place.scope):
        written = read_name(node.this)
        return None if place.scope.resolve_column(node).name == written else written
    if _find_key(node, place.scope, keys) is None:
        return None
    while isinstance(node, exp.Cast):
        node = strip_parentheses(node.this)
    if isinstance(node, exp.Column):
        return read_name(node.this)
    return place.tokens[_find_key_span(place, node)[0]].value


def _find_key_span(place: ParsedQuestion, node: exp.Expr) -> tuple[int, int]:
    """Return the first and last token of a derived expression."""
    column = node.find(exp.Column)
    assert column is not None
    first = last = find_token(place.tokens, find_offset(column.this))
    while first > 1 and place.tokens[first - 1].is_symbol("."):
        first -= 2
    inner: exp.Expr | None = column
    while inner is not node:
        inner = inner.parent if inner is not None else None
        if isinstance(inner, exp.DataType | exp.Var | exp.Literal):
            continue
        first, last = _widen_span(place, inner, first, last)
    return first, last


def _widen_span(place: ParsedQuestion, node: exp.Expr | None, first: int, last: int) -> tuple[int, int]:
    """Return the token span of an expression around a given one, whose span is `first` to `last`."""
    tokens = place.tokens
    if isinstance(node, exp.Cast) and last + 2 < len(tokens) and tokens[last + 1].is_symbol("::"):
        past = last + 3
        if past < len(tokens) and tokens[past].is_symbol("("):
            past = find_closing(tokens, past) + 1
        zoneless = past + 2 < len(tokens) and tokens[past].is_word("without")
        if tokens[last + 2].is_word("date", "timestamp"):
            return first, past + 2 if zoneless else past - 1
    around = find_opening(tokens, first)
    if around is not None and isinstance(node, exp.Paren) and around == first - 1:
        return around, find_closing(tokens, around)
    called = isinstance(node, exp.Cast) and around is not None and tokens[around - 1].is_word("cast")
    called = called or (node is not None and around is not None and tokens[around - 1].is_word(*_CALLS))
    if around is not None and around > 0 and called:
        return around - 1, find_closing(tokens, around)
    raise refuse_spelling(tokens[first])


def show_keys(
    place: ParsedQuestion, keys: tuple[Column, ...], answered: tuple[Column, ...], around: tuple[str, str]
) -> ShownKeys | None:
    """Return the items of GROUP BY as SQL over the `answered` columns.

    Return None if every key is shown unchanged.

    Parameters:
        around: the SQL before and behind the relation of answered keys.
    """
    group = place.select.args.get("group")
    if group is None:
        return None
    plain = [
        find_plain_column(resolve_item(strip_parentheses(item), place.select, place.scope), place.scope)
        for item in group.expressions
    ]
    if None not in plain and {key.name for key in keys} <= {one.name for one in plain if one is not None}:
        return None
    found: dict[tuple[str, tuple[int, ...]], ShownKey] = {}
    for item, span in zip(group.expressions, _list_spans(place), strict=False):
        shown = _show_item(place, item, span, keys, answered)
        if shown is not None:
            found.setdefault((shown.sql, shown.key_places), shown)
    if not found:
        return None
    before, behind = around
    return ShownKeys(tuple(found.values()), before, f"{behind} AS {quote_identifier(place.scope.alias)}")


def _is_computed(key: Column) -> bool:
    derived = key.derivation
    return isinstance(derived, MergedKeys | ValueGroups) or (isinstance(derived, Lookup) and derived.has_classes)


def _list_spans(place: ParsedQuestion) -> Iterator[tuple[int, int]]:
    """Yield the first token of each item of GROUP BY, and the one past its last."""
    mark = place.clauses.find_mark("group")
    assert mark is not None, "it groups by computed keys"
    first, end = mark + 2, min((at for _, at in place.clauses.marks if at > mark), default=place.clauses.end)
    while first < end:
        past = min(end, find_item_end(place.tokens, first, before=(), stops_at_commas=True))
        yield first, past
        first = past + 1


def _show_item(
    place: ParsedQuestion,
    item: exp.Expr,
    span: tuple[int, int],
    keys: tuple[Column, ...],
    answered: tuple[Column, ...],
) -> ShownKey | None:
    """Return one item of GROUP BY as the answer shows it. Return None if other items determine it."""
    select, scope = place.select, place.scope
    node = resolve_item(strip_parentheses(item), select, scope)
    number = next((at for at, one in enumerate(select.expressions) if strip_parentheses(one.unalias()) is node), None)
    label = next((read_name(one.args["alias"]) for one in select.expressions if _is_named(one, node)), "")
    if number is not None:
        item, span = select.expressions[number], place.clauses.items[number]
    plain = find_plain_column(node, scope)
    if plain is not None and plain in keys and not _is_computed(plain):
        return ShownKey(plain.name, "", plain.name, (keys.index(plain),))
    expression = read_key_expression(node, scope) if plain is None else None
    read = {column.name for _, column in expression.columns} if expression is not None else set()
    if plain is not None and isinstance(plain.derivation, Lookup) and not _is_listed(plain.derivation.column, place):
        read = {plain.derivation.column}
    reads = tuple(number for number, key in enumerate(keys) if _covers_any_name(key, read))
    if not reads and expression is not None:  # it is computed of what is looked up by a key
        found = [groups[0] for _, column in expression.columns if (groups := find_groups(column, scope)) is not None]
        read = {base for base in found if not _is_listed(base, place)}
        reads = tuple(number for number, key in enumerate(keys) if _covers_any_name(key, read))
    if not reads:
        return None
    edits = sorted(_edit_part(place, item.unalias(), answered))
    text, at = "", place.tokens[span[0]].start
    for edit in edits:
        text += place.text[at : edit.start] + edit.text
        at = edit.end
    text += place.text[at : place.tokens[_find_expression_end(place, item, span) - 1].end]
    called = read_name(node.this) if isinstance(node, exp.Column) else write_node(node)
    return ShownKey(label or called, text, write_identity(node, scope), reads)


def _is_listed(column: str, place: ParsedQuestion) -> bool:
    """Return True if a column is an item of GROUP BY, under its own name or that of a public table."""
    items = (
        resolve_item(strip_parentheses(item), place.select, place.scope)
        for item in place.select.args["group"].expressions
    )
    found = [find_plain_column(item, place.scope) for item in items]
    return any(one is not None and one.name == column for one in found)


def _is_named(item: exp.Expr, node: exp.Expr) -> bool:
    return isinstance(item, exp.Alias) and strip_parentheses(item.this) == node


def _find_expression_end(place: ParsedQuestion, item: exp.Expr, span: tuple[int, int]) -> int:
    """Return the end of an item's expression, before its alias."""
    if not isinstance(item, exp.Alias):
        return span[1]
    at = find_token(place.tokens, find_offset(item.args["alias"]))
    return at - 1 if place.tokens[at - 1].is_word("as") else at


def _covers_any_name(key: Column, names: set[str]) -> bool:
    """Return True if a key is among the columns of these names, or puts their values into groups."""
    match key.derivation:
        case MergedKeys(columns=columns):
            return set(columns) == names
        case Lookup(column=base, has_classes=True):
            return base in names
    return key.name in names
