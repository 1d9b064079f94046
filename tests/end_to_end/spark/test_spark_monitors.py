"""A monitor over a Spark source: the same alerts as DuckDB's on the same files, as these come in."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from proxy.cli.check import check
from proxy.open_policy.service import Service
from tests.proxy.sources.spark.engines import Sail
from tests.seeded_noise import SeededNoise
from tests.worlds.clinic import ARRIVED, DAY, HOUR, MANY, POLICY, START, TABLE, TOKEN_DIGEST, Clinic, visits
from tests.worlds.house import VERIFIER

_SLIDING = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 400"
MONITORS = {
    "by day": {"sql": MANY, "window": '"day"', "more": "", "arrived": ""},
    "published": {"sql": MANY, "window": '"day"', "more": 'mechanism = "pegasus"\nepsilon = 1', "arrived": ""},
    "sliding": {
        "sql": _SLIDING,
        "window": '{ column = "seen_at", length = "12 hours", sliding = true }',
        "more": 'clears = "at once"',
        "arrived": ARRIVED,
    },
}


def _add_file(folder: Path, rows: Sequence[tuple[str, datetime]]) -> None:
    """Rows that come in at the moments that they tell of, in a file of their own."""
    with duckdb.connect() as loader:
        loader.execute(TABLE)
        for ward, moment in rows:
            loader.execute("INSERT INTO visits VALUES (?, ?, 1, 1, ?)", [ward, moment, moment])
        loader.execute(f"COPY visits TO '{folder}/{len(list(folder.iterdir())):03}.parquet'")


@contextmanager
def _opened(folder: Path, name: str, source: str, relation: str, monitor: dict[str, str]) -> Iterator[Clinic]:
    asked = {"ledger": f"sqlite:///{name}.db", "every": "6 hours", "token": TOKEN_DIGEST} | monitor
    text = POLICY.format(source="SOURCE", verifier=VERIFIER, **asked)
    text = text.replace('url = "SOURCE"', source)
    text = text.replace("[tables.visits]\n", f"[tables.visits]\nrelation = {relation}\n")
    policy = folder / f"{name}.toml"
    policy.write_text(text, encoding="utf-8")
    check(policy, confirm=False)
    with Service.open(policy) as service:
        service.noise = SeededNoise(7)
        yield Clinic(policy, service, "")


@pytest.mark.parametrize("kind", MONITORS)
def test_the_same_alerts(sail: Sail, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "visits"
    folder.mkdir()
    _add_file(folder, [])
    on_sail = f'url = "{sail.url}"\nengine = "sail"\nskip_blocks = true'
    with ExitStack() as opened:
        clinics = [
            opened.enter_context(_opened(tmp_path, name, source, relation, MONITORS[kind]))
            for name, source, relation in (
                ("sail", on_sail, f'"parquet.`{folder}`"'),
                ("duckdb", 'url = "duckdb://"', '"visits/*.parquet"'),
            )
        ]
        runs = [clinic.start() for clinic in clinics]
        coming = {
            6: visits("A", 900, at=START + HOUR) + visits("B", 405, at=START + 2 * HOUR),
            12: visits("C", 700, at=START + 7 * HOUR),
            18: [],
            24: visits("B", 30, at=START + 20 * HOUR),
            30: visits("A", 500, at=START + DAY + HOUR),
        }
        for hours, rows in coming.items():
            _add_file(folder, rows)
            for clinic in clinics:
                clinic.now = START + hours * HOUR
                clinic.runner().make_due_looks()
        alerts = [clinic.alerts(run) for clinic, run in zip(clinics, runs, strict=True)]
        assert alerts[0] == alerts[1]
        assert {ward for _, _, ward in alerts[0]} >= {"A", "C"}
