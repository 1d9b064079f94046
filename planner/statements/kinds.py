"""The kinds of statement that the allow-list knows, as values."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.extract.outer_query import Asking
from planner.scope.embedded import Embedded, EmbeddedVirtual

ExplainFormat: TypeAlias = Literal["text", "verbose", "json"]
OWN_NAMES = "keyhole."  # how the names of the statements and cursors begin that Keyhole keeps for itself


@dataclass(frozen=True, slots=True)
class PassThrough:
    """The shadow answers it as it stands. `kind` is for logs and metrics."""

    kind: str


@dataclass(frozen=True, slots=True)
class SetKeyhole:
    """SET [LOCAL] keyhole.name = value, already validated; the shadow keeps it. None is DEFAULT."""

    name: str
    value_text: str | None
    local: bool


@dataclass(frozen=True, slots=True)
class Explaining:
    """EXPLAIN of questions, or of a monitor's relation: costs nothing, answered by Keyhole alone.

    `format` is "verbose" for EXPLAIN VERBOSE as text. `spelled` is what the shadow reads in the statement's place, as
    of `Asking`.
    """

    questions: tuple[Embedded | EmbeddedVirtual, ...]
    format: ExplainFormat
    spelled: str = ""


@dataclass(frozen=True, slots=True)
class Copied:
    """The query of a COPY, with blanks before it where the statement has other text.

    `behind` is the text behind it, at `behind_at`: the parenthesis that closes, TO STDOUT and the options. `spelled` is
    what the shadow reads in the query's place, as of `Asking`.
    """

    query: str
    behind: str
    behind_at: int
    spelled: str = ""


@dataclass(frozen=True, slots=True)
class Copying:
    """COPY to the client of a query with something for Keyhole to answer."""

    copied: Copied


@dataclass(frozen=True, slots=True)
class Preparing:
    """PREPARE of a statement with something for Keyhole to answer, which the shadow keeps.

    `text` is that statement, with its parameters as `$n`; `name` is what it is kept under. The shadow may prepare it,
    since it reads nothing; running it would fail there, for the analyst's role may not.
    """

    text: str
    name: str


@dataclass(frozen=True, slots=True)
class Executing:
    """EXECUTE of what was prepared under `name`, which only the shadow knows, with `count` arguments.

    `given` is the text after the name, which starts at `given_at`: the arguments in their parentheses, or nothing.
    `explain` is the EXPLAIN with its options before it, or empty.
    """

    name: str
    given: str
    given_at: int
    count: int
    explain: str = ""


Statement: TypeAlias = PassThrough | SetKeyhole | Asking | Explaining | Copying | Preparing | Executing
