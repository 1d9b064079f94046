"""SIGTERM to a whole Keyhole: nobody is let in while the last question of anybody is answered."""

import signal
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import httpx
import psycopg

from proxy.cli.check import check
from tests.effort import PATIENCE_S
from tests.worlds.house import PASSWORD, eventually, locked, write_policy
from tests.worlds.served import served

TOKEN = "a token of twenty-odd letters"


def test_a_question_over_rest_is_answered_while_postgresql_lets_nobody_in(source_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source=source_url)
    text = policy.read_text(encoding="utf-8")
    own = f'[analysts.ada]\ntoken_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"'
    policy.write_text(text.replace("[analysts.ada]", own), encoding="utf-8")
    check(policy, confirm=True)

    def ask(url: str) -> httpx.Response:
        sql = "SELECT store FROM sales GROUP BY store HAVING count(*) > 1000"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.post(f"{url}/v1/question", json={"sql": sql}, headers=headers, trust_env=False, timeout=PATIENCE_S)

    def is_shut(port: int) -> bool:
        try:
            psycopg.connect(host="127.0.0.1", port=port, dbname="shop", user="ada", password=PASSWORD).close()
        except psycopg.OperationalError:
            return True
        return False

    with (
        locked(source_url, "sales") as lock,
        ThreadPoolExecutor() as asking,
        served(policy) as keyhole,
    ):
        answer = asking.submit(ask, keyhole.rest)
        lock.wait_for_somebody()
        keyhole.process.send_signal(signal.SIGTERM)
        eventually(lambda: is_shut(keyhole.port))
        assert not answer.done(), answer.result().text
        lock.release()
        assert answer.result().json()["keys"]
