"""What is installed: five packages from one folder, one command, and a wheel with all that they read."""

import importlib
import os
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import entry_points, metadata, version
from importlib.util import find_spec
from pathlib import Path

import pytest

from proxy.cli.script import run
from tests.effort import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = ("accountant", "deploy", "mechanisms", "planner", "proxy")
NOT_PYTHON = {
    "deploy/demo/online_retail.parquet",
    "deploy/demo/keyhole.toml",
    "deploy/demo/questions.toml",
    "deploy/demo/ATTRIBUTION.md",
    "deploy/policies/hospital.toml",
    "deploy/postgresql/read_only_role.sql",
    "deploy/compose/keyhole.toml",
    "deploy/compose/source.sql",
    "deploy/systemd/keyhole.service",
} | {
    path.relative_to(ROOT).as_posix()
    for folder in ("static", "templates")
    for path in (ROOT / "proxy" / "console" / folder).rglob("*.*")
}


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_come_from_one_folder(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().parents[1] == ROOT


def test_the_metadata_is_the_projects() -> None:
    assert version("keyhole") == PROJECT["project"]["version"]
    assert metadata("keyhole")["Requires-Python"].replace(" ", "") in {">=3.11,<3.14", "<3.14,>=3.11"}
    assert metadata("keyhole")["License-Expression"] == "Apache-2.0"


def test_the_command_is_installed() -> None:
    (script,) = entry_points(group="console_scripts", name="keyhole")
    assert script.load() is run
    assert Path(sys.executable).with_name("keyhole").is_file()


def test_the_build_takes_every_package_and_ignores_no_file_that_they_read() -> None:
    assert PROJECT["build-system"]["build-backend"] == "hatchling.build"
    assert tuple(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == PACKAGES
    for path in NOT_PYTHON:
        assert (ROOT / path).is_file()
    assert list((ROOT / "accountant" / "migrations" / "versions").glob("*.py"))
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").split()
    assert not {"*.parquet", "*.toml", "*.sql", "deploy/", "migrations/"} & set(ignored)


def test_a_wheel_that_can_be_built_holds_them(tmp_path: Path) -> None:
    """Where the build backend is installed; elsewhere the test above reads its configuration."""
    if find_spec("hatchling") is None:
        return
    wheel = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(
        wheel, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=os.environ
    )
    assert built.returncode == 0, built.stderr
    (path,) = tmp_path.glob("keyhole-*.whl")
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        scripts = archive.read(f"keyhole-{version('keyhole')}.dist-info/entry_points.txt").decode()
    expected = {
        found.relative_to(ROOT).as_posix() for package in PACKAGES for found in (ROOT / package).rglob("*.py")
    } | NOT_PYTHON
    assert expected <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert "keyhole = proxy.cli.script:run" in scripts
