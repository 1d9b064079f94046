"""A list whose FROM is a subquery over one table, as a SELECT from that table.

    SELECT b.patient FROM (SELECT patient, count(*) AS n FROM labs GROUP BY patient) b WHERE n > 3
    SELECT patient FROM labs GROUP BY patient HAVING count(*) > 3

Guarantee: both have the same values, if not equally often, which no list asks.
"""

from collections.abc import Iterator, Mapping

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.from_clause import IN_GROUPED_QUERY, split_conjuncts
from planner.parser.tree import contains_type, read_name, strip_parentheses


def flatten_list(inner: exp.Select) -> exp.Select:
    """Return a list's SELECT with its subquery merged into it, so that it reads a table.

    Return it unchanged if it reads no subquery that can be merged.
    """
    source = inner.args["from_"].this if inner.args.get("from_") is not None else None
    if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Select) or inner.args.get("joins"):
        return inner
    below = flatten_list(source.this)
    alias = source.args.get("alias")
    if _has_more(source, frozenset(("this", "alias"))) or _has_more(below, IN_GROUPED_QUERY) or alias is None:
        return inner
    if alias.args.get("columns") or _is_distinct_on(below):
        return inner
    shown = dict(_list_shown_columns(below))
    if "" in shown or len(shown) != len(below.expressions):
        return inner
    grouped = any(below.args.get(clause) for clause in ("group", "having"))
    added = any(map(contains_aggregate, below.expressions))
    counted = inner.args.get("group") or inner.args.get("having") or any(map(contains_aggregate, inner.expressions))
    if (added and not below.args.get("group")) or (counted and (grouped or below.args.get("distinct"))):
        return inner
    called = read_name(alias.this)
    if any(read_name(one.this) not in shown for one in _list_read_columns(inner, called)):
        return inner  # a name that the subquery does not show is one of the question's row
    return _merge(inner, below, shown, called, is_grouped=grouped)


def _has_more(node: exp.Expr, known: frozenset[str]) -> bool:
    return any(value for key, value in node.args.items() if key not in known)


def _is_distinct_on(select: exp.Select) -> bool:
    distinct = select.args.get("distinct")
    return distinct is not None and distinct.args.get("on") is not None


def _list_shown_columns(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        column = strip_parentheses(node)
        plain = read_name(column.this) if isinstance(column, exp.Column) else ""
        yield (read_name(item.args["alias"]) if isinstance(item, exp.Alias) else plain), node


def _list_read_columns(inner: exp.Select, alias: str) -> Iterator[exp.Column]:
    """Yield the columns that may be the subquery's, in all clauses but FROM."""
    clauses = [*inner.expressions, *(inner.args.get(clause) for clause in ("where", "group", "having"))]
    columns = (column for clause in clauses if clause is not None for column in clause.find_all(exp.Column))
    return (column for column in columns if read_name(column.args.get("table")) in ("", alias))


def _merge(
    inner: exp.Select, below: exp.Select, shown: Mapping[str, exp.Expr], alias: str, *, is_grouped: bool
) -> exp.Select:
    def spell(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or read_name(node.args.get("table")) not in ("", alias):
            return node
        found = shown.get(read_name(node.this))
        if found is None:
            return node
        return found.copy() if isinstance(strip_parentheses(found), exp.Column) else exp.Paren(this=found.copy())

    merged = below.copy()
    merged.set("distinct", None)
    merged.set("expressions", [_keep_name(one, one.copy().transform(spell, copy=False)) for one in inner.expressions])
    for clause in ("group", "having"):
        if inner.args.get(clause) is not None:
            merged.set(clause, inner.args[clause].copy().transform(spell, copy=False))
    where = inner.args.get("where")
    for part in split_conjuncts(None if where is None else where.this):
        spelled = part.copy().transform(spell, copy=False)
        is_of_group = is_grouped and not _equates_columns(spelled) and not contains_type(spelled, exp.Query)
        _add_condition(merged, "having" if is_of_group else "where", exp.Having if is_of_group else exp.Where, spelled)
    return merged


def _keep_name(item: exp.Expr, spelled: exp.Expr) -> exp.Expr:
    """Return the subquery's expression under the column name that the outer SELECT shows."""
    column = strip_parentheses(item)
    return exp.Alias(this=spelled, alias=column.this.copy()) if isinstance(column, exp.Column) else spelled


def _equates_columns(node: exp.Expr) -> bool:
    """Return True if a condition may compare the list's row with a row of the question."""
    return isinstance(node, exp.EQ) and all(
        isinstance(strip_parentheses(one), exp.Column) for one in (node.this, node.expression)
    )


def _add_condition(select: exp.Select, clause: str, kind: type[exp.Expr], condition: exp.Expr) -> None:
    known = select.args.get(clause)
    both = (
        condition if known is None else exp.And(this=exp.Paren(this=known.this), expression=exp.Paren(this=condition))
    )
    select.set(clause, kind(this=both))
