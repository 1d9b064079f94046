"""The operator's own PostgreSQL programs, as an alternative for the shadow. They are checked before one of them runs.

Guarantee: all programs are of one release that Keyhole supports. Only root and Keyhole's own user can replace them, or
change the files that they load.
"""

import errno
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from accountant.store.punctual import PunctualConnection
from planner.catalog.fault import Fault
from planner.errors import KeyholeError
from planner.policy.file import Policy

SUPPORTED = 18
"""The one major version whose functions were reviewed (`proxy/shadow/reviewed.py`), and that all tests run on."""
PROGRAMS = ("initdb", "pg_ctl", "postgres")
_RELEASE = re.compile(r"\w+ \(PostgreSQL\) (\d+)\.(\d+)(?: .*)?\s*")
_ANSWER_S = 60  # for a program to say its version: on a slow disk it is read first
_MOST_LINKS = 40  # on the way to a file; Linux follows as many
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_WHERE = f'such as bindir = "/usr/lib/postgresql/{SUPPORTED}/bin".'


@dataclass(frozen=True, slots=True)
class PostgresPrograms:
    """The PostgreSQL programs of one release, in one folder.

    `state` identifies the files: it differs if the programs are replaced later.
    """

    directory: Path
    release: tuple[int, int]
    state: tuple[tuple[int, int, int], ...]

    @property
    def version(self) -> str:
        """Return the version as PostgreSQL writes it, such as `18.4`."""
        return f"{self.release[0]}.{self.release[1]}"


def find_own_programs(policy: Policy) -> PostgresPrograms | None:
    """Return the checked programs of `[shadow] bindir`, or None if the wheel's are used.

    Raise KH013 for unusable ones.
    """
    bindir = policy.shadow.bindir
    if bindir is None:
        return None
    return policy.run_at(("shadow", "bindir"), lambda: _read_programs(policy.directory / bindir))


def read_program_release(program: Path) -> tuple[int, int]:
    """Run a PostgreSQL program, and return the major and minor version that it reports. Raise Fault (KH013)."""
    hint = f"Name the programs of a release of PostgreSQL {SUPPORTED} that start on this machine, {_WHERE}"
    try:
        said = subprocess.run(  # noqa: S603 - the operator's own program
            (program, "--version"), capture_output=True, timeout=_ANSWER_S, check=True, stdin=subprocess.DEVNULL
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.SubprocessError):
        raise Fault("KH013", f'holds a "{program.name}" that does not start', hint=hint) from None
    found = _RELEASE.fullmatch(said)
    if found is None:
        raise Fault("KH013", f'holds a "{program.name}" that belongs to no release of PostgreSQL', hint=hint)
    return int(found[1]), int(found[2])


def check_server_files(address_conninfo: str) -> None:
    """Raise KH013 if another user can change files that a running server loads or was made from.

    These are its libraries, and the files that fill a new database.
    """
    with PunctualConnection.connect(address_conninfo) as connection:
        folders = connection.execute(
            "SELECT setting FROM pg_config WHERE name IN ('PKGLIBDIR', 'SHAREDIR') ORDER BY name"
        ).fetchall()
    try:
        for (folder,) in folders:
            _check_owners(Path(folder), *sorted(Path(folder).iterdir()))
    except Fault as fault:
        problem = f"what the shadow's PostgreSQL loads {fault.problem}"
        raise KeyholeError("KH013", problem, hint=fault.hint) from None


def _read_programs(directory: Path) -> PostgresPrograms:
    programs = [directory / name for name in PROGRAMS]
    try:
        for program in programs:
            if not program.is_file():
                hint = f"Name the folder with {', '.join(PROGRAMS)} of a PostgreSQL {SUPPORTED} server, {_WHERE}"
                raise Fault("KH013", f'holds no program "{program.name}"', hint=hint)
            _check_owners(program)
            _check_executable(program)
        state = tuple((found.st_ino, found.st_mtime_ns, found.st_size) for found in map(Path.stat, programs))
    except OSError as error:
        hint = "Let the user that Keyhole runs as enter the folder, and read what is in it."
        raise Fault("KH013", f"cannot be read ({type(error).__name__})", hint=hint) from None
    releases = {read_program_release(program) for program in programs}
    if len(releases) > 1:
        raise Fault("KH013", "holds programs of several releases", hint="Install PostgreSQL there again, as a whole.")
    (release,) = releases
    if release[0] != SUPPORTED:
        hint = (
            f"Install PostgreSQL {SUPPORTED} and name its folder, {_WHERE} What another version lets analysts call was "
            "not reviewed."
        )
        raise Fault("KH013", f"holds PostgreSQL {release[0]}.{release[1]}, which is not supported", hint=hint)
    return PostgresPrograms(directory, release, state)


def _check_owners(*paths: Path) -> None:
    """Raise Fault if anybody except root and our own user can change the files at the end of these paths.

    Raise OSError if they cannot be read.
    """
    trusted = {0, os.geteuid()}
    for step in dict.fromkeys(step for path in paths for step in _list_path_steps(path)):
        found = step.lstat()
        if found.st_uid not in trusted:
            hint = "Let root own it, or the user that Keyhole runs as: whoever owns it decides what Keyhole runs."
            raise Fault("KH013", f"depends on {step}, which belongs to somebody else", hint=hint)
        if stat.S_ISLNK(found.st_mode) or not found.st_mode & _OTHERS_WRITE:
            continue
        if not (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):  # where all may add, but not replace
            hint = f"Whoever writes it decides what Keyhole runs: chmod go-w {step}"
            raise Fault("KH013", f"depends on {step}, which others may write", hint=hint)


def _check_executable(program: Path) -> None:
    hint = f"Make it executable: chmod a+rx {program}"
    if not os.access(program, os.X_OK):
        raise Fault("KH013", f'holds a "{program.name}" that is not executable', hint=hint)
    # root starts it as another user, who is nobody's friend
    if os.geteuid() == 0 and not all(_is_open_to_all(step) for step in _list_path_steps(program)):
        hint = (
            "Keyhole runs as root here, and PostgreSQL then as the user pgserver: chmod a+rx it, and the folders above."
        )
        raise Fault("KH013", f'holds a "{program.name}" that only some users may start', hint=hint)


def _is_open_to_all(step: Path) -> bool:
    mode = step.lstat().st_mode
    return stat.S_ISLNK(mode) or bool(mode & stat.S_IXOTH)


def _list_path_steps(path: Path) -> Iterator[Path]:
    """Yield every folder and link on the way to an absolute path, from the root, and the path's end."""
    current, ahead, links = Path(path.anchor), _split_path_reversed(path), 0
    yield current
    while ahead:
        part = ahead.pop()
        step = current.parent if part == ".." else current / part
        yield step
        if not step.is_symlink():
            current = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = step.readlink()
        ahead.extend(_split_path_reversed(target))
        if target.is_absolute():
            current = Path(target.anchor)


def _split_path_reversed(path: Path) -> list[str]:
    parts: Iterable[str] = path.parts[1:] if path.is_absolute() else path.parts
    return list(reversed(list(parts)))
