"""The experiments' questions: thresholds, the width of the uncertain region, and how literals are combined.

The papers speak of a shift `u` and accept `y > c - u`, so that errors are allowed in `[c - 2u, c]`: Keyhole's tolerance
is `2u`. They set `u` to 30 % of the true range of the values and `c` to the mean plus three standard deviations, both
taken from the private data, so that epsilon itself depends on the data. `Setting` names the three ways used here.
"""

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np

from benchmarks.experiments.measures import Measures
from mechanisms.formula import AllOf, AnyOf, Cut, Formula
from mechanisms.protocol import DecisionTask
from mechanisms.threshold.joint_loss import expose_all_functionals

SHIFT = 0.30
NAIVE_SHIFT = 0.12
DEVIATIONS = 3.0
FNR, FPR = 0.05, 0.10
MOST_SUB_QUERIES = 6


class Setting(Enum):
    """Where the uncertain region and the threshold come from."""

    TRUE_RANGE = "true range"
    DECLARED_RANGE = "declared range"
    TENTH = "tenth of the threshold"

    @property
    def explained(self) -> str:
        """Return a line for the report."""
        return {
            Setting.TRUE_RANGE: "as published: u = 30 % of the true range (tolerance 60 %), z-score threshold;"
            " both read from the data",
            Setting.DECLARED_RANGE: "u = 30 % of the range from zero to a bound that an owner would declare;"
            " z-score threshold",
            Setting.TENTH: "as Keyhole is used: a typed threshold, tolerance 10 % of it",
        }[self]


def make_literals(measures: Measures, setting: Setting, *, shift: float = SHIFT) -> tuple[Cut, ...]:
    """One literal `S > c` per functional; `shift` is the published u as a part of the range (unused for a tenth)."""
    return tuple(_make_literal(measures, functional, setting, shift) for functional in range(len(measures.functionals)))


def _make_literal(measures: Measures, functional: int, setting: Setting, shift: float) -> Cut:
    values = measures.aggregates[functional]
    if setting is Setting.TENTH:
        return Cut(functional, measures.typed[functional], above=True, tolerance=measures.bands[functional])
    span = float(values.max() - values.min()) if setting is Setting.TRUE_RANGE else float(measures.declared[functional])
    return Cut(
        functional=functional,
        cut=int(np.floor(values.mean() + DEVIATIONS * values.std())),
        above=True,
        tolerance=max(1, int(2.0 * shift * span)),
    )


def join_all(parts: Sequence[Cut]) -> Formula:
    """All of them."""
    return AllOf(tuple(parts)) if len(parts) > 1 else parts[0]


def join_any(parts: Sequence[Cut]) -> Formula:
    """Any of them."""
    return AnyOf(tuple(parts)) if len(parts) > 1 else parts[0]


def join_mixed(parts: Sequence[Cut]) -> Formula:
    """`1`; `1 or 2`; `(1 or 2) and 3`; `(1 or 2) and (3 or 4)`; `... or 5`; `... or (5 and 6)`."""
    match tuple(parts):
        case (one,):
            return one
        case (one, two):
            return AnyOf((one, two))
        case (one, two, three):
            return AllOf((AnyOf((one, two)), three))
        case (one, two, three, four, *rest):
            both = AllOf((AnyOf((one, two)), AnyOf((three, four))))
            return AnyOf((both, join_all(rest))) if rest else both
        case _:
            raise ValueError("a question has at least one sub-query")


COMBINED: dict[str, Callable[[Sequence[Cut]], Formula]] = {
    "conjunction": join_all,
    "disjunction": join_any,
    "mixed": join_mixed,
}


def join_grouped(parts: Sequence[Cut]) -> Formula:
    """ProBE's figure 4 (c): `1 or (2 and 3)`."""
    one, two, three = parts[:3]
    return AnyOf((one, AllOf((two, three))))


def join_distributed(parts: Sequence[Cut]) -> Formula:
    """The same with the OR distributed: `(1 or 2) and (1 or 3)`."""
    one, two, three = parts[:3]
    return AllOf((AnyOf((one, two)), AnyOf((one, three))))


def has_or(formula: Formula) -> bool:
    """Whether a disjunction of several children occurs."""
    if isinstance(formula, Cut):
        return False
    return (isinstance(formula, AnyOf) and len(formula.children) > 1) or any(map(has_or, formula.children))


def make_task(formula: Formula, sensitivities: Sequence[int], *, fnr: float = FNR, fpr: float = FPR) -> DecisionTask:
    """The contract on a formula; one record may touch every functional, so losses add up (no joint loss to gain)."""
    return DecisionTask(
        formula=formula,
        sensitivities=tuple(sensitivities),
        exposures=expose_all_functionals(len(sensitivities)),
        fnr=fnr,
        fpr=fpr,
    )
