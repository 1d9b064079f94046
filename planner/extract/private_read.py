"""A SELECT that reads a private table: as rules find it in a query, and parsed as a question."""

from dataclasses import dataclass

from sqlglot import exp

from planner.catalog.catalog import Catalog, Table
from planner.parser.clauses import Clauses
from planner.parser.lexer import Token
from planner.parser.tree import ParsedQuery
from planner.scope.embedded import UnitListQuery, UnitQuery, UnitValuesQuery
from planner.scope.name_resolution import Scope
from planner.scorecard.number_columns import NO_NUMBERS, Numbers
from planner.scorecard.ranked import RankedItem
from planner.scorecard.shown import ShownPredicate, replace_with_constants


@dataclass(frozen=True, slots=True)
class PrivateRead:
    """A SELECT whose FROM names the private `table` at `node`, in a parsed query."""

    query: ParsedQuery
    select: exp.Select
    node: exp.Table
    table: Table
    catalog: Catalog

    @property
    def text(self) -> str:
        """The text of the query."""
        return self.query.text

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the query."""
        return self.query.tokens


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A question in its statement, read by clauses.

    `with_text` is the WITH clause that it needs if it is planned without its statement. `predicates` are the
    thresholds that it shows and sorts by. `ranked` is the expression that ranks its groups. `numbers` are the
    aggregates of its select list and ORDER BY. The answer has NULL, a threshold or a band in their place. `lists` are
    the clauses of lists of privacy units in WHERE. `value_queries` are the subqueries with values of units that it
    reads.
    """

    node: exp.Table
    select: exp.Select
    scope: Scope
    text: str
    tokens: tuple[Token, ...]
    clauses: Clauses
    with_text: str = ""
    per_unit: UnitQuery | None = None
    predicates: tuple[ShownPredicate, ...] = ()
    ranked: RankedItem | None = None
    numbers: Numbers = NO_NUMBERS
    catalog: Catalog | None = None
    lists: tuple[tuple[UnitListQuery, ...], ...] = ()
    value_queries: tuple[UnitValuesQuery, ...] = ()

    @property
    def has_thresholds(self) -> bool:
        """Return True if the question has thresholds, so it does more than list the public values of its keys."""
        return (
            bool(self.predicates or self.numbers.band_predicates)
            or self.ranked is not None
            or self.select.args.get("having") is not None
        )

    @property
    def keys_only(self) -> exp.Select:
        """The SELECT with constants in the place of every predicate, number and ranking expression.

        Only its keys remain.
        """
        return replace_with_constants(self.select, self.parts_without_keys)

    @property
    def parts_without_keys(self) -> tuple[exp.Expr, ...]:
        """The parts of the SELECT that show no key: predicates, numbers, and expressions of its ranking."""
        ranked = () if self.ranked is None else self.ranked.private_parts
        return (*(shown.node for shown in self.predicates), *ranked, *self.numbers.nodes)
