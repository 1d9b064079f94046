"""A scalar subquery that looks up one other group of the same grouped query, as a LEFT JOIN with it.

    `WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month)
    SELECT month FROM m WHERE n > (SELECT p.n FROM m p WHERE p.month = m.month - interval '1 year')`

    `WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month)
    SELECT m.month FROM m LEFT JOIN m AS p ON (p.month = m.month - interval '1 year') WHERE m.n > (p.n)`

Both have NULL where there is no such group. PostgreSQL stops at a second one, which there is not if all keys are
compared. Otherwise no later rule reads the join.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.relations import list_private_tables
from planner.extract.subqueries.pull_up_subqueries import find_output_name, is_sorted_by
from planner.extract.subqueries.same_groups import (
    find_source,
    have_same_groups,
    list_conjuncts,
    read_grouped_query,
)
from planner.extract.subqueries.self_joins import find_query
from planner.parser.clauses import find_clauses, find_clauses_from, find_closing, find_token, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier, spell_name
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import find_offset, is_star, locate_name, read_alias, read_name, strip_parentheses, write_node

_LOOKED_UP = frozenset(("expressions", "from_", "where"))
_STRICT = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg)
_NUMBERED = 20  # lookups of one SELECT


def join_looked_up_groups(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that write a lookup of another group as a join. Return none for other SELECTs."""
    select = read.select
    if select.args.get("group") is None or not isinstance(select.parent, exp.Subquery | exp.CTE):
        return ()
    try:
        return tuple(_write(read))
    except KeyholeError:
        return ()


def _write(read: PrivateRead) -> list[Edit]:
    select, tokens = read.select, read.tokens
    if find_source(select) is not read.node:
        return []
    place = find_clauses(read.node, tokens)
    grouped = read_grouped_query(select, read.table)
    found = list_readers(select, place.select, tokens) if grouped and matches_tree(place, select, tokens) else None
    for reader in found or ():
        around = _find_select_around(reader)
        source = None if around is None else find_query(around.args["from_"].this)
        if around is None or source is None or not _is_lookup(reader) or any(map(is_star, around.expressions)):
            continue
        private = {id(node): table for node, table in list_private_tables(read.query, read.catalog)}
        first = find_source(source)
        other = read_grouped_query(source, private[id(first)]) if id(first) in private else None
        if other is not None and grouped is not None and have_same_groups(other, grouped):
            return list(_list_edits(reader, around, source, read))
    return []


def _find_select_around(reader: Reader) -> exp.Select | None:
    """Return the SELECT in whose WHERE or select list the lookup stands. Return None for one in FROM, or grouped."""
    subquery = reader.select.parent
    if not isinstance(subquery, exp.Subquery) or isinstance(subquery.parent, exp.From | exp.Join | exp.In | exp.Exists):
        return None
    around = subquery.find_ancestor(exp.Select)
    if around is None or around.args.get("group") is not None or around.args.get("from_") is None:
        return None
    return around


def _is_lookup(reader: Reader) -> bool:
    """Return True for `SELECT n FROM m p WHERE p.k = m.k - 1`, with equalities alone in WHERE."""
    select = reader.select
    if any(value for key, value in select.args.items() if key not in _LOOKED_UP) or len(select.expressions) != 1:
        return False
    shown = select.expressions[0].unalias()
    conditions = list_conjuncts(select)
    return (
        all(isinstance(one, _STRICT) for one in shown.walk())
        and bool(conditions)
        and all(isinstance(one, exp.EQ) for one in conditions)
    )


def _list_edits(reader: Reader, around: exp.Select, source: exp.Select, read: PrivateRead) -> Iterator[Edit]:
    tokens = read.tokens
    outer = around.args["from_"].this
    taken = {read_alias(outer), *(read_alias(one.this) for one in around.args.get("joins") or ())}
    names = (reader.alias, *(f"{reader.alias} {number}" for number in range(2, _NUMBERED)))
    alias = next((one for one in names if one not in taken), "")
    start = _find_from(outer, source, read)
    place = find_clauses_from(start, tokens) if alias and start is not None and read_alias(outer) else None
    if place is None or read_alias(outer) == reader.alias or not matches_tree(place, around, tokens):
        return
    opening = reader.clauses.select - 1
    shown = _spell([reader.select.expressions[0].unalias()], reader.alias, alias)
    yield Edit.from_text(tokens[opening].start, tokens[find_closing(tokens, opening)].end, f"({shown})")
    text = read.text[tokens[reader.first].start : tokens[reader.last].end]
    conditions = _spell(list_conjuncts(reader.select), reader.alias, alias)
    end = tokens[min((index for _, index in place.marks), default=place.end) - 1].end
    yield Edit.from_text(end, end, f" LEFT JOIN {text} AS {quote_identifier(alias)} ON {conditions}", end)
    yield from _qualify(around, spell_name(read_alias(outer)), read)


def _find_from(outer: exp.Expr, source: exp.Select, read: PrivateRead) -> int | None:
    """Return the token FROM before the source of the SELECT around."""
    tokens = read.tokens
    if isinstance(outer, exp.Table):
        at = find_token(tokens, find_offset(outer.this)) - 1
    else:
        first = find_source(source)
        at = find_clauses(first, tokens).select - 2 if isinstance(first, exp.Table) else -1
    return at if at >= 0 and tokens[at].is_word("from") else None


def _spell(nodes: Sequence[exp.Expr], own: str, alias: str) -> str:
    """Return expressions of the lookup, joined by AND, with its own columns qualified by another name."""
    written: list[str] = []
    for node in nodes:
        copied: exp.Expr = exp.Paren(this=strip_parentheses(node).copy())
        for column in copied.find_all(exp.Column):
            if read_name(column.args.get("table")) in ("", own):
                column.set("table", exp.to_identifier(alias, quoted=True))
        written.append(write_node(copied))
    return " AND ".join(written)


def _qualify(around: exp.Select, alias: str, read: PrivateRead) -> Iterator[Edit]:
    """Yield the edits that qualify the columns of the SELECT around by its source."""
    outputs = [find_output_name(item) for item in around.expressions]
    for column in around.find_all(exp.Column):
        if column.args.get("table") is not None or column.find_ancestor(exp.Select) is not around:
            continue
        if read_name(column.this) in outputs and is_sorted_by(column, around):
            continue
        start = read.tokens[find_token(read.tokens, locate_name(column))].start
        yield Edit.from_text(start, start, f"{alias}.")
