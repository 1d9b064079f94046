"""A Keyhole that runs as its owner would run it: `keyhole serve` in a process of its own."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import sqlalchemy

from planner.policy.file import Policy
from proxy.service.service import open_ledger
from tests.worlds.house import PASSWORD

USER = "ada"
ROOT = Path(__file__).parents[2]
_COMMAND = "import sys; from proxy.cli.main import main; main(sys.argv[1:])"
_ADDRESS = re.compile(r"postgresql://([\w.]+):(\d+)/(\w+), REST and docs (\S+)/docs")


@dataclass(frozen=True, slots=True)
class Served:
    """Where a served policy is found."""

    policy: Path
    host: str
    port: int
    database: str
    rest: str

    @property
    def address(self) -> dict[str, Any]:
        """What most drivers call the parts of an address."""
        return {
            "host": self.host,
            "port": self.port,
            "database": self.database,
            "user": USER,
            "password": PASSWORD,
        }

    @property
    def conninfo(self) -> str:
        """libpq's connection string."""
        return f"host={self.host} port={self.port} dbname={self.database} user={USER} password='{PASSWORD}'"

    @property
    def uri(self) -> str:
        """libpq's URI, password included."""
        return f"postgresql://{USER}:{quote(PASSWORD)}@{self.host}:{self.port}/{self.database}"

    def url(self, dialect: str) -> sqlalchemy.URL:
        """SQLAlchemy's URL for a driver."""
        return sqlalchemy.URL.create(dialect, USER, PASSWORD, host=self.host, port=self.port, database=self.database)

    def connect(self) -> psycopg.Connection[Any]:
        """A psycopg connection that commits every statement."""
        return psycopg.connect(self.conninfo, autocommit=True)

    @property
    def events(self) -> int:
        """How many events the ledger has; it is read anew and found unbroken."""
        ledger = open_ledger(Policy.load(self.policy))
        try:
            return ledger.verify()
        finally:
            ledger.close()


@contextmanager
def serving(policy: Path) -> Iterator[Served]:
    """`keyhole serve` on free ports until the block ends; it is asked to stop as a service manager asks."""
    arguments = [sys.executable, "-c", _COMMAND, "serve", "--policy", str(policy), "--port", "0", "--rest-port", "0"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        try:
            yield _served(policy, process.stdout)
        finally:
            process.terminate()
            process.communicate()


def _served(policy: Path, output: Iterator[str]) -> Served:
    for line in output:
        if found := _ADDRESS.search(line):
            return Served(policy, host=found[1], port=int(found[2]), database=found[3], rest=found[4])
    raise RuntimeError("keyhole serve ended before it said where it listens")


@contextmanager
def unchanged(clinic: Served) -> Iterator[None]:
    """Insist that the block changes nothing in the ledger."""
    before = clinic.events
    yield
    assert clinic.events == before
