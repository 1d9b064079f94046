"""A shadow whose server is killed: another one takes its place, or Keyhole ends so that its supervisor sees it."""

import asyncio
import os
import signal
import socket
import tempfile
from pathlib import Path

import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.process import shadow_watch
from proxy.process.shadow_watch import is_gone, replacing_lost
from proxy.shadow.address import ShadowAddress
from tests.worlds import shop
from tests.worlds.house import eventually, write_policy
from tests.worlds.served import Served, served


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
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb")
    with tempfile.TemporaryDirectory(prefix="kh") as parent:
        folder = Path(parent)
        with served(policy, f"--workers={workers}", environment={"TMPDIR": parent}) as keyhole:
            assert can_ask(keyhole)
            events = keyhole.events
            for _ in range(2):
                kill_postmaster(folder)
                eventually(lambda: can_ask(keyhole))
                eventually(lambda: len(list(folder.glob("*/shadow"))) == 1)
            assert keyhole.events == events
            assert [one["event"] for one in keyhole.read_log()].count("shadow lost") == 2
        assert not list(folder.iterdir())


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
        async with replacing_lost(lambda: ShadowAddress(directory=tmp_path, port=5432), renew, otherwise=end):
            await end.wait()

    with pytest.raises(KeyholeError, match="KH406"):
        asyncio.run(serve())
    assert len(tried) == shadow_watch.MOST_FAILURES
