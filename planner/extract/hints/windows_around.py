"""A question whose HAVING has window functions, written as a subquery that names them, and a WHERE around it."""

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse, write_node

_KEPT = ("with_", "from_", "joins", "where", "group", "windows")


def write_windows_around(text: str) -> str | None:
    """Return the statement as a query around its own query, in which WHERE has the former HAVING.

    PostgreSQL can read this form. Return None for other statements, and for those whose select list shows more than
    columns.
    """
    try:
        tree = parse(text, read_tokens(text)).tree
    except KeyholeError:
        return None
    if not isinstance(tree, exp.Select):
        return None
    having = tree.args.get("having")
    shown = [item for item in tree.expressions if isinstance(item.unalias(), exp.Column)]
    if having is None or len(shown) != len(tree.expressions) or having.find(exp.Query) is not None:
        return None
    others = {key for key, value in tree.args.items() if value} - {*_KEPT, "expressions", "having", "order"}
    order = tree.args.get("order")
    if others or having.find(exp.Window) is None or not _is_by_names(order, shown):
        return None
    condition = having.this.copy()
    named: dict[str, str] = {}

    def name_value(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Window | exp.Filter | exp.WithinGroup | exp.AggFunc):
            return node
        called = "w" if isinstance(node, exp.Window) else "n"
        number = sum(name.startswith(called) for name in named.values())
        return exp.column(named.setdefault(write_node(node), f"{called}{number + 1 if number else ''}"))

    compared = write_node(condition.transform(name_value))
    names = ", ".join(write_node(exp.column(_copy_name(item))) for item in shown)
    inner = exp.Select(**{key: tree.args[key] for key in _KEPT if tree.args.get(key)})
    values = ", ".join(f"{value} AS {name}" for value, name in named.items())
    listed, rest = ", ".join(map(write_node, shown)), write_node(inner).removeprefix("SELECT")
    ordered = "" if order is None else f" {write_node(order)}"
    return f"SELECT {names} FROM (SELECT {listed}, {values}{rest}) AS q WHERE {compared}{ordered}"


def _is_by_names(order: exp.Expr | None, shown: list[exp.Expr]) -> bool:
    """Return True if ORDER BY, if there is one, has names alone that the select list shows."""
    names = [exp.column(_copy_name(item)) for item in shown]
    return order is None or all(one.this in names for one in order.expressions)


def _copy_name(item: exp.Expr) -> exp.Identifier:
    """Return the name that an item of a select list gives to its column."""
    alias = item.args.get("alias")
    name: exp.Identifier = (item.this if alias is None else alias).copy()
    return name
