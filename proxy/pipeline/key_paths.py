"""Noise paths with the keys they are about: what a later question reads of them, what it adds, and their bytes.

Two levels of a path are public: up to `reserved` its values were paid for in everybody's eyes, whichever of them were
revealed, and up to `told` all of them were. In between lies what depends on the noise. No true aggregate is in it.
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
from planner.question.question import Question

PATH_FORMAT = 1  # of a path's bytes in the ledger; paths of another are not used
MOST_VALUES = 1 << 21
"""A path of more values is not kept: a public number, of which the ledger's limit on bytes leaves enough."""

Axes = tuple[tuple[str, tuple[str, ...]], ...]


class UnknownPath(ValueError):
    """Bytes that are no path of a format that is known here."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyPath:
    """One functional's noise path over a grid of keys: `axes` are the keys' identities, each with its values' text.

    `path.values` has shape (rates, keys), keys in row-major order of the axes. `reserved` and `told` count levels per
    key as `path.reached` does; told <= reached <= reserved.
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
    def from_run(question: Question, functional: int, path: NoisePath, *, top: Fraction, all_told: bool) -> "KeyPath":
        """Return the path that a question left on noise of its own, reserved up to the rate `top`.

        It is in terms of the functional itself: the question's offsets per key are put back. `all_told`: the mechanism
        reveals all of it.
        """
        axes = tuple(sorted(_list_axes(question.keys)))
        here = _find_places(question.keys, axes)
        assert here is not None, "a question has its own keys"
        values, reached = _shift_path(path, question, functional, back=True).values, path.reached
        if not np.array_equal(here, np.arange(reached.size)):  # the axes are in another order than the keys
            order = np.argsort(here)
            values, reached = values[:, order], reached[order]
        level = path.rates.index(top) + 1
        return KeyPath(
            axes=axes,
            path=NoisePath(rates=path.rates, values=values, reached=reached),
            reserved=np.full_like(reached, level),
            revealed=np.full_like(reached, level if all_told else 0),
        )

    def covers(self, other: "KeyPath") -> bool:
        """Return True if every key of the other path is on this one."""
        mine = {name: frozenset(values) for name, values in self.axes}
        return all(frozenset(values) <= mine.get(name, frozenset()) for name, values in other.axes)

    def find_places(self, keys: KeySpace) -> Integers | None:
        """Return where each of the keys, in row-major order, is on the path; None if one of them is not."""
        return _find_places(keys, self.axes)

    def select_question(self, question: Question, functional: int, here: Integers) -> NoisePath:
        """Return the path as the question sees it: its keys in its order, less its offsets per key."""
        part = NoisePath(rates=self.path.rates, values=self.path.values[:, here], reached=self.path.reached[here])
        return _shift_path(part, question, functional, back=False)

    def continue_with(
        self, question: Question, functional: int, here: Integers, path: NoisePath, *, top: Fraction, all_told: bool
    ) -> "KeyPath":
        """Return the whole path after a question has continued it at some keys, up to the rate `top` at most.

        `path` is what the question left, which saw `read`. `all_told`: its mechanism reveals everything up to `top`.
        """
        known = len(self.path.rates)
        assert path.rates[:known] == self.path.rates, "rates are added above the path"
        values = np.zeros((len(path.rates), self.path.reached.size), dtype=np.int64)
        values[:known] = self.path.values
        values[:, here] = _shift_path(path, question, functional, back=True).values
        reached, reserved, told = self.path.reached.copy(), self.reserved.copy(), self.revealed.copy()
        reached[here] = path.reached
        level = path.rates.index(top) + 1
        reserved[here] = np.maximum(reserved[here], level)
        if all_told:
            told[here] = np.maximum(told[here], level)
        return replace(
            self, path=NoisePath(rates=path.rates, values=values, reached=reached), reserved=reserved, revealed=told
        )

    def to_bytes(self) -> bytes | None:
        """Return the form in which the ledger keeps a path; None for one that is too large."""
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
    """Parse a path of `to_bytes`. Raise UnknownPath if it did not write it."""
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
    """Return row-major places in a grid of axes, of the keys in their own row-major order."""
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
    """Return where each wanted value stands among all; None if one does not."""
    if wanted == values:
        return np.arange(len(values), dtype=np.int64)
    number = {value: index for index, value in enumerate(values)}
    if any(value not in number for value in wanted):
        return None
    return np.array([number[value] for value in wanted], dtype=np.int64)


def _shift_path(path: NoisePath, question: Question, functional: int, *, back: bool) -> NoisePath:
    """Return the path of a functional less its offsets, or the reverse; unrevealed values stay zero."""
    taken = question.functionals[functional].offsets
    if taken is None:
        return path
    steps = spread_offsets(question, taken)
    revealed: Booleans = np.arange(len(path.rates))[:, None] < path.reached
    moved = path.values + steps if back else path.values - steps
    return NoisePath(rates=path.rates, values=np.where(revealed, moved, 0), reached=path.reached)
