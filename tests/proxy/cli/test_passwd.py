"""`keyhole passwd`: a verifier that a real client logs in with."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from planner.policy.file import Policy
from proxy.security import scram
from tests.children import forked
from tests.effort import PATIENCE_S
from tests.proxy.cli.script import SCRIPT, child
from tests.worlds.wards import PASSWORD, QUESTION, TOKENS


def test_passwd_makes_what_a_real_client_logs_in_with(policy: Path, run: Any) -> None:
    """`keyhole passwd` and `--token` into the policy, `keyhole serve` as a child, psycopg and httpx as clients."""
    made = child("passwd", input="sésame ouvre-toi\n")
    assert made.returncode == 0
    line = made.stdout.strip()
    assert scram.Verifier.parse(line.removeprefix('password = "').removesuffix('"')).iterations == scram.ITERATIONS
    told, hashed = run("passwd", "--token").out.splitlines()
    policy.write_text(f"{policy.read_text()}\n[analysts.dora]\n{line}\n{hashed}\n", encoding="utf-8")
    run("check")
    with forked.Popen(
        [SCRIPT, "serve", "--port", "0", "--rest-port", "0"], stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        try:
            words = serving.stdout.readline().replace(",", " ").split()
            postgresql, docs = words[1], words[-1]
            url = postgresql.replace("postgresql://", "postgresql://dora@")
            with psycopg.connect(url, password="sésame ouvre-toi", autocommit=True) as connection:
                assert connection.execute(QUESTION.format(1500).encode()).fetchall() == [("A",)]
            with pytest.raises(psycopg.OperationalError, match="KH401"):
                psycopg.connect(url, password="sesame ouvre-toi")
            answer = httpx.post(
                docs.replace("/docs", "/v1/question"),
                headers={"Authorization": f"Bearer {told.split()[-1]}"},
                json={"sql": QUESTION.format(1500)},
                trust_env=False,
                timeout=PATIENCE_S,
            ).json()
            assert (answer["keys"], answer["reused"]) == ([["A"]], True)
            port = postgresql.rsplit(":", 1)[1].split("/")[0]
            taken = run("serve", "--port", port)
            assert taken.status == 1
            assert f"KH406: cannot listen on 127.0.0.1:{port} (Address already in use)" in taken.err
        finally:
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(timeout=PATIENCE_S) == 0


def test_an_empty_password_is_refused() -> None:
    for given in ("", "\n"):
        assert child("passwd", input=given).returncode == 2


def test_the_wards_password_is_what_the_policy_says(policy: Path) -> None:
    for name in TOKENS:
        verifier = Policy.load(policy, environment={}).analysts[name].password
        salt = scram.Verifier.parse(verifier).salt
        assert scram.make_verifier(PASSWORD, salt=salt) == verifier
