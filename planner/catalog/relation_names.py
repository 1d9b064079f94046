"""The identity of a policy's table in the source, whatever spelling the owner used."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key of the source: the values of `columns` equal those of `reached_columns` in a row of `relation`.

    `relation` is the first name of that relation's identity.
    """

    columns: tuple[str, ...]
    relation: str
    reached_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelationIdentity:
    """A relation as the source's own catalog knows it.

    All of `names` mean this one relation. The first name stays the same if the data or the database are replaced (a
    table's schema and name, a file's path). The other names stay the same if the relation is renamed. `bases` are the
    stored tables and files whose rows it shows, directly, through views or by its parts. Two relations with a common
    base show rows of the same people. `is_view`: the rows are not its own. `is_join`: the rows combine several
    relations. `unique` are columns that a constraint or an index of the source keeps unique, each by itself; `keys`
    are sets of columns that are unique together. `foreign_keys` are the source's foreign keys. `hides_rows`: policies
    of row-level security decide which rows the reader sees. `replay_delay` is the least delay of a standby behind its
    server, such as "1h" or "0"; None if the source is no standby. `is_foreign`: some of its rows are in another server
    or a file. `virtual_columns` are computed when they are read. `can_check_keys`: a statement can ask the source for
    its keys as it reads the rows.
    """

    names: tuple[str, ...]
    bases: frozenset[str]
    is_view: bool
    is_join: bool
    unique: frozenset[str] = frozenset()
    hides_rows: bool = False
    replay_delay: str | None = None
    is_foreign: bool = False
    virtual_columns: tuple[str, ...] = ()
    keys: frozenset[frozenset[str]] = frozenset()
    foreign_keys: tuple[ForeignKey, ...] = ()
    can_check_keys: bool = False

    @property
    def name(self) -> str:
        """The first name, which pins, refusals and warnings use."""
        return self.names[0]

    def has_key(self, columns: Iterable[str]) -> bool:
        """Return True if the source keeps some of these columns unique together: equal values lead to one row."""
        given = frozenset(columns)
        return bool(self.unique & given) or any(key <= given for key in self.keys)
