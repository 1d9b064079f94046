"""Monitors that published streams watch, at work over real PostgreSQL: the runner, the ledger, and what is charged."""

from pathlib import Path

import pytest

from planner.catalog.catalog import RELEASED_BY
from proxy.monitors.reading import ServiceMonitorReader
from proxy.report.budget import make_document
from tests.worlds.clinic import DAY, HOUR, NAME, START, Clinic, clinic, visits
from tests.worlds.house import most_spent

pytestmark = pytest.mark.server


def _advance(wards: Clinic, hours: float) -> None:
    wards.now = START + hours * HOUR
    wards.runner().make_due_looks()


@pytest.mark.parametrize("name", ["pegasus", "signed_tree"])
def test_a_stream_watches_what_comes_in(tmp_path: Path, postgres_url: str, name: str) -> None:
    """Far above its threshold and far below, on seeded noise: sums since the window's beginning are what counts."""
    with clinic(tmp_path, postgres_url, more=f'mechanism = "{name}"\nepsilon = 2') as wards:
        run = wards.start()
        wards.arrive(visits("A", 900, at=START + HOUR))
        _advance(wards, 6)
        assert wards.alerts(run) == [(1, 0, "A")]
        wards.arrive(visits("C", 300, at=START + 7 * HOUR))
        _advance(wards, 12)
        assert wards.alerts(run) == [(1, 0, "A")]
        wards.arrive(visits("C", 300, at=START + 13 * HOUR))  # what came by both looks crosses, and neither alone
        _advance(wards, 18)
        _advance(wards, 24)
        wards.arrive(visits("B", 900, at=START + DAY))
        _advance(wards, 30)
        assert wards.alerts(run) == [(1, 0, "A"), (3, 0, "C"), (5, 1, "B")]
        assert wards.service.ledger.monitors.list_closed_windows(run) == {0}
        assert most_spent(make_document(wards.service, None), "visits") == pytest.approx(2, abs=1e-8)
        _says_no_bound(wards)


def test_zeros_say_nothing_for_nothing(tmp_path: Path, postgres_url: str) -> None:
    with clinic(tmp_path, postgres_url, more='mechanism = "zeros"') as wards:
        run = wards.start()
        wards.arrive(visits("A", 900, at=START + HOUR))
        for hours in (6, 12, 18, 24):
            _advance(wards, hours)
        assert wards.alerts(run) == []
        assert wards.service.ledger.monitors.list_closed_windows(run) == {0}
        assert [one.looks_made for one in wards.service.ledger.monitors.list_runs()] == [4]
        assert most_spent(make_document(wards.service, None), "visits") == 0
        _says_no_bound(wards)


def _says_no_bound(wards: Clinic) -> None:
    """What the ledger has of it names no rate, and its record is whole; nor has what its readers see."""
    (asked,) = wards.service.ledger.read_history(analyst=RELEASED_BY)
    wording = asked.wording
    assert wording is not None
    assert (wording.fnr, wording.fpr) == (None, None)
    assert wording.guarantee is not None
    assert wording.guarantee.startswith("no bound on missed or wrong: ")
    reading = ServiceMonitorReader(wards.service)
    (row,) = [reading.read_status(one).make_row() for one in reading.list_readable("ada")]
    assert row[8:10] == (None, None)  # fnr and fpr in keyhole.monitors
    assert any("no bound on missed or wrong" in line for line in reading.explain(NAME, analyst="ada", form="text"))
    wards.service.ledger.verify_everything()
