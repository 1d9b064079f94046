"""A SELECT that reads a private table, where it stands in a query: as every rule looks at it, and as a question."""

from dataclasses import dataclass

from sqlglot import exp

from planner.catalog.catalog import Catalog, Table
from planner.parser.clauses import Clauses
from planner.parser.lexer import Token
from planner.parser.tree import Parsed
from planner.scope.embedded import UnitListQuery, UnitQuery, UnitValuesQuery
from planner.scope.name_resolution import Scope
from planner.scorecard.number_columns import NO_NUMBERS, Numbers
from planner.scorecard.ranked import RankedItem
from planner.scorecard.shown import ShownPredicate, with_constants


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


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question where it stands; `before` is the WITH clause without which it does not stand alone.

    `predicates` are what it shows and sorts by beside its keys, `ranked` is the value that they are ranked by,
    `numbers` are sizes that it shows and is not told, `lists` those of privacy units that its WHERE asks for, one of
    each, and `own` the subqueries whose values it reads.
    """

    node: exp.Table
    select: exp.Select
    scope: Scope
    text: str
    tokens: tuple[Token, ...]
    clauses: Clauses
    before: str = ""
    per_unit: UnitQuery | None = None
    predicates: tuple[ShownPredicate, ...] = ()
    ranked: RankedItem | None = None
    numbers: Numbers = NO_NUMBERS
    catalog: Catalog | None = None
    lists: tuple[tuple[UnitListQuery, ...], ...] = ()
    own: tuple[UnitValuesQuery, ...] = ()

    @property
    def has_thresholds(self) -> bool:
        """Return True if it asks something of its groups, beyond the public values of its keys."""
        return (
            bool(self.predicates or self.numbers.asked)
            or self.ranked is not None
            or self.select.args.get("having") is not None
        )

    @property
    def shown(self) -> exp.Select:
        """The SELECT with a constant in the place of every predicate and number and of what reads its ranking.

        Only keys are left.
        """
        return with_constants(self.select, self.hidden)

    @property
    def hidden(self) -> tuple[exp.Expr, ...]:
        """Return the parts of the SELECT that show no key: predicates, numbers and what reads its ranking."""
        ranked = () if self.ranked is None else self.ranked.private
        return (*(shown.node for shown in self.predicates), *ranked, *self.numbers.nodes)
