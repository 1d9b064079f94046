"""A compact sequence of very many released keys. Each column stores each text once, and a number per key."""

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from mechanisms.side_by_side import count_threads, run_in_order

Key: TypeAlias = tuple[str | None, ...]
Places: TypeAlias = npt.NDArray[np.uint32]

FEWEST = 10_000
"""Keys from which on they are held so: fewer are tuples, which cost a megabyte or two and are read faster."""
_AT_ONCE = 1 << 16  # keys made tuples at a time: memory against turns


class KeyRows(Sequence[Key]):
    """An immutable sequence of keys. Each key is built when it is accessed.

    Parameters:
        texts: for each column, all texts that occur in it, and perhaps more.
        places: for each column and key, the index of the key's text. All columns have the same length.
    """

    __slots__ = ("places", "texts")

    def __init__(self, texts: tuple[tuple[str | None, ...], ...], places: tuple[Places, ...]) -> None:
        """Raise ValueError for columns of different lengths, and for places without a text."""
        if not texts or len(texts) != len(places) or len({one.size for one in places}) != 1:
            raise ValueError("keys have columns, all of one length")
        if any(one.size and int(one.max()) >= len(known) for known, one in zip(texts, places, strict=True)):
            raise ValueError("a key has a text that is not there")
        self.texts = texts
        self.places = places

    def __len__(self) -> int:
        return int(self.places[0].size)

    @overload
    def __getitem__(self, index: int) -> Key: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Key, ...]: ...

    def __getitem__(self, index: int | slice) -> Key | tuple[Key, ...]:
        if isinstance(index, slice):
            columns = zip(self.texts, self.places, strict=True)
            return tuple(zip(*(map(known.__getitem__, at[index].tolist()) for known, at in columns), strict=True))
        return tuple(known[int(at[index])] for known, at in zip(self.texts, self.places, strict=True))

    def __iter__(self) -> Iterator[Key]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self[start : start + _AT_ONCE]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes) or len(other) != len(self):
            return False
        return all(mine == its for mine, its in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((len(self.texts), len(self)))

    def __repr__(self) -> str:
        return f"KeyRows({len(self)} keys)"

    @property
    def arrays(self) -> tuple[Key, ...]:
        """The keys by column, one tuple for each column. Equal texts share one object."""
        return tuple(tuple(_list_texts(known, at)) for known, at in zip(self.texts, self.places, strict=True))

    def pack(self) -> Mapping[str, Any]:
        """Return the keys for JSON.

        Each column has the texts that occur, in the order of `texts`, and the keys' numbers packed as text.
        """
        columns = tuple(zip(self.texts, self.places, strict=True))
        texts, places = zip(*run_in_order(_pack_column, columns, threads=count_threads()), strict=True)
        return {"texts": texts, "places": places}


def _pack_column(column: tuple[Sequence[str | None], Places]) -> tuple[list[str | None], str]:
    known, at = column
    occurs = np.zeros(len(known), dtype=np.bool_)
    occurs[at] = True
    texts = [known[place] for place in np.flatnonzero(occurs).tolist()]
    numbers = np.cumsum(occurs, dtype=np.uint32) - np.uint32(1)
    content = zlib.compress(numbers[at].astype("<u4").tobytes(), 1)
    return texts, base64.b64encode(content).decode("ascii")


def _list_texts(known: Sequence[str | None], places: Places) -> Iterator[str | None]:
    for start in range(0, places.size, _AT_ONCE):
        yield from map(known.__getitem__, places[start : start + _AT_ONCE].tolist())


def unpack_rows(packed: Mapping[str, Any], *, count: int) -> KeyRows:
    """Parse `count` keys from the result of `KeyRows.pack`.

    Raise ValueError, KeyError or zlib.error for other input.
    """
    texts = tuple(map(tuple, packed["texts"]))
    places = tuple(_unpack(one, count) for one in packed["places"])
    return KeyRows(texts, places)


def _unpack(packed: str, count: int) -> Places:
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(base64.b64decode(packed, validate=True), 4 * count + 1)
    if len(content) != 4 * count:
        raise ValueError("a stored answer has lost keys")
    return np.frombuffer(content, dtype="<u4").astype(np.uint32, copy=False)
