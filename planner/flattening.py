"""Statements as people and tools write them, brought to the form of a question before anything is cut out of them.

Three things mean the same in another place, and are moved there in the statement's text:

- what a subquery or WITH query that only filters and projects says of a private table, into the query that reads it;
- a threshold in the WHERE around a grouped subquery, into its HAVING (`planner.outer_thresholds`);
- a subquery over a public table after IN, into a list of its pinned values (`planner.public_lists`).

    SELECT c FROM (SELECT country AS c FROM sales WHERE gift) v GROUP BY c HAVING count(*) > 5
    SELECT v.country AS c FROM sales v WHERE gift GROUP BY v.country HAVING count(*) > 5

What cannot be moved stays, and is refused or answered as it stands.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlglot import exp

from planner.catalog import Catalog, Table
from planner.errors import KeyholeError
from planner.lexer import Token
from planner.lexer import tokens as lex
from planner.origin import Change, Origin
from planner.outer_thresholds import lifted
from planner.projecting import merged
from planner.public_lists import listed
from planner.syntax import parse

MOST_STEPS = 48
Private: TypeAlias = Sequence[tuple[exp.Table, Table]]
_Step: TypeAlias = Callable[[exp.Select, exp.Table, Table, str, tuple[Token, ...], Catalog], tuple[Change, ...]]
_STEPS: tuple[_Step, ...] = (listed, merged, lifted)


def flattened(text: str, catalog: Catalog, private: Callable[[exp.Expr], Private]) -> Origin | None:
    """The statement in which all is moved that can be, or None if nothing is.

    Guarantee: PostgreSQL gives the same rows for both.

    Parameters:
        private: finds the private tables of a tree.

    Raises KH101 where a size is shown around a question.
    """
    origin = Origin(text)
    for _ in range(MOST_STEPS):
        found = private(parse(origin.text))
        tokens = lex(origin.text)
        try:
            changes = next(
                (one for node, table in found if (one := _changes(node, table, origin.text, tokens, catalog))), ()
            )
        except KeyholeError as error:
            raise origin.placed(error) from None
        if not changes:
            break
        origin = origin.edited(changes)
    return origin if origin.edits else None


def _changes(
    node: exp.Table, table: Table, text: str, tokens: tuple[Token, ...], catalog: Catalog
) -> tuple[Change, ...]:
    source = node.parent
    if not isinstance(source, exp.From) or not isinstance(source.parent, exp.Select):
        return ()
    for step in _STEPS:
        changes = step(source.parent, node, table, text, tokens, catalog)
        if changes:
            return changes
    return ()
