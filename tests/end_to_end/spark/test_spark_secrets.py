"""Rows that an engine fails on: nothing of them, nor of what the engine says, is in anything that Keyhole gives out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import duckdb
import httpx
import psycopg
import pytest

from planner.lower.dialects.spark import SPARK
from proxy.cli.check import check
from tests.effort import PATIENCE_S
from tests.end_to_end.spark.lake import TOKEN
from tests.proxy.sources.spark_sql.thin import connect
from tests.worlds.house import VERIFIER
from tests.worlds.served import Served, served

_SECRET = "hush-hush-hush"
_ENGINES = ("Parquet", "Traceback", "CAST_INVALID_INPUT", "SparkException", "grpc", "Cannot cast", "USER_RAISED")
_POLICY = """\
[source]
url = "{url}"
engine = "{engine}"
{skips}
[limits]
statement_timeout_ms = 3000
[budget]
epsilon_per_predicate = 100
epsilon_per_query = 100
[server]
log_level = "debug"
[analysts.ada]
password = "{verifier}"
token_sha256 = "{token}"
"""
_TABLE = """\
[tables.{name}]
relation = "{relation}"
privacy_unit = "row"
refresh = "live"
columns.ward.key = {{ values = ["a", "b"] }}
"""
_QUESTION = "SELECT ward FROM {} GROUP BY ward HAVING sum({}) > {}"
_COLUMN = """\
columns.{}.bounds = [0, 10]
"""
_ROWS = f"SELECT 'a' AS ward, CAST(i % 5 AS integer) AS x, '{_SECRET}' AS note FROM range(2000) AS t(i)"
_FAULTS: dict[str, Callable[[Path], object]] = {
    "moved": lambda file: _write(file, f"SELECT * REPLACE (note AS x) FROM ({_ROWS})"),
    "without": lambda file: _write(file, f"SELECT * EXCLUDE (x) FROM ({_ROWS})"),
    "flipped": lambda file: file.write_bytes(bytes(255 - one for one in file.read_bytes()[:-900]) + _foot(file)),
    "replaced": lambda file: file.write_text(_SECRET * 50, encoding="utf-8"),
    "gone": Path.unlink,
}
"""What becomes of a file behind Keyhole's back."""
_VIEW = {"as_number": "CAST(note AS int)", "raised": "CAST(raise_error(note) AS int)", "as_date": "year(to_date(note))"}
"""What an owner's view computes of a column, in a catalog that has views: Spark's."""


@dataclass
class Heard:
    """Whatever came out of Keyhole."""

    texts: list[str] = field(default_factory=list)

    def ask(self, running: Served, question: str) -> None:
        """The question, which fails, what it would cost, and what the driver hears."""
        with running.connect() as client:
            client.add_notice_handler(lambda notice: self.texts.append(f"{notice.message_primary}"))
            with pytest.raises(psycopg.Error) as caught:
                client.execute(question.encode())
            self.texts += [str(caught.value), *map(str, client.execute(f"EXPLAIN {question}".encode()))]
        assert "KH501" in str(caught.value)

    def fetch(self, url: str, **body: str) -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(trust_env=False, timeout=PATIENCE_S, headers=headers) as client:
            answer = client.post(url, json=body) if body else client.get(url)
        self.texts.append(f"{answer.headers} {answer.text}")


def _write(file: Path, rows: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{file}' (COMPRESSION uncompressed)")


def _foot(file: Path) -> bytes:
    return file.read_bytes()[-900:]


@pytest.fixture(params=["sail", pytest.param("spark", marks=pytest.mark.installed)])
def engine(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The engine's name, and where it is."""
    return request.param, request.getfixturevalue(request.param).url


def test_what_rows_do_to_an_engine_is_told_nowhere(engine: tuple[str, str], tmp_path: Path) -> None:
    files = {fault: tmp_path / f"{fault}.parquet" for fault in _FAULTS}
    for file in files.values():
        _write(file, _ROWS)
    tables = [_TABLE.format(name=fault, relation=file) + _COLUMN.format("x") for fault, file in files.items()]
    asked = [(fault, "x") for fault in files]
    if engine[0] == "spark":
        _make_view(engine[1], tmp_path)
        tables.append(_TABLE.format(name="odd", relation="faulty.odd") + "".join(map(_COLUMN.format, _VIEW)))
        asked += [("odd", column) for column in _VIEW]
    policy = _write_policy(tmp_path, *engine, tables)
    heard = Heard()
    with served(policy) as running:
        for fault, file in files.items():
            _FAULTS[fault](file)
        for table, column in asked:
            heard.ask(running, _QUESTION.format(table, column, 300))
        heard.fetch(f"{running.rest}/v1/question", sql=_QUESTION.format(*asked[-1], 301))
        for address in (f"{running.operator}/metrics", f"{running.operator}/readyz", f"{running.rest}/v1/budget"):
            heard.fetch(address)
    heard.texts.append(running.log.read_text(encoding="utf-8"))
    kept = (file for file in tmp_path.rglob("keyhole.*") if file.is_file() and file != policy)
    heard.texts += [file.read_bytes().decode("latin-1") for file in kept]
    whole = "\n".join(heard.texts)
    assert whole.count("a question failed in the source") == len(asked) + 1
    for word in (_SECRET, *_ENGINES):
        assert word not in whole, word


def _make_view(url: str, folder: Path) -> None:
    owner, file = connect(url, SPARK), folder / "base.parquet"
    _write(file, _ROWS)
    columns = ", ".join(f"{what} AS {column}" for column, what in _VIEW.items())
    owner.execute("CREATE DATABASE IF NOT EXISTS faulty")
    owner.execute(f"CREATE OR REPLACE VIEW faulty.odd AS SELECT ward, {columns} FROM parquet.`{file}`")


def _write_policy(folder: Path, engine: str, url: str, tables: list[str]) -> Path:
    policy = folder / "keyhole.toml"
    skips = "skip_blocks = true" if engine == "sail" else ""
    token = sha256(TOKEN.encode()).hexdigest()
    text = _POLICY.format(url=url, engine=engine, skips=skips, verifier=VERIFIER, token=token)
    policy.write_text(text + "".join(tables), encoding="utf-8")
    check(policy, confirm=False)
    return policy
