"""Statements as people and tools write them, brought to the form of a question before anything is cut out of them.

Three things mean the same in another place, and are moved there in the statement's text:

- what a subquery or WITH query that only filters and projects says of a private table, into the query that reads it;
- a threshold in the WHERE around a grouped subquery, into its HAVING (`planner.extract.push_down_thresholds`);
- a subquery over a public table after IN, into a list of its pinned values (`planner.extract.inline_public_lists`).

    SELECT c FROM (SELECT country AS c FROM sales WHERE gift) v GROUP BY c HAVING count(*) > 5
    SELECT v.country AS c FROM sales v WHERE gift GROUP BY v.country HAVING count(*) > 5

What cannot be moved stays, and is refused or answered as it stands. So does what would make the statement many times as
long: a column of a subquery may be read twice in the next one, and so on.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.model import Catalog, Table
from planner.errors import KeyholeError
from planner.extract.inline_public_lists import listed
from planner.extract.pull_up_subqueries import merged
from planner.extract.push_down_thresholds import lifted
from planner.parser.lexer import Token
from planner.parser.lexer import tokens as lex
from planner.parser.source_map import MOST_ADDED, Change, Origin, apart, growth
from planner.parser.tree import parse

MOST_STEPS = 48  # each reads the statement anew; what is nested deeper stays as it stands
MOST_TIMES = 8  # as long as it was may a statement become, since a column may be read twice at every level
MOST_READ = 1_000_000  # characters over all steps, each of which reads all: without it time grows with the square
Private: TypeAlias = Sequence[tuple[exp.Table, Table]]
_Step: TypeAlias = Callable[[exp.Select, exp.Table, Table, str, tuple[Token, ...], Catalog], tuple[Change, ...]]
_STEPS: tuple[_Step, ...] = (merged, lifted)


def flattened(text: str, catalog: Catalog, private: Callable[[exp.Expr], Private]) -> Origin | None:
    """The statement in which all is moved that can be, or None if nothing is.

    Guarantee: PostgreSQL gives the same rows for both.

    Parameters:
        private: finds the private tables of a tree.

    Raises KH101 where a size is shown around a question.
    """
    origin = Origin(text)
    room, reading = min(MOST_TIMES * len(text), MOST_ADDED), MOST_READ
    for _ in range(MOST_STEPS):
        reading -= len(origin.text)
        if reading < 0:
            break
        found = private(parse(origin.text))
        tokens = lex(origin.text)
        try:
            changes, grown = next(
                (
                    one
                    for node, table in found
                    if (one := _changes(node, table, origin.text, tokens, catalog, room=room))[0]
                ),
                ((), 0),
            )
        except KeyholeError as error:
            raise origin.placed(error) from None
        if not changes:
            break
        room -= grown
        origin = origin.edited(changes)
    return origin if origin.edits else None


def _changes(
    node: exp.Table, table: Table, text: str, tokens: tuple[Token, ...], catalog: Catalog, *, room: int
) -> tuple[tuple[Change, ...], int]:
    """The changes of the first step that has some, and by how much they repeat what the statement says."""
    source = node.parent
    if not isinstance(source, exp.From) or not isinstance(source.parent, exp.Select):
        return (), 0
    changes = listed(source.parent, node, table, text, tokens, catalog)
    if changes and apart(changes):
        return changes, 0
    for step in _STEPS:
        changes = step(source.parent, node, table, text, tokens, catalog)
        if changes and apart(changes) and (grown := max(growth(changes), 0)) <= room:
            return changes, grown
    return (), 0
