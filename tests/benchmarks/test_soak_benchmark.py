"""A short soak: nothing is left over and nothing is lost, whatever fifty clients do at once. Nothing is timed."""

import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import soak
from tests.effort import rounds


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> soak.Soaked:
    return soak.run_soak(tmp_path_factory.mktemp("soak"), seconds=rounds(5, quick=2), connections=10, workers=2)


def test_no_descriptor_is_left_and_the_ledger_is_exact(run: soak.Soaked) -> None:
    assert run.descriptors_after <= run.descriptors_before
    assert run.balances_exact
    assert run.events > 1


def test_clients_did_what_clients_do(run: soak.Soaked) -> None:
    assert run.statements["connection"] >= run.connections
    assert run.statements["select"] > 0


def test_the_run_is_printed_and_is_a_document(run: soak.Soaked) -> None:
    console = Console(width=120)
    with console.capture() as printed:
        soak.show(run, console)
    assert "descriptors" in printed.get()
    assert json.loads(json.dumps(run.make_document()))["workers"] == 2


def test_a_line_is_fitted_to_what_grows() -> None:
    def samples(growing: int) -> list[soak.Sample]:
        return [soak.Sample(at_s, 1000 + growing * at_s, 0, 0) for at_s in range(10)]

    assert soak._compute_slope(samples(7)) == pytest.approx(7)
    assert soak._compute_slope(samples(0)) == 0


def test_descriptors_are_counted(tmp_path: Path) -> None:
    before = soak._count_descriptors((os.getpid(),))
    with (tmp_path / "open").open("w"):
        assert soak._count_descriptors((os.getpid(),)) == before + 1
