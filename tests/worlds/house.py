"""Keyhole open over a policy of its own, and what tests ask of it."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, TypedDict, Unpack
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from typer.testing import CliRunner

from proxy.cli.check import check
from proxy.cli.main import app
from proxy.open_policy.service import Service
from proxy.process.addresses import Addresses
from proxy.process.serve import serve_in_background
from proxy.report.budget import make_document
from proxy.security.scram import make_verifier
from tests.worlds import shop

PASSWORD = "open sesame"
VERIFIER = make_verifier(PASSWORD, salt=b"sixteen bytes, .")
_LONGEST_PAUSE_S = 0.05  # how late a change is seen, against what looking costs: often a login, or a whole log


@dataclass(frozen=True)
class House:
    """A running endpoint over an open policy."""

    policy: Path
    service: Service
    addresses: Addresses

    def conninfo(self, user: str = "ada", password: str = PASSWORD) -> str:
        there = self.addresses
        return f"host={there.host} port={there.port} dbname={there.database} user={user} password='{password}'"

    def connect(self, user: str = "ada", password: str = PASSWORD) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo(user, password), autocommit=True)

    @property
    def events(self) -> int:
        """How many events the ledger has, those that were not seen before read anew; its end verifies all of them."""
        number, _ = self.service.ledger.owner.find_newest_event()
        return number

    def most_spent(self, table: str) -> float:
        """The most that any group of a table has spent."""
        return most_spent(make_document(self.service, None), table)


def command(name: str, policy: Path, *arguments: str) -> dict[str, Any]:
    """What `keyhole NAME --json` prints."""
    whole = [name, "--policy", str(policy), "--json", *arguments]
    done = CliRunner().invoke(app, whole, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def most_spent(budget: dict[str, Any], table: str) -> float:
    """The most that any group of a table has spent, in a budget document."""
    return max((family["spent_at_most"] for family in budget["families"] if family["table"] == table), default=0.0)


@contextmanager
def new_database(postgres_url: str) -> Iterator[str]:
    """The URL of an empty database on a PostgreSQL server, dropped at the end."""
    name = f"shop_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
        finally:
            owner.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class Limits(TypedDict, total=False):
    """What the shop's policy says otherwise than usual."""

    ledger: str
    per_predicate: float
    per_unit: float
    per_query: float
    bobs: float
    timeout_ms: int
    ledger_timeout_ms: int


_USUAL = Limits(
    ledger="sqlite:///keyhole.db",
    per_predicate=900.0,
    per_unit=900.0,
    per_query=100.0,
    bobs=1.0,
    timeout_ms=30_000,
    ledger_timeout_ms=60_000,
)


def write_policy(directory: Path, *, source: str, **limits: Unpack[Limits]) -> Path:
    """The shop's policy in `directory`, checked and pinned. Over a file of the shop beside it, of which copies are the
    same bytes, and with a ledger beside it, that is done once in each process and copied after that."""
    path = directory / "keyhole.toml"
    path.write_text(shop_policy(source=source, **limits), encoding="utf-8")
    files = {file.name: file for file in directory.iterdir()}
    if source == "duckdb:///shop.duckdb" and files.keys() == {"keyhole.toml", "shop.duckdb"} and "ledger" not in limits:
        name = b"".join(file.read_bytes() for _, file in sorted(files.items()))
        _copy_or_make(directory, lambda: check(path, confirm=False), name=name)
    else:
        check(path, confirm=False)
    return path


def shop_policy(*, source: str, **limits: Unpack[Limits]) -> str:
    """The text of the shop's policy."""
    return shop.POLICY.format(source=source, verifier=VERIFIER, **_USUAL | limits)


@cache
def _make_kept_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="keyhole-")  # as long as the process


def check_once(policy: Path) -> Path:
    """`keyhole check` of a policy alone in its folder with its data, or with data elsewhere that stay as they are."""
    return make_once(policy, lambda: check(policy, confirm=False))


def make_once(policy: Path, make: Callable[[], object], *, what: str = "checked") -> Path:
    """Make something of such a policy. What that left for the same files before is copied, the times of the data with
    it: a tenth of the processor."""
    files = sorted(file for file in policy.parent.rglob("*") if file.is_file())
    name = b"".join(f"\0{file.relative_to(policy.parent)}\0".encode() + _read_content(file) for file in files)
    _copy_or_make(policy.parent, make, name=what.encode() + name)
    return policy


def _read_content(file: Path) -> bytes:
    """What tells a file from others. DuckDB writes the same rows in other bytes each time: its size stands for it."""
    return str(file.stat().st_size).encode() if file.suffix == ".duckdb" else file.read_bytes()


def _copy_or_make(folder: Path, make: Callable[[], object], *, name: bytes) -> None:
    kept = Path(_make_kept_folder().name) / sha256(name).hexdigest()
    if kept.exists():
        copytree(kept, folder, dirs_exist_ok=True)
    else:
        make()
        copytree(folder, kept)


def shop_in_duckdb(directory: Path, **caps: Any) -> Path:
    """The shop in a DuckDB file in an empty `directory`, and `write_policy` with such caps; made once and copied."""

    def make() -> None:
        shop.fill_duckdb(directory / "shop.duckdb")
        write_policy(directory, source="duckdb:///shop.duckdb", **caps)

    _copy_or_make(directory, make, name=f"shop {sorted(caps.items())}".encode())
    return directory / "keyhole.toml"


@contextmanager
def opened(policy: Path) -> Iterator[House]:
    """The policy's house, serving; in the end its ledger is read anew and found unbroken."""
    with Service.open(policy) as service:
        with serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses:
            yield House(policy, service, addresses)
        service.ledger.verify_everything()


@contextmanager
def hurried(service: Service, *, limit_ms: int = 500) -> Iterator[None]:
    """Let what waits or fails do so soon: a failure takes as long as an answer may."""
    unhurried = service.catalog
    service.catalog = replace(unhurried, statement_timeout_ms=limit_ms)
    try:
        yield
    finally:
        service.catalog = unhurried


@contextmanager
def unchanged(house: House) -> Iterator[None]:
    """Insist that the block changes nothing in the ledger."""
    before = house.events
    yield
    assert house.events == before


def notices(connection: psycopg.Connection[Any]) -> list[str]:
    """A list that every notice of the connection will be added to."""
    heard: list[str] = []
    connection.add_notice_handler(lambda notice: heard.append(f"{notice.severity}: {notice.message_primary}"))
    return heard


class Lock:
    """An ACCESS EXCLUSIVE lock on a table: nobody else can read it until `release`."""

    def __init__(self, url: str, table: str) -> None:
        self._table = table
        self._owner = psycopg.connect(url)
        self._watching = psycopg.connect(url, autocommit=True)
        self._owner.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())

    def wait_for_somebody(self, number: int = 1) -> None:
        """Return when so many try to use the table, and wait."""
        query = (
            "SELECT count(*) FROM pg_locks WHERE relation = %s::regclass AND NOT granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        eventually(lambda: self._watching.execute(query, [self._table]).fetchone() == (number,))

    def wait_for_silence(self) -> None:
        """Return when nobody runs a query in the database, and somebody is connected."""
        query = (
            "SELECT count(*) > 0 AND bool_and(state = 'idle') FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND pid <> %s"
        )
        me = [self._owner.info.backend_pid]
        eventually(lambda: self._watching.execute(query, me).fetchone() == (True,))

    def release(self, change: str = "SELECT 1") -> None:
        """Let everybody go on, on data that a statement has changed."""
        self._owner.execute(change.encode())
        self._owner.commit()

    def close(self) -> None:
        self._owner.close()
        self._watching.close()


@contextmanager
def locked(url: str, table: str) -> Iterator[Lock]:
    """A table that nobody else can read until the block ends."""
    lock = Lock(url, table)
    try:
        yield lock
    finally:
        lock.close()


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until it holds; the suite's own time limit ends a wait in vain."""
    pause_s = 0.01
    while not holds():
        time.sleep(pause_s)
        pause_s = min(1.5 * pause_s, _LONGEST_PAUSE_S)
