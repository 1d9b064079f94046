"""What Keyhole writes is its owner's alone, however it is started, and what others may read is said."""

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.policy.file import Policy
from proxy.cli.main import main
from proxy.open_policy.service import Service, find_ledger_url
from proxy.security.file_modes import describe_exposed_files
from tests.worlds import shop
from tests.worlds.house import opened, shop_in_duckdb
from tests.worlds.served import ROOT

_OTHERS = 0o077


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return shop_in_duckdb(tmp_path)


def end_well(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert not ended.value.code


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_ledger_and_what_sqlite_writes_beside_it_are_their_owners_alone(policy: Path) -> None:
    with opened(policy) as house, house.connect() as connection:
        assert connection.execute(shop.BUSY).fetchall() == shop.BUSY_STORES
        found = {file.name for file in policy.parent.glob("keyhole.db*")}
        assert found == {"keyhole.db", "keyhole.db-wal", "keyhole.db-shm"}
        assert {mode(file) for file in policy.parent.glob("keyhole.db*")} == {0o600}


def test_a_ledger_that_is_there_keeps_its_mode(policy: Path) -> None:
    """Who made it readable for a group may have meant it."""
    ledger = policy.with_name("keyhole.db")
    ledger.chmod(0o640)
    with Service.open(policy):
        assert mode(ledger) == 0o640


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (("ledger", "backup"), "copy.db"),
        (("ledger", "export"), "events.jsonl"),
        (("ledger", "export"), "events.parquet"),
        (("budget", "--svg"), "heat.svg"),
    ],
)
def test_what_a_command_writes_is_its_owners_alone(policy: Path, command: tuple[str, ...], written: str) -> None:
    path = policy.with_name(written)
    end_well(*command, str(path), "--policy", str(policy))
    assert mode(path) == 0o600
    assert os.umask(0o022) == 0o022


def test_no_image_of_its_memory_is_left_by_a_crash(policy: Path) -> None:
    asked = "import resource, sys; from proxy.cli.main import main\n"
    asked += "try: main(sys.argv[1:])\nfinally: print('core', resource.getrlimit(resource.RLIMIT_CORE)[0])"
    there = (sys.executable, "-c", asked, "grants", "--policy", str(policy))
    told = subprocess.run(there, capture_output=True, text=True, check=True, cwd=ROOT)
    assert told.stdout.splitlines()[-1] == "core 0"
    assert resource.getrlimit(resource.RLIMIT_CORE)[1] != 0  # or the line above could not fail


def exposed(policy: Path) -> list[str]:
    loaded = Policy.load(policy)
    said = describe_exposed_files(loaded, ledger=find_ledger_url(loaded))
    return [one.partition(" ")[0] for one in said if "root" not in one]


def test_what_others_may_read_is_said(policy: Path) -> None:
    policy.chmod(0o600)
    assert exposed(policy) == []
    policy.chmod(0o644)
    assert exposed(policy) == ["keyhole.toml"]
    policy.with_name("keyhole.db").chmod(0o660)
    assert exposed(policy) == ["keyhole.toml", "keyhole.db"]
    policy.chmod(0o600)
    policy.with_name("keyhole.db").chmod(0o601)
    assert exposed(policy) == ["keyhole.db"]


def test_a_policy_without_secrets_may_be_read_by_all(policy: Path) -> None:
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text[: text.index("[analysts.")], encoding="utf-8")
    policy.chmod(0o644)
    assert exposed(policy) == []


def test_check_says_so_and_that_it_runs_as_root(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy.chmod(0o644)
    end_well("check", "--policy", str(policy))
    said = capsys.readouterr().out
    assert "keyhole.toml holds passwords" in said
    assert ("runs as root" in said) == (os.geteuid() == 0)
