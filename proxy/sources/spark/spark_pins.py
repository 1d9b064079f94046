"""Pinned public rows as Arrow tables, which become views of a session.

Guarantee: a statement finds the pinned rows even if the server has a table of that name: a session's own view hides it.
Nothing is written to the source.
"""

import threading
from collections import OrderedDict
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.catalog.catalog import Value
from planner.catalog.domains import encode_value
from planner.question.plan import PinnedColumn, PinnedRelation
from planner.values.sql_literals import find_duckdb_numeric

if TYPE_CHECKING:
    import pyarrow as pa

_KEPT = 8  # relations, some tens of megabytes each where they have a million rows: those that questions last read


class SparkPins:
    """A cache of recently used pinned relations as Arrow tables. It is safe to share among threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[str, pa.Table] = OrderedDict()

    def get(self, relation: PinnedRelation) -> "pa.Table":
        """Return the relation's rows as an Arrow table."""
        with self._lock:
            made = self._made.get(relation.name)
            if made is None:
                made = self._made[relation.name] = _make_table(relation)
                while len(self._made) > _KEPT:
                    self._made.popitem(last=False)
            self._made.move_to_end(relation.name)
            return made


def _make_table(relation: PinnedRelation) -> "pa.Table":
    import pyarrow as pa

    return pa.table({column.name: _make_array(column) for column in relation.columns})


def _make_array(column: PinnedColumn) -> "pa.Array":
    import pyarrow as pa

    if column.is_whole:
        return pa.array(column.values, type=pa.int64())
    kind, convert = _choose_arrow_type(column.type_name)
    written = {value: None if value is None else convert(value) for value in set(column.values)}
    return pa.array([written[value] for value in column.values], type=kind)


def _choose_arrow_type(type_name: str) -> tuple[Any, Any]:
    """Return Arrow's type for one of Spark's, and the converter of the catalog's values to it."""
    import pyarrow as pa

    if type_name.startswith("decimal"):
        precision, scale = find_duckdb_numeric(type_name)
        return pa.decimal128(precision, scale), Decimal
    match type_name.split()[0]:
        case "double":
            return pa.float64(), float
        case "boolean":
            return pa.bool_(), bool
        case "date":
            return pa.date32(), _convert_date
        case "timestamp" | "timestamp_ntz":
            return pa.timestamp("us"), _convert_moment
        case _:
            return pa.string(), encode_value


def _convert_date(value: Value) -> object:
    return date.fromisoformat(value) if isinstance(value, str) else value


def _convert_moment(value: Value) -> object:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
