"""UNION, INTERSECT and EXCEPT between questions: found in a statement, and replaced as one question.

Questions are joined if they read one private table and select the same keys in the same order. INTERSECT always allows
it. UNION allows it if both sides restrict keys alike, and EXCEPT if the right side restricts them no further than the
left. Each may join public tables of its own, whose looked-up columns become columns of the private table.

Questions that compare groups with others are joined if they have one WHERE, so that both mean the same groups.

All other questions are answered by themselves, and PostgreSQL joins their keys. UNION puts scorecards one below the
other in this way. INTERSECT and EXCEPT would compare scorecards, which one question does at the price of one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.catalog import Column, Lookup, MergedKeys, Table, ValueGroups
from planner.extract.cut import ExtractedQuestion
from planner.extract.extract_refusals import refuse_scorecard_comparison
from planner.extract.hints.compare_scorecards import write_scorecard_comparison
from planner.groups.inhabited.column_roots import find_roots
from planner.parser.clauses import find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token
from planner.parser.tree import contains_type, strip_parentheses
from planner.scope.embedded import EmbeddedQuestion, SetOperation
from planner.scope.functional_dependencies import map_key_values
from planner.scope.group_by import resolve_item
from planner.scope.key_classes import write_identity
from planner.scope.name_resolution import Scope, find_column

MOST_COMPARISONS = 48  # below a question's literals, as some become two; beyond, each side is answered apart
_OPERATIONS: dict[type[exp.Expr], Literal["union", "intersect", "except"]] = {
    exp.Union: "union",
    exp.Intersect: "intersect",
    exp.Except: "except",
}
_AROUND = ("order", "limit", "offset", "fetch", "with_", "locks")


@dataclass(frozen=True, slots=True)
class _SetOperand:
    """A question, or several joined to one, with its tokens. `first` is its leftmost question.

    `rows` are the conditions of its WHERE if all its questions have the same, else None. It `compares_groups` if some
    question compares groups with others, and `reads_neighbours` if one may lack such a group.
    """

    embedded: EmbeddedQuestion
    first: ExtractedQuestion
    start: int
    stop: int
    restrictions: frozenset[str]
    comparisons: int
    rows: frozenset[str] | None
    compares_groups: bool
    reads_neighbours: bool


Spans: TypeAlias = Mapping[int, ExtractedQuestion]


def join_branches(
    places: tuple[ExtractedQuestion, ...], text: str, tokens: tuple[Token, ...]
) -> tuple[tuple[EmbeddedQuestion, Edit], ...]:
    """Return each set operation that is one question as a whole, with the edit that replaces it in the statement.

    The edit keeps the leftmost question's select list, which names the columns of the operation.
    """
    for root in _list_roots(places):
        _check_uncompared(root, {id(place.select): place for place in places}, text)
    parts = _SetOperands({id(place.select): place for place in places}, text, tokens)
    found: list[tuple[EmbeddedQuestion, Edit]] = []
    for root in _list_roots(places):
        for part in parts.list_largest(root):
            if part.embedded.set_operation is not None:
                start, end = tokens[part.start].start, tokens[part.stop - 1].end
                found.append((part.embedded, Edit(start, end, _edit_first_question(part.first, text))))
    return tuple(found)


def _list_roots(places: tuple[ExtractedQuestion, ...]) -> Iterator[exp.SetOperation]:
    seen: set[int] = set()
    for place in places:
        root: exp.SetOperation | None = None
        node: exp.Expr | None = place.select.parent
        while isinstance(node, exp.SetOperation | exp.Subquery):
            root = node if isinstance(node, exp.SetOperation) else root
            node = node.parent
        if root is not None and id(root) not in seen:
            seen.add(id(root))
            yield root


def _check_uncompared(root: exp.SetOperation, places: "Spans", text: str) -> None:
    """Raise KH106 for INTERSECT and EXCEPT between scorecards, whose rows are in both if their truths are alike."""
    waiting: list[exp.Expr] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Intersect | exp.Except):
            left, right = (_list_scorecards(side, places) for side in (node.this, node.expression))
            if left and right:
                raise refuse_scorecard_comparison(
                    node, at=right[0].embedded.offset + 1, hint=write_scorecard_comparison(node, left, right, text)
                )
        if isinstance(node, exp.SetOperation | exp.Subquery):
            waiting.extend(side for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Expr))


def _list_scorecards(node: exp.Expr, places: "Spans") -> list[ExtractedQuestion]:
    """Return the questions with predicates in their select lists among the operands of set operations."""
    if isinstance(node, exp.SetOperation):
        return [*_list_scorecards(node.this, places), *_list_scorecards(node.expression, places)]
    if isinstance(node, exp.Subquery):
        return _list_scorecards(node.this, places)
    place = places.get(id(node))
    shown = place is not None and any(contains_aggregate(item) for item in place.select.expressions)
    return [place] if shown and place is not None else []


class _SetOperands:
    """The nodes of a statement that are one question each. Each is read once, since long chains ask for it often."""

    def __init__(self, places: Spans, text: str, tokens: tuple[Token, ...]) -> None:
        self._places = places
        self._text = text
        self._tokens = tokens
        self._known: dict[int, _SetOperand | None] = {}

    def list_largest(self, node: exp.Expr) -> Iterator[_SetOperand]:
        """Yield the largest parts at the node or below it."""
        whole = self._find_operand(node)
        if whole is not None:
            yield whole
        elif isinstance(node, exp.SetOperation):
            yield from self.list_largest(node.this)
            yield from self.list_largest(node.expression)
        elif isinstance(node, exp.Subquery):
            yield from self.list_largest(node.this)

    def _find_operand(self, node: exp.Expr) -> _SetOperand | None:
        """Return the node as one question, or None if it is none."""
        if id(node) not in self._known:
            self._known[id(node)] = self._read_operand(node)
        return self._known[id(node)]

    def _read_operand(self, node: exp.Expr) -> _SetOperand | None:
        match node:
            case exp.Select():
                place = self._places.get(id(node))
                if place is None or place.embedded.ranked is not None or node.args.get("having") is None:
                    return None
                return _read_leaf(place, self._tokens)
            case exp.Subquery() if not any(value for key, value in node.args.items() if key != "this"):
                if _is_cut(node.this):
                    return None
                inner = self._find_operand(node.this)
                return None if inner is None else _include_parentheses(inner, self._tokens)
            case exp.SetOperation() if type(node) in _OPERATIONS and _is_plain(node):
                left = None if _is_cut(node.this) else self._find_operand(node.this)
                right = None if _is_cut(node.expression) else self._find_operand(node.expression)
                if left is None or right is None:
                    return None
                return _combine_parts(_OPERATIONS[type(node)], left, right, self._text, self._tokens)
            case _:
                return None


def _is_cut(operand: exp.Expr) -> bool:
    """Return True if an operand has ORDER BY, LIMIT or another clause of its own outside its parentheses."""
    return any(operand.args.get(key) for key in _AROUND)


def _is_plain(node: exp.SetOperation) -> bool:
    known = ("this", "expression", "distinct", *_AROUND)
    return bool(node.args.get("distinct")) and not any(value for key, value in node.args.items() if key not in known)


def _include_parentheses(part: _SetOperand, tokens: tuple[Token, ...]) -> _SetOperand:
    """Return the operand extended by the parentheses that are typed around it.

    The parser's tree may have parentheses that are not typed, where precedence needs them.
    """
    start, past = part.start - 1, part.stop
    if start < 0 or past >= len(tokens) or not tokens[start].is_symbol("(") or not tokens[past].is_symbol(")"):
        return part
    return replace(part, start=start, stop=past + 1)


def _read_leaf(place: ExtractedQuestion, tokens: tuple[Token, ...]) -> _SetOperand | None:
    select, embedded = place.select, place.embedded
    distinct = select.args.get("distinct")
    if (
        embedded.stored_question is not None
        or embedded.members
        or embedded.unit_lists
        or embedded.unit_values
        or embedded.unit_query is not None
        or (distinct is not None and distinct.args.get("on") is not None)
    ):
        return None
    if not _shows_each_key(place):
        return None
    start = find_token(tokens, embedded.offset)
    past = find_token(tokens, embedded.offset + len(embedded.text) - 1) + 1
    having = select.args["having"].this
    windows = list(having.find_all(exp.Window))
    return _SetOperand(
        embedded=embedded,
        first=place,
        start=start,
        stop=past,
        restrictions=frozenset(_list_restrictions(select, embedded)),
        comparisons=sum(_count_literals(node) for node in having.walk()),
        rows=_list_rows(select, embedded),
        compares_groups=bool(windows),
        reads_neighbours=any(one.args.get("order") is not None for one in windows),
    )


def _list_rows(select: exp.Select, embedded: EmbeddedQuestion) -> frozenset[str] | None:
    """Return the conjuncts of WHERE as text with resolved names. Return None beside a join."""
    where = select.args.get("where")
    if select.args.get("joins") or (where is not None and contains_type(where, exp.Query)):
        return None
    conjuncts = () if where is None else where.this.flatten() if isinstance(where.this, exp.And) else (where.this,)
    return frozenset(_resolve_names(strip_parentheses(one), embedded.scope) for one in conjuncts)


def _strip_alias(item: exp.Expr) -> exp.Expr:
    return strip_parentheses(item.this if isinstance(item, exp.Alias) else item)


def _shows_each_key(place: ExtractedQuestion) -> bool:
    """Return True if rows that are shown alike are one group: the select list has the keys, or all GROUP BY items."""
    shown, embedded = _list_columns(place), place.embedded
    if set(shown) == {key.name for key in embedded.keys}:
        return True
    select, scope, group = place.select, embedded.scope, place.select.args.get("group")
    if group is None or not any(map(_is_computed, embedded.keys)):
        return False
    grouped = {write_identity(resolve_item(strip_parentheses(one), select, scope), scope) for one in group.expressions}
    return grouped == {write_identity(_strip_alias(item), scope) for item in select.expressions}


def _is_computed(key: Column) -> bool:
    """Return True if a question makes the key of an expression, so that the select list has no column of its name."""
    derived = key.derivation
    return (
        isinstance(derived, MergedKeys | ValueGroups)
        or key.computed
        or (isinstance(derived, Lookup) and derived.has_classes)
    )


def _list_columns(place: ExtractedQuestion) -> list[str | None]:
    """Return the columns of the select list, with None for other expressions."""
    shown = [find_column(_strip_alias(item), place.embedded.scope) for item in place.select.expressions]
    return [None if column is None else column.name for column in shown]


def _list_restrictions(select: exp.Select, embedded: EmbeddedQuestion) -> Iterator[str]:
    """Yield the conjuncts that read only keys, or columns that keys determine, as text with resolved names.

    An inner join is one, too: it leaves out the keys without a public row.
    """
    scope = embedded.scope
    for joined in scope.public_tables:
        if not joined.is_outer and _is_determined(embedded.table.get_column(joined.base), embedded):
            yield f"{joined.base} in {joined.name}.{joined.key}"
    where, having = select.args.get("where"), select.args["having"]
    clauses = [join.args.get("on") for join in select.args.get("joins") or () if not join.side]
    waiting = [
        clause for clause in (*clauses, None if where is None else where.this, having.this) if clause is not None
    ]
    while waiting:
        node = strip_parentheses(waiting.pop())
        if isinstance(node, exp.And):
            waiting.extend((node.this, node.expression))
        elif not contains_aggregate(node) and scope.read_membership(node) is None and _reads_keys(node, embedded):
            yield _resolve_names(node, scope)


def _reads_keys(node: exp.Expr, embedded: EmbeddedQuestion) -> bool:
    """Return True if an expression reads a key's base column, or a column computed from it.

    WHERE restricts the key by such an expression.
    """
    table = embedded.table
    roots = frozenset().union(*(find_roots(key, table) for key in embedded.keys))
    read = [embedded.scope.resolve_column(column) for column in node.find_all(exp.Column)]
    return any(roots & find_roots(column, table) or _is_determined(column, embedded) for column in read)


def _is_determined(column: Column, embedded: EmbeddedQuestion) -> bool:
    """Return True if a key determines the column, so that a condition on it restricts the key's values."""
    return any(map_key_values(column, key, key.domain or ()) is not None for key in embedded.keys)


def _resolve_names(node: exp.Expr, scope: Scope) -> str:
    """Return the expression as text in which every column has the name that it has in the question's table."""
    plain = node.copy()
    for column in list(plain.find_all(exp.Column)):
        found = scope.resolve_column(column).name
        for part in ("table", "db", "catalog"):
            column.set(part, None)
        column.set("this", exp.to_identifier(found, quoted=True))
    return plain.sql(dialect="postgres", comments=False)


def _count_literals(node: exp.Expr) -> int:
    """Return the most literals that a comparison can become."""
    match node:
        case exp.EQ() | exp.NEQ() | exp.Between():
            return 2
        case exp.In():
            return 2 * max(1, len(node.expressions))
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return 1
        case _:
            return 0


def _combine_parts(
    operation: Literal["union", "intersect", "except"],
    left: _SetOperand,
    right: _SetOperand,
    text: str,
    tokens: tuple[Token, ...],
) -> _SetOperand | None:
    table = _merge_tables(left.embedded.table, right.embedded.table)
    if table is None or not _show_same_keys(left.first, right.first):
        return None
    if left.comparisons + right.comparisons > MOST_COMPARISONS:
        return None
    rows = left.rows if left.rows == right.rows else None
    compares_groups = left.compares_groups or right.compares_groups
    if compares_groups and (rows is None or left.restrictions != right.restrictions):
        return None
    if operation == "except" and right.reads_neighbours:
        return None  # NOT of a comparison whose other group is missing
    match operation:
        case "union" if left.restrictions != right.restrictions:
            return None
        case "except" if not right.restrictions <= left.restrictions:
            return None
    start, past = left.start, right.stop
    first, end = tokens[start].start, tokens[past - 1].end
    embedded = replace(
        left.embedded,
        table=table,
        text=text[first:end],
        offset=first,
        set_operation=SetOperation(operation=operation, left=left.embedded, right=right.embedded),
    )
    return _SetOperand(
        embedded=embedded,
        first=left.first,
        start=start,
        stop=past,
        restrictions=left.restrictions | right.restrictions if operation == "intersect" else left.restrictions,
        comparisons=left.comparisons + right.comparisons,
        rows=rows,
        compares_groups=compares_groups,
        reads_neighbours=left.reads_neighbours or right.reads_neighbours,
    )


def _merge_tables(first: Table, second: Table) -> Table | None:
    """Return the private table with the lookups of both. Return None for two tables, or if a name means two things."""

    def drop_lookups(table: Table) -> Table:
        return replace(table, columns=tuple(one for one in table.columns if not isinstance(one.derivation, Lookup)))

    known = {column.name: column for column in first.columns}
    if drop_lookups(first) != drop_lookups(second) or any(known.get(one.name, one) != one for one in second.columns):
        return None
    more = tuple(column for column in second.columns if column.name not in known)
    return replace(first, columns=(*first.columns, *more)) if more else first


def _show_same_keys(left: ExtractedQuestion, right: ExtractedQuestion) -> bool:
    """Return True if both show the same expressions of the same keys."""
    return (
        set(left.embedded.keys) == set(right.embedded.keys)
        and _list_columns(left) == _list_columns(right)
        and [_resolve_names(_strip_alias(item), left.embedded.scope) for item in left.select.expressions]
        == [_resolve_names(_strip_alias(item), right.embedded.scope) for item in right.select.expressions]
    )


def _edit_first_question(first: ExtractedQuestion, text: str) -> tuple[str | int, ...]:
    """Return the leftmost question's text after its own edits."""
    parts: list[str | int] = []
    at = first.embedded.offset
    for edit in sorted(first.edits, key=lambda edit: (edit.start, edit.end)):
        parts.append(text[at : edit.start])
        parts.extend(edit.replacement)
        at = edit.end
    parts.append(text[at : first.embedded.offset + len(first.embedded.text)])
    return tuple(part for part in parts if part != "")
