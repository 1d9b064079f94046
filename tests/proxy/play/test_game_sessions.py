import json
from pathlib import Path

import pytest

from proxy.play import leader_board
from proxy.play.game import SESSION_S, NotAllowedNow
from proxy.play.game_sessions import MOST_PER_PLAYER, MOST_SESSIONS, GameSessions, SessionEntry
from proxy.play.leader_board import LeaderBoard, Score
from proxy.play.tasks import solve_task
from tests.worlds.play_house import SEED, Clock


def _begin(hall: GameSessions, player: str, name: str = "Ada") -> SessionEntry:
    return hall.begin(player, name=name, teaching=False, seed=SEED)


def test_what_is_won_is_on_the_board(hall: GameSessions, clock: Clock) -> None:
    for name, seconds in (("Ada", 0), ("Bob", 60)):
        seat = _begin(hall, "local", name)
        at = seat.session.begin_round(clock.now)
        clock.now += seconds
        seat.session.answer_round(clock.now, solve_task(at.task, at.world))
        hall.finish(seat)
        hall.finish(seat)
    best = hall.board.list_best(10)
    assert [(score.name, score.points, score.rounds, score.seed) for score in best] == [
        ("Ada", 100.0, 1, SEED),
        ("Bob", 75.0, 1, SEED),
    ]
    lines = [json.loads(line) for text in hall.board.read_traces() for line in text.splitlines()]
    assert [line["action"] for line in lines] == ["session", "round", "answer", "end"] * 2


def test_who_answers_nothing_is_not_on_the_board(hall: GameSessions) -> None:
    hall.finish(_begin(hall, "local"))
    assert hall.board.list_best(10) == ()


def test_sessions_are_bounded(hall: GameSessions, clock: Clock) -> None:
    first = _begin(hall, "ada")
    for _ in range(MOST_PER_PLAYER):
        _begin(hall, "ada")
    with pytest.raises(NotAllowedNow, match="no such session"):
        hall.find("ada", first.key)
    for number in range(MOST_SESSIONS - MOST_PER_PLAYER):
        kept = _begin(hall, f"player {number}")
    with pytest.raises(NotAllowedNow, match="as many play"):
        _begin(hall, "somebody else")
    clock.now += SESSION_S
    _begin(hall, "somebody else")
    assert hall.find(kept.player, kept.key) is kept


def test_a_session_is_of_whoever_began_it(hall: GameSessions) -> None:
    seat = _begin(hall, "ada")
    with pytest.raises(NotAllowedNow, match="no such session"):
        hall.find("bob", seat.key)
    assert hall.find("ada", seat.key) is seat


@pytest.mark.parametrize("name", ["", "   ", "x" * 41, "bell\a"])
def test_names_are_short_and_visible(hall: GameSessions, name: str) -> None:
    with pytest.raises(ValueError, match="a name"):
        _begin(hall, "ada", name)


@pytest.mark.parametrize("seed", [-1, 1 << 32])
def test_seeds_have_a_range(hall: GameSessions, seed: int) -> None:
    with pytest.raises(ValueError, match="a seed"):
        hall.begin("ada", name="Ada", teaching=True, seed=seed)


def test_a_session_that_is_over_is_written_when_another_begins(hall: GameSessions, clock: Clock) -> None:
    seat = _begin(hall, "ada")
    at = seat.session.begin_round(clock.now)
    seat.session.answer_round(clock.now, solve_task(at.task, at.world))
    clock.now += SESSION_S
    _begin(hall, "bob")
    assert [score.name for score in hall.board.list_best(5)] == ["Ada"]


def test_the_board_keeps_its_best_and_the_latest_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_board, "MOST_SCORES", 4)
    monkeypatch.setattr(leader_board, "MOST_TRACES", 2)
    board = LeaderBoard(tmp_path / "board.sqlite")
    many = 7
    for number in range(many):
        board.add(Score("x'); DROP TABLE scores; --", number, 1, 1, "2026-01-01T00:00:00+00:00"), [{"number": number}])
    best = board.list_best(10**6)
    assert len(best) == 4
    assert best[0].points == many - 1
    assert best[-1].points == 3
    traces = list(board.read_traces())
    assert len(traces) == 2
    assert json.loads(traces[-1].splitlines()[1]) == {"number": many - 1}
