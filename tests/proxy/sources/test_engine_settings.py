"""What an engine takes of the machine, and what it leaves on the disk when its memory is too small."""

import os
import stat
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from accountant.store.private_files import OTHERS
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.sections import SourceSection
from proxy.sources.duckdb_source import DuckDBSource
from proxy.sources.engine_settings import make_engine_settings
from proxy.sources.postgres_source import PostgresSource
from proxy.sources.shared import open_policy_source
from tests.children import forked
from tests.worlds import shop
from tests.worlds.house import eventually, new_database, shop_policy
from tests.worlds.served import ROOT

DUCKDB = "duckdb:///shop.duckdb"
SECRET = b"ZEBRAZEBRA"
# some 150 MB of texts, each with the secret word at its beginning
SPILLING = """
SELECT count(*) FROM (
  SELECT DISTINCT 'ZEBRAZEBRA' || md5(i::varchar) || md5((i + 1)::varchar) FROM range(1500000) numbers(i)
)
"""


def policy(directory: Path, source: str, *, more: str = "") -> Policy:
    """The shop's, which nobody checks here."""
    path, text = directory / "keyhole.toml", shop_policy(source=source)
    path.write_text(text.replace(f'url = "{source}"\n', f'url = "{source}"\n{more}'), encoding="utf-8")
    return Policy.load(path)


def test_workers_share_the_machine() -> None:
    section = SourceSection(url=DUCKDB)
    cores = len(os.sched_getaffinity(0))
    shares = {number: make_engine_settings(section, directory=Path(), workers=number) for number in (1, 2, 7, 64)}
    assert {number: one["memory_limit"] for number, one in shares.items()} == {1: "80%", 2: "40%", 7: "11%", 64: "1%"}
    assert {number: one["threads"] for number, one in shares.items()} == {
        number: str(max(1, cores // number)) for number in shares
    }


def test_what_the_policy_says_holds_in_each(tmp_path: Path) -> None:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    more = 'memory_limit = "300MB"\nthreads = 1\ntemp_directory = "."\n'
    with closing(open_policy_source(policy(tmp_path, DUCKDB, more=more), workers=2)) as source:
        assert isinstance(source, DuckDBSource)
        asked = "SELECT current_setting('memory_limit'), current_setting('threads'), current_setting('temp_directory')"
        ((memory, threads, folder),) = source._run(asked)
        assert (memory, threads) == ("286.1 MiB", 1)
        assert Path(folder).parent == tmp_path
        assert not Path(folder).exists()


def test_what_does_not_fit_into_memory_is_on_the_disk_without_a_readable_text(tmp_path: Path) -> None:
    more = 'memory_limit = "60MB"\ntemp_directory = "."\n'
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    seen, modes, over = bytearray(), set[int](), threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            for file in tmp_path.glob("keyhole-spill-*/*"):
                with suppress(OSError), file.open("rb") as spilled:
                    seen.extend(spilled.read())
                    modes.update(stat.S_IMODE(one.stat().st_mode) for one in (file.parent, file))

    with closing(open_policy_source(policy(tmp_path, DUCKDB, more=more))) as source:
        assert isinstance(source, DuckDBSource)
        watching = threading.Thread(target=watch)
        watching.start()
        before = os.umask(OTHERS)  # as the command sets it
        try:
            assert source._run(SPILLING) == [(1_500_000,)]
        finally:
            os.umask(before)
            over.set()
            watching.join()
    assert len(seen) > 1 << 20
    assert SECRET not in seen
    assert modes == {0o700, 0o600}


def test_postgresql_takes_what_the_policy_says_and_nothing_otherwise(postgres_url: str, tmp_path: Path) -> None:
    with new_database(postgres_url) as url:
        shop.fill_postgres(url)
        more = 'work_mem = "3MB"\nmax_parallel_workers_per_gather = 1\n'
        loaded = policy(tmp_path, url, more=more)
        assert make_engine_settings(loaded.source, directory=tmp_path, workers=3) == {
            "work_mem": "3MB",
            "max_parallel_workers_per_gather": "1",
            "enable_bitmapscan": "off",
            "enable_nestloop": "off",
        }
        with closing(open_policy_source(loaded)) as source:
            assert isinstance(source, PostgresSource)
            with source._pool.connection() as connection:
                assert connection.execute("SHOW work_mem").fetchone() == ("3MB",)
                assert connection.execute("SHOW max_parallel_workers_per_gather").fetchone() == ("1",)
        assert make_engine_settings(SourceSection(url=url, skip_blocks=True), directory=tmp_path, workers=3) == {
            "enable_nestloop": "off"
        }


@pytest.mark.parametrize(
    ("url", "line"),
    [
        (DUCKDB, 'work_mem = "3MB"'),
        (DUCKDB, "max_parallel_workers_per_gather = 1"),
        (DUCKDB, 'memory_limit = "much"'),
        (DUCKDB, "threads = 0"),
        ("postgresql://nobody@127.0.0.1/nothing", 'memory_limit = "3GB"'),
        ("postgresql://nobody@127.0.0.1/nothing", "threads = 1"),
        ("postgresql://nobody@127.0.0.1/nothing", 'temp_directory = "/tmp"'),
    ],
)
def test_a_key_of_the_other_engine_and_a_size_that_is_none_are_refused(tmp_path: Path, url: str, line: str) -> None:
    path = tmp_path / "keyhole.toml"
    text = shop_policy(source=DUCKDB).replace(f'url = "{DUCKDB}"\n', f'url = "{url}"\n{line}\n')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(KeyholeError) as refused:
        Policy.load(path)
    assert refused.value.code == "KH002"
    assert line.split()[0] in str(refused.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    missing = policy(tmp_path, DUCKDB, more='temp_directory = "nowhere"\n')
    with pytest.raises(KeyholeError, match="KH008") as refused:
        open_policy_source(missing)
    assert "source.temp_directory" in str(refused.value)


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not(tmp_path: Path) -> None:
    used = _leave_behind(tmp_path, "while True: time.sleep(1)")
    left = _leave_behind(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    try:
        eventually(lambda: left.poll() is not None)
        before = set(tmp_path.iterdir())
        assert len(before) == 2
        _leave_behind(tmp_path, "").communicate()
        (kept,) = tmp_path.iterdir()
        assert kept in before
    finally:
        used.kill()
        used.communicate()
        left.communicate()


def _leave_behind(parent: Path, then: str) -> subprocess.Popen[str]:
    """A process that has made its folder, and does so then; one that ends by itself leaves nothing."""
    told = (
        "import os, signal, sys, time; from pathlib import Path\n"
        "from proxy.sources.spill_folder import make_spill_folder\n"
    )
    told += f"folder = make_spill_folder(Path(sys.argv[1])); folder.mkdir(); print(folder, flush=True)\n{then}"
    process = forked.Popen((sys.executable, "-c", told, str(parent)), stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process
