"""Whether a measured error rate contradicts what was promised: by exact intervals, so that chance is no fault."""

from dataclasses import dataclass

from scipy import stats

from benchmarks.experiments.runs import Measured

CONFIDENCE = 0.999


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate over keys and answered runs, its two-sided Clopper-Pearson interval as if keys were independent, and the
    bound asked for."""

    rate: float
    low: float
    high: float
    asked: float

    @property
    def verdict(self) -> str:
        """`kept` and `broken` where the interval lies on one side of the bound."""
        return "kept" if self.high <= self.asked else "broken" if self.low > self.asked else "on the bound"


def compute_missed(m: Measured) -> Rate:
    """The share of true keys that was missed."""
    return _bound_rate(m.spreads["fnr"].mean, decisions=_count_answered(m) * m.positives, asked=m.fnr_asked)


def compute_wrong(m: Measured) -> Rate:
    """The share returned of the keys that are false beyond the tolerance."""
    return _bound_rate(m.spreads["fpr_contract"].mean, decisions=_count_answered(m) * m.beyond, asked=m.fpr_asked)


def is_contradicted(m: Measured) -> bool:
    """Whether one of both rates is above its bound with the confidence."""
    return not m.refused and m.denied < 1.0 and "broken" in (compute_missed(m).verdict, compute_wrong(m).verdict)


def _count_answered(m: Measured) -> int:
    return round(m.runs * (1.0 - m.denied))


def _bound_rate(rate: float, *, decisions: int, asked: float) -> Rate:
    if decisions == 0:
        return Rate(rate=0.0, low=0.0, high=0.0, asked=asked)
    errors = round(rate * decisions)
    left = (1.0 - CONFIDENCE) / 2.0
    low = float(stats.beta.ppf(left, errors, decisions - errors + 1)) if errors else 0.0
    high = float(stats.beta.ppf(1.0 - left, errors + 1, decisions - errors)) if errors < decisions else 1.0
    return Rate(rate=rate, low=low, high=high, asked=asked)
