"""The benchmark runs at any size, and what it measures are questions that were really answered. Nothing is timed."""

import json
from itertools import product

import pytest
from rich.console import Console
from rich.progress import Progress

from benchmarks import endpoint
from benchmarks.stopwatch import OUTER, SOURCE, STAGES, THREADS
from benchmarks.workload import SCORECARD


@pytest.fixture(scope="module")
def report() -> endpoint.Report:
    with Progress(console=Console(quiet=True)) as progress:
        return endpoint.measure(rows=10_000, repetitions=1, round_trips=100, sessions=10, progress=progress)


def test_every_workload_goes_through_every_stage(report: endpoint.Report) -> None:
    assert [each.engine for each in report.measured] == ["PostgreSQL"] * 8 + ["DuckDB"] * 8
    for each in report.measured:
        assert set(each.stages_ms) == set(STAGES)
        computed = (each.stages_ms[stage] for stage in STAGES if stage not in (OUTER, THREADS))
        assert all(taken > 0 for taken in computed)
        assert each.stages_ms[SOURCE] < each.keyhole_ms
        assert sum(each.stages_ms.values()) == pytest.approx(each.keyhole_ms)


def test_some_keys_are_returned(report: endpoint.Report) -> None:
    for each in report.measured:
        assert each.keys_returned == 500 if each.workload.startswith(SCORECARD) else 0 < each.keys_returned < 500


def test_the_report_is_printed_and_is_a_document(report: endpoint.Report) -> None:
    console = Console(width=200)
    with console.capture() as printed:
        endpoint.show(report, console)
    for each in report.measured:
        assert each.workload in printed.get()
    document = json.loads(json.dumps(report.make_document()))
    assert len(document["measured"]) == len(report.measured)
    assert all(trips["keyhole_per_s"] > 0 for trips in document["round_trips"])


def test_round_trips_cost_processor_time_of_the_processes_that_serve(report: endpoint.Report) -> None:
    assert {(trips.sending, trips.workers, trips.connections) for trips in report.round_trips} == set(
        product(("simple", "extended"), endpoint.WORKERS, (1, 50))
    )
    for trips in report.round_trips:
        assert trips.processor_us > 0
        assert 1 / (trips.workers + 2) <= trips.busiest <= 1  # the parent and a tracker may be processes, too
