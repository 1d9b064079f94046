"""Drivers with a program each: log in with SCRAM, ask with parameters in a list, read key values, hear a refusal.

DBD::Pg, PDO, pgx, lib/pq and libpq itself from Debian, postgres.js from npm; see the programs in `small`.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.clients.encrypted import Encrypted
from tests.effort import PATIENCE_S
from tests.worlds.house import PASSWORD
from tests.worlds.served import USER, Served

PROGRAMS = Path(__file__).parent / "small"
GO = Path("/usr/share/gocode")  # where Debian keeps the sources of libraries
MODULES = Path(os.environ.get("KEYHOLE_NODE_MODULES", "."))


def runs(*command: str) -> bool:
    """Whether a command is there and ends well."""
    return (
        shutil.which(command[0]) is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def perl(_: Path) -> Sequence[str]:
    if not runs("perl", "-MDBD::Pg", "-e", "1"):
        pytest.skip("DBD::Pg needs apt-get install libdbd-pg-perl")
    return "perl", str(PROGRAMS / "clinic.pl")


def php(_: Path) -> Sequence[str]:
    if not runs("php", "-r", "exit(extension_loaded('pdo_pgsql') ? 0 : 1);"):
        pytest.skip("PDO needs apt-get install php-cli php-pgsql")
    return "php", str(PROGRAMS / "clinic.php")


def c(directory: Path) -> Sequence[str]:
    if not runs("pg_config", "--includedir") or not runs("gcc", "--version"):
        pytest.skip("libpq needs apt-get install libpq-dev gcc")
    include, library = (
        subprocess.run(["pg_config", which], capture_output=True, text=True, check=True).stdout.strip()
        for which in ("--includedir", "--libdir")
    )
    program = str(directory / "clinic")
    compiling = ["gcc", "-Wall", f"-I{include}", str(PROGRAMS / "clinic.c"), f"-L{library}", "-lpq", "-o", program]
    done = subprocess.run(compiling, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (program,)


def go(directory: Path) -> Sequence[str]:
    if not runs("go", "version") or not (GO / "src/github.com/jackc/pgx").is_dir():
        pytest.skip("pgx needs apt-get install golang-go golang-github-jackc-pgx-v4-dev golang-github-lib-pq-dev")
    program = str(directory / "clinic")
    built = {"GO111MODULE": "off", "GOPATH": str(GO), "GOCACHE": str(directory / "cache"), "GOFLAGS": "-p=1"}
    compiling = ["go", "build", "-o", program, str(PROGRAMS / "clinic.go")]
    done = subprocess.run(compiling, env={**os.environ, **built}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (program,)


def postgres_js(_: Path) -> Sequence[str]:
    if not runs("node", "--version") or not (MODULES / "postgres").is_dir():
        pytest.skip("postgres.js needs node, and npm install postgres into a folder KEYHOLE_NODE_MODULES")
    return "node", str(PROGRAMS / "clinic.js")


@pytest.mark.parametrize("prepare", [perl, php, c, postgres_js, go])
def test_small(clinic: Served, tmp_path: Path, prepare: Callable[[Path], Sequence[str]]) -> None:
    run(prepare(tmp_path), clinic)


@pytest.mark.parametrize("prepare", [perl, php, c, go])
def test_small_over_tls(encrypted: Encrypted, tmp_path: Path, prepare: Callable[[Path], Sequence[str]]) -> None:
    certificate = encrypted.file("authority.crt")
    run(prepare(tmp_path), encrypted.served, PGSSLMODE="verify-full", PGSSLROOTCERT=str(certificate))


def run(command: Sequence[str], keyhole: Served, **environment: str) -> None:
    done = subprocess.run(
        command,
        env={
            **os.environ,
            "NODE_PATH": str(MODULES),
            "PGHOST": keyhole.host,
            "PGPORT": str(keyhole.port),
            "PGDATABASE": keyhole.database,
            "PGUSER": USER,
            "PGPASSWORD": PASSWORD,
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr + done.stdout
