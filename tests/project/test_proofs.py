"""A proof names its code, and the code names its proof."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROOFS = sorted((ROOT / "docs" / "proofs").glob("*.md"))
NAMES = re.compile(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)")
PLACED = re.compile(r"`(\w+)`(?: and `(\w+)`)? in `([\w/]+\.py)`")


def head(proof: Path) -> str:
    """What stands between the title and the first statement: the files, and what in them is meant."""
    return proof.read_text(encoding="utf-8").split("\n\n")[1]


def code(proof: Path) -> list[Path]:
    named = re.findall(r"`((?:mechanisms|planner|accountant|proxy)/[\w/]*(?:\.py)?)`", head(proof))
    return [
        found
        for name in named
        for found in ([ROOT / name] if name.endswith(".py") else sorted((ROOT / name).rglob("*.py")))
    ]


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.stem)
def test_a_proof_and_its_code_name_each_other(proof: Path) -> None:
    files = code(proof)
    assert files
    named_back = [path for path in files if f"docs/proofs/{proof.name}" in path.read_text(encoding="utf-8")]
    assert named_back, f"none of the files of {proof.name} names it"


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.stem)
def test_what_a_proof_is_about_is_in_the_file_that_it_names(proof: Path) -> None:
    text = proof.read_text(encoding="utf-8")
    pairs = [(path, name) for path, names in NAMES.findall(text) for name in re.findall(r"`([\w.]+)`", names)]
    pairs += [(path, name) for one, other, path in PLACED.findall(text) for name in (one, other) if name]
    for path, name in pairs:
        defined = name.split(".")[-1]
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"\b(class|def) {defined}\b|^{defined}\b", source, re.M), f"{name} in {path}"
