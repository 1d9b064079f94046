"""Errors, details, hints and help read easily: no finding in any of them, and a low reading grade on average."""

from tests.project.prose.__main__ import read_messages, shown
from tests.project.prose.grade import grade
from tests.project.prose.rules import check
from tests.project.prose.source import message_blocks

HIGHEST_GRADE = 9.0


def test_no_message_has_a_finding() -> None:
    found = [f"{shown(path)}:{one}" for path, block in read_messages() for one in check(block, is_page=False)]
    assert not found, found


def test_messages_are_read_at_the_first_reading() -> None:
    blocks = [block for _, block in read_messages()]
    assert len(blocks) > 2_000
    assert grade(blocks) <= HIGHEST_GRADE


def test_docstrings_are_no_messages() -> None:
    text = 'def refuse():\n    """What nobody reads."""\n    raise KeyholeError("KH100", "no", hint="Write it anew.")\n'
    assert [block.text for block in message_blocks(text)] == ["KH100", "no", "Write it anew."]
