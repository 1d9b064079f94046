"""Every mutant can still be made: what it changes stands in its file once, and the tests near it are there."""

import pytest

from tests.mutants.catalogue import ROOT, Mutant, read_mutants

MUTANTS = read_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[one.name for one in MUTANTS])
def test_a_mutant_changes_one_place(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert mutant.tests
    assert all((ROOT / path).is_file() for path in mutant.tests)
