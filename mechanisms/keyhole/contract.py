"""The contract of one question, met by one test for each functional: from shares to tests to verified rates.

A question may decide several formulas. Then each of them keeps the contract by itself, and the tests that they share
cost the least for all of them together.

Apportionment chooses the shares, and the tests are calibrated from them. Then the whole contract is checked with the
tests' exact error rates. If the two sides of an interval err more than the shares allow, the shares shrink until the
contract holds. The reported rates are the checked ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from mechanisms.apportionment.clauses import Constraint, derive_constraints
from mechanisms.apportionment.keyhole import LossCurve, Objective, Shares, apportion_by_clauses, apportion_by_trees
from mechanisms.apportionment.tree import bound_tree
from mechanisms.formula import AllOf, Formula, list_literals
from mechanisms.protocol import Calibration, DecisionTask, Exposure, FunctionalTest, Unachievable
from mechanisms.threshold.joint_loss import check_functionals_exposed, compute_joint_loss, drop_dominated_exposures
from mechanisms.threshold.one_shot import compute_acceptance, compute_rejection, round_up_to_float

TREE_NOTE = "too many literals to enumerate: the rates are split over the tree as typed, which may cost more."
EMPTY_PROMISE_NOTE = "within the tolerances the formula always holds: the false-positive promise is empty."
EMPTY_PREDICATE_NOTE = "within the tolerances predicate {} always holds: its false-positive promise is empty."
SEVERAL_REFUSED = "this mechanism decides one formula, and the question has predicates beside its groups"

_DECIDES_SEVERAL = "progressive"  # the name of the default mechanism, which imports this module

_RESOLVED = 4  # attempts that apportion anew with the tests' true weights; later ones shrink shares, which always ends
_MOST_ATTEMPTS = 40  # shrinking converges in a few; beyond, an interval is narrower than its tolerances


@dataclass(frozen=True, slots=True)
class OneShotKind:
    """A kind of one-shot test: functions for its loss, calibration and error probabilities.

    `loss(f, fnr, fpr)` returns epsilon and its slopes. `calibrate(f, fnr, fpr)` returns the test or raises
    `Unachievable`. `is_tied` if only the smaller share counts. `decides_several` if the mechanism decides several
    formulas on one value. `bound_false_reject(test, distance)` and `bound_false_accept(test, distance)` bound the
    rates at which the literal is rejected and accepted at a distance. If tests share noise,
    `calibrate_together(shares)` replaces `calibrate` and returns all tests. With `has_closed_form` the shares have the
    least sum of losses if no formula has a functional twice. This takes milliseconds, and the least joint loss
    seconds.
    """

    loss: LossCurve
    calibrate: Callable[[int, float, float], FunctionalTest]
    is_tied: bool
    bound_false_reject: Callable[[FunctionalTest, int], float] = compute_rejection
    bound_false_accept: Callable[[FunctionalTest, int], float] = compute_acceptance
    decides_several: bool = False
    calibrate_together: Callable[[Shares], Mapping[int, FunctionalTest]] | None = None
    has_closed_form: bool = False

    def calibrate_used_tests(self, shares: Shares, used: Sequence[int]) -> dict[int, FunctionalTest]:
        """Calibrate the tests of the functionals that are used, all at once if they share noise."""
        if self.calibrate_together is not None:
            return dict(self.calibrate_together(shares))
        return {one: self.calibrate(one, shares.fnr[one], shares.fpr[one]) for one in used}


@dataclass(frozen=True, slots=True)
class _Promises:
    """The conditions that a contract sets for all formulas that are not constant.

    `trees` are the formulas with too many constraints to enumerate. For them the bound of the tree must hold.

    `fnr` and `fpr` are the constraints of the others, without repetitions. `empty` are the formulas whose relaxation
    always holds.
    """

    formulas: tuple[Formula, ...]
    trees: tuple[Formula, ...]
    fnr: tuple[Constraint, ...]
    fpr: tuple[Constraint, ...]
    empty: tuple[Formula, ...]

    @property
    def has_constraints(self) -> bool:
        """True if at least one formula has constraints."""
        return len(self.trees) < len(self.formulas)

    @staticmethod
    def from_task(task: DecisionTask) -> "_Promises":
        """Return the promises of a task."""
        formulas = tuple(
            dict.fromkeys(formula for formula in task.formulas if any(True for _ in list_literals(formula)))
        )
        found = {formula: derive_constraints(formula) for formula in formulas}
        known = [exact for exact in found.values() if exact is not None]
        return _Promises(
            formulas=formulas,
            trees=tuple(formula for formula, exact in found.items() if exact is None),
            fnr=tuple(dict.fromkeys(constraint for exact in known for constraint in exact.fnr)),
            fpr=tuple(dict.fromkeys(constraint for exact in known for constraint in exact.fpr)),
            empty=tuple(formula for formula, exact in found.items() if exact is not None and not exact.fpr),
        )


def check_task(task: DecisionTask, *, decides_several: bool = False) -> None:
    """Raise `Unachievable` or ValueError for a task that cannot be calibrated.

    Rates outside (0, 1), or whose sum is one or more, are `Unachievable`. So are predicates, unless the mechanism
    `decides_several` formulas. A malformed task is a ValueError.
    """
    if task.predicates and not decides_several:
        raise Unachievable(SEVERAL_REFUSED, instead=_DECIDES_SEVERAL)
    if not (0.0 < task.fnr < 1.0 and 0.0 < task.fpr < 1.0):
        raise Unachievable("error rates must lie strictly between 0 and 1")
    if task.fnr + task.fpr >= 1.0:
        raise Unachievable("error rates that sum to one or more promise nothing")
    if any(sensitivity < 1 for sensitivity in task.sensitivities):
        raise ValueError("sensitivities are integers of at least one unit")
    for cut in task.list_literals():
        if not 0 <= cut.functional < len(task.sensitivities) or cut.tolerance < 0:
            raise ValueError("a literal names an unknown functional or a negative tolerance")


def list_tolerances(formula: Formula, functionals: int) -> tuple[int, ...]:
    """Return each functional's tolerance, the least of its literals' tolerances, or zero if it has no literal."""
    least: dict[int, int] = {}
    for cut in list_literals(formula):
        least[cut.functional] = min(cut.tolerance, least.get(cut.functional, cut.tolerance))
    return tuple(least.get(functional, 0) for functional in range(functionals))


def list_task_tolerances(task: DecisionTask) -> tuple[int, ...]:
    """Return each functional's tolerance, the least over its literals in all formulas, or zero if it has no literal."""
    return list_tolerances(AllOf(task.formulas), len(task.sensitivities))


def compute_exact_epsilon(test: FunctionalTest, sensitivity: int) -> Fraction:
    """Return the loss of one privacy unit through one noisy value."""
    return test.rate * (sensitivity if test.block == 1 else 1)


def make_idle_test(task: DecisionTask) -> FunctionalTest:
    """Return the test of a functional that no formula mentions. It draws and reveals nothing."""
    return FunctionalTest(
        epsilon=0.0,
        rate=Fraction(0),
        shift=0,
        tie=Fraction(0),
        fnr=task.fnr,
        fpr=task.fpr,
        tolerance=0,
    )


def meet_contract(mechanism: str, task: DecisionTask, kind: OneShotKind) -> Calibration:
    """Calibrate one test per functional, with the least joint loss for which the question's contract holds.

    Guarantee: `fnr` and `fpr` of the result are upper bounds for each of the task's formulas, under any dependence
    between the functionals, computed from the tests' exact laws, and at most the task's.

    Raises:
        Unachievable: no finite loss meets the contract, or the mechanism decides one formula and the task has several.

    References: docs/proofs/apportionment.md, docs/proofs/several_formulas.md.
    """
    check_task(task, decides_several=kind.decides_several)
    used = list_mentioned_functionals(task)
    tests = [make_idle_test(task)] * len(task.sensitivities)
    if not used:
        return Calibration(mechanism=mechanism, task=task, tests=tuple(tests), worst_case_epsilon=0.0, fnr=0.0, fpr=0.0)
    promises = _Promises.from_task(task)
    objective = _make_objective(task, promises, kind, used)
    shares = _share_in_closed_form(objective) if kind.has_closed_form else None
    for attempt in range(_MOST_ATTEMPTS):
        if shares is None or (promises.has_constraints and not kind.has_closed_form and 0 < attempt < _RESOLVED):
            shares = _apportion_error_rates(objective, promises, tests if attempt else None, task)
        for functional, test in kind.calibrate_used_tests(shares, used).items():
            tests[functional] = test
        rates = _TestRates.from_tests(tests, kind)
        broken = _find_excesses(task, promises, rates)
        if not broken.fnr and not broken.fpr:
            found = _make_calibration(mechanism, task, tests, promises, rates)
            settled = len(promises.formulas) == 1 or kind.has_closed_form
            return found if settled else _use_wide_tolerances(found, objective, promises, kind)
        if not promises.has_constraints or kind.has_closed_form or attempt >= _RESOLVED - 1:
            shares = Shares(fnr=_shrink_shares(shares.fnr, broken.fnr), fpr=_shrink_shares(shares.fpr, broken.fpr))
    raise Unachievable("the tolerances are too narrow for both error rates on every interval")


def _use_wide_tolerances(
    first: Calibration, objective: Objective, promises: _Promises, kind: OneShotKind
) -> Calibration:
    """Return a cheaper calibration of the same contract, or the given one if none is found.

    Its shares follow from the true error rates of the first tests at each literal's own tolerance.

    A functional is tested for the narrowest tolerance that any formula has on it. A formula with a wider tolerance
    hardly ever errs on it, and leaves its error rate to the other functionals of its clauses. One repetition is enough.
    A second one saves a ten-thousandth of the loss on average, and at most three thousandths in 250 drawn scorecards.
    """
    if not promises.has_constraints:
        return first
    near, rates = list_task_tolerances(first.task), _TestRates.from_tests(first.tests, kind)

    def weigh_fnr(functional: int, distance: int) -> float:
        return _divide_rates(
            rates.bound_false_reject(functional, max(1, distance)), rates.bound_false_reject(functional, 1)
        )

    def weigh_fpr(functional: int, distance: int) -> float:
        edge = -near[functional]
        return _divide_rates(
            rates.bound_false_accept(functional, min(edge, distance)), rates.bound_false_accept(functional, edge)
        )

    shares = apportion_by_clauses(
        objective,
        fnr=promises.fnr,
        fpr=promises.fpr,
        weigh_fnr=weigh_fnr,
        weigh_fpr=weigh_fpr,
        trees=promises.trees,
        least=0.0,
    )
    try:
        found = keep_contract(first.mechanism, first.task, kind, shares)
    except Unachievable:
        return first
    return min(first, found, key=lambda one: one.worst_case_epsilon)


def _divide_rates(rate: float, whole: float) -> float:
    return rate / whole if whole > 0.0 else 1.0


def keep_contract(mechanism: str, task: DecisionTask, kind: OneShotKind, shares: Shares) -> Calibration:
    """Calibrate one test for each functional from given shares. A share is reduced if the contract needs it.

    Guarantee: that of `meet_contract`.

    Raises:
        Unachievable: no finite loss meets the contract.
    """
    check_task(task, decides_several=kind.decides_several)
    used = list_mentioned_functionals(task)
    tests = [make_idle_test(task)] * len(task.sensitivities)
    promises = _Promises.from_task(task)
    for _ in range(_MOST_ATTEMPTS):
        for functional, test in kind.calibrate_used_tests(shares, used).items():
            tests[functional] = test
        rates = _TestRates.from_tests(tests, kind)
        broken = _find_excesses(task, promises, rates)
        if not broken.fnr and not broken.fpr:
            return _make_calibration(mechanism, task, tests, promises, rates)
        shares = Shares(fnr=_shrink_shares(shares.fnr, broken.fnr), fpr=_shrink_shares(shares.fpr, broken.fpr))
    raise Unachievable("the tolerances are too narrow for both error rates on every interval")


def list_mentioned_functionals(task: DecisionTask) -> tuple[int, ...]:
    """Return the functionals that some formula mentions, in ascending order."""
    return tuple(sorted({cut.functional for cut in task.list_literals()}))


def _make_objective(task: DecisionTask, promises: _Promises, kind: OneShotKind, used: tuple[int, ...]) -> Objective:
    return Objective(
        formulas=promises.formulas,
        used_functionals=used,
        functional_count=len(task.sensitivities),
        exposures=_list_used_exposures(task, used),
        loss=kind.loss,
        fnr=task.fnr,
        fpr=task.fpr,
        is_tied=kind.is_tied,
    )


def _list_used_exposures(task: DecisionTask, used: Sequence[int]) -> tuple[Exposure, ...]:
    """Return the exposures restricted to the functionals of `used`, in their order.

    Exposures that others dominate are left out.
    """
    check_functionals_exposed(used, task.exposures)
    return drop_dominated_exposures(tuple(exposure[functional] for functional in used) for exposure in task.exposures)


def _share_in_closed_form(objective: Objective) -> Shares | None:
    """Return for each functional the least of the shares with which each formula by itself keeps its rates.

    Return None if one has no closed form.
    """
    fnr, fpr = [objective.fnr] * objective.functional_count, [objective.fpr] * objective.functional_count
    for formula in objective.formulas:
        used = tuple(sorted({cut.functional for cut in list_literals(formula)}))
        alone = replace(objective, formulas=(formula,), used_functionals=used, exposures=((Fraction(1),) * len(used),))
        if not alone.has_closed_form:
            return None
        found = apportion_by_trees(alone)
        for functional in used:
            fnr[functional] = min(fnr[functional], found.fnr[functional])
            fpr[functional] = min(fpr[functional], found.fpr[functional])
    return Shares(fnr=tuple(fnr), fpr=tuple(fpr))


def _apportion_error_rates(
    objective: Objective, promises: _Promises, tests: Sequence[FunctionalTest] | None, task: DecisionTask
) -> Shares:
    if not promises.has_constraints:
        return apportion_by_trees(objective)
    near = list_task_tolerances(task)

    def weigh_fnr(functional: int, distance: int) -> float:
        if tests is None or distance <= 1:
            return 1.0 if distance <= 1 else 0.0
        return compute_rejection(tests[functional], distance) / compute_rejection(tests[functional], 1)

    def weigh_fpr(functional: int, distance: int) -> float:
        edge = -near[functional]
        if tests is None or distance >= edge:
            return 1.0 if distance >= edge else 0.0
        return compute_acceptance(tests[functional], distance) / compute_acceptance(tests[functional], edge)

    return apportion_by_clauses(
        objective,
        fnr=promises.fnr,
        fpr=promises.fpr,
        weigh_fnr=weigh_fnr,
        weigh_fpr=weigh_fpr,
        trees=promises.trees,
    )


@dataclass(frozen=True, slots=True)
class _ShrinkFactors:
    """The factors by which functionals' shares must shrink."""

    fnr: dict[int, float]
    fpr: dict[int, float]


@dataclass(frozen=True, slots=True)
class _TestRates:
    """The tests' error rates by functional and distance, each computed once."""

    bound_false_reject: Callable[[int, int], float]
    bound_false_accept: Callable[[int, int], float]

    @staticmethod
    def from_tests(tests: Sequence[FunctionalTest], kind: OneShotKind) -> "_TestRates":
        given = tuple(tests)
        return _TestRates(
            bound_false_reject=cache(lambda functional, distance: kind.bound_false_reject(given[functional], distance)),
            bound_false_accept=cache(lambda functional, distance: kind.bound_false_accept(given[functional], distance)),
        )

    def bound_tree(self, formula: Formula) -> tuple[float, float]:
        """Return the tree bounds of a formula's false-negative and false-positive rates."""
        fnr, _ = bound_tree(formula, lambda cut: self.bound_false_reject(cut.functional, 1), is_fnr=True)
        fpr, _ = bound_tree(formula, lambda cut: self.bound_false_accept(cut.functional, -cut.tolerance), is_fnr=False)
        return fnr, fpr


def _find_excesses(task: DecisionTask, promises: _Promises, rates: _TestRates) -> _ShrinkFactors:
    broken = _ShrinkFactors(
        fnr=_find_constraint_excesses(promises.fnr, rates.bound_false_reject, task.fnr),
        fpr=_find_constraint_excesses(promises.fpr, rates.bound_false_accept, task.fpr),
    )
    for tree in promises.trees:
        for value, bound, factors in zip(
            rates.bound_tree(tree), (task.fnr, task.fpr), (broken.fnr, broken.fpr), strict=True
        ):
            if value > bound:
                for functional in {cut.functional for cut in list_literals(tree)}:
                    factors[functional] = min(factors.get(functional, 1.0), bound / value)
    return broken


def _find_constraint_excesses(
    sums: Sequence[Constraint], rate: Callable[[int, int], float], bound: float
) -> dict[int, float]:
    factors: dict[int, float] = {}
    for constraint in sums:
        value = constraint.bound_probability(rate)
        if value > bound:
            for part in constraint.parts:
                factors[part.functional] = min(factors.get(part.functional, 1.0), bound / value)
    return factors


def _shrink_shares(shares: Sequence[float], factors: dict[int, float]) -> tuple[float, ...]:
    return tuple(
        share * factors[functional] * (1.0 - 1e-6) if functional in factors else share
        for functional, share in enumerate(shares)
    )


def _make_calibration(
    mechanism: str,
    task: DecisionTask,
    tests: Sequence[FunctionalTest],
    promises: _Promises,
    rates: _TestRates,
) -> Calibration:
    of_trees = [rates.bound_tree(tree) for tree in promises.trees]
    fnr = max(
        [*(c.bound_probability(rates.bound_false_reject) for c in promises.fnr), *(fnr for fnr, _ in of_trees)],
        default=0.0,
    )
    fpr = max(
        [*(c.bound_probability(rates.bound_false_accept) for c in promises.fpr), *(fpr for _, fpr in of_trees)],
        default=0.0,
    )
    notes = [TREE_NOTE] if promises.trees else []
    if task.formula in promises.empty:
        notes.append(EMPTY_PROMISE_NOTE)
    notes += [
        EMPTY_PREDICATE_NOTE.format(number)
        for number, predicate in enumerate(task.predicates, start=1)
        if predicate in promises.empty
    ]
    losses = [
        compute_exact_epsilon(test, sensitivity) for test, sensitivity in zip(tests, task.sensitivities, strict=True)
    ]
    return Calibration(
        mechanism=mechanism,
        task=task,
        tests=tuple(_set_epsilon(test, round_up_to_float(loss)) for test, loss in zip(tests, losses, strict=True)),
        worst_case_epsilon=round_up_to_float(compute_joint_loss(losses, task.exposures)),
        fnr=fnr,
        fpr=fpr,
        notes=tuple(notes),
    )


def _set_epsilon(test: FunctionalTest, epsilon: float) -> FunctionalTest:
    return test if test.epsilon == epsilon else replace(test, epsilon=epsilon)
