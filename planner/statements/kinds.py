"""The kinds of statement that the allow-list knows, as values."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.extract.outer_query import Asking
from planner.scope.embedded import EmbeddedQuestion, EmbeddedRelation

ExplainFormat: TypeAlias = Literal["text", "verbose", "json"]
OWN_NAMES = "keyhole."  # how the names of the statements and cursors begin that Keyhole keeps for itself


@dataclass(frozen=True, slots=True)
class PassThrough:
    """A statement that the shadow answers unchanged. `kind` is its label in logs and metrics."""

    kind: str


@dataclass(frozen=True, slots=True)
class KeyholeSetting:
    """SET [LOCAL] keyhole.name = value, already validated. The shadow stores it. A value of None is DEFAULT."""

    name: str
    value_text: str | None
    is_local: bool


@dataclass(frozen=True, slots=True)
class ExplainStatement:
    """EXPLAIN of questions, or of a monitor's relation. Keyhole answers it alone, and it costs nothing.

    `format` is "verbose" for EXPLAIN VERBOSE as text. `shadow_text` is the text that the shadow reads instead: see
    `Asking`.
    """

    questions: tuple[EmbeddedQuestion | EmbeddedRelation, ...]
    format: ExplainFormat
    shadow_text: str = ""


@dataclass(frozen=True, slots=True)
class CopiedQuery:
    """The query of a COPY, with blanks in place of the statement's text before it.

    `suffix` is the text after the query, which starts at `suffix_at`: the closing parenthesis, TO STDOUT and the
    options. `shadow_text` is the text that the shadow reads in the query's place, as in `Asking`.
    """

    query: str
    suffix: str
    suffix_at: int
    shadow_text: str = ""


@dataclass(frozen=True, slots=True)
class CopyStatement:
    """COPY TO STDOUT of a query for which Keyhole answers at least a part."""

    copied_query: CopiedQuery


@dataclass(frozen=True, slots=True)
class PrepareStatement:
    """PREPARE of a statement for which Keyhole answers at least a part. The shadow stores it.

    `text` is that statement, with its parameters as `$n`, and `name` the name under which it is stored. The shadow may
    prepare it, since preparing reads nothing. Running it there would fail, because the analyst's role may not read.
    """

    text: str
    name: str


@dataclass(frozen=True, slots=True)
class ExecuteStatement:
    """EXECUTE of a statement stored under `name`, which only the shadow knows, with `count` arguments.

    `arguments` is the text after the name, which starts at `arguments_at`: the arguments in their parentheses, or
    nothing. `explain` is the EXPLAIN with its options before it, or empty.
    """

    name: str
    arguments: str
    arguments_at: int
    count: int
    explain: str = ""


Statement: TypeAlias = (
    PassThrough | KeyholeSetting | Asking | ExplainStatement | CopyStatement | PrepareStatement | ExecuteStatement
)
