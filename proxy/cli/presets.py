"""The budgets that `keyhole init` proposes, by the protected unit and the purpose of questions.

Each admits at least thirty ordinary questions on one data version. An ordinary question is `count(DISTINCT unit) > 500`
at the preset's tolerance, by keys with each unit in `GROUPS` groups.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from math import exp

GROUPS = 4  # of a person in one answer: months of a quarter, shops of a town
PRIOR = 0.01  # the probability that an attacker guessed before, in the comments on budgets


class Unit(StrEnum):
    """The privacy unit for which a starter policy is written."""

    PERSON = "person"
    VISIT = "visit"
    ROW = "row"


class Purpose(StrEnum):
    """The kind of questions for which a starter policy is written.

    They are a fixed set that is asked again and again, questions as they come up, or a few exact ones.
    """

    DASHBOARD = "dashboard"
    AD_HOC = "ad-hoc"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class ManyGroups:
    """The settings that allow more questions about units in many groups: a delta and a lower cap on one question.

    Expensive questions gain nothing by a delta and would use up what it adds.
    """

    delta: float
    per_query: float


@dataclass(frozen=True, slots=True)
class Preset:
    """Accuracy and budgets in a policy's units: tolerance in percent of a threshold, budgets in epsilon.

    `many_groups` is offered to owners whose units are in many groups of an answer.
    """

    tolerance: int
    per_predicate: float
    per_unit: float
    per_query: float
    many_groups: "ManyGroups | None" = None


# One in a billion: of a million such policies, one in a thousand ever meets it. Of 25 ordinary questions, households in
# 53 weeks had 23 answered at 0.3 for a group, and 18 at 0.5: seven dear ones took most of the balance (decision 21).
_MANY = ManyGroups(delta=1e-9, per_query=0.3)

# One question costs a group 4 / (tolerance x 500): .053 at 15 %. Sharper ones cost more, so an audit may ask fewer.
_PERSON: Mapping[Purpose, Preset] = {
    Purpose.DASHBOARD: Preset(tolerance=15, per_predicate=4.0, per_unit=8.0, per_query=0.5, many_groups=_MANY),
    Purpose.AD_HOC: Preset(
        tolerance=20, per_predicate=3.0, per_unit=6.0, per_query=0.25, many_groups=replace(_MANY, per_query=0.25)
    ),
    Purpose.AUDIT: Preset(tolerance=10, per_predicate=5.0, per_unit=10.0, per_query=2.0, many_groups=_MANY),
}
_SINGLE: Mapping[Purpose, Preset] = {
    Purpose.DASHBOARD: Preset(tolerance=10, per_predicate=3.0, per_unit=3.0, per_query=0.5),
    Purpose.AD_HOC: Preset(tolerance=15, per_predicate=2.0, per_unit=2.0, per_query=0.25),
    Purpose.AUDIT: Preset(tolerance=5, per_predicate=5.0, per_unit=5.0, per_query=2.0),
}


def choose_preset(unit: Unit, purpose: Purpose) -> Preset:
    """Return the preset for a unit and a purpose.

    A visit or a row is in one group of an answer, a person in several.
    """
    return (_PERSON if unit is Unit.PERSON else _SINGLE)[purpose]


def compute_posterior(epsilon: float) -> float:
    """Return the highest probability of a person's presence that anybody can reach by a loss of `epsilon`.

    The probability before was one in a hundred.
    """
    odds = PRIOR / (1.0 - PRIOR) * exp(epsilon)
    return odds / (1.0 + odds)
