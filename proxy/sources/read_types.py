"""The check that relations still have the columns and keys that a statement was written for.

Types are schema, so no row is read for this. But the types found in a file may depend on its rows. A difference is
therefore reported like any other failure of the source, and the loss stays charged. If a column is missing, no row can
be read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from planner.catalog.sql_types import SourceColumn
from planner.question.plan import ReadRelation


class TypesChanged(Exception):
    """The error for a column that is missing, or has another type than when the policy was opened."""


class MissingColumn(TypesChanged):
    """The error for a missing column. A statement that names the column fails before any row is read."""


class MissingKey(MissingColumn):
    """The error for a key that the source no longer keeps unique. It is found before any row is read."""


def check_keys(relations: Sequence[ReadRelation], read_keys: Callable[[str], Iterable[frozenset[str]]]) -> None:
    """Raise `MissingKey` unless the source still has the unique keys that a statement relies on.

    Raises:
        MissingKey: if one is missing, and whatever `read_keys` raises.
    """
    for relation in relations:
        if relation.keys and not relation.keys <= frozenset(read_keys(relation.relation)):
            raise MissingKey


def check_types(relations: Sequence[ReadRelation], read_schema: Callable[[str], Iterable[SourceColumn]]) -> None:
    """Raise `TypesChanged` unless the source's columns still have the types for which a statement was written.

    Guarantee: if it passes, each column has the type that the statement casts it to, so that no value becomes NULL by
    its type, and different texts are in different groups. Only the log names a differing column.

    Raises:
        TypesChanged: if one differs, and whatever `read_schema` raises.
    """
    for relation in relations:
        found = {column.name: column for column in read_schema(relation.relation)}
        for name, pinned in relation.columns:
            column = found.get(name)
            if column is not None and column.declared == pinned and not column.has_nondeterministic_collation:
                continue
            now = (
                "gone"
                if column is None
                else "of another collation"
                if column.has_nondeterministic_collation
                else column.declared
            )
            import structlog  # it takes a tenth of the start of a command

            if structlog.is_configured():  # of a command, which logs nothing, standard output is the answer
                log = structlog.get_logger("keyhole.source")
                log.warning(
                    "a column is not what it was pinned as",
                    relation=relation.relation,
                    column=name,
                    was=pinned,
                    now=now,
                )
            raise MissingColumn if column is None else TypesChanged


@contextmanager
def check_after_reading() -> Iterator[None]:
    """Turn a `MissingColumn` raised in the block into `TypesChanged`.

    Rows were read by then, so the loss stays charged.
    """
    try:
        yield
    except MissingColumn:
        raise TypesChanged from None
