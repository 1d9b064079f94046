"""A statistic of the sizes of groups, which hints write in the place of a statistic of rows."""

from sqlglot import exp

from planner.extract.private_read import ParsedQuestion
from planner.parser.tree import contains_type, strip_parentheses, write_node
from planner.values.group_statistics import STATISTICS, find_read_argument

_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE)


def write_statistic_of_groups(place: ParsedQuestion, inner: exp.Query) -> str | None:
    """Return `(SELECT stddev(size) FROM (groups) AS sizes)` in the place of `(SELECT stddev(x) FROM t)`.

    The size is the count or sum that the group is compared by. Return None for other subqueries.
    """
    select, comparison = place.select, inner.find_ancestor(*_COMPARISONS)
    inner = inner.this if isinstance(inner, exp.Subquery) else inner
    if not isinstance(inner, exp.Select) or comparison is None or select.args.get("joins"):
        return None
    shown = strip_parentheses(inner.expressions[0].unalias()).copy() if len(inner.expressions) == 1 else None
    plain = {key for key, value in inner.args.items() if value} <= {"expressions", "from_", "where"}
    if not plain or not isinstance(shown, STATISTICS) or isinstance(shown, exp.Max | exp.Min):
        return None
    argument = find_read_argument(shown)
    sides = [side for side in (comparison.this, comparison.expression) if not contains_type(side, exp.Query)]
    sizes = [one for side in sides for one in side.find_all(exp.AggFunc)]
    if argument is None or len(sizes) != 1 or not isinstance(sizes[0], exp.Count | exp.Sum):
        return None
    if len(list(select.args["having"].find_all(exp.Select))) > 1:
        return None
    size = sizes[0].parent if isinstance(sizes[0].parent, exp.Filter) else sizes[0]
    group = select.args.get("group")
    columns = [strip_parentheses(one) for one in ([] if group is None else group.expressions)]
    if not columns or not all(isinstance(one, exp.Column) for one in columns):
        return None
    keys = ", ".join(map(write_node, columns))
    argument.replace(exp.column("size"))
    source, where = (select.args.get(part) for part in ("from_", "where"))
    rows = " ".join(write_node(part) for part in (source, where) if part is not None)
    groups = f"SELECT {keys}, {write_node(size)} AS size {rows} GROUP BY {keys}"
    return f"(SELECT {write_node(shown)} FROM ({groups}) AS sizes)"
