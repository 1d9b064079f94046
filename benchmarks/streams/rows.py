"""What a job on streams finds: one line for each mechanism, stream and epsilon."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.streams.measures import Floats

EPSILONS = (Fraction(1, 10), Fraction(1, 100))
LAPLACE, PEGASUS, PEGASUS_LARGE, ZEROS = "tick_laplace", "pegasus", "pegasus, theta 40", "zeros"
BLOCK_TREE, SLIDING = "block_tree", "sliding noise"


@dataclass(frozen=True, slots=True)
class Row:
    """What one mechanism came to: mean and middle half over the runs.

    `x` is a window's length, or 0; of a curve, in thousandths, the share of what is no event that is reported.
    """

    experiment: str
    data: str
    epsilon: Fraction
    label: str
    x: int
    mean: float
    low: float
    high: float

    @staticmethod
    def from_values(experiment: str, data: str, epsilon: Fraction, label: str, values: Floats, *, x: int = 0) -> "Row":
        low, high = np.quantile(values, (0.25, 0.75))
        return Row(experiment, data, epsilon, label, x, float(values.mean()), float(low), float(high))
