"""A group that is compared with all groups in HAVING, turned into the first of a ranking.

SELECT ward FROM visits GROUP BY ward HAVING count(*) >= ALL (SELECT count(*) FROM visits GROUP BY ward)
SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 1

`count(*) = (SELECT max(n) FROM (SELECT count(*) AS n FROM visits GROUP BY ward) t)` says the same, and so does
`count(*) = (SELECT count(*) FROM visits GROUP BY ward ORDER BY 1 DESC LIMIT 1)`.

PostgreSQL gives the same for each; of groups that are level a ranking has one first (docs/asking.md, Rankings).
"""

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import may_be_unit_query
from planner.groups.computed_keys import add_computed_keys
from planner.parser.clauses import find_clauses, find_item_end, matches_tree
from planner.parser.edits import Edit
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import is_number, read_alias, read_limit, read_name, strip_parentheses, write_node
from planner.scope.group_by import read_group_by
from planner.scope.name_resolution import Scope
from planner.scorecard.ranked import is_size

_RANKED = frozenset(("expressions", "from_", "joins", "where", "group", "having", "order", "with_"))
_GROUPED = frozenset(("expressions", "from_", "where", "group"))
_AFTER = ("limit", "offset", "fetch", "for", "union", "intersect", "except")


def rank_above_all(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that rewrite a comparison with the largest or least of all groups as a ranking's first place.

    Return none if there is no such comparison.
    """
    select, having = read.select, read.select.args.get("having")
    if having is None or select.args.get("group") is None or isinstance(select.parent, exp.SetOperation):
        return ()
    if any(value for key, value in select.args.items() if key not in _RANKED):
        return ()
    try:
        return _plan_edits(read, strip_parentheses(having.this))
    except KeyholeError:
        return ()


def _plan_edits(read: PrivateRead, condition: exp.Expr) -> tuple[Edit, ...]:
    select, tokens = read.select, read.tokens
    found = _find_extreme_size(condition, read)
    if found is None:
        return ()
    size, largest = found
    first = select.args["from_"].this
    place = find_clauses(first if isinstance(first, exp.Table) else read.node, tokens)
    start = place.find_mark("having")
    if start is None or not matches_tree(place, select, tokens) or may_be_unit_query(read):
        return ()
    ((begin, past),) = find_spans([SearchedNode(size, start, place.end)], read.text, tokens)
    end = place.end
    if select.args.get("order") is not None:  # of one group
        end = find_item_end(tokens, place.end + 2, before=_AFTER, stops_at_commas=False)
    written = read.text[tokens[begin].start : tokens[past - 1].end]
    ranked = f"ORDER BY {written}{' DESC' if largest else ''} LIMIT 1"
    return (Edit.from_text(tokens[start].start, tokens[end - 1].end, ranked),)


def _find_extreme_size(condition: exp.Expr, read: PrivateRead) -> tuple[exp.Expr, bool] | None:
    """Return the size that is compared with that of all groups, and True if it is the largest.

    Return None for other conditions.
    """
    if not isinstance(condition, exp.EQ | exp.GTE | exp.LTE):
        return None
    left, right = strip_parentheses(condition.this), strip_parentheses(condition.expression)
    for size, other in ((left, right), (right, left)):
        compared = (
            _read_compared_with_all(other, read) if isinstance(other, exp.All) else _read_scalar_extreme(other, read)
        )
        if compared is None or not is_size(size):
            continue
        shown, alias, largest = compared
        wanted = largest if isinstance(condition, exp.EQ) else isinstance(condition, exp.GTE) is (size is left)
        if wanted is None or largest not in (None, wanted):
            return None
        return (size, wanted) if _spell(shown, alias) == _spell(size, read_alias(read.node)) else None
    return None


def _read_compared_with_all(node: exp.All, read: PrivateRead) -> tuple[exp.Expr, str, bool | None] | None:
    """Return the size in ALL (SELECT size FROM table GROUP BY keys), and the qualifier of its columns."""
    found = _read_groups(node.this, read, clauses=_GROUPED)
    if found is None or len(found[0].expressions) != 1:
        return None
    return strip_parentheses(found[0].expressions[0].unalias()), found[1], None


def _read_scalar_extreme(node: exp.Expr, read: PrivateRead) -> tuple[exp.Expr, str, bool | None] | None:
    """Return the size whose largest or least over all groups a subquery gives: by max(), or as the first of them."""
    query = node.this if isinstance(node, exp.Subquery) else None
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return None
    if query.args.get("group") is not None:
        return _read_first_of_order(query, read)
    shown = strip_parentheses(query.expressions[0].unalias())
    source = query.args["from_"].this if query.args.get("from_") is not None else None
    if (
        not isinstance(shown, exp.Max | exp.Min)
        or shown.args.get("expressions")
        or not isinstance(source, exp.Subquery)
    ):
        return None
    if any(value for key, value in query.args.items() if key not in ("expressions", "from_")):
        return None
    found, column = _read_groups(source.this, read, clauses=_GROUPED), strip_parentheses(shown.this)
    if (
        found is None
        or not isinstance(column, exp.Column)
        or read_name(column.args.get("table")) not in ("", source.alias)
    ):
        return None
    items = [one for one in found[0].expressions if one.alias_or_name == read_name(column.this)]
    if len(items) != 1 or (isinstance(source.args.get("alias"), exp.TableAlias) and source.args["alias"].columns):
        return None
    return strip_parentheses(items[0].unalias()), found[1], isinstance(shown, exp.Max)


def _read_first_of_order(query: exp.Select, read: PrivateRead) -> tuple[exp.Expr, str, bool | None] | None:
    found = _read_groups(query, read, clauses=_GROUPED | {"order", "limit"})
    order, limit = query.args.get("order"), read_limit(query)
    if found is None or order is None or not is_number(limit, 1) or isinstance(query.args["limit"], exp.Fetch):
        return None
    shown, first = strip_parentheses(query.expressions[0].unalias()), order.expressions[0]
    by = strip_parentheses(first.this)
    named = (
        isinstance(by, exp.Column) and by.args.get("table") is None and read_name(by.this) == query.expressions[0].alias
    )
    if not (by == shown or named or is_number(by, 1)):
        return None
    return shown, found[1], bool(first.args.get("desc"))


def _read_groups(
    query: exp.Expr | None, read: PrivateRead, *, clauses: frozenset[str]
) -> tuple[exp.Select, str] | None:
    """Return a SELECT from the same rows by the same keys, and its columns' qualifier. Return None for others."""
    query = query.this if isinstance(query, exp.Subquery) else query
    select, node = read.select, read.node
    if not isinstance(query, exp.Select) or select.args.get("joins") or query.args.get("group") is None:
        return None
    if any(value for key, value in query.args.items() if key not in clauses):
        return None
    source = query.args["from_"].this if query.args.get("from_") is not None else None
    if not isinstance(source, exp.Table) or read_name(source.this) != read_name(node.this):
        return None
    if any(value for key, value in source.args.items() if key not in ("this", "db", "alias")) or node is not (
        select.args["from_"].this
    ):
        return None
    if read_name(source.args.get("db")) not in ("", "public"):
        return None
    own, other = read_alias(node), read_alias(source)
    if _spell(query.args.get("where"), other) != _spell(select.args.get("where"), own):
        return None
    keys = [_find_keys(one, read, called) for one, called in ((select, own), (query, other))]
    return (query, other) if keys[0] == keys[1] else None


def _find_keys(select: exp.Select, read: PrivateRead, alias: str) -> frozenset[str]:
    scope = add_computed_keys(Scope(table=read.table, alias=alias), select)
    return frozenset(key.identity for key in read_group_by(select, scope))


def _spell(node: exp.Expr | None, alias: str) -> str:
    """Return an expression without the qualifiers of its table's columns."""
    if node is None:
        return ""
    twin = node.copy()
    for column in twin.find_all(exp.Column):
        if read_name(column.args.get("table")) == alias and column.args.get("db") is None:
            column.set("table", None)
    return write_node(twin)
