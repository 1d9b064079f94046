"""Noise paths with their keys: selecting a later question's part, adding new values, and storing the path as bytes.

Two levels of a path are public. All values up to `reserved` were paid for, revealed or not. All values up to `revealed`
were revealed. Which values between the two levels were revealed depends on the noise. A path contains no true
aggregate.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import prod

import numpy as np

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Levels, NoisePath
from planner.catalog.key_space import KeySpace
from planner.catalog.listed_values import format_values
from planner.functionals.per_key_offsets import spread_offsets
from planner.plan.question_identity import list_noisy_parts, takes_off_numbers
from planner.question.question import Question

PATH_FORMAT = 1  # of a path's bytes in the ledger; paths of another are not used
MOST_VALUES = 1 << 21
"""A path of more values is not kept: a public number, of which the ledger's limit on bytes leaves enough."""

Axes = tuple[tuple[str, tuple[str, ...]], ...]


class UnknownPath(ValueError):
    """The error for bytes that are not a path in a known format."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyPath:
    """One functional's noise path over a grid of keys. `axes` has each key column's identity, with its values as text.

    `path.values` has shape (rates, keys), with keys in row-major order of the axes. `reserved` and `revealed` count
    levels per key, as `path.reached` does. For each key, revealed <= reached <= reserved.
    """

    axes: Axes
    path: NoisePath
    reserved: Levels
    revealed: Levels

    def __post_init__(self) -> None:
        """Raise ValueError for arrays of other shapes, or levels out of order."""
        size = prod(len(values) for _, values in self.axes)
        levels = (self.revealed, self.path.reached, self.reserved)
        if any(level.shape != (size,) for level in levels) or size == 0:
            raise ValueError("a path has one entry of each kind per key")
        if any(np.any(low > high) for low, high in pairwise(levels)):
            raise ValueError("what was revealed lies between what is told and what was reserved")
        if int(self.revealed.min()) < 0 or int(self.reserved.max()) > len(self.path.rates):
            raise ValueError("levels are numbers of the path's rates")

    @staticmethod
    def from_run(
        question: Question, functional: int, path: NoisePath, *, top: Fraction, is_all_revealed: bool
    ) -> "KeyPath":
        """Return the path of a question that drew new noise, with budget reserved up to the rate `top`.

        The path has values of the functional itself, so the question's offsets per key are added back.
        `is_all_revealed` means that the mechanism reveals the whole path.
        """
        axes = tuple(sorted(_list_axes(question.keys)))
        here = _find_places(question.keys, axes)
        assert here is not None, "a question has its own keys"
        values, reached = _shift_path(path, question, functional, adds_back=True).values, path.reached
        if not np.array_equal(here, np.arange(reached.size)):  # the axes are in another order than the keys
            order = np.argsort(here)
            values, reached = values[:, order], reached[order]
        level = path.rates.index(top) + 1
        return KeyPath(
            axes=axes,
            path=NoisePath(rates=path.rates, values=values, reached=reached),
            reserved=np.full_like(reached, level),
            revealed=np.full_like(reached, level if is_all_revealed else 0),
        )

    def covers(self, other: "KeyPath") -> bool:
        """Return True if this path has every key of the other path."""
        mine = {name: frozenset(values) for name, values in self.axes}
        return all(frozenset(values) <= mine.get(name, frozenset()) for name, values in other.axes)

    def find_places(self, keys: KeySpace) -> Integers | None:
        """Return the index of each key on the path, with keys in row-major order. Return None if a key is missing."""
        return _find_places(keys, self.axes)

    def select_question(self, question: Question, functional: int, here: Integers) -> NoisePath:
        """Return the question's part of the path: its keys in its order, minus its offsets per key."""
        part = NoisePath(rates=self.path.rates, values=self.path.values[:, here], reached=self.path.reached[here])
        return _shift_path(part, question, functional, adds_back=False)

    def continue_with(
        self,
        question: Question,
        functional: int,
        here: Integers,
        path: NoisePath,
        *,
        top: Fraction,
        is_all_revealed: bool,
    ) -> "KeyPath":
        """Return the whole path after a question continued it at some keys, up to the rate `top` at most.

        `path` is the question's own path after its run. `here` are the indices of its keys on the whole path.
        `is_all_revealed` means that its mechanism reveals everything up to `top`.
        """
        known = len(self.path.rates)
        assert path.rates[:known] == self.path.rates, "rates are added above the path"
        values = np.zeros((len(path.rates), self.path.reached.size), dtype=np.int64)
        values[:known] = self.path.values
        values[:, here] = _shift_path(path, question, functional, adds_back=True).values
        reached, reserved, told = self.path.reached.copy(), self.reserved.copy(), self.revealed.copy()
        reached[here] = path.reached
        level = path.rates.index(top) + 1
        reserved[here] = np.maximum(reserved[here], level)
        if is_all_revealed:
            told[here] = np.maximum(told[here], level)
        return replace(
            self, path=NoisePath(rates=path.rates, values=values, reached=reached), reserved=reserved, revealed=told
        )

    def to_bytes(self) -> bytes | None:
        """Return the path as bytes for the ledger. Return None if it is too large."""
        if self.path.values.size > MOST_VALUES:
            return None
        head = {
            "format": PATH_FORMAT,
            "axes": self.axes,
            "rates": [[rate.numerator, rate.denominator] for rate in self.path.rates],
        }
        arrays = (self.path.reached, self.reserved, self.revealed)
        body = [array.astype("i1").tobytes() for array in arrays]
        body.append(np.ascontiguousarray(self.path.values, dtype="<i8").tobytes())
        text = json.dumps(head, ensure_ascii=True, separators=(",", ":")).encode()
        return len(text).to_bytes(4, "little") + text + zlib.compress(b"".join(body), 1)


def from_bytes(stored: bytes) -> KeyPath:
    """Parse a path from the bytes of `KeyPath.to_bytes`. Raise `UnknownPath` for any other bytes."""
    try:
        end = 4 + int.from_bytes(stored[:4], "little")
        head = json.loads(stored[4:end])
        if head["format"] != PATH_FORMAT:
            raise UnknownPath("a path of an unknown format")
        axes = tuple((name, tuple(values)) for name, values in head["axes"])
        rates = tuple(Fraction(*pair) for pair in head["rates"])
        keys = prod(len(values) for _, values in axes)
        unpacking = zlib.decompressobj()
        body = unpacking.decompress(stored[end:], keys * (3 + 8 * len(rates)) + 1)
        if len(body) != keys * (3 + 8 * len(rates)) or keys * len(rates) > MOST_VALUES:
            raise UnknownPath("a path of another size than it says")
        reached, reserved, told = np.frombuffer(body[: 3 * keys], dtype="i1").reshape(3, keys)
        values = np.frombuffer(body[3 * keys :], dtype="<i8").reshape(len(rates), keys).astype(np.int64, copy=False)
        return KeyPath(
            axes=axes, path=NoisePath(rates=rates, values=values, reached=reached), reserved=reserved, revealed=told
        )
    except (ValueError, KeyError, TypeError, ZeroDivisionError, zlib.error) as wrong:
        raise UnknownPath("no path") from wrong


def _list_axes(keys: KeySpace) -> Axes:
    return tuple(
        (column.identity, format_values(values)) for column, values in zip(keys.columns, keys.values, strict=True)
    )


def _find_places(keys: KeySpace, axes: Axes) -> Integers | None:
    """Return, for the keys in row-major order, their row-major indices in the grid of the axes."""
    wanted: Mapping[str, tuple[str, ...]] = dict(_list_axes(keys))
    if wanted.keys() != {name for name, _ in axes}:
        return None
    found = np.zeros(keys.shape, dtype=np.int64)
    names = [column.identity for column in keys.columns]
    for place, (name, values) in enumerate(axes):
        places = _find_places_among(values, wanted[name])
        if places is None:
            return None
        stride = prod(len(later) for _, later in axes[place + 1 :])
        shape = [1] * len(keys.shape)
        shape[names.index(name)] = -1
        found += (places * stride).reshape(shape)
    return found.reshape(-1)


def _find_places_among(values: tuple[str, ...], wanted: tuple[str, ...]) -> Integers | None:
    """Return the index of each wanted value among all values. Return None if one is missing."""
    if wanted == values:
        return np.arange(len(values), dtype=np.int64)
    number = {value: index for index, value in enumerate(values)}
    if any(value not in number for value in wanted):
        return None
    return np.array([number[value] for value in wanted], dtype=np.int64)


def _shift_path(path: NoisePath, question: Question, functional: int, *, adds_back: bool) -> NoisePath:
    """Return the path minus the functional's offsets, or plus them if `adds_back`. Unrevealed values stay zero."""
    taken = list_noisy_parts(question)[functional].offsets if takes_off_numbers(question) else None
    if taken is None:
        return path
    steps = spread_offsets(question, taken)
    revealed: Booleans = np.arange(len(path.rates))[:, None] < path.reached
    moved = path.values + steps if adds_back else path.values - steps
    return NoisePath(rates=path.rates, values=np.where(revealed, moved, 0), reached=path.reached)
