"""The interface of a source: schema, public rows, and the true aggregates of a rewritten question."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Protocol, TypeAlias, TypeVar

from mechanisms.formula import Integers
from planner.catalog.catalog import Value
from planner.catalog.key_space import KeySpace
from planner.catalog.relation_names import RelationIdentity
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.policy.compile import SourceColumn
from planner.question.plan import ReadRelation, Rewritten
from proxy.sources.failures import explain_failure
from proxy.sources.read_types import MissingColumn
from proxy.sources.source_refusals import SourceFailed, report_unknown_relation

Row = tuple[Value | None, ...]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class TrueAggregates:
    """The exact values of a question's functionals, never printed or logged.

    `values` is an int64 array of shape (functionals, keys), with keys in the key space's row-major order.
    """

    values: Integers = field(repr=False)

    def __reduce__(self) -> str:
        raise TypeError("true aggregates stay in the process that asked for them")


Counts: TypeAlias = tuple[tuple[int, ...], ...]
"""How many units lie beyond each candidate, by statistic."""


class Source(Protocol):
    """A database with private data, opened for reading. Several threads may call its methods at once."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect in which questions are rewritten for this source."""

    def list_relations(self) -> tuple[str, ...]:
        """Return the tables and views that the database role may select from, each as SQL text."""

    def hold_open(self) -> AbstractContextManager[None]:
        """Keep the database file open during the block, if the source opens it only while reading.

        Raise KH008 if the source does not answer.
        """

    def read_schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return a relation's columns, from the catalog alone.

        Raise KH006 if there is no such relation, and KH008 if no server answers.
        """

    def identify(self, relation: str) -> RelationIdentity:
        """Return the stored tables and files that a relation reads, from the source's catalog.

        The result is the same for every spelling of the relation. Raise KH006 if the relation cannot be read, and
        KH008 if the source does not answer.
        """

    def read_state(self, relation: str) -> str:
        """Return a text that changes whenever the relation's data changes.

        The text may also change if the data stays the same.

        No row is read. The text depends on private data, and is for the owner alone. Raise KH006 if the relation
        cannot be read, and KH008 if the source does not answer.
        """

    def read_files(self, relation: str) -> str | None:
        """Return the names, sizes and times of the files that hold the relation's rows, as text.

        Return None for a database server, which manages its own files. If a file was replaced while open, describe the
        open file; `read_state` describes the new one. Raise KH006 if the relation cannot be read, and KH008 if the
        source does not answer.
        """

    def reopen(self) -> None:
        """Open the current database file, if the open one was replaced.

        A running question finishes on the old file. Raise KH008 if the source does not answer.
        """

    def estimate_rows(self, relation: str) -> int:
        """Return the engine's estimate of the relation's number of rows. No row is read.

        The estimate depends on private data, and is for the owner alone. Raise KH006 if the relation cannot be read,
        and KH008 if the source does not answer.
        """

    def read_table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> tuple[Row, ...]:
        """Return the rows of a public table.

        If there are more than `most`, return `most` + 1 rows and read no further. Raise KH006 with a column's name if
        one of its values has a type that the catalog does not know. Raise KH008 if no server answers.
        """

    def read_for_owner(self, relation: str, sql: str) -> tuple[Row, ...]:
        """Return the exact, unprotected result of a statement over a relation, for the owner alone.

        `keyhole check --measure` shows it. Raise KH006 for any failure, and KH008.
        """

    def take_turn(self, *, analyst: str, timeout_ms: int) -> AbstractContextManager[None]:
        """Hold a turn at the source during the block, so that reading can start at once. No data is read yet.

        A question reserves its budget only within its turn. Turns are shared fairly among analysts.

        Raises:
            KeyholeError: KH501 if the source does not answer or too many questions are waiting. Nothing was spent.
        """

    def read_aggregates(
        self, rewritten: Rewritten, keys: KeySpace, *, functionals: int, timeout_ms: int, version: str | None = None
    ) -> TrueAggregates:
        """Return the exact values of a question's functionals for every key.

        Given a public data `version`, the source may keep bounded rows for later questions on that version.

        Raises:
            KeyholeError: KH501, with the same text for every failure and for the timeout.
        """

    def read_counts(self, sql: str, *, relations: Sequence[ReadRelation], timeout_ms: int) -> Counts:
        """Return the counts that a statement over these relations selects, for a release whose loss is charged.

        Raises:
            KeyholeError: KH501, as for `read_aggregates`.
        """

    def count_rollups(self) -> Mapping[str, int]:
        """Return the number of rollups, by state. Nothing is read."""

    def wait_for_rollups(self) -> None:
        """Wait until no rollup is being built."""

    def close(self) -> None:
        """Close all connections to the source."""


def sort_counts(rows: Iterable[Row]) -> Counts:
    """Return the counts of rows (index, counts), sorted by index."""
    found: dict[Any, Any] = {row[0]: row[1] for row in rows}
    return tuple(tuple(int(one) for one in found[place]) for place in sorted(found))


def hide_failures(query: Callable[[], _Result]) -> _Result:
    """Run a query and return its result. Turn any failure into the same KH501, without its cause.

    Raises:
        KeyholeError: KH501.
    """
    try:
        return query()
    except Exception as error:
        failure = SourceFailed(explain_failure(error), is_unread=isinstance(error, MissingColumn))
    # outside the handler, so that the engine's error does not become this one's context
    raise failure


def hide_shape_failures(query: Callable[[], _Result], *, relation: str) -> _Result:
    """Run a query about a relation's columns or identity, and return its result. Turn an engine's failure into KH006.

    Raises:
        KeyholeError: KH006, and any that `query` raises itself.
    """
    try:
        return query()
    except KeyholeError:
        raise
    except Exception:
        failure = report_unknown_relation(relation)
    raise failure


def convert_value(value: object) -> Value | None:
    """Return a value from a database driver as one of the catalog's types. A value of any other type becomes text."""
    match value:
        case None | bool() | int() | str() | Decimal() | date():
            return value
        case float():
            return Decimal(repr(value))
        case _:
            return str(value)
