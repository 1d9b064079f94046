"""Ctrl-C while a release reads: a real process, and a statement that never ends by itself."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from accountant.ledger import Ledger
from proxy.cli.check import check
from tests.children import forked
from tests.proxy.cli.conftest import Ran
from tests.proxy.cli.conftest import run as run

POLICY = """\
[source]
url = "duckdb:///{source}"

[budget]
epsilon_per_predicate = 1
epsilon_per_query = 1

[tables.endless]
privacy_unit = "row"
refresh = "explicit"

[tables.endless.columns.age]
bounds = [0, 99]
"""
ASKED = ("bounds", "endless", "--epsilon", "0.5", "--column", "age", "--units", "1000", "--yes", "--why", "a test")
_KEYHOLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from proxy.cli.main import main
main(sys.argv[1:])
"""
"""`keyhole` in an interpreter of its own, as a terminal starts it: what a shell runs behind it takes no Ctrl-C."""


def _open_reservation(folder: Path, process: subprocess.Popen[str]) -> str:
    """Wait until the process has reserved, and return the reservation's id."""
    with Ledger.open(f"sqlite:///{folder / 'keyhole.db'}", clock=lambda: datetime.now(UTC)) as ledger:
        while process.poll() is None:
            for reservation in ledger.list_open_reservations():
                return reservation.id
            time.sleep(0.1)
    raise AssertionError(process.communicate())


def test_ctrl_c_says_what_stays_spent_and_how_to_close_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., Ran]
) -> None:
    source, policy = tmp_path / "endless.duckdb", tmp_path / "keyhole.toml"
    with duckdb.connect(str(source)) as connection:
        connection.execute(
            "CREATE VIEW endless AS "
            "SELECT (a.range + b.range) % 100 AS age FROM range(10000000) AS a, range(10000000) AS b"
        )
    policy.write_text(POLICY.format(source=source))
    check(policy, confirm=False)
    monkeypatch.setenv("KEYHOLE_POLICY", str(policy))
    asking = [sys.executable, "-c", _KEYHOLE, *ASKED]
    with forked.Popen(
        asking, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        reservation = _open_reservation(tmp_path, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    settle = ("ledger", "settle", reservation, "--spent", "--why", "stopped")
    assert (process.returncode, out) == (130, "")
    assert err.startswith("Stopped. 0.5 epsilon of each group stay spent")
    assert f'keyhole ledger settle {reservation} --spent --why "stopped"' in err
    again = run(*ASKED)
    assert again.status == 1
    assert f"KH313: the same release is under way (reservation {reservation})" in again.err
    assert f'keyhole ledger settle {reservation} --spent --why "stopped"' in again.err
    assert run(*settle).status == 0
    assert "KH310" in run(*ASKED[:2], "--epsilon", "0.6", *ASKED[4:]).err  # it does stay spent
