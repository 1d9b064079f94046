import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "clients.md"


def test_every_client_is_documented_beside_its_test() -> None:
    linked = {(PAGE.parent / target).resolve() for target in re.findall(r"\]\((\.\./tests/[^)]*)\)", PAGE.read_text())}
    assert linked == {path for path in HERE.rglob("test_*.py") if path != Path(__file__)}
