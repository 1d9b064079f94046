"""A query that rules rewrite: it is parsed again after every edit, and keeps the way back to the written text."""

from collections.abc import Iterable
from dataclasses import dataclass

from planner.parser.edits import Edit, Origin
from planner.parser.lexer import reread_tokens
from planner.parser.tree import ParsedQuery, parse


@dataclass(frozen=True, slots=True)
class EditedQuery:
    """A query as it was last parsed, and the edits that led to its text from the original one."""

    query: ParsedQuery
    origin: Origin

    def edit(self, changes: Iterable[Edit], *, rule: str) -> "EditedQuery":
        """Return the query after the edits of a rule.

        Raise KH106 if they overlap, KH100 if the new text cannot be parsed.
        """
        origin = self.origin.edit(changes, rule=rule)
        tokens = reread_tokens(origin.text, origin.kept_spans, self.query.tokens)
        return EditedQuery(parse(origin.text, tokens), origin)
