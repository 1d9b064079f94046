"""A star beside a window over a grouped subquery, written out as the columns that the query around reads.

SELECT ward FROM (SELECT q.*, rank() OVER (ORDER BY n DESC) AS place
FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) q) t WHERE place <= 3
SELECT ward FROM (SELECT q.ward, rank() OVER (ORDER BY n DESC) AS place
FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) q) t WHERE place <= 3

PostgreSQL gives the same for both where the query around names its columns one by one.
"""

from collections.abc import Iterable

from sqlglot import exp

from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import list_items, may_be_unit_query, plan_beside_sizes
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import Token, quote_identifier
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import contains_type, is_star, read_name

_IN_READER = frozenset(("expressions", "from_", "with_", "where"))


def expand_stars(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that write out `*` in the only query that reads the SELECT. Return none without a star."""
    return plan_beside_sizes(read, _plan_edits)


def _plan_edits(read: PrivateRead) -> list[Edit]:
    select, tokens = read.select, read.tokens
    if not isinstance(select.parent, exp.Subquery | exp.CTE) or may_be_unit_query(read):
        return []
    first_node = select.args["from_"].this
    place = find_clauses(first_node if isinstance(first_node, exp.Table) else read.node, tokens)
    found = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    items = list_items(select, place, tokens)
    if found is None or len(found) != 1 or not found[0].is_only_source or items is None:
        return []
    (reader,) = found
    outer = _find_reader(reader, read)
    if outer is None:
        return []
    names = [called for called, item in items.items() if not item.is_aggregate or _reads(outer, called)]
    return write_out_stars(reader, names, tokens)


def write_out_stars(reader: Reader, names: Iterable[str], tokens: tuple[Token, ...]) -> list[Edit]:
    """Return the edits that replace each star by the list of the subquery's columns, `names`."""
    table = f"{quote_identifier(reader.alias)}." if reader.alias else ""
    listed = ", ".join(f"{table}{quote_identifier(called)}" for called in names)
    return [
        Edit.from_text(tokens[first].start, tokens[past - 1].end, listed)
        for item, (first, past) in zip(reader.select.expressions, reader.clauses.items, strict=True)
        if is_plain_star(item, reader)
    ]


def _find_reader(reader: Reader, read: PrivateRead) -> Reader | None:
    """Find the one query that reads a SELECT with a window in its list, by the names of its columns."""
    select = reader.select
    if not isinstance(select.parent, exp.Subquery | exp.CTE) or not contains_type(select, exp.Window):
        return None
    if any(value for key, value in select.args.items() if key not in _IN_READER):
        return None
    found = list_readers(select, reader.clauses.select, read.tokens)
    if found is None or len(found) != 1:
        return None
    (outer,) = found
    joins = outer.select.args.get("joins") or ()
    if any(join.args.get("using") or join.args.get("method") for join in joins):
        return None
    whole = any(is_star(item) for item in outer.select.expressions) or _reads(outer, outer.alias)
    return None if whole else outer


def _reads(outer: Reader, called: str) -> bool:
    return any(read_name(column.this) == called for column in outer.list_columns())


def is_plain_star(item: exp.Expr, reader: Reader) -> bool:
    """Return True for a star that means every column of the subquery."""
    if not is_star(item) or any(node.args.get(one) for node in item.walk() for one in ("except_", "replace", "rename")):
        return False
    return not isinstance(item, exp.Column) or read_name(item.args.get("table")) == reader.alias
