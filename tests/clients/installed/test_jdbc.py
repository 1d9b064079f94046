"""JDBC: a program that is compiled here and run against Debian's pgjdbc; see jdbc/Clinic.java."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.encrypted import Encrypted
from tests.effort import PATIENCE_S
from tests.worlds.house import PASSWORD
from tests.worlds.served import USER, Served

DRIVER = Path("/usr/share/java/postgresql.jar")
SOURCE = Path(__file__).parent / "jdbc" / "Clinic.java"
SECTIONS = (
    "values",
    "keys",
    "parameters",
    "refusals",
    "metadata",
    "fetching",
    "transactions",
    "batches",
    "cancelling",
    "settings",
    "copies",
    "numbers",
)


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the compiled program lies."""
    if shutil.which("javac") is None or not DRIVER.exists():
        pytest.skip("JDBC needs apt-get install default-jdk-headless libpostgresql-jdbc-java")
    directory = tmp_path_factory.mktemp("jdbc")
    compiling = ["javac", "-encoding", "UTF-8", "-cp", str(DRIVER), "-d", str(directory), str(SOURCE)]
    done = subprocess.run(compiling, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.mark.parametrize("section", SECTIONS)
def test_jdbc(classes: Path, clinic: Served, section: str) -> None:
    run(classes, clinic, section)


@pytest.mark.parametrize("section", ["keys", "cancelling"])
def test_jdbc_over_tls(classes: Path, encrypted: Encrypted, section: str) -> None:
    run(classes, encrypted.served, section, f"?sslmode=verify-full&sslrootcert={encrypted.file('authority.crt')}")


def run(classes: Path, clinic: Served, section: str, settings: str = "") -> None:
    url = f"jdbc:postgresql://{clinic.host}:{clinic.port}/{clinic.database}{settings}"
    running = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{DRIVER}", "Clinic", url, USER, PASSWORD, section]
    done = subprocess.run(running, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout == "done\n", done.stderr
