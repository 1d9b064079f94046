"""A test of whether relations still have the columns that a statement was written for.

Types are schema: no row is read for this. But how a file's types are found may depend on its rows, so that a difference
is told like any other failure of the source, and stays paid. A column that is gone keeps every row from being read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from planner.catalog.sql_types import SourceColumn
from planner.question.plan import ReadRelation


class TypesChanged(Exception):
    """A column is gone, or is no longer what it was when the policy was opened."""


class ColumnGone(TypesChanged):
    """A column is gone: a statement that names it cannot be read, let alone a row by it."""


class KeyGone(ColumnGone):
    """The source no longer keeps a key unique that a statement counts on, which is found before it is read."""


def check_keys(relations: Sequence[ReadRelation], read_keys: Callable[[str], Iterable[frozenset[str]]]) -> None:
    """Hold the keys that the source keeps now against those that a statement counts on.

    Raises:
        KeyGone: and whatever `read_keys` raises.
    """
    for relation in relations:
        if relation.keys and not relation.keys <= frozenset(read_keys(relation.relation)):
            raise KeyGone


def check_types(relations: Sequence[ReadRelation], read_schema: Callable[[str], Iterable[SourceColumn]]) -> None:
    """Hold the source's columns, read now, against those that a statement was written for.

    Guarantee: where it passes, each is of the type that the statement casts it to, so that no value becomes NULL by its
    type; and texts that differ are in different groups. Which column differs is said in the log alone.

    Raises:
        TypesChanged: and whatever `read_schema` raises.
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
            raise ColumnGone if column is None else TypesChanged


@contextmanager
def check_after_reading() -> Iterator[None]:
    """Check the types of columns after the block, once rows were read. Raise `TypesChanged` if one is gone by then."""
    try:
        yield
    except ColumnGone:
        raise TypesChanged from None
