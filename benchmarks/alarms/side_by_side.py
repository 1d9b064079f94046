"""Ways of watching the same windows of growing values, each with what it loses and how often and how late it is wrong.

Two kinds of comparison are mixed, and said by their names. *To contract*: each look has the alarm's rates, whatever
that costs. *At the alarm's loss*: the same epsilon for a window, with the threshold lowered by half of the tolerance;
nothing is promised then. An alarm, a ladder and a published stream keep who was once in the answer, as monitors do;
questions that are asked afresh and trees answer each look by itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.alarms.replay import FNR, FPR, find_first_look, make_task
from mechanisms.alarm.calibration import calibrate_alarm
from mechanisms.alarm.ladder import calibrate_ladder, climb_at_values, draw_ladders, sum_losses_so_far
from mechanisms.alarm.laplace_sums import add_quantiles, find_upper_quantile
from mechanisms.alarm.run import draw_alarms, look_at_values
from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.formula import Booleans, Cut, Integers
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.protocol import DecisionTask, Noise
from mechanisms.standing.standing_streams import PegasusSums
from mechanisms.streams.pegasus import Pegasus
from mechanisms.streams.signed_tree import SignedTree
from mechanisms.streams.stream import StreamMechanism
from mechanisms.streams.window_sum import WindowSumSmoother
from mechanisms.threshold.joint_loss import expose_all_functionals

AROUND = 6  # looks before and after the first true one that are told
_BITS = 20  # of a rate
_MOST_BRANCHING = 31


@dataclass(frozen=True, slots=True)
class Realised:
    """One way on some windows.

    `epsilon` of a window, `mean_epsilon` what it came to. Of the windows that exceed the cut, the part `late`, not in
    the answer at the first look at which they do, and `never` from then on; `delay` is the mean number of looks until
    they are in it, of those that ever are, `most_delay` the largest. Of those that stay beyond the tolerance, the part
    that is in the answer at any look, `wrong`. `around` is the part of the true windows that is in the answer by how
    many looks there are since the first true one, from `-AROUND` to `AROUND`.
    """

    name: str
    epsilon: float
    mean_epsilon: float
    late: float
    never: float
    delay: float
    most_delay: int
    wrong: float
    around: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """Who is in the answer at each look, shape (windows, looks), and the losses of a window."""

    held: Booleans
    epsilon: float
    mean_epsilon: float


Way = Callable[[Integers, int, int, Noise], Answers]


def watch_all(by_look: Integers, *, cut: int, tolerance: int, noise: Noise) -> Iterator[Realised]:
    """Every way, of values with shape (windows, looks)."""
    for name, way in WAYS.items():
        yield measure_answers(name, way(by_look, cut, tolerance, noise), by_look, cut=cut, tolerance=tolerance)


def thin_out(by_look: Integers, *, cut: int, tolerance: int, most: int) -> Integers:
    """All windows that exceed the cut, and of those beyond the tolerance about so many, evenly spread."""
    beyond = np.flatnonzero(by_look[:, -1] <= cut - tolerance)
    kept = np.union1d(np.flatnonzero(by_look[:, -1] > cut), beyond[:: max(1, beyond.size // most)])
    return np.asarray(by_look[kept])


def measure_answers(name: str, answers: Answers, by_look: Integers, *, cut: int, tolerance: int) -> Realised:
    """What the answers are worth."""
    looks = by_look.shape[1]
    first, beyond = find_first_look(by_look > cut), by_look[:, -1] <= cut - tolerance
    true = first > 0
    held, first = answers.held[true], first[true]
    place = np.arange(1, looks + 1)
    told = held & (place >= first[:, np.newaxis])
    delays = (find_first_look(told) - first)[told.any(axis=1)]
    around = []
    for offset in range(-AROUND, AROUND + 1):
        inside = (first + offset >= 1) & (first + offset <= looks)
        around.append(float(held[inside, first[inside] + offset - 1].mean()) if inside.any() else float("nan"))
    return Realised(
        name=name,
        epsilon=answers.epsilon,
        mean_epsilon=answers.mean_epsilon,
        late=float(1.0 - held[np.arange(first.size), first - 1].mean()),
        never=float(1.0 - told.any(axis=1).mean()),
        delay=float(delays.mean()) if delays.size else float("nan"),
        most_delay=int(delays.max(initial=0)),
        wrong=float(answers.held[beyond].any(axis=1).mean()),
        around=tuple(around),
    )


def price_alarm(looks: int, *, cut: int, tolerance: int) -> Fraction:
    """An alarm's, rounded down to a number that others can have as well."""
    loss = calibrate_alarm(make_task(looks=looks, cut=cut, tolerance=tolerance)).worst_case_epsilon
    return Fraction(int(loss * (1 << _BITS)), 1 << _BITS)


def _answer_by_alarm(by_look: Integers, cut: int, tolerance: int, noise: Noise) -> Answers:
    looks = by_look.shape[1]
    alarm = calibrate_alarm(make_task(looks=looks, cut=cut, tolerance=tolerance))
    states = draw_alarms(keys=len(by_look), noise=noise)
    for look, values in enumerate(by_look.T, 1):
        states = look_at_values(alarm, states, values, look=look, noise=noise)
    rang_at = np.array([state.rang_at for state in states])
    return Answers(_keep_ringing(rang_at, looks), alarm.worst_case_epsilon, alarm.worst_case_epsilon)


def _answer_by_ladder(by_look: Integers, cut: int, tolerance: int, noise: Noise) -> Answers:
    looks = by_look.shape[1]
    ladder = calibrate_ladder(make_task(looks=looks, cut=cut, tolerance=tolerance))
    states = draw_ladders(ladder, keys=len(by_look), noise=noise)
    for look, values in enumerate(by_look.T, 1):
        states = climb_at_values(ladder, states, values, look=look, noise=noise)
    mean = float(np.mean([sum_losses_so_far(ladder, state) for state in states]))
    return Answers(_keep_ringing(np.array([state.rang_at for state in states]), looks), ladder.worst_case_epsilon, mean)


def _answer_afresh(by_look: Integers, cut: int, tolerance: int, noise: Noise) -> Answers:
    task = DecisionTask(Cut(0, cut, above=True, tolerance=tolerance), (1,), expose_all_functionals(1), fnr=FNR, fpr=FPR)
    test = Keyhole().calibrate(task)
    held = [Keyhole().decide(test, values[np.newaxis], noise=noise).passed for values in by_look.T]
    loss = by_look.shape[1] * test.worst_case_epsilon
    return Answers(np.column_stack(held), loss, loss)


def _answer_by_tree(by_look: Integers, cut: int, tolerance: int, noise: Noise) -> Answers:
    """Of the branching of the least price; continuous noise's quantiles, which differ by far less than a unit."""
    looks = by_look.shape[1]
    price, branching, nodes = find_best_tree(looks)
    tree = SignedTree(_round_up(price / (tolerance + 1)), 1, looks, branching)
    shift = int(find_upper_quantile(FNR, fine=nodes) / float(tree.rate)) - 1
    loss = float(tree.epsilon)
    return Answers(_estimate(tree, by_look, noise) > cut - shift, loss, loss)


def find_best_tree(looks: int) -> tuple[float, int, int]:
    """The price of a contract by a signed tree, its branching, and the most nodes that a sum is put together from."""
    found = []
    for branching in range(3, _MOST_BRANCHING, 2):
        tree = SignedTree(Fraction(1), 1, looks, branching)
        nodes = max(sum(map(abs, _list_digits(look, branching, tree.levels))) for look in range(1, looks + 1))
        found.append((tree.levels * add_quantiles(fnr=FNR, fpr=FPR, fine=nodes), branching, nodes))
    return min(found)


def _list_digits(number: int, branching: int, levels: int) -> Iterator[int]:
    for _ in range(levels):
        higher = (number + branching // 2) // branching
        yield number - branching * higher
        number = higher


def _answer_by_tree_at_loss(by_look: Integers, cut: int, tolerance: int, noise: Noise) -> Answers:
    looks = by_look.shape[1]
    loss = price_alarm(looks, cut=cut, tolerance=tolerance)
    tree = SignedTree(loss, 1, looks, find_best_tree(looks)[1])
    return Answers(_estimate(tree, by_look, noise) > cut - tolerance / 2, float(loss), float(loss))


def _answer_by_pegasus(by_look: Integers, cut: int, tolerance: int, noise: Noise) -> Answers:
    looks = by_look.shape[1]
    loss = price_alarm(looks, cut=cut, tolerance=tolerance)
    pegasus = PegasusSums(Pegasus(loss, 1), WindowSumSmoother(looks))
    estimates = _estimate(pegasus, by_look, noise)
    rang_at = find_first_look(estimates > cut - tolerance / 2)
    return Answers(_keep_ringing(rang_at, looks), float(loss), float(loss))


def _answer_by_zeros(by_look: Integers, cut: int, tolerance: int, noise: Noise) -> Answers:
    del noise
    return Answers(np.full(by_look.shape, cut - tolerance / 2 < 0), 0.0, 0.0)


WAYS: dict[str, Way] = {
    "alarm": _answer_by_alarm,
    "ladder": _answer_by_ladder,
    "afresh, to contract": _answer_afresh,
    "signed tree, to contract": _answer_by_tree,
    "signed tree, at the alarm's loss": _answer_by_tree_at_loss,
    "pegasus with window sums, at the alarm's loss": _answer_by_pegasus,
    "zeros": _answer_by_zeros,
}


def _estimate(
    mechanism: StreamMechanism[Any], by_look: Integers, noise: Noise
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Of what is between looks the sums since the beginning, for each window by itself."""
    ahead, states = NoiseAhead(noise), (mechanism.start(),) * len(by_look)
    found = np.empty(by_look.shape)
    for look, values in enumerate(np.diff(by_look, axis=1, prepend=0).T):
        tick = mechanism.advance(states, np.ascontiguousarray(values), noise=ahead)
        states = tick.states
        found[:, look] = [float(estimate) for estimate in tick.estimates]
    return found


def _keep_ringing(rang_at: Integers, looks: int) -> Booleans:
    return np.asarray((rang_at[:, np.newaxis] > 0) & (np.arange(1, looks + 1) >= rang_at[:, np.newaxis]))


def _round_up(number: float) -> Fraction:
    return Fraction(int(number * (1 << _BITS)) + 1, 1 << _BITS)
