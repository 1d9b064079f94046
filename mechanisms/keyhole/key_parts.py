"""Parts of keys of bounded memory. Several threads decide them in parallel if they may draw noise."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from mechanisms.noise.exact import ExactNoise
from mechanisms.protocol import Noise
from mechanisms.side_by_side import run_in_order

KEYS_AT_ONCE = 1 << 17  # bounds memory; with a fourth of it threads wait for each other half of the time

_Result = TypeVar("_Result")


def cut_keys_into_parts(keys: int) -> list[slice]:
    """Return slices of `KEYS_AT_ONCE` keys in order, or one empty slice if there are no keys."""
    return [slice(start, min(keys, start + KEYS_AT_ONCE)) for start in range(0, max(keys, 1), KEYS_AT_ONCE)]


def decide_in_parts(decide: Callable[[slice], _Result], keys: int, *, noise: Noise) -> Iterator[tuple[slice, _Result]]:
    """Yield each part of the keys with the result of `decide`, in order. `decide` draws from `noise`.

    Raises:
        Exception: the first exception of `decide`, in the order of parts.
    """
    parts = cut_keys_into_parts(keys)
    threads = noise.threads if isinstance(noise, ExactNoise) else 1
    yield from zip(parts, run_in_order(decide, parts, threads=threads), strict=True)
