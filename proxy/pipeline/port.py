"""What a session needs from Keyhole to answer a question; whatever is no question never comes here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from planner.catalog.model import Value
from planner.statements.classify import Executing

_WORD = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Part:
    """One statement of a text. `offset` is where it starts, in characters; `intercepted`: the shadow cannot answer.

    `prepares`: the name under which the shadow keeps a question, whose text must therefore be sent alone. `executing`:
    only what the shadow holds under a name tells who answers. `beforehand` are statements of no effect that must
    succeed in the shadow before anything else is done.
    """

    text: str
    offset: int
    intercepted: bool
    prepares: str | None = None
    executing: Executing | None = None
    beforehand: tuple[str, ...] = ()

    @property
    def first_word(self) -> str:
        """The word that it begins with, in lower case."""
        found = _WORD.match(self.text)
        return "" if found is None else found.group().lower()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A planned statement: what the shadow will run, and what `Asker.release` needs.

    `sql` takes the client's parameters under their own numbers, then `arrays` parameters of type text[]. Its columns
    have the names and types of the original's. `tag` replaces the shadow's command tag (EXPLAIN). `rehearsal`, if
    not empty, must run in the shadow before anything is released, after `sql` over no keys.
    """

    sql: str
    arrays: int
    tag: str | None
    plan: object
    rehearsal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """The arrays for `Prepared.sql`, in order, and the sentences a client shows beside the rows."""

    arrays: tuple[tuple[str | None, ...], ...]
    notices: tuple[str, ...]


class Asker(Protocol):
    """The pipeline as sessions use it. Every method may be called from a worker thread and raises KeyholeError."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The `keyhole.*` settings and their defaults, as text."""

    def read(self, sql: str) -> tuple[Part, ...]:
        """Split and classify; positions of refusals count in `sql`. Fast, pure, called on the event loop."""

    def held(self, sql: str, *, in_sql: bool) -> str | None:
        """What Keyhole answers of a statement that the shadow holds, as a statement; None if the shadow does. Pure.

        `in_sql`: it was prepared by PREPARE, which is part of the text."""

    def prepare(
        self,
        statement: str,
        *,
        settings: Mapping[str, str | None],
        parameters: Mapping[int, Value | None],
        analyst: str,
        utc: bool,
    ) -> Prepared:
        """Plan one intercepted statement; nothing is spent. `parameters` are numbered from 1, `utc` says that the
        session's TimeZone is UTC."""

    def release(self, prepared: Prepared, *, withdrawn: Event) -> Released:
        """Reserve, run, decide, commit. Blocks. Reserves nothing more once `withdrawn` is set, and raises KH409."""
