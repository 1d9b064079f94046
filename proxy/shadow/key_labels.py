"""The labels of computed keys, as PostgreSQL shows the keys, for answers without a session.

    quantity > 3    group 0: false, group 1: true

Such answers are sent by REST and by commands.

Guarantee: the shadow computes each expression over one value of each group, in the analyst's role, before anything is
charged. The shadow has no private row, so labels and failures follow from the question and the policy alone. Only one
question is computed at a time, for at most a few seconds, so sessions never lack a connection.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from threading import Lock
from typing import Any

import psycopg

from accountant.store.deadline import limit_waits
from accountant.store.punctual import PunctualConnection
from planner.catalog.key_space import KeySpace
from planner.catalog.listed_values import format_values
from planner.errors import KeyholeError
from planner.parser.lexer import quote_identifier
from planner.scope.embedded import EmbeddedQuestion, ShownKey, ShownKeys
from proxy.shadow.address import ShadowAddress

_LONGEST_S = 10.0  # a million days, the most that there may be, take two on one core
_MOST_COMBINATIONS = 1_000_000  # of the keys that one expression reads
_ROW = "keyhole.row"
_OPTIONS = "-c timezone=UTC -c datestyle=ISO -c intervalstyle=postgres"


@dataclass(frozen=True, slots=True)
class ColumnLabels:
    """The labels of one column of an answer, computed from the keys in the columns `key_columns`.

    `texts` maps the keys' texts to the label, and `ranks` has each label's position in the sort order. Without `texts`,
    the column is a key that is shown unchanged.
    """

    name: str
    key_columns: tuple[int, ...]
    texts: dict[tuple[str | None, ...], str | None] = field(default_factory=dict)
    ranks: dict[str | None, int] = field(default_factory=dict)

    def apply(self, columns: Sequence[Sequence[str | None]]) -> Sequence[str | None]:
        """Return the label for each row, from the columns of the answer's keys."""
        if not self.texts:
            return columns[self.key_columns[0]]
        return [self.texts[key] for key in zip(*(columns[place] for place in self.key_columns), strict=True)]


@dataclass(frozen=True, slots=True)
class KeyLabels:
    """The labels of an answer with computed keys. Its columns replace the answer's first `keys` columns."""

    columns: tuple[ColumnLabels, ...]
    keys: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def apply(self, columns: Sequence[Sequence[str | None]]) -> list[Sequence[str | None]]:
        """Return the answer's columns, with labels in place of keys."""
        return [*(column.apply(columns) for column in self.columns), *columns[self.keys :]]

    def make_document(self) -> dict[str, Any]:
        """Return the labels as a JSON document, for `parse`."""
        columns = [
            {
                "name": one.name,
                "reads": one.key_columns,
                "texts": [[*key, text] for key, text in one.texts.items()],
                "ranks": [[text, rank] for text, rank in one.ranks.items()],
            }
            for one in self.columns
        ]
        return {"columns": columns, "keys": self.keys}

    @staticmethod
    def parse(document: dict[str, Any]) -> "KeyLabels":
        """Parse labels from the JSON document of `make_document`."""
        columns = (
            ColumnLabels(
                one["name"],
                tuple(one["reads"]),
                {tuple(key): text for *key, text in one["texts"]},
                dict(one["ranks"]),
            )
            for one in document["columns"]
        )
        return KeyLabels(tuple(columns), document["keys"])


@dataclass(frozen=True, slots=True)
class LabelReader:
    """A reader of labels from the shadow that is current at the time of the request.

    `find_shadow` returns the shadow's address and the name of its database.
    """

    find_shadow: Callable[[], tuple[ShadowAddress, str]]
    _turn: Lock = field(default_factory=Lock)

    def read_labels(self, question: EmbeddedQuestion, space: KeySpace, *, analyst: str) -> KeyLabels | None:
        """Return the labels of a question's keys, or None if all keys are shown unchanged. Raise KH106 and KH406."""
        shown = question.shown_keys
        if shown is None:
            return None
        if not self._turn.acquire(timeout=_LONGEST_S):
            raise refuse_unready_labels()
        try:
            address, database = self.find_shadow()
            conninfo = address.make_conninfo(user=analyst, database=database)
            with (
                limit_waits(_LONGEST_S),
                PunctualConnection.connect(conninfo, client_encoding="utf8", options=_OPTIONS) as connection,
            ):
                columns = tuple(_read_column(one, shown, question, space, connection) for one in shown.items)
        except psycopg.OperationalError:
            raise refuse_unready_labels() from None
        except psycopg.Error as error:
            raise _refuse_label(error) from None
        finally:
            self._turn.release()
        return KeyLabels(columns, len(question.keys))


def _read_column(
    item: ShownKey, shown: ShownKeys, question: EmbeddedQuestion, space: KeySpace, connection: PunctualConnection
) -> ColumnLabels:
    if not item.sql:
        return ColumnLabels(item.name, item.key_places)
    if (size := prod(len(space.values[place]) for place in item.key_places)) > _MOST_COMBINATIONS:
        raise KeyholeError(
            "KH202",
            f"{item.name[:80]} has {size:,} combinations of values",
            detail=f"Without a session Keyhole shows at most {_MOST_COMBINATIONS:,}.",
            hint="Restrict the keys in WHERE, or use the PostgreSQL endpoint.",
        )
    combinations = list(product(*(format_values(space.values[place]) for place in item.key_places)))
    columns = question.columns[: len(question.keys)]
    arrays = [[key[item.key_places.index(place)] for key in combinations] for place in item.key_places]
    given = dict(zip(item.key_places, range(1, len(arrays) + 1), strict=True))
    selected = ", ".join(
        f"{f'u.k{given[place]}' if place in given else 'NULL'}::{declared} AS {quote_identifier(name)}"
        for place, (name, declared) in enumerate(columns)
    )
    names = ", ".join(f"k{number}" for number in given.values())
    relation = (
        f"(SELECT {selected}, u.n AS {quote_identifier(_ROW)} "
        f"FROM unnest({', '.join(f'${number}::text[]' for number in given.values())}) WITH ORDINALITY AS u({names}, n))"
    )
    row = quote_identifier(_ROW)
    sql = (
        f"SELECT ({item.sql})::text, dense_rank() OVER (ORDER BY ({item.sql})) "
        f"FROM {shown.prefix}{relation}{shown.suffix} ORDER BY {row}"
    )
    with psycopg.RawCursor(connection) as cursor:
        rows = cursor.execute(sql.encode(), arrays).fetchall()
    texts: dict[tuple[str | None, ...], str | None] = {
        key: text for key, (text, _) in zip(combinations, rows, strict=True)
    }
    return ColumnLabels(item.name, item.key_places, texts, dict(rows))


def refuse_unready_labels() -> KeyholeError:
    """Return KH406, for a question with computed keys while no shadow answers."""
    return KeyholeError(
        "KH406",
        "the shadow does not show the keys",
        detail="Keys that a question computes are shown by PostgreSQL. Nothing was spent.",
        hint="Ask again in a moment.",
    )


def _refuse_label(error: psycopg.Error) -> KeyholeError:
    return KeyholeError(
        "KH106",
        f"PostgreSQL cannot show the keys: {error.diag.message_primary or 'it fails'}",
        detail="It computes them over one value of each group. Nothing was spent.",
    )
