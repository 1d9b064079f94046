"""The nodes of a question's tree, as JSON for pages: formulas, tests, aggregates and columns.

An expression that no node can show becomes a node with its text, which keeps its meaning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.parser.tree import read_name, strip_parentheses, write_node
from planner.values.operators import FLIPPED_OPERATORS, OPERATORS

Document = dict[str, Any]
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}


@dataclass(frozen=True, slots=True)
class TableNames:
    """The table of each column in a question.

    `own` are the columns of the question's table, which has the alias `alias`. `joined` are the columns of each joined
    public table, by its alias. `keys` are the expressions of GROUP BY, and `rows` is the text of FROM and WHERE.
    Both are empty if subqueries over the same rows cannot repeat them.
    """

    alias: str
    own: frozenset[str]
    joined: Mapping[str, frozenset[str]]
    keys: tuple[str, ...] = ()
    rows: str = ""

    def qualify(self, column: exp.Column) -> Document:
        """Return a column's name with the alias of its public table, or "" for the question's own table."""
        said, wanted = read_name(column.args.get("table")), read_name(column.this)
        if said in self.joined:
            return {"of": said, "name": wanted}
        if said or wanted in self.own:
            return {"of": "", "name": wanted}
        return {"of": next((alias for alias, names in self.joined.items() if wanted in names), ""), "name": wanted}

    def name_other_groups(self, aggregate: str, compared: str) -> str | None:
        """Return the groups with which a text compares an aggregate: `total`, `average` or `before`.

        Return None for a text without such groups. The texts are those that the builder writes: windows in columns,
        subqueries over the same rows in HAVING.
        """
        keys = ", ".join(self.keys)
        each = f"SELECT {keys}, {aggregate} AS n {self.rows} GROUP BY {keys}"
        texts = {
            f"sum({aggregate}) OVER ()": "total",
            f"avg({aggregate}) OVER ()": "average",
            f"(SELECT {aggregate} {self.rows})": "total",
            f"(SELECT avg(n) FROM ({each}) AS q)": "average",
        }
        for calendar in self.keys:
            others = ", ".join(key for key in self.keys if key != calendar)
            part = f"PARTITION BY {others} " if others else ""
            texts[f"lag({aggregate}) OVER ({part}ORDER BY {calendar})"] = "before"
        return texts.get(compared)


def make_formula_node(node: exp.Expr, names: TableNames) -> Document:
    """Return a formula as a tree: tests joined by AND, OR and NOT."""
    node = strip_parentheses(node)
    if not node.args.get("negate"):
        match node:
            case exp.And() | exp.Or():
                kind = "and" if isinstance(node, exp.And) else "or"
                return {"kind": kind, "children": [make_formula_node(child, names) for child in node.flatten()]}
            case exp.Not():
                return {"kind": "not", "child": make_formula_node(node.this, names)}
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return _read_test(node, names) or make_text_node(node)
    return make_text_node(node)


def make_text_node(node: exp.Expr) -> Document:
    """Return a node with an expression's text, for an expression that no other node can show."""
    return {"kind": "text", "text": write_node(node)}


def _read_test(node: exp.Expr, names: TableNames) -> Document | None:
    """Return the node of a comparison of an aggregate, or of a ratio of two, with a constant.

    Either side may be the constant. An aggregate may also be compared with a constant times what `name_other_groups`
    names.
    """
    operator = OPERATORS[type(node)]
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    if (found := _read_other_groups(left, right, names)) is not None:
        return {"kind": "test", **found, "operator": operator}
    if contains_aggregate(right):
        left, right, operator = right, left, FLIPPED_OPERATORS[operator]
    compared = _read_ratio(left, names) if isinstance(left, exp.Div) else make_aggregate_node(left, names)
    if compared is None or contains_aggregate(right) or right.find(exp.Column) is not None:
        return None
    return {"kind": "test", **compared, "operator": operator, "value": write_node(right)}


def _read_other_groups(left: exp.Expr, right: exp.Expr, names: TableNames) -> Document | None:
    """Return the parts of a test that compares an aggregate with other groups; None for any other comparison."""
    value = "1"
    if isinstance(right, exp.Mul) and isinstance(right.this, exp.Literal):
        value, right = write_node(right.this), strip_parentheses(right.expression)
    aggregate = make_aggregate_node(left, names)
    against = names.name_other_groups(write_node(left), write_node(right))
    return None if aggregate is None or against is None else {**aggregate, "value": value, "against": against}


def _read_ratio(node: exp.Div, names: TableNames) -> Document | None:
    """Return the node of a share: one aggregate times a number, divided by another."""
    above, factor = strip_parentheses(node.this), ""
    if isinstance(above, exp.Mul) and isinstance(strip_parentheses(above.this), exp.Literal):
        above, factor = strip_parentheses(above.expression), write_node(strip_parentheses(above.this))
    share, whole = make_aggregate_node(above, names), make_aggregate_node(strip_parentheses(node.expression), names)
    return None if share is None or whole is None else {**share, "factor": factor, "over": whole}


def make_aggregate_node(node: exp.Expr, names: TableNames) -> Document | None:
    """Return the node of an aggregate over all rows, a column, or arithmetic on columns, which is kept as text."""
    condition = ""
    if isinstance(node, exp.Filter):
        condition, node = write_node(node.expression.this), node.this
    function = _FUNCTIONS.get(type(node))
    if function is None or node.expressions:
        return None
    over = node.this
    if isinstance(over, exp.Distinct):
        if function != "count" or len(over.expressions) != 1:
            return None
        function, over = "count distinct", over.expressions[0]
    found: Document = {"function": function, "column": None, "of": "", "expression": None, "filter": condition}
    if isinstance(over, exp.Star):
        return found
    if isinstance(over, exp.Column):
        reference = names.qualify(over)
        return {**found, "column": reference["name"], "of": reference["of"]}
    return {**found, "expression": write_node(over)}


def make_column_node(node: exp.Expr, called: str, names: TableNames) -> Document:
    """Return the node of a scorecard's column: bands of an aggregate, words for formulas, or one formula."""
    inner = strip_parentheses(node)
    return (
        _read_bucket(inner, called, names)
        or _read_words(inner, called, names)
        or {"kind": "formula", "name": called, "formula": make_formula_node(inner, names)}
    )


def _read_bucket(node: exp.Expr, called: str, names: TableNames) -> Document | None:
    """Return the node of width_bucket() over an aggregate and a list of constants."""
    if not isinstance(node, exp.Anonymous | exp.WidthBucket):
        return None
    if isinstance(node, exp.Anonymous):
        if node.name.lower() != "width_bucket" or len(node.expressions) != 2:
            return None
        of, cuts = node.expressions
    else:
        of, cuts = node.this, node.args.get("threshold") or node.args.get("min_value") or node.expression
    aggregate = make_aggregate_node(strip_parentheses(of), names)
    if aggregate is None or not isinstance(cuts, exp.Array) or cuts.find(exp.Column) is not None:
        return None
    return {"kind": "bucket", "name": called, **aggregate, "cuts": [write_node(one) for one in cuts.expressions]}


def _read_words(node: exp.Expr, called: str, names: TableNames) -> Document | None:
    """Return the node of a CASE that gives a word for the first formula that holds."""
    if not isinstance(node, exp.Case) or node.this is not None:
        return None
    last = node.args.get("default")
    words = [when.args.get("true") for when in node.args["ifs"]] + ([] if last is None else [last])
    if not all(isinstance(word, exp.Literal) and word.is_string for word in words):
        return None
    if not all(contains_aggregate(when.this) for when in node.args["ifs"]):
        return None
    bands = [
        {"word": when.args["true"].this, "formula": make_formula_node(when.this, names)} for when in node.args["ifs"]
    ]
    return {"kind": "words", "name": called, "bands": bands, "otherwise": None if last is None else last.this}
