"""`keyhole monitor`: what an owner types, over a real policy, source and ledger."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from proxy.cli.main import app
from tests.worlds.clinic import HOUR, START, Clinic, clinic, visits

pytestmark = pytest.mark.server


@pytest.fixture
def wards(tmp_path: Path, postgres_url: str) -> Iterator[Clinic]:
    with clinic(tmp_path, postgres_url) as opened:
        yield opened


def _monitor(wards: Clinic, *arguments: str) -> Result:
    verb, *others = arguments
    return CliRunner().invoke(app, ["monitor", verb, *others, "--policy", str(wards.policy)], catch_exceptions=False)


def test_a_monitor_from_its_start_to_its_end(wards: Clinic) -> None:
    assert "waiting" in _monitor(wards, "list").stdout
    asked = _monitor(wards, "start", "crowded", "--why", "to see")
    assert asked.exit_code == 1
    assert "Nothing was started" in asked.stdout
    assert wards.service.ledger.monitors.list_runs() == ()
    started = _monitor(wards, "start", "crowded", "--why", "to see", "--yes")
    assert started.exit_code == 0
    assert "epsilon" in started.stdout
    assert "crowded: started" in started.stdout
    again = _monitor(wards, "start", "crowded", "--why", "twice", "--yes")
    assert (again.exit_code, "KH606" in again.stderr) == (1, True)
    assert "running" in _monitor(wards, "list").stdout
    assert _monitor(wards, "pause", "crowded", "--why", "to see").stdout == "crowded: paused\n"
    assert "KH606" in _monitor(wards, "pause", "crowded", "--why", "to see").stderr
    assert "It is paused (to see)" in _monitor(wards, "show", "crowded").stdout
    assert _monitor(wards, "resume", "crowded", "--why", "enough").stdout == "crowded: running\n"
    assert _monitor(wards, "end", "crowded", "--why", "over").stdout == "crowded: ended\n"
    assert json.loads(_monitor(wards, "list", "--json").stdout)[0]["state"] == "ended"


def test_alerts_are_watched_for_and_scripts_learn_of_the_first(wards: Clinic) -> None:
    run = wards.start()
    wards.arrive(visits("B", 900, at=START + HOUR))
    wards.now = START + 6 * HOUR
    wards.runner().make_due_looks()
    seen = _monitor(wards, "watch", "crowded", "--until-alert")
    assert seen.exit_code == 0
    assert seen.stdout == "2026-03-01 06:00:00  look 1  ward B, day 2026-03-01\n"
    told = json.loads(_monitor(wards, "watch", "crowded", "--until-alert", "--json").stdout)
    assert (told["monitor"], told["key"]["ward"], told["look"]) == ("crowded", "B", 1)
    wards.service.ledger.monitors.end_run(run, by="tests", why="over")
    assert _monitor(wards, "watch", "crowded", "--until-alert", "--after", "1").exit_code == 1


def test_an_unknown_name_is_told_with_those_there_are(wards: Clinic) -> None:
    for verb in ("show", "watch"):
        refused = _monitor(wards, verb, "busy")
        assert (refused.exit_code, "it has crowded" in refused.stderr) == (2, True)
    assert "never started" in _monitor(wards, "end", "crowded", "--why", "over").stderr


def test_a_monitor_that_does_not_fit_says_what_would(tmp_path: Path, postgres_url: str) -> None:
    with clinic(tmp_path, postgres_url) as wards:
        text = wards.policy.read_text(encoding="utf-8")
        wards.policy.write_text(text.replace("epsilon_per_query = 4", "epsilon_per_query = 0.05"), encoding="utf-8")
        refused = _monitor(wards, "start", "crowded", "--why", "to see", "--yes")
        assert refused.exit_code == 1
        assert "KH302" in refused.stderr
        assert 'tolerance = "' in refused.stderr
        assert wards.service.ledger.monitors.list_runs() == ()
