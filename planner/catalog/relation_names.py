"""The identity of a policy's table in the source, however the owner has spelled it."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A constraint of the source: the values of `columns` are those of `reached` in a row of `relation`.

    The relation's name is the one that its identity begins with.
    """

    columns: tuple[str, ...]
    relation: str
    reached: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationIdentity:
    """A relation as the source's own catalog knows it.

    `names` all lead to this one relation: first the one that stays when its data or the database are replaced (a
    table's schema and name, a file's place), then what outlives that. `bases` are the stored tables and files whose
    rows it shows, by itself, through views or by its parts: two relations that have one in common show rows of the
    same people. `is_view`: they are not its own; `joins`: they are put together from several relations.
    `unique`: the columns that a constraint or an index of the source keeps unique, each by itself; `keys`: those that
    it keeps unique together; `foreign_keys`: where its constraints say that columns lead.
    `hides_rows`: policies of row-level security decide which of its rows the reader sees. `replay_delay`: how much
    later than its server a standby replays changes at least, such as "1h" or "0"; None if the source is no standby.
    `is_foreign`: some of its rows are another server's or a file's. `virtual`: its columns that are computed when they
    are read. `holds_keys`: a statement can ask the source for its keys as it reads the rows.
    """

    names: tuple[str, ...]
    bases: frozenset[str]
    is_view: bool
    joins: bool
    unique: frozenset[str] = frozenset()
    hides_rows: bool = False
    replay_delay: str | None = None
    is_foreign: bool = False
    virtual: tuple[str, ...] = ()
    keys: frozenset[frozenset[str]] = frozenset()
    foreign_keys: tuple[ForeignKey, ...] = ()
    holds_keys: bool = False

    @property
    def name(self) -> str:
        """The name that pins, refusals and warnings have."""
        return self.names[0]

    def has_key(self, columns: Iterable[str]) -> bool:
        """Return True if the source keeps some of these columns unique together: equal values lead to one row."""
        given = frozenset(columns)
        return bool(self.unique & given) or any(key <= given for key in self.keys)
