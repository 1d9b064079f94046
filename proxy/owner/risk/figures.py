"""The risk figures of a privacy loss, rounded up, so that no number promises too much."""

import math
from dataclasses import dataclass
from typing import Any

from mechanisms.risk.advantage import bound_advantage, bound_guess, bound_posterior, bound_true_positive_rate
from proxy.report.odometer import write_factor

CANDIDATES = (2, 10, 100)  # groups or values among which somebody guesses: a coin, a few wards, a town's streets
_PRIORS = (0.01, 0.1, 0.5)  # what somebody believed before: a rumour, a suspicion, a coin


@dataclass(frozen=True, slots=True)
class RiskFigures:
    """The meaning of a loss of `epsilon`: how sure an attacker can become of a unit's presence, or of its group."""

    epsilon: float

    def make_document(self) -> dict[str, Any]:
        """Return the figures as JSON. `presence` uses epsilon, and `which_group` twice epsilon."""
        return {
            "epsilon": self.epsilon,
            "presence": {
                "epsilon": self.epsilon,
                "odds": _find_odds(self.epsilon),
                "posteriors": {f"{prior:g}": bound_posterior(self.epsilon, prior=prior) for prior in _PRIORS},
                "advantage": bound_advantage(self.epsilon),
                "true_positives_at_1_percent": bound_true_positive_rate(self.epsilon, false_positive_rate=0.01),
            },
            "which_group": {
                "epsilon": 2 * self.epsilon,
                "odds": _find_odds(2 * self.epsilon),
                "guess_among": {str(many): bound_guess(self.epsilon, candidates=many) for many in CANDIDATES},
            },
        }

    def make_presence_row(self, what: str) -> tuple[str, ...]:
        """Return the figures on a unit's presence as a table row, with the columns of `PRESENCE`."""
        return (
            what,
            write_loss(self.epsilon),
            write_factor(self.epsilon).removeprefix("a factor of "),
            *(write_probability(bound_posterior(self.epsilon, prior=prior)) for prior in _PRIORS),
            write_probability(bound_advantage(self.epsilon)),
            write_probability(bound_true_positive_rate(self.epsilon, false_positive_rate=0.01)),
        )

    def make_group_row(self, what: str) -> tuple[str, ...]:
        """Return the figures on a unit's group as a table row, with the columns of `WHICH`."""
        return (
            what,
            write_loss(2 * self.epsilon),
            write_factor(2 * self.epsilon).removeprefix("a factor of "),
            *(write_probability(bound_guess(self.epsilon, candidates=many)) for many in CANDIDATES),
        )


PRESENCE = (
    "presence of",
    "epsilon",
    "odds x",
    *(f"{100 * prior:g} % sure becomes" for prior in _PRIORS),
    "hits minus false alarms",
    "found at 1 % false alarms",
)
WHICH = ("which group, of", "epsilon", "odds x", *(f"right among {many}" for many in CANDIDATES))


def write_loss(value: float) -> str:
    """Return an epsilon as text with up to four significant digits, rounded up."""
    return f"{math.ceil(value * 1e4 - 1e-6) / 1e4:g}"


def write_probability(value: float) -> str:
    """Return a probability as percent with one decimal, rounded up. A probability near 1 is written in words."""
    percent = math.ceil(value * 1000 - 1e-7) / 10
    return "over 99.9 %" if 0.999 < value < 1 or percent >= 100 else f"{percent:.1f} %"


def _find_odds(epsilon: float) -> float | None:
    """Return the factor by which odds may change, e to the epsilon.

    Return None if it exceeds floating-point numbers.
    """
    return math.exp(epsilon) if epsilon < 700 else None
