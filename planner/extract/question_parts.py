"""A question where it stands in its statement: its tree, its tokens and what its names refer to."""

from dataclasses import dataclass

from sqlglot import exp

from planner.parser.clauses import Clauses
from planner.parser.lexer import Token
from planner.scope.embedded import UnitQuery
from planner.scope.names import Scope


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """A question where it stands; `before` is the WITH clause without which it does not stand alone."""

    node: exp.Table
    select: exp.Select
    scope: Scope
    text: str
    tokens: tuple[Token, ...]
    clauses: Clauses
    before: str = ""
    per_unit: UnitQuery | None = None
