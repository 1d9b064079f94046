"""Names for values that a rule moves or joins: what EXPLAIN and refusals call them, which name what stands in the text.

max(bought_on) - min(bought_on) AS long ...
max(bought_on) AS "max(bought_on)", min(bought_on) AS "min(bought_on)" ...
"""

from collections.abc import Iterable, Sequence

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES
from planner.extract.private_read import PrivateRead
from planner.parser.lexer import quote_identifier
from planner.parser.tree import write_node

_LONGEST = 40  # characters: PostgreSQL keeps 63 bytes of a name, and a number may follow


def name_values(texts: Sequence[str], read: PrivateRead) -> list[str]:
    """Return an unused name for each value, made from its text before OVER."""
    columns = (column.name for table in read.catalog.tables for column in table.columns)
    taken, names = {*columns, *_list_used_names(read)}, []
    for text in texts:
        shown = " ".join(text.split(" OVER ")[0].split()).encode("ascii", "replace").decode()
        names.append(find_free_name(shown[:_LONGEST].strip(), taken))
        taken.add(names[-1])
    return names


def name_subqueries(tables: Sequence[str], read: PrivateRead) -> list[str]:
    """Return an alias for each subquery of a unit's own rows, made from the name of the table that it reads."""
    taken, names = {*(table.name for table in read.catalog.tables), *_list_used_names(read)}, []
    for table in tables:
        names.append(find_free_name(f"own_{table.encode('ascii', 'replace').decode()[:_LONGEST]}", taken))
        taken.add(names[-1])
    return names


def write_values(
    node: exp.Expr, alias: str, read: PrivateRead, *, counts_nothing: bool = False
) -> tuple[str, list[str]]:
    """Return an expression of aggregates over the values of a subquery, and these values with their names.

    Parameters:
        counts_nothing: a count is 0 where the subquery has no row.
    """
    found = (one for one in node.walk() if isinstance(one, AGGREGATES) and not _is_inside(one, node))
    texts = list(dict.fromkeys(map(write_node, found)))
    names = dict(zip(texts, name_values(texts, read), strict=True))

    def replace_aggregate(inner: exp.Expr) -> exp.Expr:
        if not isinstance(inner, AGGREGATES):
            return inner
        called = exp.to_identifier(names[write_node(inner)], quoted=True)
        column = exp.column(called, exp.to_identifier(alias, quoted=True))
        counted = inner.this if isinstance(inner, exp.Filter) else inner
        if not counts_nothing or not isinstance(counted, exp.Count):
            return column
        return exp.Coalesce(this=column, expressions=[exp.Literal.number(0)])

    asked = write_node(node.copy().transform(replace_aggregate, copy=False))
    return asked, [f"{text} AS {quote_identifier(called)}" for text, called in names.items()]


def _is_inside(node: exp.Expr, root: exp.Expr) -> bool:
    """Return True if a node is inside an aggregate that is `root` or inside `root`."""
    while node is not root and node.parent is not None:
        node = node.parent
        if isinstance(node, AGGREGATES):
            return True
    return False


def _list_used_names(read: PrivateRead) -> Iterable[str]:
    return (token.value for token in read.tokens if token.is_name)


def find_free_name(wanted: str, taken: set[str]) -> str:
    """Return an unused name: the wanted one, or the wanted one with the first free number from 2 on."""
    if wanted not in taken:
        return wanted
    return next(made for n in range(2, len(taken) + 3) if (made := f"{wanted} {n}") not in taken)
