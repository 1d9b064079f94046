"""A grouped WITH query that scalar subqueries alone read, written as a subquery where it is read.

    WITH may AS (SELECT ward, count(*) AS n FROM visits WHERE month = '2025-05-01' GROUP BY ward)
    SELECT ward FROM visits GROUP BY ward HAVING count(*) > (SELECT avg(n) FROM may)

    SELECT ward FROM visits GROUP BY ward HAVING count(*) > (
      SELECT avg(n) FROM (SELECT ward, count(*) AS n FROM visits WHERE month = '2025-05-01' GROUP BY ward) may)

PostgreSQL returns the same for both, if no WITH query has the name of a table that is read. A scalar subquery of totals
is then one over rows of a question's own table.
"""

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.relations import list_private_tables
from planner.extract.subqueries.pull_up_subqueries import remove_cte
from planner.extract.subqueries.same_groups import find_source, is_plain
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import read_name

_PLAIN = frozenset(("expressions", "from_", "where", "group"))
_TOTALS = frozenset(("expressions", "from_"))


def inline_grouped_queries(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that copy a grouped WITH query into the scalar subqueries that read it.

    Return none for other queries. Return none for others.
    """
    select, tokens = read.select, read.tokens
    if not isinstance(select.parent, exp.CTE) or select.args.get("group") is None:
        return ()
    if any(value for key, value in select.args.items() if key not in _PLAIN) or not is_plain(read.node):
        return ()
    if find_source(select) is not read.node or len(list(select.find_all(exp.Query))) > 1:
        return ()
    try:
        place = find_clauses(read.node, tokens)
        readers = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    except KeyholeError:
        return ()
    if not readers or not all(map(_is_total, readers)):
        return ()
    named = {read_name(one.args["alias"].this) for one in read.query.tree.find_all(exp.CTE)}
    if read_name(read.node.this) in named or len(list(list_private_tables(read.query, read.catalog))) < 2:
        return ()
    written = read.text[tokens[place.select].start : tokens[place.end - 1].end]
    changes: list[Edit] = []
    for reader in readers:
        name = "" if reader.is_named else f" {quote_identifier(reader.alias)}"
        start, end = tokens[reader.first].start, tokens[reader.last].end
        changes.append(Edit.from_text(start, end, f"({written}){name}", tokens[place.select].start))
    return (*changes, remove_cte(select.parent, place, tokens))


def _is_total(reader: Reader) -> bool:
    """Return True for a scalar subquery of aggregates of what it reads, and of nothing else."""
    select = reader.select
    if not reader.is_only_source or any(value for key, value in select.args.items() if key not in _TOTALS):
        return False
    around = select.parent
    if not isinstance(around, exp.Subquery) or isinstance(around.parent, exp.From | exp.Join):
        return False
    return len(select.expressions) == 1 and contains_aggregate(select.expressions[0])
