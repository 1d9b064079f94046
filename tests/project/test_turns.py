"""What is near a change, and whose turn it is."""

import subprocess
from pathlib import Path

import pytest

from tests import turns
from tests.turns import MOST_NEAR, SHARES, Turn, find_changed, find_near, find_nearest, find_turn

FILES = sorted(path.relative_to(turns.ROOT).as_posix() for path in (turns.ROOT / "tests").rglob("test_*.py"))


def test_every_file_has_its_turn_within_as_many_landings_as_there_are_shares() -> None:
    shares = [{file for file in FILES if Turn({}, share).has(file)} for share in range(SHARES)]
    assert set.union(*shares) == set(FILES)
    assert sum(map(len, shares)) == len(FILES)
    assert min(map(len, shares)) > len(FILES) / SHARES / 2


@pytest.mark.parametrize(
    ("changed", "near"),
    [
        ("planner/functionals/sensitivity.py", "tests/planner/functionals/test_sensitivity.py"),  # its folder's tests
        ("accountant/unit_balance.py", "tests/accountant/test_machine.py"),
        ("tests/worlds/wards.py", "tests/end_to_end/answers/test_refusals.py"),  # imports it
        ("tests/proxy/rest/conftest.py", "tests/proxy/rest/test_answers.py"),
        ("tests/project/test_turns.py", "tests/project/test_turns.py"),
    ],
)
def test_what_is_near_a_change_has_its_turn(changed: str, near: str) -> None:
    found = find_near([changed])
    assert near in found
    assert Turn(find_nearest([changed], 0)).has(near)
    assert len(found) < len(FILES) / 3


def test_documents_are_near_no_test() -> None:
    assert find_near(["README.md", "docs/policy.md"]) == {}


def test_of_all_that_is_near_a_day_that_changed_everything_the_nearest_have_their_turn() -> None:
    changed = [*FILES[:40], "tests/conftest.py", "planner/catalog/catalog.py"]
    assert set(find_near(changed)) == set(FILES)
    first, second = (find_nearest(changed, share) for share in (0, 1))
    assert set(FILES[:40]) < first.keys() & second.keys()
    assert first.keys() != second.keys()
    assert len(first) == len(second) == round(MOST_NEAR * len(FILES))


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone of nothing: two commits that are two days apart, and a file that is in none."""
    (tmp_path / "tests").mkdir()
    for day, name in enumerate(("first", "second")):
        (tmp_path / "tests" / f"test_{name}.py").write_text("", encoding="ascii")
        at = f"2026-01-0{1 + 2 * day}T12:00:00Z"
        for line in (["init", "-q"], ["add", "."], ["commit", "-qm", name]):
            subprocess.run(
                ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *line],
                cwd=tmp_path,
                env={"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
                check=True,
            )
    (tmp_path / "tests" / "test_third.py").write_text("", encoding="ascii")
    monkeypatch.setattr(turns, "ROOT", tmp_path)
    monkeypatch.setattr(turns, "find_near", lambda changed: dict.fromkeys(changed, 0))
    monkeypatch.setattr(turns, "MOST_NEAR", 1)
    find_turn.cache_clear()
    find_changed.cache_clear()
    return tmp_path


def test_the_commits_of_a_day_are_what_changed(history: Path) -> None:
    turn = find_turn("HEAD")
    assert turn.near == {"tests/test_second.py": 0}
    assert turn.share in range(SHARES)


def test_what_is_not_committed_yet_is_changed_too(history: Path) -> None:
    for since, found in (("HEAD", {"third"}), ("HEAD~1", {"second", "third"})):
        assert find_changed(since) == Turn({f"tests/test_{name}.py": 0 for name in found})


def test_without_a_history_a_share_has_its_turn_which_what_the_tests_say_decides(history: Path) -> None:
    (history / ".git").rename(history / "elsewhere")
    turn = find_turn("HEAD")
    assert turn.near == {}
    assert turn.share in range(SHARES)
    (history / "tests" / "test_third.py").write_text("# changed", encoding="ascii")
    find_turn.cache_clear()
    assert find_turn("HEAD").seed != turn.seed
    assert find_changed("HEAD") is None


def test_a_run_that_may_not_take_long_begins_with_the_nearest_and_then_with_others_at_each_commit() -> None:
    near = {FILES[7]: 1, FILES[3]: 0, FILES[5]: 2}
    one, other = (sorted(FILES, key=Turn(near, 0, seed).place) for seed in ("one", "other"))
    assert one[:3] == other[:3] == [FILES[3], FILES[7], FILES[5]]
    assert one[3:] != other[3:]
