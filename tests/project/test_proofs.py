"""A proof names its code, and the code names its proof: what promises anything about loss, rates or the ledger says
where it is proved, or decided, and that page says so as well."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROOFS = sorted((ROOT / "docs" / "proofs").glob("*.md"))
NAMES = re.compile(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)")
# The packages whose promises an analyst's or a patient's rests on.
PROMISING = ("mechanisms", "accountant", "planner/functionals", "planner/lower", "planner/policy")
MODULES = [path for package in PROMISING for path in sorted((ROOT / package).rglob("*.py"))]
# Promises that are no theorem about loss or rates, with what holds them against what they promise.
COMPARED = {
    "accountant/store/punctual.py": "tests/accountant/store/test_hanging.py",
    "planner/functionals/atoms/read_atoms.py": "tests/end_to_end/answers/test_oracle.py",
    "planner/functionals/guards.py": "tests/planner/functionals/test_guards.py",
    "planner/policy/simulated_catalog.py": "tests/planner/policy/test_simulated_catalog.py",
}
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


def test_a_proof_and_its_code_name_each_other() -> None:
    for proof in PROOFS:
        named_back = [path for path in code(proof) if f"docs/proofs/{proof.name}" in path.read_text(encoding="utf-8")]
        assert named_back, f"none of the files of {proof.name} names it"


def test_what_a_proof_is_about_is_in_the_file_that_it_names() -> None:
    for proof in PROOFS:
        insist_definitions(proof)


def insist_definitions(proof: Path) -> None:
    text = proof.read_text(encoding="utf-8")
    pairs = [(path, name) for path, names in NAMES.findall(text) for name in re.findall(r"`([\w.]+)`", names)]
    pairs += [(path, name) for one, other, path in PLACED.findall(text) for name in (one, other) if name]
    for path, name in pairs:
        defined = name.split(".")[-1]
        source = (ROOT / path).read_text(encoding="utf-8")
        there = re.search(rf"\b(class|def) {defined}\b|^{defined}\b", source, re.M)
        assert there, f"{proof.name}: {name} in {path}"


def pages(module: Path) -> set[str]:
    """The proofs and decisions that a module names."""
    return set(re.findall(r"docs/(?:proofs|decisions)/[\w-]+\.md", module.read_text(encoding="utf-8")))


def promises(module: Path) -> bool:
    """Whether a docstring of the module has a guarantee."""
    text = module.read_text(encoding="utf-8")
    if "Guarantee" not in text:
        return False
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return any("Guarantee" in (ast.get_docstring(n) or "") for n in ast.walk(tree) if isinstance(n, documented))


def test_every_guarantee_names_where_it_is_proved_or_decided() -> None:
    promising = {str(path.relative_to(ROOT)): pages(path) for path in MODULES if promises(path)}
    assert len(promising) > 50
    assert {path for path, named in promising.items() if not named} == set(COMPARED)
    assert all((ROOT / test).exists() for test in COMPARED.values())
    lacking = [
        path for path, named in promising.items() if path.startswith("mechanisms/") and not any(map(is_proof, named))
    ]
    assert lacking == [], "a mechanism's guarantee is proved, not decided"


def is_proof(page: str) -> bool:
    return page.startswith("docs/proofs/")


def test_every_page_that_a_promising_module_names_names_it_back() -> None:
    for name, page in ((str(module.relative_to(ROOT)), page) for module in MODULES for page in pages(module)):
        assert f"`{name}`" in (ROOT / page).read_text(encoding="utf-8"), f"{page} does not name {name}"
