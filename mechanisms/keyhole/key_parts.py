"""Keys in parts of bounded memory, decided side by side where their noise may be drawn by several threads."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from mechanisms.noise.exact import ExactNoise
from mechanisms.protocol import Noise
from mechanisms.side_by_side import run_in_order

KEYS_AT_ONCE = 1 << 17  # bounds memory; with a fourth of it threads wait for each other half of the time

_Result = TypeVar("_Result")


def cut_keys_into_parts(keys: int) -> list[slice]:
    """Return the parts, in order; one without keys if there are none."""
    return [slice(start, min(keys, start + KEYS_AT_ONCE)) for start in range(0, max(keys, 1), KEYS_AT_ONCE)]


def decide_in_parts(decide: Callable[[slice], _Result], keys: int, *, noise: Noise) -> Iterator[tuple[slice, _Result]]:
    """Yield each part with the result of `decide`, which draws from `noise`; in order.

    Raises:
        Exception: what it raises for the first part for which it does.
    """
    parts = cut_keys_into_parts(keys)
    threads = noise.threads if isinstance(noise, ExactNoise) else 1
    yield from zip(parts, run_in_order(decide, parts, threads=threads), strict=True)
