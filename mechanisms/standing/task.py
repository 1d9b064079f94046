"""A standing question as numbers: what is watched, how it changes while data arrive, and the contract."""

from dataclasses import dataclass

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Formula
from mechanisms.protocol import Exposure


@dataclass(frozen=True, slots=True)
class StandingTask:
    """One window of one key; everything in it is public.

    The contract is that of `Standing`: at every look at which `formula` is true the key is in the answer but with
    probability `fnr`; if the formula relaxed by its tolerances is false at every look of a window, it comes into the
    answer at any of them with probability `fpr`.

    Parameters:
        formula: over functionals in integer units; what rings stays in the answer until its window closes.
        sensitivities: by functional, the most one privacy unit changes it at one look.
        exposures: what one unit changes at once, as in `DecisionTask`.
        regimes: by functional, how one unit changes it from look to look.
        leasts: by functional, what it is never below; None if nothing is known.
        looks: at most so many are made in a window; 1 where it is decided once, when the window closes.
        progressive: rough alarms before sharp ones.
        monotone: the formula, once true, stays true to the end of its window.
    """

    formula: Formula
    sensitivities: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    regimes: tuple[Regime, ...]
    leasts: tuple[int | None, ...]
    looks: int
    fnr: float
    fpr: float
    progressive: bool = False
    monotone: bool = True
