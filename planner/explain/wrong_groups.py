"""How many groups can come wrongly: in the mean, over all groups of a question. Public inputs alone.

The contract bounds the rate of each group; with many groups that is a number, which readers should see. Groups are not
all just beyond the slack: of those further away far fewer come.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from mechanisms.formula import Cut, cuts
from mechanisms.keyhole.contract import EMPTY_PROMISE_NOTE
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.threshold.three_zone import wrong
from planner.question.plan import Minimised, Plan
from planner.question.question import NEAR_EMPTY

_OWN = (Keyhole.name, Progressive.name)  # whose rates are known at every distance


@dataclass(frozen=True, slots=True)
class WrongGroups:
    """The mean number of `keys` groups that are returned wrongly, at most, if all of them were the same.

    `near`: all just beyond the slack. `far`: all beyond it twice as far, None for mechanisms that do not say.
    `several`: so many come wrongly for each of several predicates.
    """

    keys: int
    near: float
    far: float | None
    several: bool = False

    @property
    def sentence(self) -> str:
        """Return the warning for readers of an answer."""
        known = self.far is not None and rounded_up(self.far) != rounded_up(self.near)
        far = f", {rounded_up(self.far)} if they were twice as far" if known and self.far is not None else ""
        each = "for each predicate " if self.several else ""
        near = f"{each}up to {rounded_up(self.near)} among {self.keys:,} on average, were all just beyond the slack"
        return f"{near}{far}."


def wrong_groups(plan: Plan) -> WrongGroups | None:
    """Return the number of groups that can be wrong.

    Return None if nothing is promised about that, nothing can be wrong, or a ranking limits the groups.

    Guarantee: upper bounds on the mean number, whatever the dependence between groups.
    """
    calibration, keys = plan.calibration, plan.question.keys.size
    unbounded = calibration.fpr is None or EMPTY_PROMISE_NOTE in calibration.notes
    if unbounded or calibration.whole_question or not plan.question.functionals or not keys or plan.ranking is not None:
        return None
    near = plan.question.accuracy.fpr
    far = _chance_beyond(plan, 2)
    of_all = float(Decimal(str(near)) * keys)  # as it is written: 38 times .1 are 3.8
    several = bool(plan.predicates)
    return WrongGroups(keys=keys, near=of_all, far=None if far is None else min(far * keys, of_all), several=several)


def _chance_beyond(plan: Plan, tolerances: int) -> float | None:
    """Return the chance that a group is returned which fails with so many times the tolerance.

    Some prime clause of it does, with all its literals.
    """
    if plan.calibration.mechanism not in _OWN or not all(one.exact for one in plan.canonical):
        return None
    tests = plan.calibration.tests
    return max(
        (
            sum(wrong(tests[cut.functional], -tolerances * cut.tolerance) for cut in clause)
            for one in plan.canonical
            for clause in one.clauses
        ),
        default=0.0,
    )


def tell_chances(plan: Plan, warnings: Iterable[str]) -> Iterator[str]:
    """Yield the warnings, with a number in those about groups without rows within the tolerance.

    It is the chance that one is returned, or shown with a predicate true.
    """
    chances = dict(_list_chances(plan))
    for warning in warnings:
        name, near, rest = warning.partition(NEAR_EMPTY)
        chance = chances.get(name.removesuffix(": ")) if near else None
        if chance is None:
            yield warning
            continue
        keys = plan.question.keys.size
        told, _, guard = rest.partition("; ")
        likely = (
            f"each with a probability of up to {rounded_up(chance)}, up to {rounded_up(chance * keys)} of "
            f"{keys:,} groups if all are empty"
        )
        other = "a smaller tolerance, or a count such as count(*) >= 10 beside it, keeps them out"
        yield f"{name}{near}{told}, {likely}; {guard or other}"


def _list_chances(plan: Plan) -> Iterator[tuple[str, float]]:
    """Yield the chance of a group without rows by predicate.

    Return none if such groups are beyond the tolerance, or qualify.
    """
    if plan.calibration.mechanism not in _OWN or not plan.question.functionals:
        return
    if any(functional.offsets is not None for functional in plan.question.functionals):
        return
    formulas = list(zip(("", *plan.asked.predicate_names), plan.canonical, strict=True))
    for name, minimised in formulas[:1] if _keeps_empty_out(plan.minimised) else formulas:
        chance = _chance_of_empty(plan, minimised)
        if chance is not None:
            yield name, chance


def _chance_of_empty(plan: Plan, minimised: Minimised) -> float | None:
    """Return the chance that a formula is true for a group without rows.

    Return None if it is within the contract, or right.
    """
    literals, clauses = tuple(cuts(minimised.formula)), minimised.clauses
    if not minimised.exact or not literals:
        return None
    holds = all(any(_distance(cut) >= 1 for cut in clause) for clause in clauses)
    if holds or _keeps_empty_out(minimised):
        return None
    tests = plan.calibration.tests
    chance = min(
        (sum(wrong(tests[cut.functional], _distance(cut)) for cut in clause) for clause in clauses), default=1.0
    )
    return None if min(chance, 1.0) <= plan.question.accuracy.fpr else min(chance, 1.0)


def _keeps_empty_out(minimised: Minimised) -> bool:
    """Return True if a group without rows fails the formula beyond its tolerance."""
    return minimised.exact and any(
        all(_distance(cut) <= -cut.tolerance for cut in clause) for clause in minimised.clauses
    )


def _distance(cut: Cut) -> int:
    """Return how far inside its literal a group without rows lies: 1 just qualifies, minus the tolerance just fails."""
    return -cut.cut if cut.above else cut.cut + 1


def rounded_up(number: float) -> str:
    """Return a number of groups, rounded up: whole from ten on, else with two digits."""
    exact = Decimal(str(number))
    if exact >= 10:
        return f"{exact.quantize(Decimal(1), rounding=ROUND_UP):,}"
    if not exact:
        return "0"
    digits = exact.quantize(Decimal(1).scaleb(max(exact.adjusted() - 1, -9)), rounding=ROUND_UP)
    return f"{digits.normalize():f}"
