"""A standing question as numbers: what is watched, how it changes while data arrive, and the contract."""

from dataclasses import dataclass

from mechanisms.alarm.calibration import MOST_LOOKS
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Formula, list_literals
from mechanisms.protocol import Exposure


@dataclass(frozen=True, slots=True)
class StandingTask:
    """One window of one key; everything in it is public.

    The contract is that of `Standing`: at every look at which `formula` is true the key is in the answer but with
    probability `fnr`; if the formula relaxed by its tolerances is false at every look of a window, it comes into the
    answer at any of them with probability `fpr` at most.

    Parameters:
        formula: over functionals in integer units; what rings stays in the answer until its window closes.
        sensitivities: by functional, the most one privacy unit changes it at one look, >= 1.
        exposures: what one unit changes at once, as in `DecisionTask`, of a window's values at its last look.
        regimes: by functional, how one unit changes it from look to look.
        leasts: by functional, what it is never below; None if nothing is known.
        looks: at most so many are made in a window; 1 where it is decided once, when the window closes.
        fnr, fpr: in (0, 1).
        progressive: rough alarms before sharp ones.
        monotone: an alarm for each literal watches it; otherwise one watches the signed distance of the whole formula.
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

    def __post_init__(self) -> None:
        """Raise ValueError for parameters outside their ranges or of different numbers of functionals."""
        functionals = len(self.sensitivities)
        if not {len(self.regimes), len(self.leasts), *map(len, self.exposures)} <= {functionals}:
            raise ValueError("a standing question has a sensitivity, a regime and a least value for each functional")
        if not 1 <= self.looks <= MOST_LOOKS or any(sensitivity < 1 for sensitivity in self.sensitivities):
            raise ValueError("a standing question has looks, and sensitivities of a unit or more")
        if not (0.0 < self.fnr < 1.0 and 0.0 < self.fpr < 1.0):
            raise ValueError("error rates lie between 0 and 1")
        if any(not 0 <= one.functional < functionals or one.tolerance < 0 for one in list_literals(self.formula)):
            raise ValueError("a literal names an unknown functional or a negative tolerance")
