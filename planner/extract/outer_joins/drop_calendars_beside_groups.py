"""A grouped query that is joined to a calendar from the left, read by itself: it has a row for every listed value.

    `SELECT m.month FROM months m LEFT JOIN (SELECT month, sum(revenue) AS v FROM sales GROUP BY month) p
    ON p.month = m.month WHERE coalesce(p.v, 0) < 20000`

    `SELECT p.month FROM (SELECT month, sum(revenue) AS v FROM sales WHERE month >= DATE '2025-01-01' GROUP BY month) p
    WHERE coalesce(p.v, 0) < 20000`

Guarantee: Keyhole gives the same groups for both, with 0 for the counts and sums of a group without rows.
PostgreSQL has NULL there, which coalesce makes 0. Without coalesce a notice says that groups without rows count as 0,
and beside a window over groups the question is refused.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from planner.bind.from_clause import split_conjuncts
from planner.errors import KeyholeError
from planner.extract.outer_joins.calendar_columns import (
    find_key,
    is_ambiguous,
    list_columns,
    replace_columns,
    write_values,
)
from planner.extract.outer_joins.calendar_refusals import (
    check_keys_independent,
    refuse_calendar,
    refuse_missing_size,
    refuse_missing_values,
)
from planner.extract.outer_joins.listed_keys import ListedKey, find_list_type, list_key_values
from planner.extract.outer_joins.public_lists import TIMES, PublicList, compute_list, is_written_list, read_public_list
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.same_groups import GroupedQuery, find_source, read_grouped_query
from planner.parser.clauses import Clauses, find_clauses, find_token, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import Token
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import contains_type, find_offset, is_number, read_name, strip_parentheses, write_node

_IN_READER = frozenset(("expressions", "from_", "joins", "where", "order", "limit", "offset", "distinct", "with_"))


def drop_calendars_beside_groups(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that drop calendars beside a grouped query. Return none for other SELECTs.

    Raises KH107 for a calendar with other values than the groups.
    """
    select = read.select
    if not isinstance(select.parent, exp.Subquery | exp.CTE) or select.args.get("group") is None:
        return ()
    if find_source(select) is not read.node or select.args.get("having") is not None:
        return ()
    found = _find_reader(read)
    if found is None:
        return ()
    reader, inner = found
    nodes = [reader.select.args["from_"].this, *(one.this for one in reader.select.args["joins"][:-1])]
    lists = [(node, read_public_list(node, read.catalog)) for node in nodes]
    for node, listed in lists:
        if listed is None and is_written_list(node):
            raise refuse_calendar(node)
    try:
        grouped = read_grouped_query(select, read.table)
    except KeyholeError:
        return ()
    if grouped is None or not all(listed is not None for _, listed in lists):
        return ()
    keys = _read_keys(grouped, reader, [listed for _, listed in lists if listed is not None], read)
    if keys is None or not _reads_sizes_alone(grouped, keys, reader):
        return ()
    _check_windows(keys, reader)
    check_keys_independent([grouped.keys[read_name(key.expression.this)] for key in keys], read.table, at=nodes[0])
    if is_ambiguous(reader.select, keys, {*grouped.keys, *grouped.sizes}):
        return ()
    return tuple(_list_edits(grouped, keys, reader, inner, read))


def _find_reader(read: PrivateRead) -> tuple[Reader, Clauses] | None:
    """Return the one SELECT that joins the grouped query to calendars, from the left. Return None for others."""
    try:
        inner = find_clauses(read.node, read.tokens)
        found = list_readers(read.select, inner.select, read.tokens)
    except KeyholeError:
        return None
    if not found or len(found) > 1 or not matches_tree(inner, read.select, read.tokens):
        return None
    (reader,) = found
    joins = reader.select.args.get("joins") or ()
    source, join = reader.select.args.get("from_"), reader.node.parent
    if source is None or not joins or joins[-1] is not join or join is None or join.args.get("on") is None:
        return None
    if str(join.args.get("side") or "").upper() != "LEFT" or join.args.get("method") or not reader.alias:
        return None
    crossed = all(str(one.kind or "").upper() == "CROSS" and not one.side for one in joins[:-1])
    plain = not any(value for key, value in reader.select.args.items() if key not in _IN_READER)
    series = any(is_written_list(one) for one in (source.this, *(other.this for other in joins[:-1])))
    around = [reader.select.args.get(part) for part in ("where", "order")]
    nested = any(contains_type(one, exp.Query) for one in (*reader.select.expressions, *filter(None, around)))
    return (reader, inner) if crossed and plain and series and not nested else None


def _read_keys(
    grouped: GroupedQuery, reader: Reader, lists: Sequence[PublicList], read: PrivateRead
) -> tuple[ListedKey, ...] | None:
    """Return each list with the key of the grouped query that ON compares with it. Return None if ON says else.

    The expressions are columns of the grouped query. Raises KH107 for values that are no groups.
    """
    join = reader.node.parent
    assert join is not None
    conditions = list(split_conjuncts(join.args["on"]))
    if len(conditions) != len(lists) or len(grouped.keys) != len(lists):
        return None
    found: dict[str, ListedKey] = {}
    for listed in lists:
        key = next((one for node in conditions if (one := _read_link(node, listed, grouped, reader, read))), None)
        if key is None:
            return None
        if key.missing_values:
            raise refuse_missing_values(key)
        found[write_node(key.links[0])] = key
    return tuple(found.values()) if len(found) == len(lists) else None


def _read_link(
    condition: exp.Expr, listed: PublicList, grouped: GroupedQuery, reader: Reader, read: PrivateRead
) -> ListedKey | None:
    node = strip_parentheses(condition)
    if not isinstance(node, exp.EQ):
        return None
    for here, there in ((node.this, node.expression), (node.expression, node.this)):
        column = strip_parentheses(there)
        if not isinstance(column, exp.Column) or read_name(column.args.get("table")) != reader.alias:
            continue
        inner = grouped.keys.get(read_name(column.this))
        if inner is None:
            continue
        base = listed if listed.kind else listed.choose(_find_name(here, listed))
        found = None if base is None else compute_list(here, base)
        kind, domain = find_list_type(inner, read), list_key_values(inner, read)
        comparable = found is not None and (kind in TIMES if found.kind in TIMES else kind == found.kind)
        if base is not None and found is not None and found.values == base.values and domain and comparable:
            return ListedKey(base, column, kind, (condition,), domain)
    return None


def _find_name(node: exp.Expr, listed: PublicList) -> str:
    node = strip_parentheses(node)
    is_its = isinstance(node, exp.Column) and read_name(node.args.get("table")) == listed.alias
    return read_name(node.this) if is_its else ""


def _reads_sizes_alone(grouped: GroupedQuery, keys: Sequence[ListedKey], reader: Reader) -> bool:
    """Return True if the SELECT around reads columns of lists, and sizes where 0 and NULL are told apart alike."""
    for column in list_columns(reader.select):
        if find_key(column, keys) is not None:
            continue
        qualifier, name = read_name(column.args.get("table")), read_name(column.this)
        if isinstance(column.this, exp.Star) or qualifier not in ("", reader.alias) or name not in grouped.sizes:
            return False
        around = column.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        if isinstance(around, exp.Is | exp.Case | exp.If | exp.NullSafeEQ | exp.NullSafeNEQ):
            return False
        is_zero = isinstance(around, exp.Coalesce) and [is_number(one, 0) for one in around.expressions] == [True]
        if isinstance(around, exp.Coalesce) and not is_zero:
            return False
    return True


def _check_windows(keys: Sequence[ListedKey], reader: Reader) -> None:
    """Raise KH107 if a window stands beside a size without coalesce: PostgreSQL's windows leave NULL out."""
    if not contains_type(reader.select, exp.Window):
        return
    for column in list_columns(reader.select):
        around = column.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        if not isinstance(around, exp.Coalesce) and find_key(column, keys) is None:
            raise refuse_missing_size(column)


def _list_edits(
    grouped: GroupedQuery, keys: Sequence[ListedKey], reader: Reader, inner: Clauses, read: PrivateRead
) -> Iterator[Edit]:
    tokens, place = read.tokens, reader.clauses
    past = min((index for _, index in place.marks), default=place.end)
    yield Edit.from_text(tokens[place.source].end, tokens[reader.first].start, " ")
    last = _find_last(reader, tokens)
    yield Edit.from_text(tokens[last].end, tokens[past - 1].end, "")
    yield from replace_columns(reader.select, place, keys, tokens)
    written = (write_values(key, grouped.keys[read_name(key.expression.this)]) for key in keys)
    added = " AND ".join(one for one in written if one)
    where, group = inner.find_mark("where"), inner.find_mark("group")
    assert group is not None
    end = tokens[group - 1].end
    if added and where is None:
        yield Edit.from_text(end, end, f" WHERE {added}")
    elif added and where is not None:
        yield Edit.from_text(tokens[where].end, tokens[where].end, " (")
        yield Edit.from_text(end, end, f") AND {added}")


def _find_last(reader: Reader, tokens: tuple[Token, ...]) -> int:
    """Return the last token of the grouped query in FROM, with its alias."""
    alias = reader.node.args.get("alias")
    if not reader.is_named or alias is None:
        return reader.last
    return find_token(tokens, find_offset(alias.this))
