"""docs/mechanisms.md has a section for every mechanism that may be named, docs/proofs a proof of every promise."""

import re
from pathlib import Path

import pytest

from mechanisms.registry import MECHANISMS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mechanisms.md"
MODULES = sorted((ROOT / "mechanisms").rglob("*.py"))


def _proofs(module: Path) -> set[str]:
    return set(re.findall(r"docs/proofs/\w+\.md", module.read_text()))


def test_every_registered_mechanism_has_a_section() -> None:
    headings = re.findall(r"^#+ (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    documented = {name for heading in headings for name in re.findall(r"`(\w+)`", heading)}
    assert documented >= set(MECHANISMS)


def test_every_guarantee_names_its_proof() -> None:
    promising = [path for path in MODULES if "Guarantee:" in path.read_text()]
    assert len(promising) > 20
    assert [str(path) for path in promising if not _proofs(path)] == []


@pytest.mark.parametrize("module", [path for path in MODULES if _proofs(path)], ids=lambda path: path.stem)
def test_every_proof_that_a_module_names_names_it_back(module: Path) -> None:
    name = str(module.relative_to(ROOT))
    for proof in _proofs(module):
        assert f"`{name}`" in (ROOT / proof).read_text(), f"{proof} does not name {name}"
