"""What tests of several packages share: one real PostgreSQL for the whole run, sizes and marks."""

import gc
import logging
import os
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import structlog
import typer.testing

from proxy.shadow.guard import stop_server_with_process
from proxy.shadow.wheel import make_postgres_server, stop_immediately
from tests.begun_first import begin_with_longest
from tests.children.shadow_template import folder_in_memory
from tests.costs import Costs
from tests.effort import is_repeated, register_profiles
from tests.forked_run import ForkedRun
from tests.long_tests import long_tests
from tests.made_once.copied_data import copied_data, make_data
from tests.made_once.copied_ledgers import copied_ledgers
from tests.made_once.known_policies import known_policies
from tests.marks import list_marks
from tests.seeded_noise import RepeatedBytes
from tests.turns import Turn, find_changed, find_turn

if TYPE_CHECKING:
    from tests.proxy.sources.spark.engines import Sail, Spark

register_profiles()
# Until all is collected: looking for garbage among what is imported and made then took a sixth of that time.
gc.disable()
_BYTES = RepeatedBytes()
_TESTS = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--turn", metavar="COMMIT", help="only files that have their turn at a commit: tests/turns.py")
    parser.addoption("--processes", type=int, default=1, help="share the tests among so many: tests/forked_run.py")
    parser.addoption("--within", type=float, metavar="SECONDS", help="begin no test later: tests/forked_run.py")
    parser.addoption("--costs", action="store_true", help="show which tests take most of the processor: tests/costs.py")
    parser.addoption("--near", metavar="COMMIT", help="only files near what changed since a commit: tests/turns.py")


def pytest_configure(config: pytest.Config) -> None:
    if (processes := config.getoption("processes")) > 1:
        config.pluginmanager.register(ForkedRun(processes, within_s=config.getoption("within")))
    if config.getoption("costs"):
        config.pluginmanager.register(Costs())


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, object, object]:
    """Mark what was collected, before the marks select, and order what is left for the processes that share it."""
    also_sized = "sized" in config.getoption("markexpr")
    for item in items:
        if isinstance(item, pytest.Function):
            for name in list_marks(item, also_sized=also_sized):
                item.add_marker(name)
    for item in long_tests(items):
        item.add_marker("long")
    result = yield
    at, since = config.getoption("--turn"), config.getoption("--near")
    turn = find_turn(at) if at else find_changed(since) if since else None
    if turn is not None:
        _drop_files(config, items, turn)
    if turn is not None and config.getoption("within") is not None:
        items.sort(key=lambda item: turn.place(_name(item)))
    elif config.getoption("processes") > 1:
        items[:] = begin_with_longest(items, file_of=lambda item: _name(item).removeprefix("tests/"))
    return result


def _drop_files(config: pytest.Config, items: list[pytest.Item], turn: Turn) -> None:
    """Keep the tests of files that have their turn."""
    having = [turn.has(_name(item)) for item in items]
    config.hook.pytest_deselected(items=[item for item, has in zip(items, having, strict=True) if not has])
    items[:] = [item for item, has in zip(items, having, strict=True) if has]


def _name(item: pytest.Item) -> str:
    """A test's file, named from the project's root."""
    return f"tests/{item.path.relative_to(_TESTS).as_posix()}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What was collected stays until the end: no collection of garbage needs to look at it again."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)  # of what tests leave, little is garbage: the usual 700 takes a twentieth
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    with _BYTES.instead() if is_repeated() else nullcontext():
        try:
            return (yield)
        finally:
            _forget_log()


def _forget_log() -> None:
    """Let no command that a test called in this process decide what the next one logs."""
    if structlog.is_configured():
        structlog.reset_defaults()
        logging.captureWarnings(capture=False)
        logging.getLogger().handlers.clear()
        logging.getLogger().setLevel(logging.WARNING)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _BYTES.begin(f"{item.nodeid}, made ready")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    _BYTES.begin(item.nodeid)


def _traversable(directory: Path) -> None:
    """Let another system user (the embedded server's, when the tests run as root) walk down to `directory`."""
    if os.geteuid() != 0:
        return
    for folder in (directory, *directory.parents):
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o011)


@pytest.fixture(scope="session", autouse=True)
def _copied_data() -> Iterator[None]:
    with copied_data(), copied_ledgers(), known_policies():
        yield


@pytest.fixture(scope="session", autouse=True)
def _kept_commands() -> Iterator[None]:
    """The tree of an application's commands is made once: each call in this process would make it anew."""
    with pytest.MonkeyPatch.context() as patched:
        kept = cache(typer.main.get_command)
        patched.setattr(typer.main, "get_command", kept)
        patched.setattr(typer.testing, "_get_command", kept)
        yield


@pytest.fixture(scope="session")
def sail() -> "Iterator[Sail]":
    """Spark SQL without a JVM, where make test-spark has installed it."""
    from tests.proxy.sources.spark.engines import sail_running

    with sail_running() as started:
        yield started


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Spark]":
    """Apache Spark in one process, where KEYHOLE_SPARK_HOME names one."""
    from tests.proxy.sources.spark.engines import spark_running

    with spark_running(master="local[2]", folder=tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Spark]":
    """Apache Spark whose workers are processes of their own."""
    from tests.proxy.sources.spark.engines import CLUSTER, spark_running

    with spark_running(master=CLUSTER, folder=tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL that tests may write to: the server that KEYHOLE_PG_DSN names, or an embedded one."""
    given = os.environ.get("KEYHOLE_PG_DSN")
    if given:
        yield given
        return
    # not below pytest's own folder, which another run of pytest closes to other users
    with folder_in_memory() as parent, stop_server_with_process(parent / "data"):
        _traversable(parent)
        server = make_postgres_server(parent / "data", cleanup_mode="stop")
        make_data(server)
        server.start()
        with psycopg.connect(server.get_uri(), autocommit=True) as owner:
            owner.execute("ALTER SYSTEM SET fsync = off")  # no test outlives the machine; databases come and go
            owner.execute("ALTER SYSTEM SET full_page_writes = off")
            owner.execute("ALTER SYSTEM SET max_wal_size = '64MB'")
            owner.execute("SELECT pg_reload_conf()")
        try:
            yield server.get_uri()
        finally:
            stop_immediately(server)
