"""A PostgreSQL of an operator's own: the wheel's programs and what they load, copied elsewhere."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.policy.file import Policy
from proxy.shadow.binaries import PROGRAMS
from proxy.shadow.wheel import find_wheel_programs
from tests.worlds.policies import BASE


def policy_with(bindir: Path | None) -> Policy:
    """A policy that names that folder, of which nothing is looked at; None for one that names none."""
    section = "" if bindir is None else f'\n[shadow]\nbindir = "{bindir}"\n'
    return Policy.parse(BASE + section, path=Path("/nowhere/keyhole.toml"))


@contextmanager
def own_postgresql() -> Iterator[Path]:
    """Its folder of programs. Anybody may read it, and its owner alone may write it, as packages install theirs."""
    install = find_wheel_programs().parent
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        home = Path(folder) / "package" / "postgresql"
        for part in ("lib/postgresql", "share/postgresql"):
            shutil.copytree(install / part, home / part, ignore=shutil.ignore_patterns("pgxs", "vector*"))
        (home / "bin").mkdir()
        for program in PROGRAMS:
            shutil.copyfile(install / "bin" / program, home / "bin" / program)
        libraries = install.parent.with_name(f"{install.parent.name}.libs")  # beside the wheel's package, on Linux
        if libraries.is_dir():
            shutil.copytree(libraries, Path(folder) / libraries.name)
        for path in (Path(folder), *Path(folder).rglob("*")):
            path.chmod(0o755)
        yield home / "bin"


def replace_programs(bindir: Path) -> None:
    """Put other files of the same content in the programs' place, as an update does."""
    for program in (bindir / name for name in PROGRAMS):
        another = program.with_name("another")
        shutil.copy(program, another)
        os.replace(another, program)
