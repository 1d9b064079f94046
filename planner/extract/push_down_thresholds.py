"""Thresholds in the WHERE around a grouped subquery, moved into its HAVING: WHERE and HAVING both drop false and NULL.

SELECT ward FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t WHERE n > 3000
SELECT ward FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 3000) t
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.aggregates.cell_windows import reads_groups
from planner.bind.shown_expressions import find_shown_aggregate, may_give_rows
from planner.bind.unit_query import read_unit_queries
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.extract_refusals import refuse_shown_size
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import Clauses, find_clauses, find_token, matches_tree
from planner.parser.edits import Edit, EditBudget, Origin
from planner.parser.lexer import Token, spell_name
from planner.parser.subquery_readers import Reader, find_conjuncts, find_unaliased_end, list_readers
from planner.parser.tree import (
    contains_type,
    find_offset,
    locate_name,
    read_name,
    strip_parentheses,
    write_short,
)
from planner.scorecard.find import find_predicates, shows_size

IN_QUESTION = frozenset(("expressions", "from_", "joins", "where", "group", "having", "order"))
_OPERATORS = ("and", "or", "not", "is", "in", "between", "like", "ilike", "similar", "isnull", "notnull", "at")
_NAMES: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max"}


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An item of the subquery's select list: its name, and its tokens without the name.

    An item `is_aggregate` if it shows a size. It `is_predicate` if it is a formula of thresholds.
    """

    name: str
    first: int
    stop: int
    is_aggregate: bool
    is_predicate: bool = False


@dataclass(frozen=True, slots=True)
class Conjunct:
    """A condition of the outer WHERE, by its first token and the token past its end.

    It `can_move` if it reads an aggregate of the subquery. It `is_formula` if it reads only the subquery's aggregates
    and predicates.
    """

    first: int
    stop: int
    can_move: bool
    is_formula: bool = False


def push_down_thresholds(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that move thresholds from the only reader of a SELECT into the SELECT.

    Return none if there are none. Raises KH101, with the question that keeps the thresholds, if the outer query shows
    an aggregate as well.
    """
    if read.select.args.get("group") is None or not any(map(contains_aggregate, read.select.expressions)):
        return ()
    for takes_predicates in (True, False):
        try:
            found = plan_push(read, takes_predicates=takes_predicates)
        except KeyholeError:
            continue
        if found is None:
            continue
        inside, around = found
        if around is not None:
            return (*inside, *around)
        if (shown := find_shown_aggregate(read.select)) is not None:
            alone = _write_around_windows(read) or _write_subquery_alone(read, inside)
            raise refuse_shown_size(shown, hint=f"{alone};")
    return ()


def plan_push(read: PrivateRead, *, takes_predicates: bool) -> tuple[list[Edit], list[Edit] | None] | None:
    """Return the changes inside the subquery and those around it.

    The edits of the outer query are None if it shows sizes. Return None if there is nothing to move. Raise KH106 if
    the moved text would repeat an expression too often.

    Parameters:
        takes_predicates: if conditions move that read predicates of the subquery.
    """
    select, node, text, tokens = read.select, read.node, read.text, read.tokens
    if not isinstance(select.parent, exp.Subquery | exp.CTE):
        return None
    if any(value for key, value in select.args.items() if key not in IN_QUESTION):
        return None
    first_node = select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else node, tokens)
    found = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    if found is None or len(found) != 1 or may_be_unit_query(read):
        return None
    (reader,) = found
    items = list_items(select, place, tokens)
    if items is None:
        return None
    expressions = dict(zip(items, select.expressions, strict=True))
    conjuncts = list_outer_conjuncts(reader, items, tokens, expressions if takes_predicates else {})
    if conjuncts is None or not is_kept_side(reader) or not _is_unambiguous(reader, items, read.catalog):
        return None
    room = EditBudget(text)
    moved = [spell_as_having(one, reader, items, room, text, tokens) for one in conjuncts if one.can_move]
    sizes = any(item.is_aggregate for item in items.values())
    if not moved and (select.args.get("having") is None or not sizes):
        return None
    written = [tokens[one.first].start for one in conjuncts if one.can_move]
    elsewhere = _find_names_elsewhere(reader, items, conjuncts, tokens)
    apart = any(items[name].is_aggregate for name in elsewhere)
    kept = apart and read.catalog.defaults.numbers != "refuse"
    settled = find_settled_predicates(reader, items, conjuncts, tokens)
    windows = {name for name, node in expressions.items() if contains_type(node, exp.Window)}
    unread = {name for name, item in items.items() if item.is_predicate or name in windows} - elsewhere
    dropped = {name for name, item in items.items() if item.is_aggregate and not kept} | unread
    shown = [node for name, node in expressions.items() if name not in dropped and name not in settled]
    if moved and any(contains_type(node, exp.Window) and not shows_size(node.unalias()) for node in shown):
        return None  # a predicate of other groups cannot stand beside HAVING
    inside = _edit_subquery(select, place, items, moved, min(written, default=None), tokens, dropped=dropped)
    if inside is None:
        return None
    inside += write_settled_predicates(
        ((items[name], value) for name, value in settled.items() if name not in dropped), tokens
    )
    moving = (token for one in conjuncts if one.can_move for token in tokens[one.first : one.stop])
    if apart and any(token.is_word("null") for token in moving):
        return None  # whether an aggregate is NULL is no threshold: a hint with one is made elsewhere
    return inside, None if apart and not kept else _edit_outer_where(conjuncts, text, tokens)


def may_be_unit_query(read: PrivateRead) -> bool:
    """Return True if the subquery adds up each unit's rows for a question around it, or would be refused as one."""
    try:
        return bool(read_unit_queries(read.select, read.node, read.table, read.text, read.tokens))
    except KeyholeError:
        return True


def plan_beside_sizes(read: PrivateRead, plan: Callable[[PrivateRead], Iterable[Edit]]) -> tuple[Edit, ...]:
    """Return the edits that `plan` finds for a grouped SELECT that shows sizes or predicates.

    Return none for other SELECTs, and if the planning was refused.
    """
    if read.select.args.get("group") is None or not any(map(contains_aggregate, read.select.expressions)):
        return ()
    try:
        return tuple(plan(read))
    except KeyholeError:
        return ()


def list_items(select: exp.Select, place: Clauses, tokens: tuple[Token, ...]) -> Mapping[str, SelectItem] | None:
    """Return the subquery's columns by name. Return None if a name is uncertain, or if all are aggregates."""
    found: dict[str, SelectItem] = {}
    if len(select.expressions) != len(place.items):
        return None  # an empty item, which PostgreSQL will refuse
    for item, (first, past) in zip(select.expressions, place.items, strict=True):
        node = item.this if isinstance(item, exp.Alias) else item
        called = (
            read_name(item.args["alias"])
            if isinstance(item, exp.Alias)
            else _find_default_name(strip_parentheses(node))
        )
        aggregate = shows_size(node)
        formula = not aggregate and find_predicates(node) == (strip_parentheses(node),)
        windows = list(node.find_all(exp.Window))  # they run over the groups that HAVING leaves
        over_rows = bool(windows) and (select.args.get("having") is not None or not all(map(reads_groups, windows)))
        if not called or called in found or over_rows or node.find(exp.Star) is node or may_give_rows(node):
            return None
        found[called] = SelectItem(called, first, find_unaliased_end(item, past, tokens), aggregate, formula)
    return found if any(not (item.is_aggregate or item.is_predicate) for item in found.values()) else None


def _find_default_name(node: exp.Expr) -> str:
    """Return the name that PostgreSQL gives a column without an alias. Return an empty text if it is not certain."""
    if isinstance(node, exp.Filter):
        node = node.this
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
        return read_name(node.this)
    return _NAMES.get(type(node), "")


def is_kept_side(reader: Reader) -> bool:
    """Return True if no join keeps outer rows that have no row of the subquery.

    Then a row that is dropped in the subquery is dropped from the outer query.
    """
    joins = reader.select.args.get("joins") or ()
    sides = {str(join.side or "").upper() for join in joins}
    natural = any(join.args.get("method") for join in joins)
    return not natural and sides <= ({""} if reader.is_joined else {"", "LEFT"})


def _is_unambiguous(reader: Reader, items: Mapping[str, SelectItem], catalog: Catalog) -> bool:
    """Return True if unqualified names of the subquery's aggregates are no columns of other tables."""
    if reader.is_only_source:
        return True
    sources = [reader.select.args["from_"].this, *(join.this for join in reader.select.args.get("joins") or ())]
    aggregates = {item.name for item in items.values() if item.is_aggregate}
    bare_names = {read_name(column.this) for column in reader.list_columns() if not column.args.get("table")}
    for source in sources:
        if source is reader.node:
            continue
        shown = _list_names(source, catalog)
        if shown is None or aggregates & bare_names & shown:
            return False
    return True


def _list_names(source: exp.Expr, catalog: Catalog) -> set[str] | None:
    """Return the columns of a public table, a subquery or a WITH query. Return None if they are uncertain."""
    query: exp.Expr | None = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(source, exp.Table):
        ctes = [
            cte
            for cte in source.root().find_all(exp.CTE)
            if read_name(cte.args["alias"].this) == read_name(source.this)
        ]
        if not ctes or source.args.get("db") is not None:
            known = next((one for one in catalog.public_tables if one.name == read_name(source.this)), None)
            return None if known is None else {column.name for column in known.columns}
        query = ctes[0].this if len(ctes) == 1 and not ctes[0].args["alias"].args.get("columns") else None
    alias = source.args.get("alias")
    if not isinstance(query, exp.Select) or (alias is not None and alias.args.get("columns")):
        return None
    shown = {
        read_name(item.args["alias"]) if isinstance(item, exp.Alias) else _find_default_name(strip_parentheses(item))
        for item in query.expressions
    }
    return shown if all(shown) else None


def list_outer_conjuncts(
    reader: Reader,
    items: Mapping[str, SelectItem],
    tokens: tuple[Token, ...],
    expressions: Mapping[str, exp.Expr] = MappingProxyType({}),
) -> tuple[Conjunct, ...] | None:
    """Return the conditions of the outer WHERE, in order. Return None if a condition on an aggregate cannot move.

    Parameters:
        expressions: the subquery's columns by name, if conditions on its predicates move as well.
    """
    spans = find_conjuncts(reader.select, reader.clauses, tokens)
    if spans is None:
        return None
    mentioned = {id(column): find_mentioned_item(column, reader, items) for column in reader.list_columns()}
    found: list[Conjunct] = []
    for (first, past), node in spans:
        start, end = tokens[first].start, tokens[past - 1].end
        inside = [column for column in reader.list_columns() if start <= locate_name(column) < end]
        moves = any(_is_aggregate(mentioned[id(column)], items) for column in inside)
        formula = _is_formula(node, mentioned, expressions)
        moves = moves or formula
        if moves and (
            any(mentioned[id(column)] is None for column in inside)
            or any(token.is_word("select", "over", "exists") for token in tokens[first:past])
        ):
            return None
        found.append(Conjunct(first, past, moves, formula))
    return tuple(found)


def find_mentioned_item(column: exp.Column, reader: Reader, items: Mapping[str, SelectItem]) -> str | None:
    """Return the name of the subquery's column that an outer column means. Return None for any other column."""
    called, qualifier = read_name(column.this), read_name(column.args.get("table"))
    if column.args.get("db") is not None or called not in items:
        return None
    if qualifier == "":
        return called if reader.is_only_source or items[called].is_aggregate else None
    return called if qualifier == reader.alias else None


def reads_item(column: exp.Column, reader: Reader, items: Mapping[str, SelectItem]) -> bool:
    """Return True if a name can only mean a column of the subquery, as PostgreSQL resolves names."""
    own = column.args.get("db") is None and read_name(column.args.get("table")) in ("", reader.alias)
    return own and read_name(column.this) in items


def _is_formula(
    node: exp.Expr,
    mentioned: Mapping[int, str | None],
    expressions: Mapping[str, exp.Expr],
) -> bool:
    """Return True if a condition is a formula of thresholds, which reads sizes and predicates of the subquery."""
    twin = exp.Paren(this=node.copy())
    for column, copied in zip(list(node.find_all(exp.Column)), list(twin.find_all(exp.Column)), strict=True):
        called = mentioned.get(id(column))
        if called is None or called not in expressions:
            return False
        copied.replace(exp.Paren(this=expressions[called].unalias().copy()))
    return find_predicates(twin) == (strip_parentheses(twin),)


def _is_aggregate(called: str | None, items: Mapping[str, SelectItem]) -> bool:
    return called is not None and items[called].is_aggregate


def spell_as_having(
    conjunct: Conjunct,
    reader: Reader,
    items: Mapping[str, SelectItem],
    room: EditBudget,
    text: str,
    tokens: tuple[Token, ...],
) -> str:
    """Return a condition of WHERE as a condition of HAVING, with the subquery's expressions instead of their names.

    Raise KH106 if the condition reads other columns. A table beside the subquery may have one of the same name.
    """
    start, end = tokens[conjunct.first].start, tokens[conjunct.stop - 1].end
    parts: list[str] = []
    at = start
    columns = {locate_name(column): column for column in reader.list_columns() if start <= locate_name(column) < end}
    for where, column in sorted(columns.items()):
        if not reads_item(column, reader, items):
            raise KeyholeError(
                "KH106", f"{write_short(column)} is no column of the grouped subquery", position=where + 1
            )
        begin = tokens[find_token(tokens, where)].start
        parts.append(text[at:begin] + spell_item(items[read_name(column.this)], room, text, tokens))
        at = tokens[find_token(tokens, find_offset(column.this))].end
    parts.append(text[at:end])
    return "".join(parts)


def spell_item(item: SelectItem, room: EditBudget, text: str, tokens: tuple[Token, ...]) -> str:
    """Return the expression of a subquery's column as text. It is in parentheses unless it is a single call or name."""
    spelled = text[tokens[item.first].start : tokens[item.stop - 1].end]
    room.reserve(len(spelled))
    within = tokens[item.first : item.stop]
    plain = not any(one.is_word(*_OPERATORS) or (one.kind == "symbol" and one.value not in "(),*.") for one in within)
    return spelled if plain else f"({spelled})"


def add_thresholds(
    select: exp.Select, place: Clauses, moved: list[str], written: int, tokens: tuple[Token, ...]
) -> list[Edit]:
    """Return the edits that add thresholds to the subquery's HAVING.

    Parameters:
        written: the offset of the first of them in the outer query.
    """
    return _edit_subquery(select, place, {}, moved, written, tokens, dropped=frozenset()) or []


def drop_aggregates(
    select: exp.Select, place: Clauses, items: Mapping[str, SelectItem], tokens: tuple[Token, ...]
) -> list[Edit] | None:
    """Return the edits that drop the subquery's aggregates. Return None if it sorts by one."""
    sizes = {name for name, item in items.items() if item.is_aggregate}
    return _edit_subquery(select, place, items, [], None, tokens, dropped=sizes)


def _edit_subquery(
    select: exp.Select,
    place: Clauses,
    items: Mapping[str, SelectItem],
    moved: list[str],
    written: int | None,
    tokens: tuple[Token, ...],
    *,
    dropped: Set[str],
) -> list[Edit] | None:
    """Return the subquery with the thresholds in its HAVING, and without the columns that are dropped."""
    changes = _drop_items(select, place, items, dropped, tokens) if dropped else []
    if changes is None or not moved:
        return changes
    thresholds = " AND ".join(moved if len(moved) == 1 else [_parenthesise(one) for one in moved])
    having = place.find_mark("having")
    end = tokens[place.end - 1].end
    if having is None:
        changes.append(Edit.from_text(end, end, f" HAVING {thresholds}", written))
    else:
        changes.append(Edit.from_text(tokens[having].end, tokens[having].end, " ("))
        changes.append(Edit.from_text(end, end, f") AND ({thresholds})", written))
    return changes


def _drop_items(
    select: exp.Select, place: Clauses, items: Mapping[str, SelectItem], dropped: Set[str], tokens: tuple[Token, ...]
) -> list[Edit] | None:
    listed = list(items.values())
    kept = [index for index, item in enumerate(listed) if item.name not in dropped]
    if not kept:
        return None
    changes = list(_cut_items(listed, kept, place, tokens))
    for literal in _list_positions(select):
        index = int(literal.name) - 1 if literal.name.isdecimal() else -1
        if index not in kept:
            return None
        at = find_offset(literal)
        changes.append(Edit.from_text(at, at + len(str(literal.this)), str(kept.index(index) + 1)))
    order = select.args.get("order")
    for item in order.expressions if order is not None else ():
        named = {read_name(column.this) for column in item.find_all(exp.Column)}
        if contains_aggregate(item) or named & dropped:
            return None
    return changes


def _parenthesise(condition: str) -> str:
    return f"({condition})" if " or " in f" {condition.lower()} " else condition


def _cut_items(
    items: list[SelectItem], kept: Sequence[int], place: Clauses, tokens: tuple[Token, ...]
) -> Iterator[Edit]:
    """Yield the edits that remove the items of a select list that are not in `kept`, each with a comma."""
    first = kept[0]
    if first > 0:
        yield Edit.from_text(tokens[items[0].first].start, tokens[items[first].first].start, "")
    for index in range(first, len(items)):
        if index not in kept:
            before, own = place.items[index - 1][1], place.items[index][1]
            yield Edit.from_text(tokens[before - 1].end, tokens[own - 1].end, "")


def _list_positions(select: exp.Select) -> Iterator[exp.Literal]:
    """Yield numbers in GROUP BY and ORDER BY that mean items of the select list."""
    group, order = select.args.get("group"), select.args.get("order")
    for item in group.expressions if group is not None else ():
        if isinstance(strip_parentheses(item), exp.Literal) and not strip_parentheses(item).is_string:
            yield item
    for item in order.expressions if order is not None else ():
        if isinstance(strip_parentheses(item.this), exp.Literal) and not strip_parentheses(item.this).is_string:
            yield item.this


def reads_aggregates_elsewhere(
    reader: Reader, items: Mapping[str, SelectItem], conjuncts: tuple[Conjunct, ...], tokens: tuple[Token, ...]
) -> bool:
    """Return True if the outer query reads an aggregate outside the conditions that move."""
    return any(items[name].is_aggregate for name in _find_names_elsewhere(reader, items, conjuncts, tokens))


def write_settled_predicates(settled: Iterable[tuple[SelectItem, str]], tokens: tuple[Token, ...]) -> Iterator[Edit]:
    """Yield the edits that replace predicates of the subquery by the values that they have in all rows that pass."""
    for item, value in settled:
        yield Edit.from_text(tokens[item.first].start, tokens[item.stop - 1].end, value)


def _find_names_elsewhere(
    reader: Reader, items: Mapping[str, SelectItem], conjuncts: tuple[Conjunct, ...], tokens: tuple[Token, ...]
) -> frozenset[str]:
    """Return the subquery's columns that the outer query reads outside the conditions that move."""
    select, everything = reader.select, frozenset(items)
    spans = [(tokens[one.first].start, tokens[one.stop - 1].end) for one in conjuncts if one.can_move]
    if any(isinstance(item, exp.Star) for item in select.expressions):
        return everything
    found: set[str] = set()
    for column in reader.list_columns():
        called, qualifier = read_name(column.this), read_name(column.args.get("table"))
        if isinstance(column.this, exp.Star):
            if qualifier == reader.alias or qualifier == "":
                return everything
            continue
        if any(start <= locate_name(column) < end for start, end in spans):
            continue
        if called in items and qualifier in ("", reader.alias):
            found.add(called)
        if qualifier == "" and called == reader.alias and called not in items:
            return everything
    for join in select.args.get("joins") or ():
        using = join.args.get("using") or ()
        found.update(read_name(one if isinstance(one, exp.Identifier) else one.this) for one in using)
    return everything & found


def find_settled_predicates(
    reader: Reader, items: Mapping[str, SelectItem], conjuncts: tuple[Conjunct, ...], tokens: tuple[Token, ...]
) -> Mapping[str, str]:
    """Return the predicates, by name, that have one value in all rows that pass WHERE: true, or false after NOT."""
    found: dict[str, str] = {}
    spans = find_conjuncts(reader.select, reader.clauses, tokens) or ()
    moving = {(one.first, one.stop) for one in conjuncts if one.can_move}
    for span, node in spans:
        bare = strip_parentheses(node)
        inner = strip_parentheses(bare.this) if isinstance(bare, exp.Not) else bare
        called = find_mentioned_item(inner, reader, items) if isinstance(inner, exp.Column) else None
        if span in moving and called is not None and items[called].is_predicate:
            found[called] = "false" if isinstance(bare, exp.Not) else "true"
    return found


def _edit_outer_where(conjuncts: tuple[Conjunct, ...], text: str, tokens: tuple[Token, ...]) -> list[Edit]:
    """Return the WHERE around without the conditions that move, or no WHERE."""
    if not any(one.can_move for one in conjuncts):
        return []
    kept = [text[tokens[one.first].start : tokens[one.stop - 1].end] for one in conjuncts if not one.can_move]
    end = tokens[conjuncts[-1].stop - 1].end
    if kept:
        return [Edit.from_text(tokens[conjuncts[0].first].start, end, " AND ".join(kept))]
    return [Edit.from_text(tokens[conjuncts[0].first - 1].start, end, "")]


def _write_around_windows(read: PrivateRead) -> str | None:
    """Return a question with the subquery's keys that reads the subquery, if the subquery has windows.

    PostgreSQL allows no windows in HAVING, so a condition on one needs a query around it.
    """
    text, tokens = read.text, read.tokens
    place = find_clauses(read.node, tokens)
    (reader,) = list_readers(read.select, place.select, tokens) or (None,)
    items = list_items(read.select, place, tokens)
    if reader is None or items is None or not contains_type(read.select, exp.Window):
        return None
    keys = [spell_name(name) for name, item in items.items() if not (item.is_aggregate or item.is_predicate)]
    inner = text[tokens[place.select].start : tokens[place.end - 1].end]
    where = reader.clauses.get_text("where", text, tokens)
    return f"SELECT {', '.join(keys)} FROM ({inner}) AS {spell_name(reader.alias or 'q')} {where}".rstrip()


def _write_subquery_alone(read: PrivateRead, inside: list[Edit]) -> str:
    """Return the subquery as a question of its own."""
    text, tokens = read.text, read.tokens
    first_node = read.select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else read.node, tokens)
    start, end = tokens[place.select].start, tokens[place.end - 1].end
    within = [
        Edit.from_text(one.start - start, one.end - start, one.text) for one in inside if start <= one.start <= end
    ]
    return Origin(text[start:end]).edit(within, rule=push_down_thresholds.__name__).text
