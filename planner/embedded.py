"""What stands inside a statement for Keyhole to answer: questions, and the relations under `keyhole.`."""

from dataclasses import dataclass

from planner.catalog import Column, Table


@dataclass(frozen=True, slots=True)
class Embedded:
    """A question inside a statement: SELECT ... FROM ... HAVING, without what orders or cuts its answer.

    `offset` is where `text` starts in the statement, 0-based. `alias` is the name that qualifies the table's columns.
    `stored` is the stored question's name if the text is the owner's.
    """

    text: str
    offset: int
    table: Table
    alias: str
    keys: tuple[Column, ...]
    stored: str | None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Name and declared type of each column of the answer, in the key space's order."""
        return tuple((key.name, key.declared) for key in self.keys)


@dataclass(frozen=True, slots=True)
class EmbeddedVirtual:
    """A relation under `keyhole.` inside a statement; Keyhole supplies its rows at run time."""

    name: str
    columns: tuple[tuple[str, str], ...]
