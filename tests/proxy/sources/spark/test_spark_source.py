"""What a Spark source promises, on a real Sail: shapes, exact integers, refusals that tell nothing, and settings."""

import threading
import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planner.catalog.catalog import Column, SqlType
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.question.plan import PinnedColumn, PinnedRelation, ReadRelation, Rewritten
from proxy.open_policy.pins import MAX_PUBLIC_ROWS
from proxy.sources.protocol import TrueAggregates
from proxy.sources.spark import sessions
from proxy.sources.spark.address import parse_address
from proxy.sources.spark.connection import SparkSession
from proxy.sources.spark.sessions import SparkServer, check_session, open_session
from proxy.sources.spark.spark_source import SparkSource
from tests.proxy.certificates import Authority
from tests.proxy.sources.spark.engines import Sail, gate_before, sail_running
from tests.worlds.house import eventually

REQUIRED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.caseSensitive": "true",
}
# what is asked here is written by hand
DIALECTS = {"sail": replace(DUCKDB, name="sail"), "spark": replace(DUCKDB, name="spark")}
_WARDS = ("a", "o'hare", 'b"\\n`${x}`', "\u00e9\U0001f600")
_KEYS = KeySpace(columns=(Column("ward", SqlType.TEXT, "text", domain=_WARDS),), values=(_WARDS,))
_SECRET = "topsecret"
_SLOW = (
    "SELECT 'a' AS k0, sum(a.id * b.id % 7 + c.id) AS f0 FROM range(100000) AS a, range(100000) AS b, range(10000) AS c"
)
# Of an operator that looks up every thousand rows, and which takes a day. From within a join neither engine does: its
# threads go on once it has said that it stopped, and where these are all that Sail has, it answers nobody.
_ENDLESS = "SELECT 'a' AS k0, sum(id % 7) AS f0 FROM range(100000000000000)"


def place(
    url: str, *, engine: str | None = "sail", token: str | None = None, authority: Path | None = None
) -> SparkServer:
    return SparkServer(
        address=parse_address(url, token=token, authority=authority),
        engine=engine,
        catalog=None,
        database=None,
        settings={},
        required=REQUIRED,
    )


def opened(url: str, *, token: str | None = None, engine: str = "sail", authority: Path | None = None) -> SparkSource:
    return SparkSource(place(url, token=token, engine=engine, authority=authority), dialects=DIALECTS, questions=4)


@pytest.fixture(params=["sail", pytest.param("spark", marks=pytest.mark.installed)])
def source(request: pytest.FixtureRequest) -> Iterator[SparkSource]:
    one = opened(request.getfixturevalue(request.param).url, engine=request.param)
    yield one
    one.close()


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A relation of four rows in a parquet file."""
    rows = pa.table(
        {
            "ward": list(_WARDS),
            "age": pa.array([1, 2, 3, None], pa.int32()),
            "cost": pa.array([Decimal("1.50")] * 4, pa.decimal128(10, 2)),
            "day": [date(1500, 1, 1)] * 4,
            "seen_at": pa.array([datetime(2026, 1, 1, 5)] * 4, pa.timestamp("us")),
            "zoned": pa.array([datetime(2026, 1, 1, 5)] * 4, pa.timestamp("us", "UTC")),
            "x": [0.25] * 4,
            "ok": [True] * 4,
            "WARD": ["other"] * 4,
        }
    )
    pq.write_table(rows, tmp_path / "small.parquet")
    return f"`parquet`.`{tmp_path}/small.parquet`"


def ask(
    source: SparkSource,
    sql: str,
    *,
    timeout_ms: int = 20_000,
    pinned: tuple[PinnedRelation, ...] = (),
    relations: tuple[ReadRelation, ...] = (),
) -> TrueAggregates:
    rewritten = Rewritten(dialect="sail", sql=sql, pinned_relations=pinned, relations=relations)
    with source.take_turn(analyst="ada", timeout_ms=20_000):
        return source.read_aggregates(rewritten, _KEYS, functionals=1, timeout_ms=timeout_ms)


def test_schema(source: SparkSource, small: str) -> None:
    assert [(column.name, column.declared) for column in source.read_schema(small)] == [
        ("ward", "text"),
        ("age", "integer"),
        ("cost", "numeric(10,2)"),
        ("day", "date"),
        ("seen_at", "timestamp without time zone"),
        ("zoned", "timestamp with time zone"),
        ("x", "double precision"),
        ("ok", "boolean"),
        ("WARD", "text"),
    ]


def test_what_a_file_is(source: SparkSource, small: str, tmp_path: Path) -> None:
    one, all_files = source.identify(small), source.identify(f"parquet.`{tmp_path}/*.parquet`")
    assert one.name == f"parquet {tmp_path}/small.parquet"
    assert one.name != all_files.name
    assert one.bases & all_files.bases
    assert not one.is_view
    assert 1 <= source.estimate_rows(small) <= 1000


def test_state_follows_files(source: SparkSource, small: str, tmp_path: Path) -> None:
    relation = f"parquet.`{tmp_path}/*.parquet`"
    before = source.read_state(relation)
    assert source.read_state(relation) == before
    (tmp_path / "more.parquet").write_bytes((tmp_path / "small.parquet").read_bytes())
    assert source.read_state(relation) != before


def test_no_such_relation(source: SparkSource) -> None:
    with pytest.raises(KeyholeError, match="KH006"):
        source.read_schema("`nothing`")
    with pytest.raises(KeyholeError, match="KH006"):
        source.identify("`nothing`")


def test_public_rows(source: SparkSource, small: str) -> None:
    rows = source.read_table_rows(small, ("ward", "cost", "day", "seen_at", "ok"), most=MAX_PUBLIC_ROWS)
    assert {row[0] for row in rows} == set(_WARDS)
    assert rows[0][1:] == (Decimal("1.50"), date(1500, 1, 1), datetime(2026, 1, 1, 5), True)
    with pytest.raises(KeyholeError, match="KH006"):
        source.read_table_rows(small, ("nothing",), most=MAX_PUBLIC_ROWS)


def test_one_row_more_than_may_be_copied_is_all_that_is_read(
    source: SparkSource, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    asked: list[str] = []
    read = SparkSession.read

    def count(session: SparkSession, sql: str, **given: Any) -> Iterator[pa.Table]:
        for part in read(session, sql, **given):
            sent.append(part.num_rows)
            yield part
        asked.append(sql)

    monkeypatch.setattr(SparkSession, "read", count)
    rows = source.read_table_rows(small, ("ward", "day"), most=1)
    assert len(rows) == 2
    assert list(rows) == sorted(rows)
    about_rows = [sql for sql in asked if small in sql]
    assert len(about_rows) == 2
    assert all(f"FROM {small} LIMIT 2)" in sql for sql in about_rows)
    assert max(sent) == 2


def test_aggregates_are_aligned(source: SparkSource, small: str) -> None:
    found = ask(
        source, f"SELECT ward AS k0, CAST(coalesce(sum(age), 0) AS decimal(38, 0)) AS f0 FROM {small} GROUP BY 1"
    )
    assert found.values.tolist() == [[1, 2, 3, 0]]
    assert ask(source, f"SELECT 'beyond' AS k0, 5 AS f0 FROM {small}").values.tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("total", [2**63 - 1, -(2**63)])
def test_the_largest_integers(source: SparkSource, total: int) -> None:
    assert ask(source, f"SELECT 'a' AS k0, CAST('{total}' AS decimal(38, 0)) AS f0").values[0, 0] == total


@pytest.mark.parametrize(
    "value",
    [f"CAST('{2**63}' AS decimal(38, 0))", "1.5", "CAST(1 AS double)", "CAST(NULL AS bigint)", f"'{_SECRET}'"],
)
def test_what_is_no_integer_is_refused(source: SparkSource, value: str) -> None:
    with pytest.raises(KeyholeError, match="KH501"):
        ask(source, f"SELECT 'a' AS k0, {value} AS f0")


def test_pinned_rows_hide_what_the_source_has(source: SparkSource) -> None:
    pinned = PinnedRelation(
        "keyhole_wards",
        (
            PinnedColumn("ward", "string", False, (*_WARDS, None)),
            PinnedColumn("weight", "bigint", True, (1, 2, None, 4, 5)),
            PinnedColumn("price", "decimal(10, 2)", False, (Decimal("1.5"), None, None, None, None)),
            PinnedColumn("day", "date", False, (date(2026, 1, 1), None, None, None, None)),
        ),
    )
    sql = "SELECT ward AS k0, CAST(coalesce(weight, 0) AS bigint) AS f0 FROM keyhole_wards WHERE ward IS NOT NULL"
    assert ask(source, sql, pinned=(pinned,)).values.tolist() == [[1, 2, 0, 4]]
    with pytest.raises(KeyholeError, match="KH501"):  # the session has ended, and the view with it
        ask(source, sql)


def test_failures_tell_nothing(
    source: SparkSource, small: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for sql in (
        f"SELECT 'a' AS k0, CAST('{_SECRET}' AS int) AS f0",
        f"SELECT CAST(concat('{_SECRET}', ward) AS int) AS f0, 'a' AS k0 FROM {small}",
        f"SELECT {_SECRET} FROM",
    ):
        with pytest.raises(KeyholeError, match="KH501") as caught:
            ask(source, sql)
        told = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
        assert _SECRET not in told.replace(sql, "")
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_types_that_moved(source: SparkSource, small: str) -> None:
    sql = f"SELECT 'a' AS k0, 1 AS f0 FROM {small} LIMIT 1"
    ask(source, sql, relations=(ReadRelation(small, (("age", "integer"),)),))
    with pytest.raises(KeyholeError, match="KH501"):
        ask(source, sql, relations=(ReadRelation(small, (("age", "bigint"),)),))


def test_groups_come_in_pieces_and_after_their_types(source: SparkSource) -> None:
    size = 200_000
    number = Column("number", SqlType.INTEGER, "bigint")
    keys = KeySpace(columns=(number,), values=(tuple(range(size)),))
    sql = f"SELECT id AS k0, CAST(id % 97 AS decimal(38, 0)) AS f0, -id AS f1 FROM range({size})"
    with source.take_turn(analyst="ada", timeout_ms=20_000):
        found = source.read_aggregates(Rewritten("spark", sql), keys, functionals=2, timeout_ms=20_000)
    np.testing.assert_array_equal(found.values, [np.arange(size) % 97, -np.arange(size)])
    session = open_session(source._place, seconds=20)
    seen: list[int] = []
    for part in session.read(sql, on_schema=lambda: seen.append(0)):
        seen.append(part.num_rows)
    session.close()
    assert seen.count(0) == 1
    assert seen[0] == 0
    assert max(seen) < size == sum(seen)


def test_a_question_takes_few_requests(sail: Sail, small: str) -> None:
    """Settings, made and read back, and tried with the engine's name; the types before and after; the statement."""
    with gate_before(sail) as gate:
        source = opened(gate.url)
        gate.seen.clear()
        ask(
            source,
            f"SELECT 'a' AS k0, 1 AS f0 FROM {small} LIMIT 1",
            relations=(ReadRelation(small, (("age", "integer"),)),),
        )
        asked = [name for name in gate.seen if name not in {"ReleaseExecute", "ReleaseSession"}]
    assert asked[:2] == ["Config"] * 2
    # the client itself asks for one setting more
    assert [name for name in asked if name != "Config"] == ["ExecutePlan", "AnalyzePlan"] * 2
    assert asked.count("Config") <= 3


def test_a_question_is_stopped(source: SparkSource) -> None:
    with pytest.raises(KeyholeError, match="KH501"):
        ask(source, _ENDLESS, timeout_ms=500)
    assert ask(source, "SELECT 'a' AS k0, 1 AS f0").values[0, 0] == 1


def test_sail_computes_nothing_once_it_is_stopped() -> None:
    with sail_running() as own:
        with pytest.raises(KeyholeError, match="KH501"):
            ask(opened(own.url), _ENDLESS, timeout_ms=500)
        eventually(lambda: not computes(own.process.pid))


def computes(process: int) -> bool:
    """Whether a thread of the process runs, or waits for a core alone."""
    states = (task.read_text().rpartition(") ")[2][0] for task in Path(f"/proc/{process}/task").glob("*/stat"))
    return "R" in states


def test_questions_at_the_same_time(source: SparkSource) -> None:
    found: dict[int, int] = {}

    def one(number: int) -> None:
        found[number] = int(ask(source, f"SELECT 'a' AS k0, {number} AS f0").values[0, 0])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: number for number in range(8)}


def test_a_server_that_goes_and_comes_back() -> None:
    with sail_running() as sail:
        source = opened(sail.url)
        killer = threading.Timer(1.0, sail.kill)
        with source.take_turn(analyst="ada", timeout_ms=20_000):
            killer.start()
            with pytest.raises(KeyholeError, match="could not answer"):
                source.read_aggregates(Rewritten("sail", _SLOW), _KEYS, functionals=1, timeout_ms=20_000)
        killer.join()
        with pytest.raises(KeyholeError, match="cannot be reached"), source.take_turn(analyst="ada", timeout_ms=2000):
            pass
        with pytest.raises(KeyholeError, match="KH008"):
            source.read_schema("parquet.`/nowhere`")
        sail.start_again()
        assert ask(source, "SELECT 'a' AS k0, 1 AS f0").values[0, 0] == 1


def test_a_server_that_says_nothing(sail: Sail) -> None:
    with gate_before(sail) as gate:
        source = opened(gate.url)
        gate.closed.set()
        with pytest.raises(KeyholeError, match="cannot be reached"), source.take_turn(analyst="ada", timeout_ms=2000):
            pass
        gate.closed.clear()
        with source.take_turn(analyst="ada", timeout_ms=20_000):
            gate.closed.set()
            with pytest.raises(KeyholeError, match="could not answer"):  # the channel is given up
                source.read_aggregates(Rewritten("sail", "SELECT 1"), _KEYS, functionals=1, timeout_ms=200)


def test_a_token(sail: Sail) -> None:
    with gate_before(sail, token=_SECRET) as gate:
        source = opened(gate.url, token=_SECRET)
        assert ask(source, "SELECT 'a' AS k0, 1 AS f0").values[0, 0] == 1
        for wrong in ("another", None):
            with pytest.raises(KeyholeError, match="KH008") as caught:
                opened(gate.url, token=wrong)
            assert "another" not in str(caught.value) + str(caught.value.detail)


def test_another_engine(sail: Sail) -> None:
    with pytest.raises(KeyholeError, match="the engine is spark in the policy, and the source is sail") as caught:
        open_session(place(sail.url, engine="spark"), seconds=20)
    assert 'engine = "sail"' in str(caught.value.hint)
    assert SparkSource(place(sail.url, engine=None), dialects=DIALECTS, questions=1).engine == "sail"


def test_an_engine_that_cannot_read_what_is_tried(sail: Sail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sessions._MEANINGS, "what only a later one knows", ("no_such_function()", "true"))
    with pytest.raises(KeyholeError, match="the engine is spark in the policy, and the source is sail"):
        open_session(place(sail.url, engine="spark"), seconds=20)
    with pytest.raises(KeyholeError, match="does not compute as its settings say"):
        open_session(place(sail.url), seconds=20)


def test_settings_that_do_not_hold(sail: Sail) -> None:
    with gate_before(sail) as gate:
        gate.lies = {"spark.sql.ansi.enabled": "false"}
        with pytest.raises(KeyholeError, match=r"does not keep a setting .*: spark\.sql\.ansi\.enabled"):
            opened(gate.url)


def test_settings_that_hold_in_name_alone(sail: Sail) -> None:
    session = open_session(place(sail.url), seconds=20)
    session.configure({"spark.sql.timestampType": "TIMESTAMP_LTZ"})
    with pytest.raises(KeyholeError, match="does not compute as its settings say"):
        check_session(session, engine="sail", required={"spark.sql.ansi.enabled": "true"})
    session.close()


def test_no_such_database(sail: Sail) -> None:
    with pytest.raises(KeyholeError, match="has no database nowhere"):
        open_session(replace(place(sail.url), database="nowhere"), seconds=20)


def test_nothing_is_kept(source: SparkSource) -> None:
    assert sum(source.count_rollups().values()) == 0
    source.wait_for_rollups()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a server on loopback, of who signed it, and of a stranger."""
    folder, authority = tmp_path_factory.mktemp("certificates"), Authority.new()
    authority.identity.write(folder, "authority")
    authority.issue("lake").write(folder, "server")
    Authority.new().identity.write(folder, "stranger")
    return folder


def test_tls_by_an_authority_of_the_owners_own(sail: Sail, certificates: Path) -> None:
    key, certificate = (certificates / name for name in ("server.key", "server.crt"))
    served = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with gate_before(sail, credentials=served, token=_SECRET) as gate:
        source = opened(gate.url, token=_SECRET, authority=certificates / "authority.crt")
        assert ask(source, "SELECT 'a' AS k0, 1 AS f0").values[0, 0] == 1
        with pytest.raises(KeyholeError, match="KH008"):
            opened(gate.url, token=_SECRET, authority=certificates / "stranger.crt")
        with pytest.raises(KeyholeError, match="KH008"):  # whom a server of another name shows that certificate
            opened(gate.url.replace("127.0.0.1", "localhost"), token=_SECRET, authority=certificates / "authority.crt")
        with pytest.raises(KeyholeError, match="KH008"):  # unencrypted to a server that is
            opened(gate.url)
        assert set(gate.brought) == {f"Bearer {_SECRET}"}
