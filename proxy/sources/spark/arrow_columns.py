"""The conversion of Arrow columns to numpy: keys and exact integers."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def read_key_column(column: "pa.ChunkedArray") -> Any:
    """Return a key column's values: a numpy array if none is missing, otherwise a list with None."""
    import pyarrow as pa

    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        return column.to_numpy()
    return column.to_pylist()


def read_integers(column: "pa.ChunkedArray") -> npt.NDArray[np.int64]:
    """Return the values as int64, unchanged.

    Raises:
        pyarrow.ArrowInvalid: if a value is no whole number, or exceeds int64.
        ValueError: if a value is missing, or has another type than whole numbers.
    """
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise ValueError("no whole numbers")
    return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.int64)
