"""A query of one row, joined or in WITH, written as scalar subqueries where its columns are read.

    WITH total AS (SELECT sum(cost) AS t FROM visits)
    SELECT v.ward FROM visits v CROSS JOIN total GROUP BY v.ward, total.t HAVING sum(v.cost) > 0.25 * total.t

    SELECT v.ward FROM visits v GROUP BY v.ward HAVING sum(v.cost) > 0.25 * (SELECT sum(cost) FROM visits)

Aggregates without GROUP BY and HAVING have one row, so a join with them adds and drops none. A key that is one value
for all rows groups nothing, and the largest of it is the value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.pull_up_subqueries import find_output_name, is_grouped_by, keep_output_name, remove_cte
from planner.extract.subqueries.same_groups import find_source, is_plain
from planner.parser.clauses import Clauses, find_clauses, find_token, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import Token
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, find_unaliased_end, list_readers, list_references
from planner.parser.tree import contains_type, find_offset, is_star, locate_name, read_name, strip_parentheses

_PLAIN = frozenset(("expressions", "from_", "where"))
_DEFAULT_NAMES: Mapping[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


@dataclass(frozen=True, slots=True)
class _OneRow:
    """A query with one row: its columns by name as spans of tokens, and the text from FROM on."""

    select: exp.Select
    place: Clauses
    columns: Mapping[str, tuple[int, int]]
    source: str

    def spell(self, name: str, text: str, tokens: tuple[Token, ...]) -> str:
        first, past = self.columns[name]
        return text[tokens[first].start : tokens[past - 1].end]


def drop_laterals(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edit that removes LATERAL before a query of one row.

    The query's columns are then written where they are read. A condition on another source in FROM has the same
    meaning there.
    """
    select, tokens = read.select, read.tokens
    lateral = select.parent.parent if isinstance(select.parent, exp.Subquery) else None
    if not isinstance(lateral, exp.Lateral) or not isinstance(lateral.parent, exp.Join):
        return ()
    if any(value for key, value in select.args.items() if key not in _PLAIN):
        return ()
    if not all(contains_type(item, exp.AggFunc) for item in select.expressions):
        return ()
    try:
        first = find_clauses(read.node, tokens).select - 2
    except KeyholeError:
        return ()
    if first < 0 or not tokens[first].is_word("lateral"):
        return ()
    return (Edit.from_text(tokens[first].start, tokens[first + 1].start, ""),)


def inline_one_row_queries(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that copy one query with one row to the places where its columns are read.

    Return none without such a query.
    """
    for select, source, known in _list_candidates(read):
        try:
            changes = _inline(select, source, known, read)
        except KeyholeError:
            continue
        if changes:
            return tuple(changes)
    return ()


def _list_candidates(read: PrivateRead) -> Iterator[tuple[exp.Select, exp.Table | exp.Subquery, frozenset[str]]]:
    """Yield queries over the private table, or over the grouped query that reads it, with their source's columns."""
    if find_source(read.select) is read.node:
        yield read.select, read.node, frozenset(column.name for column in read.table.columns)
    within = read.select.parent
    if not isinstance(within, exp.CTE | exp.Subquery) or read.select.args.get("group") is None:
        return
    names = frozenset(find_output_name(item) for item in read.select.expressions)
    for node in list_references(within) if isinstance(within, exp.CTE) else (within,):
        around = node.find_ancestor(exp.Select)
        if around is not None and find_source(around) is node:
            yield around, node, names


def _inline(
    select: exp.Select, source: exp.Table | exp.Subquery, known: frozenset[str], read: PrivateRead
) -> list[Edit] | None:
    if not isinstance(select.parent, exp.Subquery | exp.CTE):
        return None
    one = _read_one_row(select, source, known, read)
    readers = None if one is None else list_readers(select, one.place.select, read.tokens)
    if one is None or not readers:
        return None
    changes: list[Edit] = []
    room = EditBudget(read.text)
    for reader in readers:
        made = _edit_scalar(reader, one, read) if reader.is_only_source else _edit_join(reader, one, read)
        if made is None:
            return None
        room.reserve(sum(len(edit.text) for edit in made))
        changes += made
    if isinstance(select.parent, exp.CTE):
        changes.append(remove_cte(select.parent, one.place, read.tokens))
    return changes


def _read_one_row(
    select: exp.Select, source: exp.Table | exp.Subquery, known: frozenset[str], read: PrivateRead
) -> _OneRow | None:
    """Return a SELECT of aggregates without GROUP BY. Return None for others, and for names of other queries."""
    text, tokens = read.text, read.tokens
    if any(value for key, value in select.args.items() if key not in _PLAIN):
        return None
    own = [part for part in (*select.expressions, select.args.get("where")) if part is not None]
    if any(contains_type(part, exp.Query, exp.Window) for part in own):
        return None
    if any(read_name(column.this) not in known for part in own for column in part.find_all(exp.Column)):
        return None
    place = _find_place(select, source, read)
    if place is None or not matches_tree(place, select, tokens):
        return None
    columns: dict[str, tuple[int, int]] = {}
    for item, (first, past) in zip(select.expressions, place.items, strict=True):
        node = strip_parentheses(item.unalias())
        name = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else _DEFAULT_NAMES.get(type(node), "")
        if not name or name in columns or not contains_type(node, exp.AggFunc):
            return None
        columns[name] = (first, find_unaliased_end(item, past, tokens))
    return _OneRow(select, place, columns, text[tokens[place.source].start : tokens[place.end - 1].end])


def _find_place(select: exp.Select, source: exp.Table | exp.Subquery, read: PrivateRead) -> Clauses | None:
    """Return the clauses of a SELECT from one source. Return None if these are not simple."""
    if isinstance(source, exp.Table):
        return find_clauses(source, read.tokens) if is_plain(source) else None
    readers = list_readers(read.select, find_clauses(read.node, read.tokens).select, read.tokens)
    own = [reader for reader in readers or () if reader.select is select and reader.is_only_source]
    return own[0].clauses if own else None


def _edit_scalar(reader: Reader, one: _OneRow, read: PrivateRead) -> list[Edit] | None:
    """Return the edits that write the query in the place of `(SELECT 0.2 * a FROM one)`."""
    text, tokens, select = read.text, read.tokens, reader.select
    around = select.parent
    if not isinstance(around, exp.Subquery) or isinstance(around.parent, exp.From | exp.Join):
        return None
    if any(value for key, value in select.args.items() if key not in ("expressions", "from_")):
        return None
    if len(select.expressions) != 1 or contains_type(select.expressions[0], exp.AggFunc, exp.Window, exp.Star):
        return None
    changes: list[Edit] = []
    for column in reader.list_columns():
        name = read_name(column.this)
        if name not in one.columns or read_name(column.args.get("table")) not in ("", reader.alias):
            return None
        changes.append(_replace(column, f"({one.spell(name, text, tokens)})", tokens))
    start, end = tokens[reader.clauses.source].start, tokens[reader.clauses.end - 1].end
    return [*changes, Edit.from_text(start, end, one.source)]


def _edit_join(reader: Reader, one: _OneRow, read: PrivateRead) -> list[Edit] | None:
    """Return the edits that take the query out of FROM, and write it where its columns are read."""
    text, tokens, select = read.text, read.tokens, reader.select
    removed = _remove_source(reader, tokens)
    if removed is None or any(map(is_star, select.expressions)):
        return None
    grouped = _remove_keys(reader, one, tokens)
    if grouped is None:
        return None
    gone = [(edit.start, edit.end) for edit in grouped]
    replaced: list[Edit] = []
    for column in reader.list_columns():
        name, qualifier = read_name(column.this), read_name(column.args.get("table"))
        is_own = qualifier == reader.alias or (qualifier == "" and name in one.columns)
        if not is_own:
            continue
        if name not in one.columns or (qualifier == "" and _may_be_of_others(name, reader, read)):
            return None
        at = locate_name(column)
        if any(start <= at < end for start, end in gone):
            continue
        labelled = keep_output_name(column, reader, tokens)
        if labelled is None:
            return None
        scalar = f"(SELECT {one.spell(name, text, tokens)} {one.source})"
        call = column.parent
        if isinstance(call, exp.Max | exp.Min) and call.this is column and len(list(call.iter_expressions())) == 1:
            ((first, past),) = find_spans([SearchedNode(call, reader.clauses.select, reader.clauses.end)], text, tokens)
            replaced.append(Edit.from_text(tokens[first].start, tokens[past - 1].end, scalar))
        else:
            replaced.append(_replace(column, scalar, tokens))
        replaced += labelled.values()
    return [removed, *grouped, *replaced]


def _may_be_of_others(name: str, reader: Reader, read: PrivateRead) -> bool:
    """Return True if another source in FROM may have a column of that name."""
    for part in (reader.select.args["from_"], *(reader.select.args.get("joins") or ())):
        source = part.this
        if source is reader.node:
            continue
        query = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(source, exp.Table):
            called = read_name(source.this)
            ctes = [one for one in source.root().find_all(exp.CTE) if read_name(one.args["alias"].this) == called]
            query = ctes[0].this if len(ctes) == 1 else None
            table = None if ctes else read.catalog.find_table(called)
            if table is not None:
                if any(column.name == name for column in table.columns):
                    return True
                continue
        if not isinstance(query, exp.Select) or any(map(is_star, query.expressions)):
            return True
        outputs = [_find_name(item) for item in query.expressions]
        if "" in outputs or name in outputs:
            return True
    return False


def _find_name(item: exp.Expr) -> str:
    return find_output_name(item) or _DEFAULT_NAMES.get(type(strip_parentheses(item)), "")


def _replace(column: exp.Column, spelled: str, tokens: tuple[Token, ...]) -> Edit:
    start = tokens[find_token(tokens, locate_name(column))].start
    return Edit.from_text(start, tokens[find_token(tokens, find_offset(column.this))].end, spelled)


def _remove_source(reader: Reader, tokens: tuple[Token, ...]) -> Edit | None:
    """Return the edit that takes a source out of FROM. Return None if the join has a condition."""
    alias = reader.node.args.get("alias")
    named = reader.is_named and alias is not None
    last = find_token(tokens, find_offset(alias.this)) if named and alias is not None else reader.last
    before, join = reader.first - 1, reader.node.parent
    if isinstance(join, exp.From):
        start = reader.first
        if tokens[last + 1].is_symbol(","):
            return Edit.from_text(tokens[start].start, tokens[last + 2].start, "")
        crossed = tokens[last + 1].is_word("cross") and tokens[last + 2].is_word("join")
        return Edit.from_text(tokens[start].start, tokens[last + 3].start, "") if crossed else None
    if join is None or join.args.get("using") or join.args.get("method"):
        return None
    if str(join.args.get("side") or "").upper() not in ("", "LEFT"):
        return None
    on = join.args.get("on")
    if on is not None:
        is_true = isinstance(on, exp.Boolean) and on.this and tokens[last + 1].is_word("on")
        if not is_true or not tokens[last + 2].is_word("true"):
            return None
        last += 2
    if tokens[before].is_word("join"):
        before -= 1
        while tokens[before].is_word("cross", "inner", "left", "outer"):
            before -= 1
        before += 1
    elif not tokens[before].is_symbol(","):
        return None
    return Edit.from_text(tokens[before - 1].end, tokens[last].end, "")


def _remove_keys(reader: Reader, one: _OneRow, tokens: tuple[Token, ...]) -> list[Edit] | None:
    """Return the edits that take the query's columns out of GROUP BY. Return None if no key is left."""
    group, mark = reader.select.args.get("group"), reader.clauses.find_mark("group")
    if group is None or mark is None:
        return []
    own = [
        isinstance(node, exp.Column)
        and is_grouped_by(node, reader.select)
        and (
            read_name(node.args.get("table")) == reader.alias
            or (not node.args.get("table") and read_name(node.this) in one.columns)
        )
        for node in group.expressions
    ]
    if not any(own):
        return []
    later = [index for _, index in reader.clauses.marks if index > mark]
    spans = _split_at_commas(mark + 2, min(later, default=reader.clauses.end), tokens)
    if all(own) or len(spans) != len(own):
        return None
    first = own.index(False)
    changes = []
    if first > 0:
        changes.append(Edit.from_text(tokens[spans[0][0]].start, tokens[spans[first][0]].start, ""))
    changes += (
        Edit.from_text(tokens[spans[index - 1][1] - 1].end, tokens[spans[index][1] - 1].end, "")
        for index in range(first + 1, len(own))
        if own[index]
    )
    return changes


def _split_at_commas(first: int, past: int, tokens: tuple[Token, ...]) -> list[tuple[int, int]]:
    depth, spans = 0, list[tuple[int, int]]()
    for index in range(first, past):
        depth += tokens[index].is_symbol("(") - tokens[index].is_symbol(")")
        if depth == 0 and tokens[index].is_symbol(","):
            spans.append((first, index))
            first = index + 1
    return [*spans, (first, past)]
