"""What is written down of Keyhole's past keeps its form: decisions say their status, the changelog its sections."""

import re
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


def status(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[2]


def test_a_decision_says_its_status_and_since_when() -> None:
    for page in DECISIONS:
        insist_status(page)


def insist_status(page: Path) -> None:
    said = re.fullmatch(
        r"Status: accepted, (\S+?)((?:; (?:amended|superseded) by \[\d{4}\]\(\S+\.md\), \S+?)*)\.", status(page)
    )
    meant = "the third line is the status: accepted, amended or superseded, each with its date"
    assert said is not None, f"{page.name}: {meant}"
    assert page.name.startswith(tuple("0123456789")), page.name
    since = date.fromisoformat(said[1])
    for number, link, day in re.findall(r"by \[(\d{4})\]\((\S+\.md)\), ([\d-]+)", said[2]):
        later = page.parent / link
        assert later.is_file(), page.name
        assert link.startswith(number), page.name
        assert since <= date.fromisoformat(day), page.name
        assert f"Status: accepted, {day}" in status(later), page.name


def test_decisions_are_numbered_without_a_gap() -> None:
    assert [int(page.name[:4]) for page in DECISIONS] == list(range(1, len(DECISIONS) + 1))


def test_the_changelog_has_the_sections_of_keep_a_changelog() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    for version in text.split("\n## ")[1:]:
        headings = re.findall(r"^### (.+)$", version, re.MULTILINE)
        assert headings == [name for name in SECTIONS if name in headings]
