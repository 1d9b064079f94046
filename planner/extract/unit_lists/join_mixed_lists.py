"""A list of privacy units beside conditions on rows, as a value that is joined to each row of the unit.

SELECT store FROM purchases WHERE coupon OR household IN (SELECT household FROM households WHERE size = 1) ...
SELECT store FROM purchases LEFT JOIN (SELECT household, count(*) AS "count(*)" FROM households WHERE size = 1
GROUP BY household) AS own_households USING (household) WHERE coupon OR (own_households."count(*)" IS NOT NULL) ...

In OR with a condition on rows, or in FILTER or CASE, such a list does not take or leave all rows of a unit. A unit's
amounts with it and without may both be full: it is charged as values of a unit's own rows are. The subquery has one row
for each unit, so that the join repeats no row. HAVING becomes a condition on values.
"""

from collections.abc import Iterator

from sqlglot import exp

from planner.bind.from_clause import IN_GROUPED_QUERY, split_conjuncts
from planner.bind.unit_lists.find_lists import AskedList, find_lists, list_sources
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.unit_values.value_names import name_subqueries, write_values
from planner.parser.clauses import Clauses, find_clauses, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import quote_identifier, spell_name
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import read_alias, read_name, strip_parentheses, write_node

_JOINED = "joined by keyhole"  # stands for the subquery until all have a name
_MOST_LISTS = 8  # in one question: each is joined once


def join_mixed_lists(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that join lists with a condition on rows, for lists that are no whole conditions of WHERE.

    Return none if there are no such lists.
    """
    select = read.select
    if select.args["from_"].this is not read.node or select.args.get("joins") or read.table.is_row_unit:
        return ()
    try:
        place = find_clauses(read.node, read.tokens)
        return tuple(_join_lists(read, place)) if matches_tree(place, select, read.tokens) else ()
    except KeyholeError:
        return ()


def _join_lists(read: PrivateRead, place: Clauses) -> Iterator[Edit]:
    found = [(node, listed) for node in _find_mixed_lists(read.select) for listed in _read_leaf(node)]
    kept = [(node, listed, made) for node, listed in found if (made := _write_units(listed, read)) is not None]
    joined = list(dict.fromkeys(text for _, _, (text, _) in kept))
    tables = {text: read_name(next(list_sources(listed.query)).this) for _, listed, (text, _) in kept}
    called = dict(zip(joined, name_subqueries([tables[text] for text in joined], read), strict=True))
    if not joined or len(joined) > _MOST_LISTS:
        return
    room = EditBudget(read.text)
    searched = [SearchedNode(node, place.select, place.end) for node, _, _ in kept]
    for (first, past), (_, listed, (text, asked)) in zip(
        find_spans(searched, read.text, read.tokens), kept, strict=True
    ):
        test = asked.replace(quote_identifier(_JOINED), spell_name(called[text]))
        wanted = "IS NOT TRUE" if listed.is_absent else "IS TRUE"
        yield Edit.from_text(read.tokens[first].start, read.tokens[past - 1].end, f"(({test}) {wanted})")
    end = read.tokens[min((index for _, index in place.marks), default=place.end) - 1].end
    units = ", ".join(map(quote_identifier, read.table.unit))
    texts = [f" LEFT JOIN ({text}) AS {spell_name(called[text])} USING ({units})" for text in joined]
    room.reserve(sum(map(len, texts)))
    yield Edit.from_text(end, end, "".join(texts))


def _find_mixed_lists(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield each IN and EXISTS of a subquery that is not a condition of lists alone, with the NOT before it."""
    where = select.args.get("where")
    alone = [part for part in split_conjuncts(None if where is None else where.this) if find_lists(part) is not None]
    hidden = {id(node) for part in alone for node in part.walk()}
    for node in select.find_all(exp.In, exp.Exists):
        if id(node) in hidden or node.parent_select is not select:
            continue
        yield node.parent if isinstance(node.parent, exp.Not) else node


def _read_leaf(node: exp.Expr) -> tuple[AskedList, ...]:
    """Return the one list that a condition asks for."""
    found = find_lists(node) or ()
    lists = tuple(listed for clause in found for listed in clause)
    return lists if len(lists) == 1 and not lists[0].is_value else ()


def _write_units(listed: AskedList, read: PrivateRead) -> tuple[str, str] | None:
    """Return a SELECT with a row for each unit of a list, under the names of the question's unit.

    Return None for other lists.
    """
    inner = listed.query
    source = next(list_sources(inner), None)
    if source is None or any(value for key, value in inner.args.items() if value and key not in IN_GROUPED_QUERY):
        return None
    if (
        not any(one.name == read_name(source.this) for one in read.catalog.tables)
        or inner.find(exp.Subquery) is not None
    ):
        return None
    where = inner.args.get("where")
    rows = list(split_conjuncts(None if where is None else where.this))
    pairs = [
        (strip_parentheses(one), strip_parentheses(item))
        for one, item in zip(listed.members, inner.expressions, strict=False)
    ]
    if isinstance(listed.condition, exp.Exists):
        tied = [(part, pair) for part in rows if (pair := _find_pair(part, source, read)) is not None]
        pairs = [pair for _, pair in tied]
        rows = [part for part in rows if not any(part is one for one, _ in tied)]
    elif len(listed.members) != len(inner.expressions):
        return None
    columns = {read_name(outer.this): own for outer, own in pairs if isinstance(outer, exp.Column)}
    if set(columns) != set(read.table.unit) or len(pairs) != len(columns):
        return None
    if not all(isinstance(own, exp.Column) for own in columns.values()):
        return None
    shown = ", ".join(
        write_node(own) if read_name(own.this) == called else f"{write_node(own)} AS {quote_identifier(called)}"
        for called, own in sorted(columns.items())
    )
    said = f" WHERE {' AND '.join(f'({write_node(row)})' for row in rows)}" if rows else ""
    having, group = inner.args.get("having"), inner.args.get("group")
    units = {read_name(own.this) for own in columns.values()}
    if having is not None and (group is None or not _groups_units(group, inner, units)):
        return None
    present = exp.Count(this=exp.Star(), big_int=True)
    asked, values = write_values(present if having is None else having.this, _JOINED, read)
    if having is None:
        asked = f"{asked} IS NOT NULL"
    grouped = ", ".join(write_node(own) for _, own in sorted(columns.items()))
    return f"SELECT {', '.join((shown, *values))} FROM {write_node(source)}{said} GROUP BY {grouped}", asked


def _groups_units(group: exp.Expr, inner: exp.Select, units: set[str]) -> bool:
    """Return True if each group is all rows of one unit. Without GROUP BY there is a group even of no rows."""
    grouped = set()
    for item in group.expressions:
        node = strip_parentheses(item)
        if isinstance(node, exp.Literal) and str(node.this).isdigit() and 0 < int(node.this) <= len(inner.expressions):
            node = strip_parentheses(inner.expressions[int(node.this) - 1])
        grouped.add(read_name(node.this) if isinstance(node, exp.Column) else "")
    return grouped == units


def _find_pair(part: exp.Expr, source: exp.Table, read: PrivateRead) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the question's column and that of the list's table that a condition equates."""
    sides = [strip_parentheses(part.this), strip_parentheses(part.expression)] if isinstance(part, exp.EQ) else []
    if len(sides) != 2 or not all(isinstance(side, exp.Column) for side in sides):
        return None
    inside, outside = (read_alias(node) for node in (source, read.node))
    for one, other in (sides, sides[::-1]):
        if (read_name(one.args.get("table")), read_name(other.args.get("table"))) == (
            outside,
            inside,
        ) and inside != outside:
            return one, other
    return None
