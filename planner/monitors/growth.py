"""How a privacy unit changes the watched values while its window fills, and if a condition that is true stays true.

Proof: docs/proofs/standing.md.
"""

from mechanisms.alarm.shapes import Regime
from mechanisms.standing.alarms import can_alarms_decide
from planner.lower.dialects.dialect import Dialect
from planner.lower.look import find_growing_functionals
from planner.question.question import Question


def list_regimes(question: Question, *, dialect: Dialect) -> tuple[Regime, ...]:
    """Return, by functional, the rule by which one privacy unit changes it from look to look of one window.

    Guarantee: if no row subtracts anything, a unit raises the functional by between zero and the sensitivity. If rows
    are only added (`append_only`), and bounding keeps the rows that came first, it never raises it by less than at an
    earlier look.
    """
    rising = Regime.GROWING if question.table.append_only else Regime.COMING_AND_GOING
    return tuple(rising if grown else Regime.SIGNED for grown in find_growing_functionals(question, dialect=dialect))


def list_leasts(question: Question, regimes: tuple[Regime, ...]) -> tuple[int | None, ...]:
    """Return, by functional, the least value that it can have.

    It is None if a row, or an earlier window, can subtract something.
    """
    return tuple(
        None if regime is Regime.SIGNED or not one.terms else 0 if one.offsets is None else -one.offsets.largest
        for one, regime in zip(question.functionals, regimes, strict=True)
    )


def stays_true_once_true(question: Question, regimes: tuple[Regime, ...]) -> bool:
    """Return True if an alert may stay: a formula that was true at one look counts as true at all later looks.

    It may be treated so if every literal is `S > c` with a value S that no row lowers. For rows that may be deleted
    this holds for a single literal. It also holds for alternatives, since an alert reports what was true at one look.
    Two literals joined by AND could each have been true at a different look.
    """
    return Regime.SIGNED not in regimes and can_alarms_decide(question.formula, regimes)
