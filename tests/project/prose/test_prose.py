"""The command: a file may not have more findings than before, and numbers are lowered, never raised."""

from pathlib import Path

import pytest

from tests.project.prose import __main__ as command
from tests.project.prose.blocks import Block
from tests.project.prose.grade import count_syllables, grade
from tests.project.prose.ratchet import find_excess, lowered, read_allowed, write_allowed


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "one.md").write_text("A dear question.\n\nThe dearer one.\n", encoding="utf-8")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "all_files", lambda: sorted((tmp_path / "docs").glob("*.md")))
    allowed = tmp_path / "allowed.toml"
    monkeypatch.setattr(command, "read_allowed", lambda: read_allowed(allowed))
    monkeypatch.setattr(command, "write_allowed", lambda numbers: write_allowed(numbers, allowed))
    return tmp_path


def test_a_file_with_more_findings_than_allowed_fails(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_allowed({"docs/one.md": 1}, tree / "allowed.toml")
    assert command.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        'docs/one.md:1: say "expensive": dear',
        'docs/one.md:3: say "more expensive": dearer',
        "docs/one.md: 2 findings, 1 allowed",
    ]
    assert command.main(["--update"]) == 1
    assert read_allowed(tree / "allowed.toml") == {"docs/one.md": 1}


def test_a_file_with_fewer_findings_passes_and_its_number_can_be_lowered(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_allowed({"docs/gone.md": 2, "docs/one.md": 3}, tree / "allowed.toml")
    assert command.main([]) == 0
    assert "3 findings fewer than allowed" in capsys.readouterr().out
    assert command.main(["--update"]) == 0
    assert read_allowed(tree / "allowed.toml") == {"docs/one.md": 2}


def test_all_findings_of_named_files_are_listed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tree / "docs" / "one.md")]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_new_file_may_have_no_finding() -> None:
    assert find_excess({"new.md": 1, "old.md": 2, "good.md": 0}, {"old.md": 2}) == {"new.md": 0}
    assert lowered({"new.md": 1, "old.md": 1}, {"old.md": 2, "better.md": 1}) == {"old.md": 1}


def test_the_files_of_the_ratchet_exist() -> None:
    known = {command.shown(path) for path in command.all_files()}
    assert len(known) > 1000
    assert set(read_allowed()) <= known


def test_the_grade_rises_with_words_and_syllables() -> None:
    assert [count_syllables(word) for word in ("cat", "table", "price", "three", "privacy", "x")] == [1, 2, 1, 1, 3, 1]
    assert grade([Block(1, "The cat sat. The dog ran.")]) == pytest.approx(0.39 * 3 + 11.8 * 1 - 15.59)
    assert grade([Block(1, "Every proprietary mechanism deteriorates.")]) > 12
