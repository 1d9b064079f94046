"""The mean number of groups that are returned wrongly, over all groups of a question. Depends on public inputs alone.

The contract bounds the rate of each group. With many groups the number can be large, so readers should see it. Not all
groups are just beyond the slack, and groups further away are returned far less often.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from mechanisms.formula import Cut, list_literals
from mechanisms.keyhole.contract import EMPTY_PROMISE_NOTE
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.threshold.three_zone import bound_false_accept
from planner.question.plan import Minimised, Plan
from planner.question.question import NEAR_EMPTY

_OWN = (Keyhole.name, Progressive.name)  # whose rates are known at every distance


@dataclass(frozen=True, slots=True)
class WrongGroups:
    """Upper bounds on the mean number of wrongly returned groups, if all `keys` groups failed by the same distance.

    `near`: all fail just beyond the tolerance. `far`: all fail by twice as much, None for mechanisms that state no
    such rate. If it `has_several_predicates`, the numbers are for each of them.
    """

    keys: int
    near: float
    far: float | None
    has_several_predicates: bool = False

    @property
    def sentence(self) -> str:
        """The warning about wrong groups, for readers of an answer."""
        known = self.far is not None and round_up(self.far) != round_up(self.near)
        far = f", {round_up(self.far)} if they were twice as far" if known and self.far is not None else ""
        each = "for each predicate " if self.has_several_predicates else ""
        near = f"{each}up to {round_up(self.near)} among {self.keys:,} on average, if all were just beyond the slack"
        return f"{near}{far}."


def count_wrong_groups(plan: Plan) -> WrongGroups | None:
    """Return upper bounds on the mean number of wrongly returned groups.

    Return None if no rate is promised, if no group can be wrong, or if a ranking limits the groups.

    Guarantee: upper bounds on the mean number, whatever the dependence between groups.
    """
    calibration, keys = plan.calibration, plan.question.keys.size
    unbounded = calibration.fpr is None or EMPTY_PROMISE_NOTE in calibration.notes
    if unbounded or calibration.whole_question or not plan.question.functionals or not keys or plan.ranking is not None:
        return None
    near = plan.question.accuracy.fpr
    far = _compute_chance_beyond(plan, 2)
    of_all = float(Decimal(str(near)) * keys)  # as it is written: 38 times .1 are 3.8
    several = bool(plan.predicates)
    return WrongGroups(
        keys=keys, near=of_all, far=None if far is None else min(far * keys, of_all), has_several_predicates=several
    )


def _compute_chance_beyond(plan: Plan, tolerances: int) -> float | None:
    """Return the chance that a group is returned although it fails by that many times the tolerance.

    Such a group fails all literals of some prime clause by that much.
    """
    if plan.calibration.mechanism not in _OWN or not all(one.is_minimal for one in plan.canonical):
        return None
    tests = plan.calibration.tests
    return max(
        (
            sum(bound_false_accept(tests[cut.functional], -tolerances * cut.tolerance) for cut in clause)
            for one in plan.canonical
            for clause in one.clauses
        ),
        default=0.0,
    )


def add_chances(plan: Plan, warnings: Iterable[str]) -> Iterator[str]:
    """Yield the warnings. Add a probability to each warning about groups without rows that lie within the tolerance.

    It is the probability that such a group is returned, or shown with a predicate true.
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
            f"each with a probability of up to {round_up(chance)}, up to {round_up(chance * keys)} of "
            f"{keys:,} groups if all are empty"
        )
        other = "a smaller tolerance, or a count such as count(*) >= 10 beside it, keeps them out"
        yield f"{name}{near}{told}, {likely}; {guard or other}"


def _list_chances(plan: Plan) -> Iterator[tuple[str, float]]:
    """Yield the chance of a group without rows, by predicate.

    Yield nothing if such groups are beyond the tolerance, or qualify.
    """
    if plan.calibration.mechanism not in _OWN or not plan.question.functionals:
        return
    if any(functional.offsets is not None for functional in plan.question.functionals):
        return
    formulas = list(zip(("", *plan.asked_question.predicate_names), plan.canonical, strict=True))
    for name, minimised in formulas[:1] if _keeps_empty_out(plan.minimised) else formulas:
        chance = _compute_empty_chance(plan, minimised)
        if chance is not None:
            yield name, chance


def _compute_empty_chance(plan: Plan, minimised: Minimised) -> float | None:
    """Return the chance that a formula is true for a group without rows.

    Return None if such a group is covered by the contract, or true.
    """
    literals, clauses = tuple(list_literals(minimised.formula)), minimised.clauses
    if not minimised.is_minimal or not literals:
        return None
    holds = all(any(_measure_distance(cut) >= 1 for cut in clause) for clause in clauses)
    if holds or _keeps_empty_out(minimised):
        return None
    tests = plan.calibration.tests
    chance = min(
        (
            sum(bound_false_accept(tests[cut.functional], _measure_distance(cut)) for cut in clause)
            for clause in clauses
        ),
        default=1.0,
    )
    return None if min(chance, 1.0) <= plan.question.accuracy.fpr else min(chance, 1.0)


def _keeps_empty_out(minimised: Minimised) -> bool:
    """Return True if a group without rows fails the formula beyond its tolerance."""
    return minimised.is_minimal and any(
        all(_measure_distance(cut) <= -cut.tolerance for cut in clause) for clause in minimised.clauses
    )


def _measure_distance(cut: Cut) -> int:
    """Return how far inside its literal a group without rows lies: 1 just qualifies, minus the tolerance just fails."""
    return -cut.cut if cut.above else cut.cut + 1


def round_up(number: float) -> str:
    """Return a number of groups as text, rounded up: whole from ten on, else with two digits."""
    exact = Decimal(str(number))
    if exact >= 10:
        return f"{exact.quantize(Decimal(1), rounding=ROUND_UP):,}"
    if not exact:
        return "0"
    digits = exact.quantize(Decimal(1).scaleb(max(exact.adjusted() - 1, -9)), rounding=ROUND_UP)
    return f"{digits.normalize():f}"
