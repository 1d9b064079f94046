"""A statistic of the sizes of groups, which hints write in the place of a statistic of rows."""

from sqlglot import exp

from planner.extract.private_read import ParsedQuestion
from planner.parser.tree import contains_type, strip_parentheses, write_node
from planner.values.group_statistics import STATISTICS, find_read_argument

_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE)
_NEARLY_ALL, _HARDLY_ANY = "0.95", "0.05"


def write_statistic_of_groups(place: ParsedQuestion, inner: exp.Query) -> str | None:
    """Return SQL for the standard deviation over groups, in place of that over rows: `(SELECT stddev(x) FROM t)`.

    `size` is the count or sum of the group that HAVING compares. Return None for other subqueries.
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


def write_percentile_beside_mean(inner: exp.Query) -> str | None:
    """Return SQL for a percentile, in place of `(SELECT max(x) FROM t)` with which a mean is compared.

    Return None for subqueries over groups, and for those that show something else than the largest or the least.
    """
    comparison, inner = inner.find_ancestor(*_COMPARISONS), inner.this if isinstance(inner, exp.Subquery) else inner
    if not isinstance(inner, exp.Select) or comparison is None or len(inner.expressions) != 1:
        return None
    shown = strip_parentheses(inner.expressions[0].unalias())
    argument = find_read_argument(shown) if isinstance(shown, exp.Max | exp.Min) else None
    sides = [side for side in (comparison.this, comparison.expression) if not contains_type(side, exp.Query)]
    own = [one for side in sides for one in side.find_all(exp.AggFunc)]
    source = inner.args.get("from_")
    if argument is None or source is None or not isinstance(source.this, exp.Table):
        return None
    around = comparison.find_ancestor(exp.Having)
    if len(own) != 1 or not isinstance(own[0], exp.Avg) or around is None:
        return None
    if len(list(around.find_all(exp.Select))) > 1:
        return None
    made = inner.copy()
    share = exp.Literal.number(_NEARLY_ALL if isinstance(shown, exp.Max) else _HARDLY_ANY)
    ordered = exp.Order(expressions=[exp.Ordered(this=argument.copy())])
    made.set("expressions", [exp.WithinGroup(this=exp.PercentileCont(this=share), expression=ordered)])
    return f"({write_node(made)})"
