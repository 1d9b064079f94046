"""A shadow whose server is killed: another one takes its place, or Keyhole ends so that its supervisor sees it."""

import asyncio
import os
import signal
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.process import shadow_watch
from proxy.process.shadow_watch import SilenceClock, is_gone, keep_shadow_replaced
from proxy.shadow import hung
from proxy.shadow.address import ShadowAddress
from proxy.shadow.hung import is_answering
from tests.effort import rounds
from tests.worlds import shop
from tests.worlds.house import eventually, shop_in_duckdb
from tests.worlds.served import Served, served
from tests.worlds.stopped import Server


def kill_postmaster(folder: Path) -> None:
    (pid_file,) = folder.glob("*/shadow/postmaster.pid")
    os.kill(int(pid_file.read_text(encoding="ascii").split()[0]), signal.SIGKILL)


def can_ask(keyhole: Served) -> bool:
    try:
        with keyhole.connect() as connection:
            return connection.execute(shop.BUSY).fetchall() == shop.BUSY_STORES
    except psycopg.Error:
        return False


@pytest.mark.parametrize("workers", [1, 2], ids=["one process", "two workers"])
def test_a_killed_shadow_is_replaced_and_nothing_is_paid_twice(tmp_path: Path, workers: int) -> None:
    policy = shop_in_duckdb(tmp_path)
    with tempfile.TemporaryDirectory(prefix="kh") as parent:
        folder = Path(parent)
        with served(policy, f"--workers={workers}", environment={"TMPDIR": parent}) as keyhole:
            assert can_ask(keyhole)
            events, kills = keyhole.events, rounds(2, quick=1)
            for _ in range(kills):
                kill_postmaster(folder)
                eventually(lambda: can_ask(keyhole))
                eventually(lambda: len(list(folder.glob("*/shadow"))) == 1)
            assert keyhole.events == events
            assert [one["event"] for one in keyhole.read_log()].count("shadow lost") == kills
        assert not list(folder.iterdir())


def test_a_shadow_that_hangs_is_replaced_and_whoever_waits_for_it_is_told(tmp_path: Path) -> None:
    policy = shop_in_duckdb(tmp_path)
    with tempfile.TemporaryDirectory(prefix="kh") as parent:
        folder = Path(parent)
        with served(policy, environment={"TMPDIR": parent}) as keyhole:
            with keyhole.connect() as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
                (shadow,) = folder.glob("*/shadow")
                Server("", shadow).stop()
                with pytest.raises(psycopg.OperationalError):
                    connection.execute("SELECT 1")
            eventually(lambda: can_ask(keyhole))
            eventually(lambda: list(folder.glob("*/shadow")) not in ([], [shadow]))
            (lost,) = [one for one in keyhole.read_log() if one["event"] == "shadow lost"]
            assert lost["why"] == "it hangs"
        assert not list(folder.iterdir())


def test_a_shadow_is_silent_once_it_has_said_nothing_for_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow, heard = ShadowAddress(directory=tmp_path, port=5432), SilenceClock()

    async def look() -> None:
        async with await asyncio.start_unix_server(lambda _, writer: writer.close(), shadow.socket):
            assert await is_answering(shadow)
            assert not await heard.is_silent(shadow)
            assert not await heard.is_silent(shadow)
        Path(shadow.socket).unlink(missing_ok=True)
        monkeypatch.setattr(hung, "_ANSWER_S", 0.05)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(shadow.socket)
            server.listen(9)  # nobody takes what comes
            assert not await is_answering(shadow)
            monkeypatch.setattr(shadow_watch, "HUNG_S", 3600.0)
            assert not await heard.is_silent(shadow)
            monkeypatch.setattr(shadow_watch, "HUNG_S", 0.05)
            assert await heard.is_silent(shadow)
            monkeypatch.setattr(shadow_watch, "HUNG_S", 3600.0)
            assert not await heard.is_silent(replace(shadow, port=5433))  # a new one has not been silent yet

    asyncio.run(look())


def test_who_listens_is_not_gone_even_if_nobody_gets_in(tmp_path: Path) -> None:
    shadow = ShadowAddress(directory=tmp_path, port=5432)
    assert is_gone(shadow)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(shadow.socket)
        assert is_gone(shadow)
        server.listen(0)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(shadow.socket)
            assert not is_gone(shadow)  # and its queue is full
    assert is_gone(shadow)


def test_where_it_cannot_be_replaced_keyhole_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_watch, "LOOK_S", 0.0)
    tried: list[str] = []

    async def renew() -> None:
        tried.append("again")
        raise OSError("no room")

    async def serve() -> None:
        end = asyncio.Event()
        async with keep_shadow_replaced(lambda: ShadowAddress(directory=tmp_path, port=5432), renew, otherwise=end):
            await end.wait()

    with pytest.raises(KeyholeError, match="KH406"):
        asyncio.run(serve())
    assert len(tried) == shadow_watch.MOST_FAILURES
