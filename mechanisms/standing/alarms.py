"""A formula of thresholds watched through a window: one alarm for each threshold, combined by the formula.

A literal counts as true once its alarm has rung. A key enters the answer at the first look at which the formula is true
in this sense, and stays until the window closes. No further look is taken at a key in the answer, and its alarms keep
no secret.

| here | the proof |
|---|---|
| `literals`, `ladders` | the literals, an alarm for each; a ladder with one rung is an alarm |
| `worst_case_epsilon`, `compute_spent_losses` | the loss of all rungs, of those that have begun |

Proof: docs/proofs/standing.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from mechanisms.alarm.calibration import AlarmTask, calibrate_alarm, price_alarm
from mechanisms.alarm.ladder import LadderCalibration, LadderState, calibrate_ladder, climb_at_values, draw_ladders
from mechanisms.alarm.run import AlarmState
from mechanisms.alarm.shapes import Regime
from mechanisms.alarm.weights import ROUNDED
from mechanisms.apportionment.clauses import derive_constraints
from mechanisms.apportionment.keyhole import Objective, Shares, apportion_by_clauses, apportion_by_trees
from mechanisms.apportionment.tree import bound_tree
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers, evaluate_formula, list_literals
from mechanisms.protocol import Epsilons, Exposure, Noise, Unachievable
from mechanisms.standing.sealed import compute_digest
from mechanisms.standing.standing_protocol import LookResult
from mechanisms.standing.standing_task import StandingTask
from mechanisms.standing.window_state import AlarmWindow, RungState, find_watched_keys, read_window, write_window
from mechanisms.threshold.joint_loss import compute_joint_loss, drop_dominated_exposures, expose_all_functionals
from mechanisms.threshold.one_shot import round_up_to_float

_ROUNDED_DOWN = 1.0 - 2.0**-40  # of a share that others are added to: more than additions of floats lose
_MOST_ATTEMPTS = 40  # at shares that add up: the first does, but for what alarms cannot keep


def can_alarms_decide(formula: Formula, regimes: Sequence[Regime]) -> bool:
    """Return True if one alarm for each literal keeps the contract.

    It does for AND and OR of values above their cuts, if the values under an AND only grow. Other values might be above
    their cuts one after the other, and never at the same time.

    Guarantee: docs/proofs/standing.md.

    >>> many, long = Cut(0, 100, above=True, tolerance=10), Cut(1, 60, above=True, tolerance=5)
    >>> [can_alarms_decide(AllOf((many, long)), [Regime.GROWING, other]) for other in list(Regime)[:2]]
    [True, False]
    """
    match formula:
        case Cut():
            return formula.above
        case AnyOf(children):
            return all(can_alarms_decide(child, regimes) for child in children)
        case AllOf(children):
            grows = all(one.above and regimes[one.functional] is Regime.GROWING for one in list_literals(formula))
            return grows or (len(children) == 1 and can_alarms_decide(children[0], regimes))


@dataclass(frozen=True, slots=True)
class StandingAlarms:
    """A calibrated standing question with one alarm, or ladder, for each threshold. It implements `Standing`.

    `literals` are its thresholds, each once. `ladders` has the alarm of each.

    Guarantee: the contract of `StandingTask`, with `fnr` and `fpr` at most those of the task. Through one key's window,
    one privacy unit loses `worst_case_epsilon` at most. Up to a given state it loses `compute_spent_losses` at most
    (docs/proofs/standing.md).
    """

    task: StandingTask
    literals: tuple[Cut, ...]
    ladders: tuple[LadderCalibration, ...]
    fnr: float
    fpr: float
    worst_case_epsilon: float
    digest: bytes = field(repr=False)

    def draw_state(self, *, keys: int, noise: Noise) -> bytes:
        """Draw the random numbers of a window's state, and return the state as bytes.

        Each key, literal and rung has a number of its own. The contract is that of `Standing.draw_state`.
        """
        rungs = []
        for ladder in self.ladders:
            drawn = draw_ladders(ladder, keys=keys, noise=noise)
            rungs += [
                RungState(rang_at=_make_zeros(keys), watched=tuple(state.rungs[place] for state in drawn))
                for place in range(len(ladder.rungs))
            ]
        return self._write(AlarmWindow(last_look=0, alerted_at=_make_zeros(keys), rungs=tuple(rungs), is_over=False))

    def take_look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> LookResult:
        """Return the state after one look, and the keys in the answer, as `Standing.take_look` does.

        Keys that are already in the answer are skipped.
        """
        before = self._read(state)
        if values.shape != (len(self.task.sensitivities), before.alerted_at.size):
            raise ValueError("a look has a value of each functional for each key")
        if not before.last_look < look <= self.task.looks:
            raise ValueError("a window's looks are made in order, and no more than it was calibrated for")
        open_keys = np.flatnonzero(before.alerted_at == 0)
        climbed, place = [], 0
        for literal, ladder in zip(self.literals, self.ladders, strict=True):
            states = _list_ladder_states(before, slice(place, place + len(ladder.rungs)))
            seen = values[literal.functional][open_keys]
            if ladder.task.looks == self.task.looks:
                climbed.append(climb_at_values(ladder, states, seen, look=look, noise=noise))
            elif before.last_look == 0:
                climbed.append(climb_at_values(ladder, states, seen, look=1, noise=noise))
            else:
                climbed.append(tuple(states))
            place += len(ladder.rungs)
        return self._apply_formula(before, climbed, open_keys, look)

    def compute_spent_losses(self, state: bytes) -> Epsilons:
        """Return each key's loss so far: zero before the first look, then the loss of the begun rungs."""
        window = self._read(state)
        keys = window.alerted_at.size
        if window.last_look == 0:
            return np.zeros(keys)
        begun, place = [], 0
        for ladder in self.ladders:
            before_last = window.rungs[place : place + len(ladder.rungs) - 1]
            begun.append(1 + sum((rung.rang_at > 0 for rung in before_last), start=_make_zeros(keys)))
            place += len(ladder.rungs)
        if not begun:
            return np.zeros(keys)
        ways, which = np.unique(np.stack(begun), axis=1, return_inverse=True)
        losses = np.array([_bound_loss(self.task, self.literals, self.ladders, way) for way in ways.T.tolist()])
        spent: Epsilons = losses[which.reshape(-1)]
        return spent

    def _apply_formula(
        self, before: AlarmWindow, climbed: Sequence[Sequence[LadderState]], open_keys: Integers, look: int
    ) -> LookResult:
        """Decide the formula from the alarms of `open_keys`, the keys that were not in the answer."""
        rung = {
            _identify_alarm(literal): np.array([state.rang_at > 0 for state in states], dtype=np.bool_)
            for literal, states in zip(self.literals, climbed, strict=True)
        }
        held = evaluate_formula(self.task.formula, lambda literal: rung[_identify_alarm(literal)], keys=open_keys.size)
        alerted_at = before.alerted_at.copy()
        alerted_at[open_keys[held]] = look
        over = look == self.task.looks
        columns = [
            [state.rungs[place] for state in states]
            for ladder, states in zip(self.ladders, climbed, strict=True)
            for place in range(len(ladder.rungs))
        ]
        rungs = []
        for earlier, column in zip(before.rungs, columns, strict=True):
            rang_at = earlier.rang_at.copy()
            rang_at[open_keys] = [state.rang_at for state in column]
            watched = find_watched_keys(alerted_at, rang_at, is_over=over)[open_keys].tolist()
            kept = tuple(state for state, watches in zip(column, watched, strict=True) if watches)
            rungs.append(RungState(rang_at=rang_at, watched=kept))
        after = AlarmWindow(last_look=look, alerted_at=alerted_at, rungs=tuple(rungs), is_over=over)
        return LookResult(state=self._write(after), alerted=alerted_at > 0)

    def _write(self, state: AlarmWindow) -> bytes:
        return write_window(state, digest=self.digest)

    def _read(self, state: bytes) -> AlarmWindow:
        rungs = sum(len(ladder.rungs) for ladder in self.ladders)
        return read_window(state, digest=self.digest, rungs=rungs, looks=self.task.looks)


def calibrate_standing_alarms(
    task: StandingTask, *, rises: bool = False, constant: frozenset[int] = frozenset()
) -> StandingAlarms:
    """Calibrate the alarms of least loss that keep a standing question's contract.

    They are ladders if the task is `progressive`.

    Parameters:
        rises: True if no value ever falls, although a unit may change values in both directions.
        constant: the functionals whose values are the same at all looks of a window. Their alarms look once.

    Guarantee: that of `StandingAlarms`, checked by the alarms' own rates (docs/proofs/standing.md).

    Raises:
        Unachievable: alarms cannot decide the formula, or the rates sum to one or more; also as `calibrate_alarm`.

    >>> both = AllOf(tuple(Cut(functional, 400, above=True, tolerance=39) for functional in (0, 1)))
    >>> growing = {"regimes": (Regime.GROWING,) * 2, "least_values": (0, 0)}
    >>> task = StandingTask(both, (1, 1), expose_all_functionals(2), looks=24, fnr=0.05, fpr=0.1, **growing)
    >>> round(calibrate_standing_alarms(task).worst_case_epsilon * 40, 3)
    15.566
    """
    regimes = (Regime.GROWING,) * len(task.regimes) if rises else task.regimes
    if not task.monotone or not can_alarms_decide(task.formula, regimes):
        raise Unachievable("alarms watch AND and OR of values above their thresholds, under an AND such as only grow")
    if task.fnr + task.fpr >= 1.0:
        raise Unachievable("error rates that sum to one or more promise nothing")
    literals = _list_literals(task.formula)
    if not literals:
        return _make_standing_alarms(task, (), (), fnr=0.0, fpr=0.0)
    apart = _separate_functionals(task.formula, literals)
    looks = tuple(1 if literal.functional in constant else task.looks for literal in literals)
    shares = _apportion_error_rates(task, apart, literals, looks)
    given = _ROUNDED_DOWN if len(literals) > 1 else 1.0
    for _ in range(_MOST_ATTEMPTS):
        ladders = tuple(
            _calibrate_literal(task, literal, own, fnr=min(task.fnr, fnr * given), fpr=min(task.fpr, fpr * given))
            for literal, own, fnr, fpr in zip(literals, looks, shares.fnr, shares.fpr, strict=True)
        )
        fnr = _bound_rates(apart, [ladder.fnr for ladder in ladders], is_fnr=True)
        fpr = _bound_rates(apart, [ladder.fpr for ladder in ladders], is_fnr=False)
        excess = max(fnr / task.fnr, fpr / task.fpr)
        if excess <= 1.0:
            return _make_standing_alarms(task, literals, ladders, fnr=fnr, fpr=fpr)
        given *= _ROUNDED_DOWN / excess
    raise Unachievable("no shares of the error rates are kept by an alarm for each threshold")


def _make_standing_alarms(
    task: StandingTask, literals: tuple[Cut, ...], ladders: tuple[LadderCalibration, ...], *, fnr: float, fpr: float
) -> StandingAlarms:
    loss = _bound_loss(task, literals, ladders, [len(ladder.rungs) for ladder in ladders])
    return StandingAlarms(
        task=task,
        literals=literals,
        ladders=ladders,
        fnr=fnr,
        fpr=fpr,
        worst_case_epsilon=loss,
        digest=compute_digest((task, literals, ladders)),
    )


def _identify_alarm(literal: Cut) -> tuple[int, int]:
    """Return the functional and cut of a literal. Literals with the same pair share an alarm."""
    return literal.functional, literal.cut


def _list_literals(formula: Formula) -> tuple[Cut, ...]:
    """Return each threshold of each functional once, in order of appearance, with its least tolerance."""
    found: dict[tuple[int, int], Cut] = {}
    for literal in list_literals(formula):
        known = found.setdefault(_identify_alarm(literal), literal)
        if literal.tolerance < known.tolerance:
            found[_identify_alarm(literal)] = literal
    return tuple(found.values())


def _calibrate_literal(task: StandingTask, literal: Cut, looks: int, *, fnr: float, fpr: float) -> LadderCalibration:
    functional = literal.functional
    asked = AlarmTask(
        looks=looks,
        cut=literal.cut,
        tolerance=literal.tolerance,
        sensitivity=task.sensitivities[functional],
        fnr=fnr,
        fpr=fpr,
        regime=task.regimes[functional],
        least_value=task.least_values[functional],
    )
    try:
        if task.progressive:
            return calibrate_ladder(asked)
        alarm = calibrate_alarm(asked)
    except Unachievable as refusal:
        raise Unachievable(refusal.reason, functional=functional) from refusal
    return LadderCalibration(
        task=asked,
        rungs=(alarm,),
        loss=alarm.loss,
        worst_case_epsilon=alarm.worst_case_epsilon,
        fnr=alarm.fnr,
        fpr=alarm.fpr,
    )


def _list_literal_exposures(task: StandingTask, literals: Sequence[Cut]) -> tuple[Exposure, ...]:
    """Return exposures of the literals: the parts by which one unit changes their values at once.

    If a value may also fall, one unit counts as changing all of them in full.
    """
    if any(task.regimes[literal.functional] is not Regime.GROWING for literal in literals):
        return expose_all_functionals(len(literals))
    return drop_dominated_exposures(tuple(one[literal.functional] for literal in literals) for one in task.exposures)


def _bound_loss(
    task: StandingTask, literals: Sequence[Cut], ladders: Sequence[LadderCalibration], begun: Sequence[int]
) -> float:
    """Return the joint loss of the begun rungs of each ladder, rounded up.

    The `ROUNDED` of each rung is added in full, since rounding is not part of the unit's change.
    """
    exact = [
        sum((rung.loss - ROUNDED for rung in ladder.rungs[:rungs]), start=Fraction(0))
        for ladder, rungs in zip(ladders, begun, strict=True)
    ]
    if not exact:
        return 0.0
    return round_up_to_float(compute_joint_loss(exact, _list_literal_exposures(task, literals)) + sum(begun) * ROUNDED)


def _separate_functionals(formula: Formula, literals: Sequence[Cut]) -> Formula:
    """Return the formula with a separate functional for each alarm."""
    places = {_identify_alarm(literal): place for place, literal in enumerate(literals)}
    return formula.map_literals(lambda one: replace(one, functional=places[_identify_alarm(one)], cut=0, tolerance=0))


def _apportion_error_rates(task: StandingTask, apart: Formula, literals: Sequence[Cut], looks: Sequence[int]) -> Shares:
    """Return the shares of the error rates for the literals: Keyhole's split with the price of an alarm as loss."""

    def find_loss(place: int, fnr: float, fpr: float) -> tuple[float, float, float]:
        literal = literals[place]
        regime = task.regimes[literal.functional]
        scale = task.sensitivities[literal.functional] / (literal.tolerance + 1)
        price = price_alarm(looks=looks[place], fnr=fnr, fpr=fpr, regime=regime)
        slope = -regime.loss_factor * scale
        return price * scale, slope * regime.draw_shape.root, slope / regime.draw_shape.rise

    objective = Objective(
        formulas=(apart,),
        used_functionals=tuple(range(len(literals))),
        functional_count=len(literals),
        exposures=_list_literal_exposures(task, literals),
        loss=find_loss,
        fnr=task.fnr,
        fpr=task.fpr,
        is_tied=False,
    )
    exact = derive_constraints(apart)
    if exact is None:
        return apportion_by_trees(objective)
    return apportion_by_clauses(
        objective, fnr=exact.fnr, fpr=exact.fpr, weigh_fnr=_give_weight_one, weigh_fpr=_give_weight_one
    )


def _give_weight_one(functional: int, distance: int) -> float:
    """Return the weight one: an alarm's error rate is its share at any distance."""
    del functional, distance
    return 1.0


def _bound_rates(apart: Formula, rates: Sequence[float], *, is_fnr: bool) -> float:
    """Bound the formula's error rate by its literals' rates: the largest sum over its terms, or over its clauses."""
    exact = derive_constraints(apart)
    if exact is not None:
        sets = [[part.functional for part in one.parts] for one in (exact.fnr if is_fnr else exact.fpr)]
        return round_up_to_float(max(sum((Fraction(rates[place]) for place in one), start=Fraction(0)) for one in sets))
    bound, leaves = bound_tree(apart, lambda literal: rates[literal.functional], is_fnr=is_fnr)
    return round_up_to_float(
        Fraction(bound) * (1 + Fraction(sum(leaves.values()), 1 << 52))
    )  # more than additions lose


def _list_ladder_states(window: AlarmWindow, rungs: slice) -> list[LadderState]:
    """Return the ladder states of one literal, for the keys that are not in the answer.

    A rung that has rung has a state without secrets.
    """
    here = window.alerted_at == 0
    columns = []
    for rung in window.rungs[rungs]:
        left = iter(rung.watched)
        columns.append(
            [
                AlarmState(0, 0, 0, 0, window.last_look, rang_at) if rang_at else next(left)
                for rang_at in rung.rang_at[here].tolist()
            ]
        )
    return [LadderState(own) for own in zip(*columns, strict=True)]


def _make_zeros(keys: int) -> Integers:
    return np.zeros(keys, dtype=np.int64)
