"""The lock files of the image: exact versions with hashes, that agree with pyproject.toml and name no index."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = {
    "requirements.lock": PROJECT["project"]["dependencies"],
    "build-requirements.lock": PROJECT["build-system"]["requires"],
}
MACHINES = [(python, machine) for python in ("3.11", "3.12", "3.13") for machine in ("x86_64", "aarch64")]
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Pin:
    """One line of a lock file, continued lines included."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (one,) = self.requirement.specifier
        assert one.operator == "=="
        assert "*" not in one.version
        return one.version


def read_pins(name: str) -> list[Pin]:
    """Every line that is no comment; whatever is neither a pinned version nor a hash fails."""
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    pins = []
    for line in text.splitlines():
        if line.strip() and not line.strip().startswith("#"):
            requirement, *hashes = re.split(r"\s+(?=--)", line.strip())
            pins.append(Pin(Requirement(requirement), tuple(hashes)))
    return pins


def environment(python: str, machine: str) -> dict[str, str]:
    return {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "platform_machine": machine,
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_is_a_version_with_hashes_and_nothing_else(name: str) -> None:
    pins = read_pins(name)
    for pin in pins:
        assert pin.version
        assert pin.requirement.url is None
        assert pin.hashes
        assert [one for one in pin.hashes if not _HASH.fullmatch(one)] == []
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
    assert not re.search(r"://|index|find-links|file:|trusted-host", text)


@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize(("python", "machine"), MACHINES)
def test_what_pyproject_asks_for_is_locked_at_a_version_that_it_takes(name: str, python: str, machine: str) -> None:
    here = environment(python, machine)
    locked: dict[str, str] = {}
    for pin in read_pins(name):
        if pin.requirement.marker is None or pin.requirement.marker.evaluate(here):
            assert pin.name not in locked, "two versions for one machine"
            locked[pin.name] = pin.version
    asked = [Requirement(text) for text in LOCKS[name]]
    assert asked
    for requirement in asked:
        version = locked.get(canonicalize_name(requirement.name), "none")
        assert version != "none", f"{requirement} is not locked: make lock"
        assert requirement.specifier.contains(version), f"{requirement} is locked at {version}: make lock"
    if name == "requirements.lock":
        assert locked["psycopg-binary"] == locked["psycopg"]  # psycopg[binary]


def test_the_image_installs_nothing_that_is_not_locked() -> None:
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    installs = re.findall(r"pip install ([^&\n]+)", text)
    assert [
        line
        for line in installs
        if not line.startswith(("--require-hashes --only-binary :all: -r ", "--no-index --no-deps "))
    ] == []
    assert {line.rpartition("/")[2].strip() for line in installs if "-r " in line} == set(LOCKS)
