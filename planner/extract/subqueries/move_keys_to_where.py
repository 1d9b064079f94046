"""Conditions on keys in the HAVING of a SELECT with windows over groups, moved into its WHERE.

    `SELECT month, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month HAVING month >= '2011-06-01'`
    `SELECT month, lag(count(*)) OVER (ORDER BY month) AS b FROM sales WHERE month >= '2011-06-01' GROUP BY month`

Windows run over the groups that HAVING leaves, and a group's rows are alike in its keys. A comparison of one key leaves
some of its listed values, over which the windows then run. HAVING count(*) > 0 holds for every group that PostgreSQL
has, and is left out of a subquery. Windows over groups that a size leaves out are refused.
"""

from collections.abc import Iterable, Sequence

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.aggregates.cell_windows import reads_groups
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import Clauses, find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.parser.subquery_readers import Reader, find_conjuncts, list_readers
from planner.parser.tree import find_position, is_number, read_name, strip_parentheses, write_node, write_short
from planner.scorecard.find import find_predicates

_CONSTANTS = (
    *(exp.Literal, exp.Boolean, exp.Paren, exp.Neg, exp.Cast, exp.DataType, exp.Interval, exp.Var, exp.Add, exp.Sub),
    *(exp.Parameter, exp.Identifier),
)


def move_keys_to_where(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that move comparisons of keys from HAVING into WHERE, and drop conditions that always hold.

    Return none for other SELECTs. Raises KH204 for another HAVING if the outer WHERE compares windows.
    """
    select, tokens = read.select, read.tokens
    group, first = select.args.get("group"), select.args["from_"].this
    windows = [one for item in select.expressions for one in item.find_all(exp.Window) if _is_of_sizes(one)]
    if select.args.get("having") is None or not windows or not _groups_plainly(group):
        return ()
    if not isinstance(first, exp.Table):
        return ()
    place = find_clauses(first, tokens)
    found = find_conjuncts(select, place, tokens, clause="having") if matches_tree(place, select, tokens) else None
    if found is None:
        return ()
    is_inside = isinstance(select.parent, exp.Subquery | exp.CTE)
    moved = [span for span, node in found if compares_key(node)]
    dropped = [span for span, node in found if is_inside and _says_rows_exist(node)]
    kept = [span for span, _ in found if span not in moved and span not in dropped]
    if kept and is_inside:
        for reader in list_readers(select, place.select, tokens) or ():
            _check_where(reader, read, windows)
    return tuple(_list_edits(moved, kept, place, read)) if moved or dropped else ()


def _list_edits(
    moved: Sequence[tuple[int, int]], kept: Sequence[tuple[int, int]], place: Clauses, read: PrivateRead
) -> Iterable[Edit]:
    text, tokens = read.text, read.tokens
    having, where, grouped = (place.find_mark(word) for word in ("having", "where", "group"))
    assert having is not None
    assert grouped is not None
    left = " AND ".join(text[tokens[first].start : tokens[past - 1].end] for first, past in kept)
    start = tokens[having - 1].end
    yield Edit.from_text(start, tokens[place.end - 1].end, f" HAVING {left}" if left else "", tokens[having].start)
    if not moved:
        return
    written = tokens[moved[0][0]].start
    condition = " AND ".join(f"({text[tokens[first].start : tokens[past - 1].end]})" for first, past in moved)
    end = tokens[grouped - 1].end
    if where is None:
        yield Edit.from_text(end, end, f" WHERE {condition}", written)
    else:
        yield Edit.from_text(tokens[where].end, tokens[where].end, " (")
        yield Edit.from_text(end, end, f") AND {condition}", written)


def compares_key(node: exp.Expr) -> bool:
    """Return True for a comparison of one key with constants, which selects some of its listed values."""
    return len({write_node(column) for column in node.find_all(exp.Column)}) == 1 and _narrows(node)


def _narrows(node: exp.Expr) -> bool:
    match strip_parentheses(node):
        case exp.And() | exp.Or() as joined:
            return _narrows(joined.this) and _narrows(joined.expression)
        case exp.Not() as negated:
            return _narrows(negated.this)
        case exp.EQ() | exp.NEQ() | exp.GT() | exp.GTE() | exp.LT() | exp.LTE() as compared:
            left, right = compared.this, compared.expression
            return any(_is_key(one) and _is_constant(other) for one, other in ((left, right), (right, left)))
        case exp.Between() as between:
            return _is_key(between.this) and all(_is_constant(between.args[end]) for end in ("low", "high"))
        case exp.In() as listed if listed.expressions:
            return _is_key(listed.this) and all(map(_is_constant, listed.expressions))
        case other:
            return isinstance(other, exp.Column)


def _is_key(node: exp.Expr) -> bool:
    """Return True for a column, its date, its year or the period in which it is."""
    node = strip_parentheses(node)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE:
        return _is_key(node.this)
    if isinstance(node, exp.Extract):
        return str(node.this.name).lower() == "year" and isinstance(strip_parentheses(node.expression), exp.Column)
    read = strip_parentheses(node.this) if isinstance(node, exp.TimestampTrunc) else node
    return isinstance(read, exp.Column)


def _is_constant(node: exp.Expr) -> bool:
    return all(isinstance(part, _CONSTANTS) for part in node.walk())


def _is_of_sizes(window: exp.Window) -> bool:
    """Return True for a window over sizes of groups, which are no predicates."""
    return reads_groups(window) and not any(True for _ in find_predicates(strip_parentheses(window.this)))


def _groups_plainly(group: exp.Expr | None) -> bool:
    """Return True for GROUP BY without ROLLUP, CUBE and GROUPING SETS, which add groups without keys."""
    if group is None or not group.expressions:
        return False
    plain = not any(value for key, value in group.args.items() if key != "expressions")
    return plain and not any(isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets) for one in group.expressions)


def _says_rows_exist(condition: exp.Expr) -> bool:
    """Return True for `count(*) > 0` and `count(*) >= 1`."""
    node = strip_parentheses(condition)
    if not isinstance(node, exp.GT | exp.GTE) or not isinstance(strip_parentheses(node.this), exp.Count):
        return False
    counted = strip_parentheses(node.this).this
    every = isinstance(counted, exp.Star) or is_number(counted, 1)
    return every and is_number(strip_parentheses(node.expression), 0 if isinstance(node, exp.GT) else 1)


def _check_where(reader: Reader, read: PrivateRead, windows: Sequence[exp.Window]) -> None:
    """Raise KH204 for a WHERE around the subquery that compares one of the windows."""
    where, having = reader.select.args.get("where"), read.select.args["having"]
    named = {read_name(column.this) for column in where.find_all(exp.Column)} if where is not None else set()
    for item in read.select.expressions:
        found = next((one for one in windows if isinstance(item, exp.Alias) and one in item.find_all(exp.Window)), None)
        if found is not None and read_name(item.args["alias"]) in named:
            raise _refuse_groups(having, found)


def _refuse_groups(having: exp.Expr, window: exp.Expr) -> KeyholeError:
    detail = "A window is read off the sums of all listed groups. Which groups pass is not known before."
    if not contains_aggregate(having.this):
        detail = (
            "A window is read off the sums of listed groups. HAVING may compare single keys with constants beside it."
        )
    return KeyholeError(
        "KH204",
        f"{write_short(window)} runs only over groups with {write_short(having.this)}",
        detail=detail,
        hint=f"Instead you can ask: {write_short(having.this)} in the WHERE around the window, by a column's name.",
        position=find_position(window),
    )
