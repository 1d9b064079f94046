"""A standing question as numbers: its formula, how units change its values over time, and its contract."""

from dataclasses import dataclass

from mechanisms.alarm.calibration import MOST_LOOKS
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Formula, list_literals
from mechanisms.protocol import Exposure


@dataclass(frozen=True, slots=True)
class StandingTask:
    """One window of one key. All of it is public.

    The contract is that of `Standing`. At a look at which `formula` is true, the key is missing with probability `fnr`
    at most. If the formula relaxed by its tolerances is false at every look of a window, the key enters the answer in
    that window with probability `fpr` at most.

    Parameters:
        formula: over functionals in integer units. A key that enters the answer stays until its window closes.
        sensitivities: by functional, the most one privacy unit changes it at one look, >= 1.
        exposures: as in `DecisionTask`, for a window's values at its last look.
        regimes: by functional, how one unit changes it from look to look.
        least_values: by functional, a lower bound of its values, None if none is known.
        looks: the most looks of a window, 1 if it is decided only when it closes.
        fnr, fpr: in (0, 1).
        progressive: True for ladders, with rough alarms before sharp ones.
        monotone: True for an alarm on each literal, False for one alarm on the signed distance of the whole formula.
    """

    formula: Formula
    sensitivities: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    regimes: tuple[Regime, ...]
    least_values: tuple[int | None, ...]
    looks: int
    fnr: float
    fpr: float
    progressive: bool = False
    monotone: bool = True

    def __post_init__(self) -> None:
        """Raise ValueError for parameters outside their ranges or of different numbers of functionals."""
        functionals = len(self.sensitivities)
        if not {len(self.regimes), len(self.least_values), *map(len, self.exposures)} <= {functionals}:
            raise ValueError("a standing question has a sensitivity, a regime and a least value for each functional")
        if not 1 <= self.looks <= MOST_LOOKS or any(sensitivity < 1 for sensitivity in self.sensitivities):
            raise ValueError("a standing question has looks, and sensitivities of a unit or more")
        if not (0.0 < self.fnr < 1.0 and 0.0 < self.fpr < 1.0):
            raise ValueError("error rates lie between 0 and 1")
        if any(not 0 <= one.functional < functionals or one.tolerance < 0 for one in list_literals(self.formula)):
            raise ValueError("a literal names an unknown functional or a negative tolerance")
