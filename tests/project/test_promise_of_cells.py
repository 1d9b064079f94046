"""The promise per cell is one sentence, wherever it is made."""

import pytest

from planner.explain.guarantee import PROMISE_OF_CELLS
from tests.project.test_proofs import ROOT

PAGES = (
    "docs/policy.md",
    "docs/threat-model.md",
    "docs/decisions/0005-cells.md",
    "docs/proofs/cells.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_makes_the_promise_in_the_same_words(page: str) -> None:
    assert PROMISE_OF_CELLS in " ".join((ROOT / page).read_text(encoding="utf-8").split())
