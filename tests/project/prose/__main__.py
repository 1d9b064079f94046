"""`python -m tests.project.prose [FILE]...`: check the tree, or list every finding in some files."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.project.prose.blocks import Block, markdown_blocks
from tests.project.prose.grade import grade
from tests.project.prose.ratchet import find_excess, lowered, read_allowed, write_allowed
from tests.project.prose.rules import Finding, check
from tests.project.prose.source import message_blocks, source_blocks

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("accountant", "benchmarks", "deploy", "docs", "mechanisms", "planner", "proxy")
"""Docstrings of tests are left out: they say how a test fails, to those who read it."""
SPEAKING = ("accountant", "mechanisms", "planner", "proxy")
"""The folders whose errors, hints and help users read."""


def read_blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a page or of a Python file."""
    text = path.read_text(encoding="utf-8")
    return markdown_blocks(text) if path.suffix == ".md" else source_blocks(text)


def check_file(path: Path) -> list[Finding]:
    """Return the findings in a file, in the order of its lines."""
    found = (finding for block in read_blocks(path) for finding in check(block, is_page=path.suffix == ".md"))
    return sorted(found, key=lambda finding: finding.line)


def all_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield every page and every Python file that is checked."""
    yield from sorted(root.glob("*.md"))
    for folder in FOLDERS:
        yield from sorted(path for kind in ("*.md", "*.py") for path in (root / folder).rglob(kind))


def read_messages() -> Iterator[tuple[Path, Block]]:
    """Yield every text of an error, detail, hint or help, with its file."""
    for folder in SPEAKING:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from ((path, block) for block in message_blocks(path.read_text(encoding="utf-8")))


def check_messages() -> int:
    """List the findings in messages, print their number and grade, and return 1 if there is a finding."""
    messages = list(read_messages())
    found = [(shown(path), list(check(block, is_page=False))) for path, block in messages]
    _list(found)
    print(f"{grade(block for _, block in messages):5.1f} {len(messages):6d} messages")
    return 1 if any(findings for _, findings in found) else 0


def shown(path: Path) -> str:
    """Return the path as the ratchet names it."""
    return path.resolve().relative_to(ROOT).as_posix()


def _list(found: Iterable[tuple[str, list[Finding]]]) -> None:
    for name, findings in found:
        for finding in findings:
            print(f"{name}:{finding.line}: {finding}")


def check_tree(*, update: bool) -> int:
    """Hold the tree against the ratchet; return 1 if a file has more findings than it may have."""
    findings = {shown(path): check_file(path) for path in all_files()}
    found = {name: len(one) for name, one in findings.items()}
    allowed = read_allowed()
    excess = find_excess(found, allowed)
    _list((name, findings[name]) for name in excess)
    for name, most in excess.items():
        print(f"{name}: {found[name]} findings, {most} allowed")
    least = lowered(found, allowed)
    if update:
        write_allowed(least)
    elif fewer := sum(allowed.values()) - sum(least.values()):
        print(f"prose: {fewer} findings fewer than allowed; python -m tests.project.prose --update keeps it so")
    return 1 if excess else 0


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.project.prose", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="List all findings in these; without any, check the tree.")
    parser.add_argument("--update", action="store_true", help="Lower the allowed numbers to those found.")
    parser.add_argument("--grade", action="store_true", help="Print words and Flesch-Kincaid grade of each page.")
    parser.add_argument("--messages", action="store_true", help="List findings in messages, and print their grade.")
    asked = parser.parse_args(arguments)
    if asked.messages:
        return check_messages()
    if asked.grade:
        for path in asked.files or [path for path in all_files() if path.suffix == ".md"]:
            length = len(path.read_text(encoding="utf-8").split())
            print(f"{grade(read_blocks(path)):5.1f} {length:6d} words  {path if asked.files else shown(path)}")
        return 0
    if asked.files:
        found = [(str(path), check_file(path)) for path in asked.files]
        _list(found)
        return 1 if any(findings for _, findings in found) else 0
    return check_tree(update=asked.update)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
