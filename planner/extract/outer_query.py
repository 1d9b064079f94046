"""The outer query: the analyst's own text with each question replaced by a relation of typed array parameters.

The text around a question is kept to the letter, so PostgreSQL reads it as the analyst wrote it.
"""

from dataclasses import dataclass

from planner.parser.lexer import quote_identifier
from planner.scope.embedded import EmbeddedQuestion, EmbeddedRelation


@dataclass(frozen=True, slots=True)
class Asking:
    """A statement that contains questions for Keyhole to answer.

    `outer` is its text: strings, and indices into `embedded` at each place of a question's relation. If it
    `is_constantly_empty`, its result does not depend on any answer, as with LIMIT 0 or WHERE false. Then the relations
    may stay empty, and nothing is asked. `first_statements` are statements without effect that must succeed in the
    session first. `rehearsal` are statements that undo this one after a run over no keys. Such a run is free, and
    shows whether the statement would fail for another reason than its question. `shadow_text` is the statement for
    PostgreSQL, if PostgreSQL finds a name ambiguous that means one column to Keyhole.
    """

    embedded: tuple[EmbeddedQuestion | EmbeddedRelation, ...]
    outer: tuple[str | int, ...]
    is_constantly_empty: bool
    rehearsal: tuple[str, ...] = ()
    first_statements: tuple[str, ...] = ()
    shadow_text: str = ""

    @property
    def questions(self) -> tuple[EmbeddedQuestion, ...]:
        """The questions among `embedded`."""
        return tuple(part for part in self.embedded if isinstance(part, EmbeddedQuestion))

    @property
    def monitors(self) -> tuple[EmbeddedRelation, ...]:
        """The monitors' relations among `embedded`."""
        return tuple(
            one for one in self.embedded if isinstance(one, EmbeddedRelation) and one.monitor_position is not None
        )


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """One text[] parameter `$number`: a column of an embedded relation, which is cast to the type `declared`."""

    embedded: int
    column: int
    declared: str
    number: int


@dataclass(frozen=True, slots=True)
class OuterSql:
    """SQL for the shadow, and the arrays that are bound to it after the analyst's own parameters."""

    sql: str
    arrays: tuple[ArrayParameter, ...]


def write_outer_sql(statement: Asking, *, first_parameter: int) -> OuterSql:
    """Return the SQL for the shadow, and the arrays to bind as parameters from `first_parameter` on."""
    relations: list[str] = []
    arrays: list[ArrayParameter] = []
    for index, embedded in enumerate(statement.embedded):
        own = tuple(
            ArrayParameter(
                embedded=index, column=column, declared=declared, number=first_parameter + len(arrays) + column
            )
            for column, (_, declared) in enumerate(embedded.columns)
        )
        relations.append(_write_relation(embedded, own))
        arrays.extend(own)
    sql = "".join(part if isinstance(part, str) else relations[part] for part in statement.outer)
    return OuterSql(sql=sql, arrays=tuple(arrays))


def _write_relation(embedded: EmbeddedQuestion | EmbeddedRelation, arrays: tuple[ArrayParameter, ...]) -> str:
    selected = ", ".join(
        f"u.k{array.column + 1}::{array.declared} AS {quote_identifier(name)}"
        for array, (name, _) in zip(arrays, embedded.columns, strict=True)
    )
    given = ", ".join(f"${array.number}::text[]" for array in arrays)
    names = ", ".join(f"k{array.column + 1}" for array in arrays)
    return f"(SELECT {selected} FROM unnest({given}) AS u({names}))"
