"""LISTEN with clients that are installed beside the tests: pgjdbc and node-postgres hear of a look as it is made."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.test_notifications import Watched, read, watched
from tests.worlds.house import PASSWORD
from tests.worlds.served import USER

__all__ = ["watched"]
HERE = Path(__file__).parent
DRIVER = Path("/usr/share/java/postgresql.jar")


def test_jdbc(watched: Watched) -> None:
    if shutil.which("java") is None or not DRIVER.exists():
        pytest.skip("JDBC needs apt-get install default-jdk-headless libpostgresql-jdbc-java")
    there = watched.keyhole
    url = f"jdbc:postgresql://{there.host}:{there.port}/{there.database}"
    program = ["java", "-cp", str(DRIVER), str(HERE / "jdbc" / "Listen.java"), url, USER, PASSWORD, "keyhole_crowded"]
    hear(watched, program, {})


def test_node(watched: Watched) -> None:
    modules, node = os.environ.get("KEYHOLE_NODE_MODULES", ""), shutil.which("node")
    if node is None or not (Path(modules) / "pg").is_dir():
        pytest.skip("node-postgres needs node, and npm install pg pg-cursor into a folder KEYHOLE_NODE_MODULES")
    there = watched.keyhole
    own = {"PGHOST": there.host, "PGPORT": str(there.port), "PGDATABASE": there.database}
    login = {"PGUSER": USER, "PGPASSWORD": PASSWORD, "NODE_PATH": modules}
    hear(watched, [node, str(HERE / "node" / "listen.js"), "keyhole_crowded"], own | login)


def hear(watched: Watched, program: list[str], environment: dict[str, str]) -> None:
    """A program that says that it listens, and then what it hears."""
    with subprocess.Popen(program, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        number = watched.look("B")
        assert read(process.stdout.readline()) == (number, "B")
    assert process.returncode == 0
