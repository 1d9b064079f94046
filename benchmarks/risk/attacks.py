"""How many people are found better than by knowing the days before alone, at equal use of what is published."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.risk.building import ATTACKERS, Building, Floats
from benchmarks.risk.techniques import (
    KeySet,
    LaplaceCounts,
    PegasusCounts,
    ResaltedCounts,
    Technique,
    TrueCounts,
)
from mechanisms.risk.posterior import find_confidence_class, find_joint_posterior, find_posterior_of_one_place
from mechanisms.threshold.one_shot import calibrate_test
from proxy.play.resalted import LONGEST_STAY

TARGETS = (0.75, 0.9)
NEAR = 0.002
"""Of a utility: how near its target it is matched."""

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
CUT, TOLERANCE, FNR, FPR = 40, 4, 0.05, 0.1
TRUE_COUNTS, LAPLACE, PEGASUS, TTL = "true counts", "Laplace", "PeGaSus", "TTL"
KEY_SET, BEHIND = f"key set > {CUT}", "the noisy counts behind it"
_MATCHING_RUNS = 5
_ATTACKED = 100  # the first seed of the days that are attacked; those that are matched come before


@dataclass(frozen=True, slots=True)
class Found:
    """Person-hours in rooms that the attacker cannot see, whose posterior is in a higher class than their prior."""

    attacker: str
    technique: str
    setting: float | None
    utility: float | None
    one_place: float
    joint: float


def find_setting(
    build: Callable[[float], Technique], building: Building, *, target: float, low: float, high: float
) -> float:
    """The setting whose utility is the target, by bisection; a larger setting is more useful.

    Raises:
        ValueError: no setting between the two is.
    """
    for _ in range(30):
        middle = math.sqrt(low * high)
        reached = find_utility(build(middle), building)
        if abs(reached - target) <= NEAR:
            return middle
        low, high = (middle, high) if reached < target else (low, middle)
    raise ValueError("no setting has that utility")


def find_utility(technique: Technique, building: Building) -> float:
    """The mean over five days of the same people."""
    published = [technique.publish(building, seed=seed) for seed in range(_MATCHING_RUNS)]
    return float(np.mean([building.measure_utility(seen) for seen in published]))


def count_improved(building: Building, attacker: str, technique: Technique, seen: Floats, *, joint: bool) -> int:
    """Person-hours found better than before: of the joint posterior, or of each room's count by itself."""
    rooms = building.list_closed_rooms(attacker)
    prior = building.estimate_prior(rooms)
    improved = 0
    for hour in range(building.counts.shape[1]):
        counts, before = building.counts[rooms, hour], prior[:, hour]
        people = int(counts.sum())
        if people == 0:
            continue
        told = [technique.compute_likelihood(float(seen[room, hour]), room=int(room), most=people) for room in rooms]
        if joint:
            after = find_joint_posterior(told, before, people=people).tolist()
        else:
            after = [
                find_posterior_of_one_place(*one, people=people) for one in zip(told, before.tolist(), strict=True)
            ]
        improved += sum(
            int(count)
            for count, now, then in zip(counts, after, before.tolist(), strict=True)
            if find_confidence_class(now) > find_confidence_class(then)
        )
    return improved


def name_at_utility(name: str, target: float) -> str:
    """What a technique is called when its utility is the target."""
    return f"{name}, {100 * target:g} %"


def attack(building: Building, *, runs: int, attackers: Iterable[str] = ATTACKERS) -> Iterator[Found]:
    """The published table, with the key set beside it; means over days of the same people."""
    test = calibrate_test(sensitivity=1, tolerance=TOLERANCE, fnr=FNR, fpr=FPR, allow_block=False)
    behind = LaplaceCounts(float(test.rate))
    techniques: list[tuple[str, float | None, float | None, Technique]] = [(TRUE_COUNTS, None, 1.0, TrueCounts())]
    for name, build, low, high in _list_families(building):
        for target in TARGETS:
            setting = find_setting(build, building, target=target, low=low, high=high)
            technique = build(setting)
            techniques.append((name_at_utility(name, target), setting, find_utility(technique, building), technique))
    techniques.append((KEY_SET, test.epsilon, None, KeySet(test, CUT)))
    techniques.append((BEHIND, test.epsilon, find_utility(behind, building), behind))
    for name, told, utility, each in techniques:
        for attacker in attackers:
            one, joint = _count_by(building, attacker, each, runs=runs)
            yield Found(attacker, name, told, utility, one, joint)


def attack_over_epsilon(
    building: Building, *, runs: int, epsilons: Sequence[float] = EPSILONS, attackers: Iterable[str] = ATTACKERS
) -> Iterator[Found]:
    """The same for Laplace noise and for PeGaSus at each epsilon."""
    for epsilon in epsilons:
        for name, technique in ((LAPLACE, LaplaceCounts(epsilon)), (PEGASUS, PegasusCounts(epsilon, building))):
            utility = find_utility(technique, building)
            for attacker in attackers:
                one, joint = _count_by(building, attacker, technique, runs=runs)
                yield Found(attacker, name, epsilon, utility, one, joint)


def _list_families(building: Building) -> list[tuple[str, Callable[[float], Technique], float, float]]:
    return [
        (LAPLACE, LaplaceCounts, 0.005, 20.0),
        (PEGASUS, lambda epsilon: PegasusCounts(epsilon, building), 0.005, 20.0),
        (TTL, ResaltedCounts, 0.5, LONGEST_STAY),
    ]


def _count_by(building: Building, attacker: str, technique: Technique, *, runs: int) -> tuple[float, float]:
    drawn = 1 if isinstance(technique, TrueCounts) else runs
    published = [technique.publish(building, seed=_ATTACKED + run) for run in range(drawn)]
    one, joint = (
        float(np.mean([count_improved(building, attacker, technique, seen, joint=how) for seen in published]))
        for how in (False, True)
    )
    return one, joint
