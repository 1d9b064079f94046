"""A question as a tree that people edit: its table, keys, filter, and tests joined by AND, OR and NOT.

It is read with the server's own parser, so that it means what the text means. What the builder has no form for (a join,
a scorecard, arithmetic) stays a text in its place, or makes the whole question one that is edited as text.
"""

from typing import Any

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.model import Catalog
from planner.parser.tree import bare, write_node
from planner.scope.embedded import Embedded
from planner.values.operators import FLIPPED, OPERATORS
from proxy.pipeline.messages import bare_question

_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}


def question_tree(sql: str, catalog: Catalog) -> dict[str, Any]:
    """The tree of a bare question. Raises KH1xx for what is none.

    `builds` says whether the builder can write it: whether writing the tree gives the question again.
    """
    question = bare_question(sql, catalog)
    tree = question.tree
    where, having = tree.args.get("where"), tree.args.get("having")
    return {
        "builds": _builds(question, catalog),
        "table": question.table.name,
        "keys": [key.name for key in question.keys],
        "where": "" if where is None else write_node(where.this),
        "having": None if having is None else _node(having.this),
    }


def _builds(question: Embedded, catalog: Catalog) -> bool:
    plain = not (
        question.stored
        or question.joined
        or question.looked_up
        or question.per_unit
        or question.members
        or question.predicates
        or question.ranked
        or question.rules
    )
    stored = {column.name for column in question.table.columns}
    named = question.alias == question.table.name and catalog.table(question.table.name) is not None
    return plain and named and bool(question.keys) and all(key.name in stored for key in question.keys)


def _node(node: exp.Expr) -> dict[str, Any]:
    node = bare(node)
    if not node.args.get("negate"):
        match node:
            case exp.And() | exp.Or():
                kind = "and" if isinstance(node, exp.And) else "or"
                return {"kind": kind, "children": [_node(child) for child in node.flatten()]}
            case exp.Not():
                return {"kind": "not", "child": _node(node.this)}
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return _test(node) or {"kind": "text", "text": write_node(node)}
    return {"kind": "text", "text": write_node(node)}


def _test(node: exp.Expr) -> dict[str, Any] | None:
    """A comparison of one plain aggregate with a constant, either way round."""
    operator = OPERATORS[type(node)]
    left, right = bare(node.this), bare(node.expression)
    if contains_aggregate(right):
        left, right, operator = right, left, FLIPPED[operator]
    aggregate = _aggregate(left)
    if aggregate is None or contains_aggregate(right) or right.find(exp.Column) is not None:
        return None
    return {"kind": "test", **aggregate, "operator": operator, "value": write_node(right)}


def _aggregate(node: exp.Expr) -> dict[str, Any] | None:
    condition = ""
    if isinstance(node, exp.Filter):
        condition, node = write_node(node.expression.this), node.this
    function = _FUNCTIONS.get(type(node))
    if function is None or node.expressions:
        return None
    over = node.this
    if isinstance(over, exp.Distinct) and function == "count" and len(over.expressions) == 1:
        function, over = "count distinct", over.expressions[0]
    if isinstance(over, exp.Star):
        return {"function": function, "column": None, "filter": condition}
    if isinstance(over, exp.Column):
        return {"function": function, "column": over.name, "filter": condition}
    return None
