"""About how long a question takes follows from policy, statement and pins; one that takes too long spends nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from math import ceil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from planner.catalog.pace import UNCERTAINTY_FACTOR, EngineWork, Pace, TableSize
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.plan.expected_time import estimate_work, expect_time
from planner.policy.compile import identify_engine
from planner.policy.file import Policy
from proxy.cli import check as checking
from proxy.open_policy.pins import find_pins_path, read_pins, write_pins
from proxy.open_policy.service import Service
from proxy.owner import pace as measuring
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_as_document, explain_question
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.sources.failures import SourceFailures
from proxy.sources.open import open_source
from tests.planner.asked import asked as asked_of_retail
from tests.worlds.wards import QUESTION, install

SIZE = 'refresh = "static"\nsize = { rows = 1_000_000 }\n'
SLOW = EngineWork(rows=1.0)  # a second a row


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is of no interest here, and takes seconds at full size."""
    monkeypatch.setattr(measuring, "ROWS", 10_000)
    monkeypatch.setattr(measuring, "_RUNS", 1)


def installed(directory: Path, *, seconds: EngineWork | None = None) -> Path:
    """The wards with a declared size, pinned; with a pace of the test's own where it gives one."""
    path = install(directory)
    path.write_text(path.read_text().replace('refresh = "static"\n', SIZE))
    checking.check(path, confirm=False)
    if seconds is not None:
        policy = Policy.load(path)
        pins = replace(read_pins(find_pins_path(policy)), pace=Pace(identify_engine(policy.source), seconds))
        write_pins(find_pins_path(policy), pins)
    return path


def asking(service: Service, least: int = 1500) -> Asked:
    return Asked(
        question=read_bare_question(QUESTION.format(least), service.catalog),
        settings={},
        parameters={},
        analyst=service.find_analyst("ada"),
        today=datetime.now(UTC).date(),
    )


def test_a_question_that_takes_too_long_is_refused_and_spends_nothing(tmp_path: Path) -> None:
    with Service.open(installed(tmp_path, seconds=SLOW)) as service:
        asked = asking(service)
        planned = pipeline.plan_asked_question(service, asked)
        with pytest.raises(KeyholeError) as caught:
            pipeline.answer(service, planned, asked)
        assert caught.value.code == "KH319"
        assert caught.value.message == ("the question is expected to take about 1,000,000 s, and the timeout is 60 s")
        assert caught.value.hint == "Group by fewer or coarser keys, or ask for fewer aggregates at once."
        assert service.read_questions("ada") == ()
        assert "-> this question would be refused" in "\n".join(explain_question(service, asked, form="text"))
        told = explain_as_document(service, asked)["expected_time"]
        assert told == {"seconds": 1e6, "timeout_seconds": 60.0, "refused": True}
        json.dumps(told)


def test_what_is_expected_beyond_the_timeout_is_refused(tmp_path: Path) -> None:
    limit_s = 60.0
    with Service.open(installed(tmp_path, seconds=SLOW)) as service:
        asked, catalog = asking(service), service.catalog
        planned = pipeline.plan_asked_question(service, asked)
        for share in (2.9, 1.01, 0.99, 1.01 / UNCERTAINTY_FACTOR, 0.99 / UNCERTAINTY_FACTOR):
            pace = Pace("the test's", EngineWork(statements=share * limit_s))
            service.catalog = replace(catalog, pace=pace)
            expected = expect_time(planned, service.catalog)
            assert expected is not None
            assert expected.is_too_long is (share > 1)
            assert ("stays charged" in expected.sentence) is (1 / UNCERTAINTY_FACTOR < share < 1)
            if share > 1:
                with pytest.raises(KeyholeError, match="KH319") as caught:
                    pipeline.answer(service, planned, asked)
                needed = f"{1000 * ceil(UNCERTAINTY_FACTOR * share * limit_s):_}"
                assert f"limits.statement_timeout_ms to {needed}." in str(caught.value.hint)
                assert service.read_questions("ada") == ()
            else:
                assert list(pipeline.answer(service, planned, asked).keys.keys) == [("A",)]
        service.source.wait_for_rollups()


def test_nothing_is_expected_where_no_size_is_declared_or_the_pace_is_anothers(tmp_path: Path) -> None:
    path = install(tmp_path)
    checking.check(path, confirm=False)
    assert "pace" not in json.loads(find_pins_path(Policy.load(path)).read_text())
    with Service.open(path) as service:
        assert not any("Time:" in line for line in explain_question(service, asking(service), form="text"))
    path = installed(tmp_path, seconds=SLOW)
    path.write_text(path.read_text().replace('url = "duckdb://"', 'url = "duckdb://"\nthreads = 1'))
    with Service.open(path) as service:
        assert service.catalog.pace is None, "other settings are another engine"


def test_check_measures_once_and_explain_says_about_how_long(tmp_path: Path) -> None:
    path = installed(tmp_path)
    pins = find_pins_path(Policy.load(path))
    first = read_pins(pins).pace
    assert first is not None
    assert min(first.seconds.amounts) >= 0.0 < max(first.seconds.amounts)
    checking.check(path, confirm=False)
    assert read_pins(pins).pace == first
    with Service.open(path) as service:
        lines = explain_question(service, asking(service), form="text")
        (line,) = [line for line in lines if line.startswith("  Time: ")]
        assert line.endswith("s at the source")


def test_rows_of_the_table_do_not_decide_what_is_expected(tmp_path: Path) -> None:
    found = []
    for name, rows in (("many", 3000), ("none", 0)):
        (tmp_path / name).mkdir()
        path = installed(tmp_path / name, seconds=EngineWork(rows=1e-6, groups=1e-3))
        file = path.parent / "visits.csv"
        file.write_text("\n".join(file.read_text().split("\n")[: rows + 1]) + "\n")
        with Service.open(path) as service:
            found.append(expect_time(pipeline.plan_asked_question(service, asking(service)), service.catalog))
    assert found[0] == found[1]
    assert found[0] is not None
    assert found[0].seconds == pytest.approx(1.0 + 3e-3)


@pytest.mark.parametrize("rows_of_a_unit", [1, 2, 3, 5])
def test_pairs_are_the_groups_of_a_unit_on_average_over_all_worlds(rows_of_a_unit: int) -> None:
    planned = plan_question(
        asked_of_retail("SELECT country FROM sales GROUP BY country HAVING count(*) > 500"), dialect=DUCKDB
    )
    groups = planned.question.keys.size
    units = 7
    work = estimate_work(planned, {"sales": TableSize(rows=units * rows_of_a_unit, units=units)})
    worlds = [len(set(world)) for world in product(range(groups), repeat=rows_of_a_unit)]
    assert work is not None
    assert work.pairs == pytest.approx(units * sum(worlds) / len(worlds))
    assert (work.rows, work.groups) == (units * rows_of_a_unit, groups)
    assert estimate_work(planned, {}) is None


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_the_pace_is_that_of_rows_the_engine_makes_up(tmp_path: Path, engine: str, postgres_url: str) -> None:
    source = open_source("duckdb://" if engine == "duckdb" else postgres_url, directory=tmp_path)
    try:
        pace = measuring.measure_pace(source, engine="x", rows=20_000)
    finally:
        source.close()
    assert min(pace.seconds.amounts) >= 0.0
    small, large = (
        pace.estimate_time(EngineWork(rows=rows, row_aggregates=rows, pairs=rows), timeout_ms=1) for rows in (1e6, 1e9)
    )
    assert 0.0 < small.seconds < large.seconds


@pytest.mark.parametrize(("is_over", "named"), [(True, "statement_timeout_ms"), (False, "logged before")])
def test_the_log_says_that_it_was_the_timeout(*, is_over: bool, named: str) -> None:
    passed: Callable[[], bool] = lambda: is_over  # noqa: E731
    with (
        capture_logs() as logs,
        pytest.raises(KeyholeError),
        SourceFailures().count_failure("ada", is_over=passed),
    ):
        raise KeyholeError("KH501", "the source could not answer")
    (line,) = logs
    assert named in line["why"]
