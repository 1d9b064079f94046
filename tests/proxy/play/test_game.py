from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from proxy.play.building import Building
from proxy.play.game import MOST_ACTIONS, SESSION_S, GameSession, NotAllowedNow, plan_round
from proxy.play.published import Publishing
from proxy.play.tasks import TaskAnswer, TaskKind, solve_task
from tests.seeded_noise import SeededNoise


@pytest.fixture
def session(draw: Callable[[int], Building]) -> GameSession:
    return GameSession(
        name="Ada",
        building=draw(1),
        teaching=False,
        noise=SeededNoise(1),
        generator=np.random.default_rng(1),
        began=100.0,
    )


def test_rounds_vary_tasks_ways_and_epsilons() -> None:
    plans = [plan_round(7, number) for number in range(40)]
    assert plans == [plan_round(7, number) for number in range(40)]
    assert set(Counter(kind for kind, _, _ in plans).values()) == {8}
    assert set(Counter(way for _, way, _ in plans).values()) == {5}
    assert all((epsilon is not None) == way.has_epsilon for _, way, epsilon in plans)
    assert len({epsilon for _, _, epsilon in plans}) == 6


def test_a_session_from_start_to_end(session: GameSession) -> None:
    now = 100.0
    for number in range(5):
        at = session.begin_round(now)
        assert at.number == number
        truth = solve_task(at.task, at.world)
        feedback = session.answer_round(now + 12.0, truth)
        assert feedback.truth == truth
        assert feedback.seconds == 12.0
        assert feedback.points.points == pytest.approx(100 * 0.95 * (1 + 0.1 * number))
        assert feedback.keys.loss <= float(at.epsilon or Fraction(1, 10)) + 1e-9
        assert (feedback.alarm is not None) == (at.task.kind is TaskKind.EXCESS)
        assert (feedback.counts_answer is None) == (at.way is Publishing.KEYHOLE)
        now += 20.0
    assert session.rounds_done == 5
    assert session.points == pytest.approx(sum(95 * (1 + 0.1 * number) for number in range(5)))
    session.end(now)
    assert [line["action"] for line in session.trace] == ["round", "answer"] * 5 + ["end"]


def test_what_is_not_now_is_refused(session: GameSession) -> None:
    with pytest.raises(NotAllowedNow, match="no round"):
        session.answer_round(100.0, TaskAnswer(count=1))
    session.begin_round(100.0)
    with pytest.raises(NotAllowedNow, match="a round is open"):
        session.begin_round(101.0)
    session.give_up_round(102.0)
    with pytest.raises(NotAllowedNow, match="no round"):
        session.give_up_round(103.0)
    assert session.rounds_done == 0
    at = session.begin_round(104.0)
    with pytest.raises(NotAllowedNow, match="over"):
        session.answer_round(100.0 + SESSION_S, solve_task(at.task, at.world))
    assert session.points == 0
    assert session.get_seconds_left(100.0 + SESSION_S - 1) == 1


def test_a_wrong_kind_of_answer_leaves_the_round_open(session: GameSession) -> None:
    at = session.begin_round(100.0)
    with pytest.raises(ValueError, match="the answer"):
        session.answer_round(101.0, TaskAnswer())
    assert session.answer_round(102.0, solve_task(at.task, at.world)).distance.error == 0


def _until(session: GameSession, wanted: Callable[[Publishing], bool]) -> None:
    while not wanted(session.begin_round(100.0).way):
        session.give_up_round(100.0)


def test_one_looks_at_places_and_days_that_there_are(session: GameSession) -> None:
    _until(session, lambda way: way is Publishing.TICK_LAPLACE)
    seen = session.read_published(101.0, (0, 8), range(2, 4))
    assert list(seen) == [2, 3]
    assert seen[2][0].shape == (288,)
    for places, days in (((), range(1)), ((999,), range(1)), ((0,), range(20, 22)), ((0,), range(9)), ((0,), range(0))):
        with pytest.raises(ValueError, match="looks at"):
            session.read_published(101.0, places, days)


def test_where_keyhole_answers_there_are_no_counts(session: GameSession) -> None:
    _until(session, lambda way: way is Publishing.KEYHOLE)
    assert session.round is not None
    assert session.round.keys is not None
    with pytest.raises(NotAllowedNow, match="no counts"):
        session.read_published(101.0, (0,), range(1))


def test_the_trace_is_bounded_and_keeps_what_was_won(session: GameSession) -> None:
    at = session.begin_round(100.0)
    for _ in range(MOST_ACTIONS + 50):
        session.note_action(101.0, "look")
    session.answer_round(102.0, solve_task(at.task, at.world))
    session.end(103.0)
    assert len(session.trace) == MOST_ACTIONS + 2
    assert [line["action"] for line in session.trace[-2:]] == ["answer", "end"]
