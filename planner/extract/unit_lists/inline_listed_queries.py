"""A WITH query that lists of privacy units alone read, written where they read it.

WITH big AS (SELECT patient FROM labs GROUP BY patient HAVING count(*) > 3)
SELECT ward FROM stays WHERE patient IN (SELECT patient FROM big) GROUP BY ward HAVING count(*) > 100

SELECT ward FROM stays WHERE patient IN (SELECT patient FROM (SELECT patient FROM labs ... > 3) AS big) GROUP BY ...
"""

from collections.abc import Iterator

from sqlglot import exp

from planner.bind.from_clause import split_conjuncts
from planner.bind.unit_lists.find_lists import find_lists, list_selects, list_sources
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.pull_up_subqueries import NOTHING
from planner.parser.clauses import find_closing, find_token
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import quote_identifier
from planner.parser.subquery_readers import list_references
from planner.parser.tree import find_offset, read_name

_MOST_READERS = 16  # each takes a copy of the query


def inline_listed_queries(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that copy a WITH query into each list that reads it.

    Return no edits if anything but lists reads it.
    """
    if not read.query.has_word("with"):
        return ()
    try:
        for cte in reversed(list(read.query.tree.find_all(exp.CTE))):
            changes = tuple(_inline(cte, read))
            if changes:
                return changes
    except KeyholeError:
        return ()
    return ()


def _inline(cte: exp.CTE, read: PrivateRead) -> Iterator[Edit]:
    with_, alias = cte.parent, cte.args["alias"]
    called = read_name(alias.this)
    same = [one for one in cte.root().find_all(exp.CTE) if read_name(one.args["alias"].this) == called]
    if with_ is None or with_.args.get("recursive") or alias.args.get("columns") or len(same) > 1:
        return
    found = list(list_references(cte))
    if not found or len(found) > _MOST_READERS or not all(map(_is_listed, found)):
        return
    tokens, text = read.tokens, read.text
    at = find_token(tokens, find_offset(alias.this))
    opening = next(index for index in range(at, len(tokens)) if tokens[index].is_symbol("("))
    closing = find_closing(tokens, opening)
    body = text[tokens[opening].start : tokens[closing].end]
    room = EditBudget(text)
    for node in found:
        place = tokens[find_token(tokens, find_offset(node.this))]
        named = "" if node.args.get("alias") is not None else f" AS {quote_identifier(called)}"
        room.reserve(len(body))
        yield Edit.from_text(place.start, place.end, f"{body}{named}", tokens[opening].start)
    if len(with_.expressions) == 1 and tokens[at - 1].is_word("with"):
        yield Edit.from_text(tokens[at - 1].start, tokens[closing].end, "")
    else:
        yield Edit.from_text(tokens[opening].end, tokens[closing].start, NOTHING)


def _is_listed(node: exp.Table) -> bool:
    """Return True if a name stands in the FROM of a list in some WHERE, by itself."""
    inner = node.find_ancestor(exp.Select)
    if inner is None or list(list_sources(inner)) != [node] or inner.args.get("joins"):
        return False
    around = inner.parent_select
    while around is not None:
        where = around.args.get("where")
        for part in split_conjuncts(None if where is None else where.this):
            if any(_reads(listed.query, inner) for clause in find_lists(part) or () for listed in clause):
                return True
        around = around.parent_select
    return False


def _reads(listed: exp.Select, inner: exp.Select) -> bool:
    return any(one is inner for one in list_selects(listed))
