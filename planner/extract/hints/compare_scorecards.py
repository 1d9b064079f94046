"""INTERSECT or EXCEPT between two scorecards of the same groups, as one question that compares their columns.

    SELECT ward, count(*) > 10 FROM visits GROUP BY ward EXCEPT SELECT ward, count(*) > 20 FROM visits GROUP BY ward

    SELECT q.* FROM (SELECT ward, count(*) > 10 AS one1, count(*) > 20 AS other1 FROM visits GROUP BY ward) AS q
    WHERE q.one1 <> q.other1;

The hint of the refusal says it.
"""

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.extract.cut import ExtractedQuestion
from planner.parser.tree import strip_parentheses, write_node


def write_scorecard_comparison(
    node: exp.Intersect | exp.Except, left: list[ExtractedQuestion], right: list[ExtractedQuestion], text: str
) -> str | None:
    """Return two scorecards as one question, with a query around it that compares their values.

    Return None unless the scorecards differ only in their own items.
    """
    sides = ((node.this, left), (node.expression, right))
    if any(_open_parentheses(side) is not place.select for side, (place, *_) in sides):
        return None
    (one, *_), (other, *_) = left, right
    bodies = [text[place.edits[0].start : place.edits[0].end] for place in (one, other)]
    if bodies[0] != bodies[1] or len(one.select.expressions) != len(other.select.expressions):
        return None
    items: list[str] = []
    pairs: list[tuple[str, str]] = []
    for ours, theirs in zip(one.select.expressions, other.select.expressions, strict=True):
        written = [strip_parentheses(item.unalias()) for item in (ours, theirs)]
        if not contains_aggregate(ours) and written[0] == written[1]:
            items.append(write_node(ours))
            continue
        texts = [
            next((known.text for known in place.embedded.predicates if known.tree == item), None)
            for item, place in zip(written, (one, other), strict=True)
        ]
        if None in texts:
            return None
        names = (f"one{len(pairs) + 1}", f"other{len(pairs) + 1}")
        pairs.append(names)
        items += [f"{written_} AS {name}" for written_, name in zip(texts, names, strict=True)]
    operator, joined = ("=", " AND ") if isinstance(node, exp.Intersect) else ("<>", " OR ")
    compared = joined.join(f"q.{ours} {operator} q.{theirs}" for ours, theirs in pairs)
    return f"SELECT q.* FROM (SELECT {', '.join(items)} {bodies[0]}) AS q WHERE {compared};"


def _open_parentheses(node: exp.Expr) -> exp.Expr:
    """Return the expression in the parentheses of a subquery."""
    while isinstance(node, exp.Subquery):
        node = node.this
    return node
