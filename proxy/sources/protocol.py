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
from proxy.sources.failures import explain
from proxy.sources.read_types import ColumnGone
from proxy.sources.source_refusals import SourceFailed, report_unknown_relation

Row = tuple[Value | None, ...]
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class TrueAggregates:
    """Exact values, int64 of shape (functionals, keys), in the key space's row-major order. Never printed or logged."""

    values: Integers = field(repr=False)

    def __reduce__(self) -> str:
        raise TypeError("true aggregates stay in the process that asked for them")


Counts: TypeAlias = tuple[tuple[int, ...], ...]
"""How many units lie beyond each candidate, by statistic."""


class Source(Protocol):
    """Read-only access to the data. Every method may be called from several threads at once."""

    @property
    def dialect(self) -> Dialect:
        """The SQL dialect in which questions are rewritten for this source."""

    def relations(self) -> tuple[str, ...]:
        """Return the tables and views that the reader may select from, each as SQL text that names it."""

    def hold_open(self) -> AbstractContextManager[None]:
        """Keep open a file that is opened for each reader alone. Raise KH008."""

    def schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return a relation's columns, from the catalog alone.

        Raise KH006 when there is no such relation, and KH008 when nothing answers.
        """

    def identify(self, relation: str) -> RelationIdentity:
        """Return the relation's identity in the source's own catalog, however it is spelled; from the catalog alone.

        Raise KH006 and KH008.
        """

    def state(self, relation: str) -> str:
        """Return a text that is another one once the relation's data have moved, and may be without that.

        No row is read. It follows from private data, and is for the owner alone. Raise KH006 and KH008.
        """

    def read_files(self, relation: str) -> str | None:
        """Return the files that the relation's rows are read from, as `state` has them.

        Return None for an engine that keeps rows itself. They may be others than `state` says if one is open that was
        replaced. Raise KH006 and KH008.
        """

    def reopen(self) -> None:
        """Read what lies in its place now, if another file is open.

        A question under way ends on what it began with. Raise KH008.
        """

    def estimate_rows(self, relation: str) -> int:
        """Return the relation's rows as the engine's planner estimates them; none is read.

        The estimate follows from private data, and is for the owner alone. Raise KH006 and KH008.
        """

    def table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> tuple[Row, ...]:
        """Return the rows of a public table.

        Of one with more than `most`, one more than that, and no further row is read. Raise KH006, naming the column if
        a value has no counterpart, and KH008.
        """

    def read_for_owner(self, relation: str, sql: str) -> tuple[Row, ...]:
        """Return the result of a statement over a relation, exactly and protected by nothing, for the owner alone.

        `keyhole check --measure` shows it. Raise KH006 for whatever fails, and KH008.
        """

    def turn(self, *, analyst: str, timeout_ms: int) -> AbstractContextManager[None]:
        """Take a turn, within which the source can be asked at once; no data is read by entering.

        A question is reserved only inside.

        Turns are shared fairly among analysts.

        Raises:
            KeyholeError: KH501, when nothing answers, or too many ask at the same time. Nothing was spent.
        """

    def aggregates(
        self, rewritten: Rewritten, keys: KeySpace, *, functionals: int, timeout_ms: int, version: str | None = None
    ) -> TrueAggregates:
        """Return the true aggregates of a question.

        With the public data version that it is asked on, the source may keep the rows that count for later questions.

        Raises:
            KeyholeError: KH501, the same for every failure and for the timeout, with nothing of the engine in it.
        """

    def read_counts(self, sql: str, *, relations: Sequence[ReadRelation], timeout_ms: int) -> Counts:
        """Return the counts of a statement over these relations, for a release that is charged and no question.

        Raises:
            KeyholeError: KH501, as for `aggregates`.
        """

    def rollups(self) -> Mapping[str, int]:
        """Return the number of kept sets of rows for later questions, by state; nothing is read."""

    def settle(self) -> None:
        """Wait until no rows are prepared for later questions any more."""

    def close(self) -> None:
        """Release the connections."""


def sort_counts(rows: Iterable[Row]) -> Counts:
    """Return the counts of rows (place, counts), by place."""
    found: dict[Any, Any] = {row[0]: row[1] for row in rows}
    return tuple(tuple(int(one) for one in found[place]) for place in sorted(found))


def hide_failures(query: Callable[[], _Result]) -> _Result:
    """Return the query's result; any failure becomes the same KH501, which carries neither cause nor context.

    Raises:
        KeyholeError: KH501.
    """
    try:
        return query()
    except Exception as error:
        failure = SourceFailed(explain(error), is_unread=isinstance(error, ColumnGone))
    # outside the handler, so that the engine's error does not become this one's context
    raise failure


def hide_shape_failures(query: Callable[[], _Result], *, relation: str) -> _Result:
    """Return the result of a query about a relation's shape; any failure of the engine becomes KH006.

    Raises:
        KeyholeError: KH006, and what `query` itself refuses.
    """
    try:
        return query()
    except KeyholeError:
        raise
    except Exception:
        failure = report_unknown_relation(relation)
    raise failure


def convert_value(value: object) -> Value | None:
    """Return a driver's value as one of the catalog's; a value without counterpart becomes text."""
    match value:
        case None | bool() | int() | str() | Decimal() | date():
            return value
        case float():
            return Decimal(repr(value))
        case _:
            return str(value)
