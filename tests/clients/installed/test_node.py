"""node-postgres: a program that npm's packages run; see node/clinic.js. KEYHOLE_NODE_MODULES says where they are."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.encrypted import Encrypted
from tests.effort import PATIENCE_S
from tests.worlds.house import PASSWORD
from tests.worlds.served import USER, Served

PROGRAM = Path(__file__).parent / "node" / "clinic.js"
SECTIONS = ("values", "keys", "parameters", "refusals", "transactions", "cursors", "pools", "timeouts")


@pytest.mark.parametrize("section", SECTIONS)
def test_node(clinic: Served, section: str) -> None:
    run(clinic, section)


@pytest.mark.parametrize("section", ["keys", "timeouts"])
def test_node_over_tls(encrypted: Encrypted, section: str) -> None:
    run(encrypted.served, section, PGSSLMODE="verify-full", NODE_EXTRA_CA_CERTS=encrypted.file("authority.crt"))


def run(clinic: Served, section: str, **environment: str) -> None:
    modules = os.environ.get("KEYHOLE_NODE_MODULES", "")
    node = shutil.which("node")
    if node is None or not (Path(modules) / "pg").is_dir():
        pytest.skip("node-postgres needs node, and npm install pg pg-cursor into a folder KEYHOLE_NODE_MODULES")
    done = subprocess.run(
        [node, PROGRAM, section],
        env={
            **os.environ,
            "NODE_PATH": modules,
            "PGHOST": clinic.host,
            "PGPORT": str(clinic.port),
            "PGDATABASE": clinic.database,
            "PGUSER": USER,
            "PGPASSWORD": PASSWORD,
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == "done\n", done.stderr
