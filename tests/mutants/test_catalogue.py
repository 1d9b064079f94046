"""Every mutant can still be made: what it changes stands in its file once, and the tests near it are there."""

from tests.mutants.catalogue import ROOT, read_mutants


def test_a_mutant_changes_one_place() -> None:
    for mutant in read_mutants():
        assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1, mutant.name
        assert mutant.old != mutant.new, mutant.name
        assert mutant.tests, mutant.name
        assert all((ROOT / path).is_file() for path in mutant.tests), mutant.name
