"""Keys that GROUP BY computes of texts without a public list, written as a CASE whose groups are public.

Where WHERE lists its values, it is a CASE of these: WHERE keeps rows of the listed values alone.

SELECT upper(code) FROM sales WHERE upper(code) IN ('A', 'B') GROUP BY upper(code) HAVING count(*) > 5
SELECT CASE WHEN upper(code) = 'A' THEN 'A' ELSE 'B' END AS upper FROM sales
WHERE upper(code) IN ('A', 'B') GROUP BY CASE WHEN upper(code) = 'A' THEN 'A' ELSE 'B' END HAVING count(*) > 5

A CASE that compares one expression says so of each of its values.

CASE upper(code) WHEN 'A' THEN 1 ELSE 2 END
CASE WHEN (upper(code)) = ('A') THEN 1 ELSE 2 END
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from planner.bind.from_clause import split_conjuncts
from planner.bind.joined_tables import read_joins
from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, strip_parentheses
from planner.scope.group_by import resolve_item
from planner.scope.key_classes import read_key_expression
from planner.scope.name_resolution import Scope, find_column
from planner.values.sql_literals import quote_text as text_literal

_MOST_TEXTS = 8  # groups are looked for in all combinations of conditions
_CUT = (exp.Left, exp.Right, exp.Substring)  # of a column itself: WHERE tells its groups
_LABELS = {"trim": "btrim"}  # PostgreSQL's names of functions that have two


def spell_out_listed_texts(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that expand a computed text of GROUP BY into the texts that WHERE lists.

    Return none without a computed text.
    """
    select = read.select
    group, where = select.args.get("group"), select.args.get("where")
    if group is None or where is None or any(value for key, value in group.args.items() if key != "expressions"):
        return ()
    listed = list(_list_texts(where.this))
    if not listed:
        return ()
    try:
        scope = read_joins(select, read.node, read.table, read.catalog)
        items = [strip_parentheses(resolve_item(strip_parentheses(item), select, scope)) for item in group.expressions]
        for item in items:
            texts = next((found for node, found in listed if node == item), ())
            if 0 < len(texts) <= _MOST_TEXTS and _is_open(item, scope):
                return tuple(_write_case_everywhere(read, item, texts))
    except KeyholeError:
        return ()
    return ()


def spell_out_simple_cases(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that turn `CASE text WHEN ..` over a computed text into a CASE of conditions.

    Return none without a computed text.
    """
    select, group = read.select, read.select.args.get("group")
    if group is None or not read.query.has_word("case"):
        return ()
    cases = [node for node in select.find_all(exp.Case) if node.this is not None and node.parent_select is select]
    if not cases:
        return ()
    try:
        scope = read_joins(select, read.node, read.table, read.catalog)
        for case in cases:
            if _is_open(strip_parentheses(case.this), scope):
                return tuple(_spell_out_list(read, case))
    except KeyholeError:
        return ()
    return ()


def _spell_out_list(read: PrivateRead, case: exp.Case) -> Iterator[Edit]:
    searched = [SearchedNode(one, 0, len(read.tokens)) for one in (case.this, *(one.this for one in case.args["ifs"]))]
    (first, past), *values = find_spans(searched, read.text, read.tokens)
    start, end = read.tokens[first].start, read.tokens[past - 1].end
    written = read.text[start:end]
    yield Edit.from_text(start, end, "")
    for begin, behind in values:
        start, end = read.tokens[begin].start, read.tokens[behind - 1].end
        yield Edit.from_text(start, end, f"({written}) = ({read.text[start:end]})", start)


def _list_texts(condition: exp.Expr) -> Iterator[tuple[exp.Expr, tuple[str, ...]]]:
    """Find the expressions that WHERE compares with few texts, each with these texts."""
    for part in split_conjuncts(condition):
        found = [_read_texts(strip_parentheses(one)) for one in _list_alternatives(part)]
        nodes = [node for node, _ in found]
        if nodes and nodes[0] is not None and all(node == nodes[0] for node in nodes):
            yield nodes[0], tuple(sorted({text for _, texts in found for text in texts}))


def _list_alternatives(node: exp.Expr) -> Iterator[exp.Expr]:
    inner = strip_parentheses(node)
    if isinstance(inner, exp.Or) and not inner.args.get("negate"):
        yield from _list_alternatives(inner.this)
        yield from _list_alternatives(inner.expression)
    else:
        yield inner


def _read_texts(node: exp.Expr) -> tuple[exp.Expr | None, tuple[str, ...]]:
    """Read a condition as an expression and the texts that it is compared with. Return none for other conditions."""
    match node:
        case exp.In(this=compared, expressions=[*several]) if several and not node.args.get("negate"):
            texts = several
        case exp.EQ(this=compared, expression=one) if not node.args.get("negate"):
            texts = [one]
        case _:
            return None, ()
    if not all(isinstance(one, exp.Literal) and one.is_string for one in map(strip_parentheses, texts)):
        return None, ()
    return strip_parentheses(compared), tuple(strip_parentheses(one).name for one in texts)


def _is_open(item: exp.Expr, scope: Scope) -> bool:
    """Return True if an expression reads a text without a public list, and is more than its beginning or end."""
    if not isinstance(item, exp.Func) or contains_type(item, exp.Query) or find_column(item, scope) is not None:
        return False
    if read_key_expression(item, scope) is not None or (isinstance(item, _CUT) and isinstance(item.this, exp.Column)):
        return False
    columns = [find_column(one, scope) for one in item.find_all(exp.Column)]
    return any(one is not None and one.domain is None and one.sql_type is SqlType.TEXT for one in columns)


def _write_case_everywhere(read: PrivateRead, item: exp.Expr, texts: Sequence[str]) -> Iterator[Edit]:
    """Yield the CASE in every place in which PostgreSQL recognises the item as grouped by."""
    select, past = read.select, len(read.tokens)
    clauses = [*select.expressions, *(select.args.get(one) for one in ("group", "having", "order"))]
    nodes = [
        node
        for clause in clauses
        if clause is not None
        for node in clause.find_all(type(item))
        if node == item and node.find_ancestor(exp.AggFunc, exp.Filter) is None
    ]
    shown = {id(one) for one in select.expressions}
    if any(id(one) not in shown and _names_item(one, select) for one in nodes):
        return
    for node, (first, end) in zip(
        nodes, find_spans([SearchedNode(node, 0, past) for node in nodes], read.text, read.tokens), strict=True
    ):
        start, stop = read.tokens[first].start, read.tokens[end - 1].end
        written = read.text[start:stop]
        *others, last = map(text_literal, texts)  # ELSE, as no row is left without one
        whens = " ".join(f"WHEN {written} = {text} THEN {text}" for text in others or [last])
        called = read.tokens[first].value
        label = f" AS {quote_identifier(_LABELS.get(called, called))}" if id(node) in shown else ""
        yield Edit.from_text(start, stop, f"CASE {whens} ELSE {last} END{label}", start)


def _names_item(node: exp.Expr, select: exp.Select) -> bool:
    """Return True if PostgreSQL names this item of the select list after its content."""
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return any(one is node for one in select.expressions) and not isinstance(node, exp.Alias)
