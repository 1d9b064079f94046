"""A statement's rows as Arrow gives them: keys and exact integers for numpy."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def read_key_column(column: "pa.ChunkedArray") -> Any:
    """Return the values of a key: an array of numbers or moments if all are there, else a list with None."""
    import pyarrow as pa

    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        return column.to_numpy()
    return column.to_pylist()


def read_integers(column: "pa.ChunkedArray") -> npt.NDArray[np.int64]:
    """Return the values as they are, int64.

    Raises:
        pyarrow.ArrowInvalid: a value that int64 does not hold, or that is no whole number.
        ValueError: a value is missing, or of another type than whole numbers have.
    """
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise ValueError("no whole numbers")
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
