"""How a privacy unit changes what is compared while its window fills, and whether a condition that is true stays true.

Proof: docs/proofs/standing.md.
"""

from mechanisms.alarm.shapes import Regime
from mechanisms.standing.alarms import can_alarms_decide
from planner.lower.dialects.dialect import Dialect
from planner.lower.look import find_growing
from planner.question.question import Question


def list_regimes(question: Question, *, dialect: Dialect) -> tuple[Regime, ...]:
    """Return the changes by one privacy unit from look to look of one window, by functional.

    Guarantee: where no row takes anything off, a unit raises the functional by between nothing and the sensitivity; if
    rows are added alone (`append_only`), and bounding keeps what came first, never by less than at a look before.
    """
    rising = Regime.GROWING if question.table.append_only else Regime.COMING_AND_GOING
    return tuple(rising if grown else Regime.SIGNED for grown in find_growing(question, dialect=dialect))


def list_leasts(question: Question, regimes: tuple[Regime, ...]) -> tuple[int | None, ...]:
    """Return the least value by functional; None if rows take something off."""
    return tuple(
        None if regime is Regime.SIGNED else 0 if one.offsets is None else -one.offsets.largest
        for one, regime in zip(question.functionals, regimes, strict=True)
    )


def stays_true(question: Question, regimes: tuple[Regime, ...]) -> bool:
    """Return True if a formula that is true at one look is true at all later ones, or may be taken to be so.

    It may where every literal asks for more than its cut of what no row makes less. Of rows that may go away again that
    is so for a single literal, and for alternatives, where an alert tells what was true at one look. Two literals at
    once could each have been true at a look of its own.
    """
    return Regime.SIGNED not in regimes and can_alarms_decide(question.formula, regimes)
