"""Readers of a monitor whose policy is read again: streams end, sessions go on hearing, and who may not does not."""

import json
import signal
from pathlib import Path

import httpx
import psycopg

from proxy.open_policy.service import Service
from tests.effort import PATIENCE_S
from tests.worlds.alerted import TOKENS, install, start
from tests.worlds.house import new_database
from tests.worlds.served import served


def test_readers_at_a_reload(postgres_url: str, tmp_path: Path) -> None:
    """Another comment and other readers are no other monitor: its run goes on."""
    with new_database(postgres_url) as url:
        policy = install(tmp_path, url)
        with Service.open(policy) as service, served(policy) as keyhole:
            watch = start(service, "crowded")
            bobs = {"Authorization": f"Bearer {TOKENS['bob']}"}
            events = f"{keyhole.rest}/v1/monitors/crowded/events"
            with (
                psycopg.connect(keyhole.conninfo, autocommit=True) as ada,
                httpx.stream("GET", events, headers=bobs, timeout=PATIENCE_S, trust_env=False) as stream,
            ):
                ada.execute("LISTEN keyhole_crowded")
                lines = stream.iter_lines()
                assert next(lines).startswith(":")
                text = policy.read_text(encoding="utf-8")
                policy.write_text(text.replace('["ada", "bob"]', '["ada"]'), encoding="utf-8")
                keyhole.process.send_signal(signal.SIGHUP)
                assert not [line for line in lines if line.startswith("data")]  # to its end
                watch.look(1, {0: ("A",)})
                (told,) = ada.notifies(timeout=PATIENCE_S, stop_after=1)
                assert json.loads(told.payload)["key"]["ward"] == "A"
            assert httpx.get(events, headers=bobs, trust_env=False).json()["code"] == "KH605"
            login = keyhole.conninfo.replace("user=ada", "user=bob")
            with psycopg.connect(login) as bob:
                assert bob.execute("SELECT has_table_privilege('crowded', 'SELECT')").fetchone() == (False,)
