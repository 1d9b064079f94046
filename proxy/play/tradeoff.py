"""The owner's slider: how useful an epsilon is, and what it reveals.

The task's error is that of a bot, which takes published counts for true ones. Localised are the hidden people whom an
attacker finds better than by the days before. The tolerance is the one that a Keyhole monitor can afford.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.protocol import Noise
from proxy.play.afford import FNR, FPR
from proxy.play.attacker_beliefs import AttackedDay, Attacker, PublishedChannel, PublishedForm, count_localised_people
from proxy.play.bots import BotError, play_rounds
from proxy.play.building import Building
from proxy.play.published import Publishing
from proxy.play.tasks import TaskKind

LEAST_EPSILON, MOST_EPSILON = Fraction(1, 1000), Fraction(10)  # beyond, all is noise or none
MOST_LOOKS = 10_000  # a day: one in nine seconds
_ROUNDS = 6  # worlds of a bot and task, in each of which noise is drawn so often: a second's work for all
_DRAWS = {TaskKind.EXCESS: 8, TaskKind.NIGHT: 3, TaskKind.SENSOR: 8, TaskKind.EVENT: 4, TaskKind.MEETING: 4}
_FEW_ROUNDS = 2  # where they take seconds: of ways that group ticks
_SLOW = (Publishing.PEGASUS, Publishing.PEGASUS_SMOOTH, Publishing.HS_PEGASUS)
_EVERY = 12  # ticks of the attacked day: two hours


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """The trade-off of one epsilon.

    It has the bots' errors with Laplace noise on each tick and from Keyhole's keys. `raised_people` has the people
    raised above their prior per tick, by published form. `tolerance` is the monitor's.
    """

    epsilon: float
    laplace: tuple[BotError, ...]
    keyhole: tuple[BotError, ...]
    raised_people: tuple[tuple[str, float], ...]
    tolerance: float
    looks: int


def weigh_epsilon(
    played: Building,
    attacked: Building,
    *,
    attacker: Attacker,
    epsilon: Fraction,
    looks: int,
    noise: Noise,
) -> Tradeoff:
    """Return how useful one epsilon is, for one presence at one tick, and what it reveals.

    Raises:
        ValueError: an epsilon or a number of looks outside its range.
    """
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON or not 1 <= looks <= MOST_LOOKS:
        raise ValueError(f"epsilon lies between {float(LEAST_EPSILON)} and {MOST_EPSILON}, looks up to {MOST_LOOKS}")
    day = AttackedDay(attacked, attacker)
    raised = []
    for seen in (PublishedForm.TRUE, PublishedForm.TTL, PublishedForm.LAPLACE, PublishedForm.KEYHOLE):
        channel = PublishedChannel(seen, epsilon, ticks=1)
        found = count_localised_people(day, channel, every=_EVERY, noise=noise)
        raised.append((seen.value, sum(found.raised_counts) / found.ticks))
    return Tradeoff(
        epsilon=float(epsilon),
        laplace=count_errors(played, Publishing.TICK_LAPLACE, epsilon, noise=noise),
        keyhole=count_errors(played, Publishing.KEYHOLE, epsilon, noise=noise),
        raised_people=tuple(raised),
        tolerance=compute_alarm_tolerance(float(epsilon), looks=looks),
        looks=looks,
    )


def count_errors(played: Building, way: Publishing, epsilon: Fraction | None, *, noise: Noise) -> tuple[BotError, ...]:
    """Return the errors of bots in each task by one way of publishing, at an epsilon if the way has one."""
    generator = np.random.default_rng(0)  # of how long people stay, and no noise that protects
    slow = way in _SLOW
    return tuple(
        play_rounds(
            played,
            kind=kind,
            way=way,
            epsilon=epsilon,
            rounds=_FEW_ROUNDS if slow else _ROUNDS,
            noise=noise,
            generator=generator,
            draws=1 if slow else _DRAWS[kind],
        )
        for kind in TaskKind
    )


def compute_alarm_tolerance(epsilon: float, *, looks: int) -> float:
    """Return the tolerance of an alarm at an epsilon: `tau = ln(N / (4 a b)) / epsilon - 1`.

    It is for a monitor over counts that only grow, with N looks in a window.

    >>> round(compute_alarm_tolerance(0.1, looks=24), 1)
    69.9
    """
    return max(0.0, math.log(looks / (4 * FNR * FPR)) / epsilon - 1)
