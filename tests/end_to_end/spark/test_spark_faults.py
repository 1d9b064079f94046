"""A Spark source that is down, lets nobody in, is late or has changed: what analysts and owner are told, and spend."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.cli.check import check
from tests.end_to_end.spark.lake import write_lake_policy
from tests.proxy.sources.spark.engines import Sail, gate_before, sail_running
from tests.worlds import shop
from tests.worlds.house import House, hurried, opened, unchanged

_SECRET = "hush-hush-hush"


@contextmanager
def failing(house: House, question: str = shop.BUSY) -> Iterator[psycopg.Error]:
    """The block sees what an analyst is told whose question fails."""
    with house.connect() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(question)
    told = f"{caught.value} {caught.value.diag.message_detail} {caught.value.diag.message_hint}"
    assert "KH501" in told
    assert not any(word in told for word in ("sc://", "Sail", "grpc", "parquet", _SECRET))
    yield caught.value


def test_a_server_that_goes_and_comes_back(lake: Path, tmp_path: Path) -> None:
    with sail_running() as sail, opened(write_lake_policy(tmp_path, lake, url=sail.url)) as house:
        sail.kill()
        with unchanged(house), failing(house) as error:
            assert "Nothing was spent" in str(error.diag.message_hint)
        with pytest.raises(KeyholeError, match="KH008"):
            check(house.policy, confirm=False)
        sail.start_again()
        with house.connect() as connection:
            assert connection.execute(shop.BUSY).fetchall() == shop.BUSY_STORES


def test_a_question_that_takes_too_long_is_paid(sail: Sail, lake: Path, tmp_path: Path) -> None:
    with opened(write_lake_policy(tmp_path, lake, url=sail.url)) as house:
        before = house.events
        with hurried(house.service, limit_ms=1), failing(house) as error:
            assert "stays spent" in str(error.diag.message_hint)
        assert house.events > before
        with house.connect() as connection:
            assert connection.execute(shop.BUSY).fetchall() == shop.BUSY_STORES


def test_a_table_that_has_changed_fails_and_tells_nothing(sail: Sail, lake: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(lake, tmp_path / "copied", ignore=shutil.ignore_patterns("keyhole*")))
    with opened(write_lake_policy(tmp_path, copied, url=sail.url)) as house:
        with duckdb.connect() as connection:
            rows = f"SELECT * REPLACE ('{_SECRET}' AS amount) FROM read_parquet('{lake}/sales.parquet')"
            connection.execute(f"COPY ({rows}) TO '{copied}/sales.parquet'")
        with failing(house, "SELECT store FROM sales GROUP BY store HAVING sum(amount) > 30000"):
            pass


def test_a_token_from_the_environment(sail: Sail, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with gate_before(sail, token=_SECRET) as gate:
        further = 'token = "${KEYHOLE_SOURCE_TOKEN}"\n'
        policy = write_lake_policy(tmp_path, lake, url=gate.url, further=further, checked=False)
        monkeypatch.setenv("KEYHOLE_SOURCE_TOKEN", _SECRET)
        found = check(policy, confirm=False)
        assert _SECRET not in str(found.make_document()) + (tmp_path / "keyhole.pins.json").read_text()
        with opened(policy) as house, house.connect() as connection:
            assert connection.execute(shop.BUSY).fetchall() == shop.BUSY_STORES
        assert not any(_SECRET.encode() in file.read_bytes() for file in tmp_path.rglob("keyhole*") if file.is_file())
        monkeypatch.setenv("KEYHOLE_SOURCE_TOKEN", f"not-{_SECRET}")
        with pytest.raises(KeyholeError, match="KH008") as caught:
            check(policy, confirm=False)
        assert _SECRET not in f"{caught.value} {caught.value.detail} {caught.value.hint}"


def test_another_engine_than_the_policy_says(sail: Sail, lake: Path, tmp_path: Path) -> None:
    path = write_lake_policy(tmp_path, lake, url=sail.url)
    path.write_text(path.read_text().replace('engine = "sail"', 'engine = "spark"'), encoding="utf-8")
    with pytest.raises(KeyholeError, match="the engine is spark in the policy, and the source is sail") as caught:
        check(path, confirm=False)
    assert 'engine = "sail"' in str(caught.value.hint)
