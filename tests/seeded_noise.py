"""Repeatable noise for tests: the product's own arithmetic on a generator that anybody can predict."""

import numpy as np

from mechanisms.noise.exact import ExactNoise


class SeededNoise(ExactNoise):
    """Exact noise from a seeded generator. Whoever knows the seed can subtract it, so it lives among the tests."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.Generator(np.random.PCG64(seed)).bytes)
