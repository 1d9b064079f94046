"""docs/mechanisms.md has a section for every mechanism that may be named."""

import re
from pathlib import Path

from mechanisms.registry import MECHANISMS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mechanisms.md"


def test_every_registered_mechanism_has_a_section() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    documented = {name for heading in headings for name in re.findall(r"`(\w+)`", heading)}
    assert documented >= set(MECHANISMS)
