"""From shares to tests to a verified promise: the contract of one question, met by one test per functional.

The shares are chosen by apportionment, the tests calibrated from them, and then the whole contract is checked
with the tests' exact error rates; where an interval's two sides weigh more than its shares allowed for, the
shares shrink until it holds. What is reported is what was checked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from mechanisms.apportionment.clauses import Constraint, Constraints, constraints
from mechanisms.apportionment.keyhole import LossCurve, Objective, Shares, keyhole_shares, tree_shares
from mechanisms.apportionment.tree import tree_bound
from mechanisms.formula import Formula, cuts
from mechanisms.protocol import (
    Calibration,
    DecisionTask,
    Exposure,
    Foreseen,
    ForeseenTest,
    FunctionalTest,
    Unachievable,
)
from mechanisms.threshold.joint_loss import check_covered, drop_dominated, joint_loss
from mechanisms.threshold.one_shot import acceptance, at_least, rejection
from mechanisms.threshold.three_zone import PROMISED

TREE_NOTE = "Too many literals to enumerate: the rates are split over the tree as typed, which may cost more."
EMPTY_PROMISE_NOTE = "Within the tolerances the formula always holds: the false-positive promise is empty."

_RESOLVED = 4  # attempts that apportion anew with the tests' true weights; later ones shrink shares, which always ends
_MOST_ATTEMPTS = 40  # shrinking converges in a few; beyond, an interval is narrower than its tolerances
_ROUNDED = 1e-9
"""What a bound on a loss gives away to rounding, many times what a sum of 64 products can lose."""


@dataclass(frozen=True, slots=True)
class OneShotKind:
    """How one functional is tested: what a pair of shares costs, and the test that meets it.

    `loss(f, fnr, fpr)` gives epsilon and its slopes; `calibrate(f, fnr, fpr)` the test, or raises `Unachievable`.
    `tied` when only the smaller share counts. `missed(test, distance)` and `wrong(test, distance)` bound the
    rates at which the literal is rejected and accepted at a distance. `foresee(f, fnr, fpr)` says what is known of the
    test before it is calibrated, where there is anything to be known for less time.
    """

    loss: LossCurve
    calibrate: Callable[[int, float, float], FunctionalTest]
    tied: bool
    missed: Callable[[FunctionalTest, int], float] = rejection
    wrong: Callable[[FunctionalTest, int], float] = acceptance
    foresee: Callable[[int, float, float], ForeseenTest] | None = None


def check_task(task: DecisionTask) -> None:
    """Raises `Unachievable` for rates outside (0, 1) or summing to one, ValueError for a task that is malformed."""
    if not (0.0 < task.fnr < 1.0 and 0.0 < task.fpr < 1.0):
        raise Unachievable("error rates must lie strictly between 0 and 1")
    if task.fnr + task.fpr >= 1.0:
        raise Unachievable("error rates that sum to one or more promise nothing")
    if any(sensitivity < 1 for sensitivity in task.sensitivities):
        raise ValueError("sensitivities are integers of at least one unit")
    for cut in cuts(task.formula):
        if not 0 <= cut.functional < len(task.sensitivities) or cut.tolerance < 0:
            raise ValueError("a literal names an unknown functional or a negative tolerance")


def tolerances(formula: Formula, functionals: int) -> tuple[int, ...]:
    """Each functional's tolerance: the least of its literals', zero where it has none."""
    least: dict[int, int] = {}
    for cut in cuts(formula):
        least[cut.functional] = min(cut.tolerance, least.get(cut.functional, cut.tolerance))
    return tuple(least.get(functional, 0) for functional in range(functionals))


def exact_epsilon(test: FunctionalTest, sensitivity: int) -> Fraction:
    """What one privacy unit can reveal through one noisy value."""
    return test.rate * (sensitivity if test.block == 1 else 1)


def idle_test(task: DecisionTask) -> FunctionalTest:
    """Stands for a functional that the formula does not mention: nothing is drawn, nothing is revealed."""
    return FunctionalTest(
        epsilon=0.0,
        rate=Fraction(0),
        shift=0,
        tie=Fraction(0),
        fnr=task.fnr,
        fpr=task.fpr,
        tolerance=0,
    )


def meet_contract(
    mechanism: str, task: DecisionTask, kind: OneShotKind, *, foreseen: Foreseen | None = None
) -> Calibration:
    """Calibrate one test per functional so that the question's contract holds, for the least joint loss.

    Parameters:
        foreseen: what `foresee_contract` found for the same task and kind, where it was asked before.

    Guarantee: `fnr` and `fpr` of the result are upper bounds under any dependence between the functionals,
    computed from the tests' exact laws, and at most the task's.

    Raises:
        Unachievable: no finite loss meets the contract.

    References: docs/proofs/apportionment.md.
    """
    check_task(task)
    used = _list_mentioned(task.formula)
    tests = [idle_test(task)] * len(task.sensitivities)
    if not used:
        return Calibration(mechanism=mechanism, task=task, tests=tuple(tests), worst_case_epsilon=0.0, fnr=0.0, fpr=0.0)
    objective = _objective(task, kind, used)
    exact = constraints(task.formula)
    shares = None if foreseen is None else Shares(fnr=foreseen.fnr, fpr=foreseen.fpr)
    for attempt in range(_MOST_ATTEMPTS):
        if shares is None or (exact is not None and 0 < attempt < _RESOLVED):
            shares = _apportion(objective, exact, tests if attempt else None, task)
        for functional in used:
            tests[functional] = kind.calibrate(functional, shares.fnr[functional], shares.fpr[functional])
        rates = _TestRates.of(tests, kind)
        broken = _find_excesses(task, exact, rates)
        if not broken.fnr and not broken.fpr:
            return _make_calibration(mechanism, task, tests, exact, rates)
        if exact is None or attempt >= _RESOLVED - 1:
            shares = Shares(fnr=_shrunk(shares.fnr, broken.fnr), fpr=_shrunk(shares.fpr, broken.fpr))
    raise Unachievable("the tolerances are too narrow for both error rates on every interval")


def foresee_contract(task: DecisionTask, kind: OneShotKind) -> Foreseen | None:
    """What `meet_contract` will come to, as far as the shares alone say it.

    Guarantee: where it is not None, `meet_contract` returns a calibration with these shares and blocks, and epsilons
    within these bounds. None where calibrated tests may change the shares, as on intervals, or where the formula is
    constant.

    Parameters:
        kind: whose tests err at most at `PROMISED` times their shares, at distances from 1 on and from the tolerance
            down, and whose `foresee` is there.

    Raises:
        Unachievable: no finite loss meets the contract.

    References: docs/proofs/apportionment.md, "Before the tests are calibrated".
    """
    assert kind.foresee is not None
    check_task(task)
    used = _list_mentioned(task.formula)
    if not used:
        return None
    exact = constraints(task.formula)
    shares = _apportion(_objective(task, kind, used), exact, None, task)
    if not _surely_kept(task, exact, shares):
        return None
    tests: list[ForeseenTest | None] = [None] * len(task.sensitivities)
    for functional in used:
        tests[functional] = kind.foresee(functional, shares.fnr[functional], shares.fpr[functional])
    worst = max(
        sum(float(part) * test.least_epsilon for part, test in zip(exposure, tests, strict=True) if test is not None)
        for exposure in task.exposures
    )
    return Foreseen(
        task=task, fnr=shares.fnr, fpr=shares.fpr, tests=tuple(tests), least_epsilon=worst * (1.0 - _ROUNDED)
    )


def _surely_kept(task: DecisionTask, exact: Constraints | None, shares: Shares) -> bool:
    """Whether no test that keeps its shares can break the contract: none is ever asked at a distance in between."""
    near = tolerances(task.formula, len(task.sensitivities))

    def chance_missed(functional: int, distance: int) -> float:
        return PROMISED * shares.fnr[functional] if distance >= 1 else 1.0

    def wrong(functional: int, distance: int) -> float:
        return PROMISED * shares.fpr[functional] if distance <= -near[functional] else 1.0

    if exact is None:
        fnr = tree_bound(task.formula, lambda cut: chance_missed(cut.functional, 1), fnr=True)[0]
        fpr = tree_bound(task.formula, lambda cut: wrong(cut.functional, -cut.tolerance), fnr=False)[0]
        return fnr <= task.fnr and fpr <= task.fpr
    return not _excesses(exact.fnr, chance_missed, task.fnr) and not _excesses(exact.fpr, wrong, task.fpr)


def keep_contract(mechanism: str, task: DecisionTask, kind: OneShotKind, shares: Shares) -> Calibration:
    """Calibrate one test per functional for shares apportioned before; they shrink where the contract needs it.

    Guarantee: that of `meet_contract`.

    Raises:
        Unachievable: no finite loss meets the contract.
    """
    check_task(task)
    used = _list_mentioned(task.formula)
    tests = [idle_test(task)] * len(task.sensitivities)
    exact = constraints(task.formula)
    for _ in range(_MOST_ATTEMPTS):
        for functional in used:
            tests[functional] = kind.calibrate(functional, shares.fnr[functional], shares.fpr[functional])
        rates = _TestRates.of(tests, kind)
        broken = _find_excesses(task, exact, rates)
        if not broken.fnr and not broken.fpr:
            return _make_calibration(mechanism, task, tests, exact, rates)
        shares = Shares(fnr=_shrunk(shares.fnr, broken.fnr), fpr=_shrunk(shares.fpr, broken.fpr))
    raise Unachievable("the tolerances are too narrow for both error rates on every interval")


def _list_mentioned(formula: Formula) -> tuple[int, ...]:
    return tuple(sorted({cut.functional for cut in cuts(formula)}))


def _objective(task: DecisionTask, kind: OneShotKind, used: tuple[int, ...]) -> Objective:
    return Objective(
        formula=task.formula,
        used=used,
        functionals=len(task.sensitivities),
        exposures=_used_exposures(task, used),
        loss=kind.loss,
        fnr=task.fnr,
        fpr=task.fpr,
        tied=kind.tied,
    )


def _used_exposures(task: DecisionTask, used: Sequence[int]) -> tuple[Exposure, ...]:
    """The exposures' parts of the formula's functionals, in the order of `used`, without those that others cover."""
    check_covered(used, task.exposures)
    return drop_dominated(tuple(exposure[functional] for functional in used) for exposure in task.exposures)


def _apportion(
    objective: Objective, exact: Constraints | None, tests: Sequence[FunctionalTest] | None, task: DecisionTask
) -> Shares:
    if exact is None:
        return tree_shares(objective)
    near = tolerances(task.formula, objective.functionals)

    def weigh_fnr(functional: int, distance: int) -> float:
        if tests is None or distance <= 1:
            return 1.0 if distance <= 1 else 0.0
        return rejection(tests[functional], distance) / rejection(tests[functional], 1)

    def weigh_fpr(functional: int, distance: int) -> float:
        edge = -near[functional]
        if tests is None or distance >= edge:
            return 1.0 if distance >= edge else 0.0
        return acceptance(tests[functional], distance) / acceptance(tests[functional], edge)

    return keyhole_shares(objective, fnr=exact.fnr, fpr=exact.fpr, weigh_fnr=weigh_fnr, weigh_fpr=weigh_fpr)


@dataclass(frozen=True, slots=True)
class _Broken:
    """By functional, the factor its share must shrink by."""

    fnr: dict[int, float]
    fpr: dict[int, float]


@dataclass(frozen=True, slots=True)
class _TestRates:
    """Each test's error rates by functional and distance, each computed once: the check and the result read them."""

    missed: Callable[[int, int], float]
    wrong: Callable[[int, int], float]

    @staticmethod
    def of(tests: Sequence[FunctionalTest], kind: OneShotKind) -> "_TestRates":
        given = tuple(tests)
        return _TestRates(
            missed=cache(lambda functional, distance: kind.missed(given[functional], distance)),
            wrong=cache(lambda functional, distance: kind.wrong(given[functional], distance)),
        )

    def of_tree(self, formula: Formula) -> tuple[float, float]:
        """The whole formula's bounds."""
        fnr, _ = tree_bound(formula, lambda cut: self.missed(cut.functional, 1), fnr=True)
        fpr, _ = tree_bound(formula, lambda cut: self.wrong(cut.functional, -cut.tolerance), fnr=False)
        return fnr, fpr


def _find_excesses(task: DecisionTask, exact: Constraints | None, rates: _TestRates) -> _Broken:
    if exact is not None:
        return _Broken(
            fnr=_excesses(exact.fnr, rates.missed, task.fnr), fpr=_excesses(exact.fpr, rates.wrong, task.fpr)
        )
    fnr, fpr = rates.of_tree(task.formula)
    every = {cut.functional for cut in cuts(task.formula)}
    return _Broken(
        fnr=dict.fromkeys(every, task.fnr / fnr) if fnr > task.fnr else {},
        fpr=dict.fromkeys(every, task.fpr / fpr) if fpr > task.fpr else {},
    )


def _excesses(sums: Sequence[Constraint], rate: Callable[[int, int], float], bound: float) -> dict[int, float]:
    factors: dict[int, float] = {}
    for constraint in sums:
        value = constraint.probability(rate)
        if value > bound:
            for part in constraint.parts:
                factors[part.functional] = min(factors.get(part.functional, 1.0), bound / value)
    return factors


def _shrunk(shares: Sequence[float], factors: dict[int, float]) -> tuple[float, ...]:
    return tuple(
        share * factors[functional] * (1.0 - 1e-6) if functional in factors else share
        for functional, share in enumerate(shares)
    )


def _make_calibration(
    mechanism: str,
    task: DecisionTask,
    tests: Sequence[FunctionalTest],
    exact: Constraints | None,
    rates: _TestRates,
) -> Calibration:
    notes: list[str] = []
    if exact is None:
        fnr, fpr = rates.of_tree(task.formula)
        notes.append(TREE_NOTE)
    else:
        fnr = max((c.probability(rates.missed) for c in exact.fnr), default=0.0)
        fpr = max((c.probability(rates.wrong) for c in exact.fpr), default=0.0)
        if not exact.fpr:
            notes.append(EMPTY_PROMISE_NOTE)
    losses = [exact_epsilon(test, sensitivity) for test, sensitivity in zip(tests, task.sensitivities, strict=True)]
    return Calibration(
        mechanism=mechanism,
        task=task,
        tests=tuple(_with_epsilon(test, at_least(loss)) for test, loss in zip(tests, losses, strict=True)),
        worst_case_epsilon=at_least(joint_loss(losses, task.exposures)),
        fnr=fnr,
        fpr=fpr,
        notes=tuple(notes),
    )


def _with_epsilon(test: FunctionalTest, epsilon: float) -> FunctionalTest:
    return test if test.epsilon == epsilon else replace(test, epsilon=epsilon)
