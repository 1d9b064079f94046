"""Who takes part: Keyhole's mechanisms and the published ones, each calibrated for its task.

Keyhole's own see the minimal formula, as the planner hands it over; the published ones run the tree as typed. ProBE
may spend at least `MOST_EPSILON`, about the highest loss that it reports, before it denies a question; where five
times its first phase is more, that.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.protocol import Calibration, DecisionTask, Mechanism
from mechanisms.published.probe import FIRST_PHASE, Probe
from mechanisms.published.probe_ent import ProbeEnt
from mechanisms.registry import DEFAULT, MECHANISMS
from planner.plan.minimise import minimise

OURS = (DEFAULT, "keyhole") if DEFAULT != "keyhole" else ("keyhole", "progressive")
PROBE, PROBE_ENT = "probe", "probe_ent"
PROBES = (PROBE, "probe_gradual", "probe_naive", PROBE_ENT)
MOST_EPSILON = 5.0
ALL_PROBE = ("naive", *PROBES, *OURS)
ALL_MIDE = ("nlm", "tslm", "ppwlm", "dppwlm", *OURS)


@dataclass(frozen=True, slots=True)
class Entrant:
    """One mechanism on one task.

    `label` is what tables print, `mechanism` its registered name. `first_phase` is the part of beta that a two-phase
    mechanism uses first (None: its own choice).
    """

    label: str
    mechanism: str
    task: DecisionTask
    first_phase: Fraction | None = None

    def prepare(self) -> tuple[Mechanism, Calibration]:
        """The mechanism and its calibration. Raises `Unachievable`."""
        mechanism = MECHANISMS[self.mechanism]
        if self.mechanism == "nlm":
            return mechanism, calibrate_as_tslm(self.task)
        if self.mechanism in PROBES:
            reserved = mechanism.calibrate(self.task).worst_case_epsilon
            first_phase = self.first_phase or FIRST_PHASE
            mechanism = limit_loss(self.mechanism, most_epsilon=max(MOST_EPSILON, reserved), first_phase=first_phase)
        task = self.task
        if self.mechanism in OURS:
            task = replace(task, formula=minimise(task.formula).formula)
        return mechanism, mechanism.calibrate(task)


def make_entrants(names: tuple[str, ...], task: DecisionTask) -> tuple[Entrant, ...]:
    """The named mechanisms on one task, each under its own name."""
    return tuple(Entrant(label=name, mechanism=name, task=task) for name in names)


def calibrate_as_tslm(task: DecisionTask) -> Calibration:
    """NLM as MIDE runs it: TSLM's noise and loss without the shift; nothing is promised."""
    tslm = MECHANISMS["tslm"].calibrate(task)
    return replace(
        tslm, mechanism="nlm", tests=tuple(replace(test, shift=0) for test in tslm.tests), fnr=None, fpr=None
    )


def limit_loss(name: str, *, most_epsilon: float, first_phase: Fraction) -> Mechanism:
    """One of ProBE's with a limit on its loss; `first_phase` is beta's part for phase one, where there are two."""
    match name:
        case "probe_ent":
            return ProbeEnt(most_epsilon=most_epsilon)
        case "probe_naive":
            return Probe(shares="equal", first_phase=first_phase, most_epsilon=most_epsilon)
        case _:
            return Probe(is_gradual=name == "probe_gradual", first_phase=first_phase, most_epsilon=most_epsilon)
