"""A SELECT that reads a private table, where it stands in a query: what every rewriting rule looks at."""

from dataclasses import dataclass

from sqlglot import exp

from planner.catalog.model import Catalog, Table
from planner.parser.lexer import Token
from planner.parser.tree import Parsed


@dataclass(frozen=True, slots=True)
class PrivateRead:
    """A SELECT whose FROM names `table` at `node`, in a query that was read."""

    query: Parsed
    select: exp.Select
    node: exp.Table
    table: Table
    catalog: Catalog

    @property
    def text(self) -> str:
        """The query's text."""
        return self.query.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The query's tokens."""
        return self.query.tokens
