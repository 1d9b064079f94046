"""`[shadow] bindir`: checked, served from, replaced when killed, and left for a newer one by a reload."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.cli.check import check
from tests.proxy.cli.script import child
from tests.worlds import shop
from tests.worlds.house import eventually, shop_in_duckdb
from tests.worlds.own_postgresql import own_postgresql, replace_programs
from tests.worlds.served import Served, served


@pytest.fixture(scope="module")
def bindir() -> Iterator[Path]:
    with own_postgresql() as folder:
        yield folder


@pytest.fixture
def policy(tmp_path: Path, bindir: Path) -> Path:
    path = shop_in_duckdb(tmp_path)
    path.write_text(f'{path.read_text(encoding="utf-8")}\n[shadow]\nbindir = "{bindir}"\n', encoding="utf-8")
    return path


def postmaster(folder: Path) -> int:
    (pid_file,) = folder.glob("*/shadow/postmaster.pid")
    return int(pid_file.read_text(encoding="ascii").split()[0])


def can_ask(keyhole: Served) -> bool:
    try:
        with keyhole.connect() as connection:
            return connection.execute(shop.BUSY).fetchall() == shop.BUSY_STORES
    except psycopg.Error:
        return False


def logged(keyhole: Served, event: str) -> list[dict[str, Any]]:
    return [one for one in keyhole.read_log() if one["event"] == event]


def is_ours(process: int, bindir: Path) -> bool:
    program = Path(f"/proc/{process}/exe")
    return not program.parent.exists() or program.resolve() == (bindir / "postgres").resolve()


@pytest.mark.parametrize("workers", [1, 2], ids=["one process", "two workers"])
def test_a_reload_goes_over_to_a_newer_one_without_dropping_a_session(policy: Path, bindir: Path, workers: int) -> None:
    with tempfile.TemporaryDirectory(prefix="kh") as parent:
        with (
            served(policy, f"--workers={workers}", environment={"TMPDIR": parent}) as keyhole,
            keyhole.connect() as stays,
        ):
            assert is_ours(postmaster(Path(parent)), bindir)
            (bindir / "initdb").rename(bindir / "away")  # in the middle of an update
            keyhole.process.send_signal(signal.SIGHUP)
            eventually(lambda: len(logged(keyhole, "policy not reloaded")) == 1)
            (bindir / "away").rename(bindir / "initdb")
            assert logged(keyhole, "policy not reloaded")[0]["code"] == "KH013"

            keyhole.process.send_signal(signal.SIGHUP)  # nothing is other than it was
            eventually(lambda: len(logged(keyhole, "policy reloaded")) == workers)
            assert len(logged(keyhole, "shadow started")) == 1

            replace_programs(bindir)
            keyhole.process.send_signal(signal.SIGHUP)
            eventually(lambda: len(logged(keyhole, "policy reloaded")) == 2 * workers)
            assert stays.execute("SELECT 1").fetchall() == [(1,)]
            assert can_ask(keyhole)
            started = logged(keyhole, "shadow started")
            assert [one["own"] for one in started] == [True, True]
            stays.close()

            if workers == 1:  # and one that is killed is replaced by the same
                eventually(lambda: len(list(Path(parent).glob("*/shadow"))) == 1)
                os.kill(postmaster(Path(parent)), signal.SIGKILL)
                eventually(lambda: len(logged(keyhole, "policy reloaded")) == 3)
                eventually(lambda: can_ask(keyhole))
                eventually(lambda: len(list(Path(parent).glob("*/shadow"))) == 1)
                assert is_ours(postmaster(Path(parent)), bindir)
        assert not list(Path(parent).iterdir())


def test_check_starts_it_once_and_says_which_it_is(policy: Path, bindir: Path) -> None:
    findings = check(policy, confirm=False)
    said = findings.make_document()["shadow"]
    assert said["own"]
    (line,) = (line for line in findings.lines() if line.startswith("shadow: "))
    assert line == f"shadow: PostgreSQL {said['postgresql']}, your own in {bindir}"


def test_what_cannot_be_used_is_refused_before_anything_is_pinned(policy: Path, bindir: Path) -> None:
    policy.with_name("keyhole.pins.json").unlink()
    plpgsql = bindir.parent / "lib" / "postgresql" / "plpgsql.so"
    for path in (bindir, plpgsql):
        path.chmod(0o777)
        try:
            with pytest.raises(KeyholeError, match=rf"KH013.*{path}, which others may write"):
                check(policy, confirm=False)
            if path == bindir:
                told = child("serve", "--policy", str(policy))
        finally:
            path.chmod(0o755)
    assert told.returncode == 1
    assert "KH013" in told.stderr
    assert not policy.with_name("keyhole.pins.json").exists()
