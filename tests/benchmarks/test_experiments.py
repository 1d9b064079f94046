"""The experiments run at any size, depend on their seed alone, and every figure and table is produced."""

import csv
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress

from benchmarks.experiments import __main__ as command
from benchmarks.experiments import mim, probe
from benchmarks.experiments.confidence import compute_missed, is_contradicted
from benchmarks.experiments.entrants import ALL_MIDE, ALL_PROBE, MOST_EPSILON, PROBES, make_entrants
from benchmarks.experiments.figures import EXPERIMENTS, FIGURES
from benchmarks.experiments.kept import read_csv
from benchmarks.experiments.questions import make_task
from benchmarks.experiments.ratios import list_duels, sum_duels
from benchmarks.experiments.report import About, write_page
from benchmarks.experiments.runs import Case, Measured, Spread, measure, run_entrant
from benchmarks.experiments.tables import write_csv
from benchmarks.experiments.taxi import VARIABLE
from mechanisms.formula import AnyOf, Cut
from mechanisms.registry import DEFAULT, MECHANISMS
from tests.effort import rounds

SEED = 5
FEW_KEYS = 30


def _smaller(case: Case) -> Case:
    """The same question on a few keys from everywhere."""
    keys = case.aggregates.shape[1]
    return replace(case, aggregates=case.aggregates[:, :: max(1, keys // FEW_KEYS)])


def _ends(cases: list[Case]) -> list[Case]:
    """The first and the last point of every panel."""
    found = []
    for panel in dict.fromkeys(case.panel for case in cases):
        own = [case for case in cases if case.panel == panel]
        found += [own[0], own[-1]]
    return found


@pytest.fixture(scope="module")
def measured() -> Iterator[list[Measured]]:
    """Two runs of every experiment on few keys; MiM's points are all needed for its table."""

    def shrunk(name: str) -> list[Case]:
        cases = list(EXPERIMENTS[name](seed=SEED))
        return [_smaller(case) for case in (cases if name == mim.FALSE_POSITIVES else _ends(cases))]

    with pytest.MonkeyPatch.context() as patch, Progress(console=Console(quiet=True)) as progress:
        patch.delenv(VARIABLE, raising=False)
        patch.setattr(command, "EXPERIMENTS", {name: lambda seed, name=name: shrunk(name) for name in EXPERIMENTS})
        yield command.run(runs=2, seed=SEED, progress=progress)


def test_every_experiment_measures_every_entrant(measured: list[Measured]) -> None:
    assert {m.experiment for m in measured} == set(EXPERIMENTS)
    for m in measured:
        assert not m.refused
        assert m.runs == 2
        assert 0.0 <= m.denied <= 1.0
        assert 0.0 <= m.spreads["epsilon_mean"].mean <= m.spreads["epsilon_max"].mean <= m.worst_case
        assert 0.0 <= m.spreads["gamma"].low <= m.spreads["gamma"].median <= m.spreads["gamma"].high <= 1.0
        assert math.isnan(m.spreads["fnr"].mean) == (m.denied == 1.0)


def test_the_page_the_images_and_the_files_are_written(
    measured: list[Measured], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = FIGURES[:: rounds(1, quick=4)]
    monkeypatch.setattr(command, "FIGURES", drawn)
    command.write(measured, About(runs=2, seed=SEED, taxi="synthetic stand-in"), tmp_path)
    page = (tmp_path / "results.md").read_text(encoding="utf-8")
    for figure in FIGURES:
        assert f"## {figure.title}" in page
        assert f"(results/{figure.slug}.png)" in page
    for figure in drawn:
        assert (tmp_path / "results" / f"{figure.slug}.png").read_bytes().startswith(b"\x89PNG")
    for name in EXPERIMENTS:
        with (tmp_path / "results" / f"{name}.csv").open(newline="") as file:
            assert len(list(csv.DictReader(file))) == sum(m.experiment == name for m in measured)
    for heading in (
        "## Summary",
        "## Data, settings",
        "## Loss and rates",
        "## The contract at worst-case data",
        "## Where we lose",
    ):
        assert heading in page
    for name in (*ALL_MIDE, *ALL_PROBE):
        assert f"`{name}`" in page


def test_the_page_says_which_taxi_trips_were_used(measured: list[Measured]) -> None:
    assert "(made up for this)" in write_page(measured, About(runs=2, seed=SEED, taxi="made up for this"))


def test_measurements_are_read_back_from_their_file(tmp_path: Path) -> None:
    case = _smaller(probe.make_sub_query_cases(seed=SEED)[20])
    found = measure([case], runs=2, seed=SEED)
    write_csv(found, tmp_path / "kept.csv")
    read = read_csv(tmp_path / "kept.csv", [case])
    assert [replace(one, worst_case=0.0, spreads={}) for one in read] == [
        replace(one, worst_case=0.0, spreads={}) for one in found
    ]
    for one, kept in zip(found, read, strict=True):
        assert kept.worst_case == pytest.approx(one.worst_case, rel=1e-4)
        for name, spread in one.spreads.items():
            assert kept.spreads[name].mean == pytest.approx(spread.mean, rel=1e-4, nan_ok=True)
    with pytest.raises(ValueError, match="was not measured on these data"):
        read_csv(tmp_path / "kept.csv", [replace(case, x=case.x + 1)])


def test_results_follow_from_the_seed_alone() -> None:
    case = _smaller(probe.make_sub_query_cases(seed=SEED)[20])
    first, again, other = (repr(measure([case], runs=3, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", PROBES)
def test_probe_may_spend_at_least_its_published_limit(name: str) -> None:
    for tolerance in (1, 1000):
        task = make_task(AnyOf((Cut(0, 100, True, tolerance), Cut(1, 100, True, tolerance))), (1, 1))
        _, calibration = make_entrants((name,), task)[0].prepare()
        assert calibration.mechanism == name
        registered = MECHANISMS[name].calibrate(task).worst_case_epsilon
        assert calibration.worst_case_epsilon == pytest.approx(max(MOST_EPSILON, registered))


def test_nlm_costs_what_tslm_costs() -> None:
    task = make_task(Cut(0, 100, True, 10), (1,))
    (_, nlm), (_, tslm) = (entrant.prepare() for entrant in make_entrants(("nlm", "tslm"), task))
    assert nlm.worst_case_epsilon == tslm.worst_case_epsilon
    assert nlm.fnr is None
    assert [test.shift for test in nlm.tests] == [0]


def test_a_contract_that_nobody_can_meet_is_reported_as_refused() -> None:
    task = make_task(Cut(0, 100, True, 0), (1,))
    case = Case("any", "any", 1.0, np.zeros((1, 3), dtype=np.int64), make_entrants(("tslm",), task))
    measured = run_entrant(case, case.entrants[0], runs=2, seed=SEED)
    assert measured.refused
    assert measured.runs == 0
    assert math.isnan(measured.spreads["epsilon_mean"].mean)


def _one(label: str, loss: float, *, tolerances: tuple[int, ...] = (10,), fnr: float = 0.0) -> Measured:
    spread = Spread(loss, loss, loss, loss)
    return Measured(
        experiment="any",
        panel="any",
        x=1.0,
        label=label,
        mechanism=label,
        with_or=True,
        tolerances=tolerances,
        fnr_asked=0.05,
        fpr_asked=0.1,
        runs=100,
        keys=100,
        positives=100,
        beyond=0,
        worst_case=10.0,
        denied=0.0,
        refused="",
        spreads={"epsilon_mean": spread, "fnr": Spread(fnr, fnr, fnr, fnr), "fpr_contract": Spread(0.0, 0.0, 0.0, 0.0)},
    )


def test_ratios_compare_equal_contracts_only() -> None:
    ours = _one(DEFAULT, 1.0)
    found = list_duels([ours, _one("probe", 2.0), _one("naive", 2.0, tolerances=(4,))], "probe")
    assert [duel.compute_ratio("epsilon_mean") for duel in found] == [0.5]
    assert sum_duels(found, "epsilon_mean").met == 1
    assert sum_duels(list_duels([ours, _one("probe", 1.5)], "probe"), "epsilon_mean").met == 0
    assert not list_duels([ours, _one("naive", 2.0, tolerances=(4,))], "naive")


def test_chance_is_not_taken_for_a_broken_promise() -> None:
    """10,000 decisions at a rate of 5 %: 5.2 % is within the 99.9 % interval of the bound, 8 % is far outside."""
    assert not is_contradicted(_one("any", 1.0, fnr=0.052))
    assert compute_missed(_one("any", 1.0, fnr=0.052)).verdict == "on the bound"
    assert is_contradicted(_one("any", 1.0, fnr=0.08))
    assert compute_missed(_one("any", 1.0, fnr=0.01)).verdict == "kept"
