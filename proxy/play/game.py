"""A session of the game: rounds, each with a task, a way of publishing and an epsilon; a clock; points; a trace.

| state | what may happen |
|---|---|
| between rounds | a round begins, the session ends |
| in a round | the player looks at places, answers once, or gives up |
| over | only reading; a session is over after its ten minutes, or when the player ends it |

A round that is open at the end is void. Times are the server's, and are arguments here. Before the answer a player sees
only the published counts, or the keys. The true counts, the true answer and the seed are shown afterwards.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms.protocol import Noise
from proxy.play.bots import answer_by_counts
from proxy.play.building import Building
from proxy.play.key_sets import AlarmAnswer, KeySetAnswer, answer_by_keys, watch_day
from proxy.play.published import Publisher, Publishing, Values
from proxy.play.scoring import Points, score_answer
from proxy.play.tasks import Distance, GameTask, TaskAnswer, TaskKind, draw_task, measure_distance, solve_task
from proxy.play.world import PrivateDays, draw_planted_events

SESSION_S = 600.0
"""Ten minutes."""

EPSILONS = (Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 2), Fraction(1))
"""Of rounds, for one presence at one tick."""

MOST_ROUNDS = 100  # of a session: one in six seconds
MOST_ACTIONS = 2000  # that a trace keeps: some hundred kilobytes
MOST_PLACES = 80
"""That are looked at together."""

MOST_DAYS = 7  # that are looked at together: with all places a megabyte of JSON
_KEYHOLE_BESIDE = Fraction(1, 10)  # where a round's way has no epsilon, what Keyhole's answer beside it has


class NotAllowedNow(Exception):
    """The error for a request that the session's state does not allow. The message is for the player."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round of the game. If Keyhole answers it, `publisher` is None; otherwise `keys` is None."""

    number: int
    task: GameTask
    way: Publishing
    epsilon: Fraction | None
    world: PrivateDays
    publisher: Publisher | None
    keys: KeySetAnswer | None
    began: float


@dataclass(frozen=True, slots=True, eq=False)
class Feedback:
    """The feedback that a player gets after an answer.

    `keys` and `alarm` are Keyhole's answers at the epsilon `compared_epsilon`, which is the round's own epsilon if it
    has one. `keys_distance` is the error of an answer read from the key set. `counts_answer` is the answer by the
    published counts, None if there are none.
    """

    round: Round
    answer: TaskAnswer
    truth: TaskAnswer
    distance: Distance
    points: Points
    seconds: float
    keys: KeySetAnswer
    keys_distance: Distance
    alarm: AlarmAnswer | None
    counts_answer: TaskAnswer | None
    compared_epsilon: Fraction


@dataclass(slots=True, eq=False)
class GameSession:
    """One player's session of ten minutes.

    Parameters:
        generator: draws how long people stay, in `TTL`. It protects nobody.
        began: the time at the start, in seconds of any clock that never stops.
    """

    name: str
    building: Building
    teaching: bool
    noise: Noise
    generator: np.random.Generator
    began: float
    points: float = 0.0
    rounds_done: int = 0
    round: Round | None = None
    ended: bool = False
    trace: list[dict[str, Any]] = field(default_factory=list)
    _begun: int = 0

    def is_over(self, now: float) -> bool:
        """Return True if the session's time is up, or if the player has ended the session."""
        return self.ended or now - self.began >= SESSION_S

    def get_seconds_left(self, now: float) -> float:
        """Return how many seconds of the session remain."""
        return 0.0 if self.ended else max(0.0, SESSION_S - (now - self.began))

    def begin_round(self, now: float) -> Round:
        """Begin the next round. Raise NotAllowedNow in a round, in a session that is over, and after the last round."""
        self._check_time(now)
        if self.round is not None:
            raise NotAllowedNow("a round is open: answer it, or give it up")
        if self._begun >= MOST_ROUNDS:
            raise NotAllowedNow(f"a session has {MOST_ROUNDS} rounds at most")
        number = self._begun
        kind, way, epsilon = plan_round(self.building.seed, number)
        plants = draw_planted_events(self.building, number=number)
        world = PrivateDays(self.building, plants)
        task = draw_task(kind, self.building, plants, number=number)
        publisher = keys = None
        if way is Publishing.KEYHOLE:
            assert epsilon is not None, "Keyhole's answer has an epsilon"
            keys = answer_by_keys(task, world, epsilon=epsilon, noise=self.noise)
        else:
            publisher = Publisher(world, way, epsilon, self.noise, self.generator)
        self._begun += 1
        self.round = Round(number, task, way, epsilon, world, publisher, keys, now)
        self.note_action(now, "round", number=number, task=kind.value, way=way.value, epsilon=_convert_epsilon(epsilon))
        return self.round

    def read_published(self, now: float, places: tuple[int, ...], days: range) -> Mapping[int, Mapping[int, Values]]:
        """Return the published values of places on days, by day and place.

        Raises:
            NotAllowedNow: outside a round, and in Keyhole's rounds, which publish no counts.
            ValueError: places or days that do not exist, or too many.
        """
        at = self._require_open_round(now)
        if at.publisher is None:
            raise NotAllowedNow("in this round Keyhole answers: there are keys, and no counts")
        known = len(self.building.plan.places)
        if not 1 <= len(places) <= MOST_PLACES or not all(0 <= number < known for number in places):
            raise ValueError(f"one looks at 1 to {MOST_PLACES} places that there are")
        if not 1 <= len(days) <= MOST_DAYS or days.start < 0 or days.stop > at.world.days:
            raise ValueError(f"one looks at 1 to {MOST_DAYS} of the {at.world.days} days")
        self.note_action(now, "look", places=list(places), days=[days.start, days.stop])
        return {day: at.publisher.publish(places, day) for day in days}

    def answer_round(self, now: float, answer: TaskAnswer) -> Feedback:
        """Record the player's answer, end the round, and return the feedback.

        Raises:
            NotAllowedNow: there is no round, or the time was up before.
            ValueError: the answer does not fit this task; the round stays open.
        """
        at = self._require_open_round(now)
        truth = solve_task(at.task, at.world)
        distance = measure_distance(at.task, answer, truth, at.world)
        seconds = now - at.began
        points = score_answer(at.task.kind, distance, truth, seconds=seconds, rounds_done=self.rounds_done)
        beside = at.epsilon or _KEYHOLE_BESIDE
        keys = at.keys or answer_by_keys(at.task, at.world, epsilon=beside, noise=self.noise)
        alarm = None
        if at.task.kind is TaskKind.EXCESS:
            alarm = watch_day(at.task, at.world, epsilon=beside, noise=self.noise)
        counts = None if at.publisher is None else answer_by_counts(at.task, at.publisher)
        self.round = None
        self.rounds_done += 1
        self.points = round(self.points + points.points, 2)
        self.note_action(
            now,
            "answer",
            number=at.number,
            error=distance.error,
            wrong_day=distance.wrong_day,
            seconds=round(seconds, 2),
            points=points.points,
            answer=list(_list_given_numbers(answer)),
            truth=list(_list_given_numbers(truth)),
        )
        keys_distance = measure_distance(at.task, keys.conclusion, truth, at.world)
        return Feedback(
            at, answer, truth, distance, points, seconds, keys, keys_distance, alarm, counts, beside
        )  # fmt: skip

    def give_up_round(self, now: float) -> None:
        """End the round without an answer or points. It does not count. Raise NotAllowedNow if none is open."""
        at = self._require_open_round(now)
        self.round = None
        self.note_action(now, "give up", number=at.number)

    def end(self, now: float) -> None:
        """End the session. An open round is void."""
        if not self.ended:
            self.note_action(now, "end", points=self.points, rounds=self.rounds_done, seed=self.building.seed)
        self.ended, self.round = True, None

    def note_action(self, now: float, action: str, **what: Any) -> None:
        """Add an action to the trace. After `MOST_ACTIONS` only answers and the end are added."""
        if len(self.trace) < MOST_ACTIONS or action in ("answer", "end"):
            self.trace.append({"at_s": round(now - self.began, 2), "action": action, **what})

    def _require_open_round(self, now: float) -> Round:
        self._check_time(now)
        if self.round is None:
            raise NotAllowedNow("no round is open")
        return self.round

    def _check_time(self, now: float) -> None:
        if self.is_over(now):
            raise NotAllowedNow("the session is over")


def plan_round(seed: int, number: int) -> tuple[TaskKind, Publishing, Fraction | None]:
    """Return the task, way and epsilon of a round. Every five rounds have all tasks, and every eight all ways."""
    kinds, ways = list(TaskKind), list(Publishing)
    kind = kinds[_shuffle(seed, 1, number // len(kinds), len(kinds))[number % len(kinds)]]
    way = ways[_shuffle(seed, 2, number // len(ways), len(ways))[number % len(ways)]]
    epsilon = EPSILONS[_shuffle(seed, 3, number // len(EPSILONS), len(EPSILONS))[number % len(EPSILONS)]]
    return kind, way, epsilon if way.has_epsilon else None


def _shuffle(seed: int, purpose: int, cycle: int, size: int) -> list[int]:
    return [int(place) for place in np.random.default_rng((seed, purpose, cycle)).permutation(size)]


def _list_given_numbers(answer: TaskAnswer) -> Iterable[int]:
    return (number for number in (answer.count, answer.place, answer.day, answer.tick) if number is not None)


def _convert_epsilon(epsilon: Fraction | None) -> float | None:
    return None if epsilon is None else float(epsilon)
