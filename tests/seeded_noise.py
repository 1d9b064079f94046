"""Repeatable noise for tests: the product's own arithmetic on a generator that anybody can predict."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from unittest.mock import patch
from zlib import crc32

import numpy as np

from mechanisms.noise import exact, random_bytes
from mechanisms.noise.exact import ExactNoise


class SeededNoise(ExactNoise):
    """Exact noise from a seeded generator. Whoever knows the seed can subtract it, so it lives among the tests."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.Generator(np.random.PCG64(seed)).bytes)


class RepeatedBytes:
    """In place of the operating system's generator, within this process: the same bytes in each run of a test.

    A test of noisy answers is right with the probability that it states; so that one in thousands does not fail in one
    run of ten, each meets the noise that it has always met. Another noise for each run: `make test-anew`.
    """

    def __init__(self) -> None:
        self.begin("")

    def begin(self, name: str) -> None:
        """Begin the bytes that belong to a name, such as a test's."""
        self._generator = np.random.Generator(np.random.PCG64(crc32(name.encode())))

    def urandom(self, size: int) -> bytes:
        return self._generator.bytes(size)

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Let `make_system_noise` read these bytes."""
        with (
            patch.object(random_bytes, "os", SimpleNamespace(urandom=self.urandom)),
            patch.object(exact, "count_threads", lambda: 1),  # else a race would decide who has which bytes
        ):
            yield
