"""A monitor by computed keys: looked at on real PostgreSQL, read over the wire, over REST and by the command."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import psycopg
import pytest
from typer.testing import CliRunner

from proxy.cli.main import app
from proxy.monitors.places import CellMapping
from proxy.process.addresses import Addresses
from proxy.process.serve import serve_in_background
from proxy.report.budget import make_document
from tests.effort import PATIENCE_S
from tests.worlds.clinic import HOUR, NAME, START, TOKEN, Clinic, clinic
from tests.worlds.house import PASSWORD, most_spent

pytestmark = pytest.mark.server

SQL = (
    "SELECT CASE WHEN ward IN ('A', 'B') THEN 'old' ELSE 'new' END AS wing, cost > 5 AS dear, day FROM visits "
    "GROUP BY wing, dear, day HAVING count(*) > 400"
)
ALERTS = [("new", True, 1, 6), ("old", None, 1, 12), ("old", False, 1, 18), ("new", True, 2, 30)]


@dataclass(frozen=True)
class Wings:
    """A clinic that serves, and what its monitor's run is called."""

    clinic: Clinic
    run: str
    addresses: Addresses

    @property
    def told(self) -> list[dict[str, Any]]:
        """What REST tells of `ALERTS`."""
        return [
            {
                "wing": wing,
                "dear": None if dear is None else "true" if dear else "false",
                "day": f"2026-03-0{day}",
            }
            for wing, dear, day, _ in ALERTS
        ]


@pytest.fixture(scope="module")
def wings(tmp_path_factory: pytest.TempPathFactory, postgres_url: str) -> Iterator[Wings]:
    """Two windows, of which one is closed: far above and far below the threshold."""
    with clinic(tmp_path_factory.mktemp("wings"), postgres_url, sql=SQL) as opened:
        run = opened.start()
        for hour, ward, cost in ((1, "C", 9), (7, "B", None), (13, "A", -3), (25, "C", 9)):
            with psycopg.connect(opened.source_url) as source:
                source.execute(
                    "INSERT INTO visits (ward, seen_at, cost) SELECT %s, %s, %s FROM generate_series(1, 900)",
                    (ward, START + hour * HOUR, cost),
                )
            opened.now = START + (hour + 5) * HOUR
            opened.runner().make_due_looks()
        opened.now = START + 24 * HOUR
        with serve_in_background(opened.service, host="127.0.0.1", port=0, rest_port=0, looks=False) as addresses:
            yield Wings(opened, run, addresses)


def test_the_relation_shows_them_as_postgresql_does(wings: Wings) -> None:
    with psycopg.connect(
        f"host=127.0.0.1 port={wings.addresses.port} user=ada password='{PASSWORD}' dbname=keyhole", autocommit=True
    ) as ada:
        ada.execute("SET timezone = 'UTC'")
        for binary in (False, True):
            cursor = ada.cursor(binary=binary).execute("SELECT * FROM crowded ORDER BY alerted_at")
            assert cursor.description is not None
            assert [one.name for one in cursor.description] == ["wing", "dear", "day", "alerted_at", "window_closes"]
            found = [(wing, dear, day.day, at) for wing, dear, day, at, _ in cursor]
            assert found == [
                (wing, dear, day, (START + hour * HOUR).replace(tzinfo=at.tzinfo))
                for (wing, dear, day, hour), (*_, at) in zip(ALERTS, found, strict=True)
            ]
        types = ada.execute(
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'crowded'::regclass AND "
            "attnum > 0 ORDER BY attnum"
        ).fetchall()
        assert [one for (one,) in types][:3] == ["text", "boolean", "date"]
        asked = ada.execute("SELECT c.wing, count(*) FROM crowded AS c WHERE dear IS NOT FALSE GROUP BY 1 ORDER BY 1")
        assert asked.fetchall() == [("new", 2), ("old", 1)]
        keys = ada.execute("SELECT key FROM keyhole.alerts ORDER BY look").fetchall()
        assert [key for (key,) in keys] == wings.told
        explained = [line for (line,) in ada.execute("EXPLAIN TABLE crowded").fetchall()]
        assert explained[0].startswith("Monitor crowded: 6 groups of visits")


def test_rest_and_the_command_tell_them_as_text(wings: Wings) -> None:
    url = f"http://127.0.0.1:{wings.addresses.rest_port}/v1/monitors/{NAME}/alerts"
    reply = httpx.get(url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S, trust_env=False)
    assert [one["key"] for one in reply.json()["alerts"]] == wings.told
    command = ["monitor", "watch", NAME, "--policy", str(wings.clinic.policy), "--until-alert"]
    lines = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).stdout.splitlines()
    assert [json.loads(line)["key"] for line in lines] == wings.told
    assert "wing old, dear NULL, day 2026-03-01" in CliRunner().invoke(app, command, catch_exceptions=False).stdout


def test_each_value_of_a_class_is_charged(wings: Wings) -> None:
    """Wards A and B are one group: both lose what it does, and an alert stands at the first of them."""
    monitors, plan = wings.clinic.service.ledger.monitors, wings.clinic.plan
    assert monitors.list_closed_windows(wings.run) == {0}
    (run,) = monitors.list_runs()
    assert sorted(len(values) for _, values in run.charge.cells.columns) == [3, 3, 3]
    spent = most_spent(make_document(wings.clinic.service, None), "visits")
    assert spent == pytest.approx(plan.epsilon_per_cell, abs=1e-8)
    places = CellMapping.find_for_run(plan, run)
    marked = np.zeros(plan.keys.size, dtype=np.bool_)
    for group in range(plan.keys.size):
        marked[:] = False
        marked[group] = True
        assert places.mark_keys(places.find_cells(marked)).tolist() == marked.tolist()
    losses = np.arange(plan.keys.size) / 4
    laid = places.expand_to_cells(losses)
    assert sorted((laid / 10**9).tolist()) == sorted([*losses.tolist(), *losses[:3].tolist()])
