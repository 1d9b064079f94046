"""A question as a tree that people can edit: its table and joins, keys, filter, tests, columns and ranking.

Guarantee: the server's own parser reads the question, so the tree means what the text means. The SQL that the builder
writes from the tree is the same question again. A part that the builder cannot show stays text, or the whole question
is edited as text. One sentence then says why.
"""

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.catalog import Catalog, Column
from planner.parser.lexer import read_tokens, spell_name, split_statements
from planner.parser.tree import parse, read_limit, read_name, strip_parentheses, write_node
from planner.scope.embedded import EmbeddedQuestion, ShownKey
from planner.scope.key_classes import write_identity
from planner.scope.name_resolution import find_column
from proxy.console.analyst.question_nodes import (
    Document,
    TableNames,
    make_aggregate_node,
    make_column_node,
    make_formula_node,
)
from proxy.pipeline.messages import read_bare_question

# the clauses that have a place in the builder; DISTINCT changes nothing where each group is one row
_DRAWN = frozenset(("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "fetch", "distinct"))


class _NoTreeForm(Exception):
    """The error for a question that the builder cannot show. The message says why, in a sentence."""


def make_question_tree(sql: str, catalog: Catalog) -> Document:
    """Return the tree of a bare question as JSON. Raise KH1xx for any other text.

    In the JSON, `builds` is True if the SQL written from the tree is the same question again. Otherwise `why` gives the
    reason in a sentence.
    """
    question = read_bare_question(sql, catalog)
    text = split_statements(sql)[0].text
    try:
        return {"builds": True, "why": None, **_draw(parse(text, read_tokens(text)).tree, question, catalog)}
    except _NoTreeForm as reason:
        return {"builds": False, "why": str(reason)}


def _draw(tree: exp.Expr, question: EmbeddedQuestion, catalog: Catalog) -> Document:
    """Return the tree of a question's SELECT. Raise `_NoTreeForm` if no tree can show it."""
    select = _read_plain_select(tree, question, catalog)
    stored = catalog.find_table(question.table.name)
    where, having, group = (select.args.get(clause) for clause in ("where", "having", "group"))
    names = TableNames(
        alias=question.alias,
        own=frozenset() if stored is None else frozenset(column.name for column in stored.columns),
        joined={one.alias: one.all_columns for one in question.public_tables},
        keys=_write_keys(group),
        rows="" if select.args.get("joins") else _write_rows(select.args["from_"], where),
    )
    keys, shown = _split_columns(select, question, names)
    return {
        "table": question.table.name,
        "alias": "" if question.alias == question.table.name else spell_name(question.alias),
        "joins": [_read_join(join, names) for join in select.args.get("joins") or ()],
        "keys": keys,
        "where": "" if where is None else write_node(where.this),
        "having": None if having is None else make_formula_node(having.this, names),
        "columns": shown,
        "ranking": _read_ranking(select, question, names),
    }


def _write_keys(group: exp.Expr | None) -> tuple[str, ...]:
    """Return the expressions of GROUP BY as text, or nothing if one is a place in the select list."""
    keys: list[exp.Expr] = [] if group is None else group.expressions
    return () if any(isinstance(key, exp.Literal) for key in keys) else tuple(map(write_node, keys))


def _write_rows(*clauses: exp.Expr | None) -> str:
    return " ".join(write_node(clause).strip() for clause in clauses if clause is not None)


def _read_plain_select(tree: exp.Expr, question: EmbeddedQuestion, catalog: Catalog) -> exp.Select:
    if question.stored_question:
        raise _NoTreeForm("It reads a stored question.")
    if question.set_operation or not isinstance(tree, exp.Select):
        raise _NoTreeForm("It puts several questions together.")
    read = tree.args["from_"].this
    if question.unit_query or not isinstance(read, exp.Table) or read.alias_column_names:
        raise _NoTreeForm("It reads a subquery.")
    if question.members or catalog.find_table(question.table.name) is None:
        raise _NoTreeForm("It joins private tables.")
    if not question.keys:
        raise _NoTreeForm("It has no keys: the whole table is one group.")
    if any(value for clause, value in tree.args.items() if clause not in _DRAWN):
        raise _NoTreeForm("It has a clause that the builder has no place for.")
    return tree


def _split_columns(
    select: exp.Select, question: EmbeddedQuestion, names: TableNames
) -> tuple[list[Document], list[Document]]:
    """Return a select list's keys and its scorecard columns.

    Raise `_NoTreeForm` unless each key is shown once, unchanged.
    """
    items = () if question.shown_keys is None else question.shown_keys.items
    computed = {one.text for one in items if one.sql}
    keys, shown = [], []
    for item in select.expressions:
        node, called = (item.this, item.alias) if isinstance(item, exp.Alias) else (item, "")
        if contains_aggregate(node):
            shown.append(make_column_node(node, called, names))
            continue
        if called and called != node.name:
            raise _NoTreeForm("It gives a key another name.")
        if (
            find_column(strip_parentheses(node), question.scope) is None
            and write_identity(node, question.scope) not in computed
        ):
            raise _NoTreeForm("It shows an expression of a key.")
        keys.append(node)
    if len(keys) != len(items or question.keys):
        raise _NoTreeForm("It shows other columns than the keys of its groups.")
    told = [_read_computed_key(one, question, names) for one in items]
    return told or [_read_key(key, question, names) for key in question.keys], shown


def _read_computed_key(shown: ShownKey, question: EmbeddedQuestion, names: TableNames) -> Document:
    """Return a key's node, in a question with computed keys. An expression is kept as text."""
    if shown.sql:
        return {"of": "", "name": shown.name, "sql": shown.name}
    return _read_key(question.keys[shown.key_places[0]], question, names)


def _read_key(key: Column, question: EmbeddedQuestion, names: TableNames) -> Document:
    if key not in question.table.columns:
        raise _NoTreeForm("It groups by an expression.")
    for joined in question.public_tables:
        for public, named in joined.columns:
            if named == key.name and key.name not in names.own:
                return {"of": joined.alias, "name": public}
    return {"of": "", "name": key.name}


def _read_join(join: exp.Join, names: TableNames) -> Document:
    table, condition, using = join.this, join.args.get("on"), join.args.get("using")
    outer = join.side == "LEFT"
    if not isinstance(table, exp.Table) or (join.side and not outer) or join.kind not in ("", "INNER", "OUTER"):
        raise _NoTreeForm("It joins in a way that the builder has no form for.")
    alias = table.alias or table.name
    told = {"table": table.name, "alias": alias, "sql": spell_name(alias), "outer": outer, "using": bool(using)}
    if using and len(using) == 1:
        return {**told, "key": read_name(using[0]), "base": {"of": "", "name": read_name(using[0])}}
    inner = None if condition is None else strip_parentheses(condition)
    if isinstance(inner, exp.EQ) and isinstance(inner.this, exp.Column) and isinstance(inner.expression, exp.Column):
        sides = [names.qualify(inner.this), names.qualify(inner.expression)]
        if sides[0]["of"] == alias:
            sides.reverse()
        if sides[1]["of"] == alias != sides[0]["of"]:
            return {**told, "key": sides[1]["name"], "base": sides[0]}
    raise _NoTreeForm("It joins by another condition than the equality of two columns.")


def _read_ranking(select: exp.Select, question: EmbeddedQuestion, names: TableNames) -> Document | None:
    order = select.args.get("order")
    if question.ranked is None:
        if order is not None or read_limit(select) is not None:
            raise _NoTreeForm("It orders its answer.")
        return None
    by: list[exp.Expr] = [] if order is None else order.expressions
    limit = question.ranked.limit
    aggregate = (
        make_aggregate_node(strip_parentheses(by[0].this), names)
        if len(by) == 1 and isinstance(by[0], exp.Ordered)
        else None
    )
    if aggregate is None:
        raise _NoTreeForm("It ranks by more than one aggregate or column.")
    return {
        **aggregate,
        "descending": question.ranked.descending,
        "limit": "" if limit is None else write_node(limit),
    }
