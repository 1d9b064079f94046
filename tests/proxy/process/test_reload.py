"""The policy read again by SIGHUP, in one process and in several: open sessions go on, or end as they must."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from planner.policy.file import Policy
from proxy.open_policy.pins import read_pinned_catalog
from proxy.open_policy.service import find_ledger_url
from proxy.process.reload import PolicyInForce, RestartNeeded
from proxy.security.scram import make_verifier
from proxy.sources.shared import open_policy_source
from tests.worlds import shop
from tests.worlds.house import PASSWORD, VERIFIER, command, eventually, most_spent, shop_in_duckdb, write_policy
from tests.worlds.served import COMMAND, ROOT, Served, served

QUESTION = "SELECT store FROM sales GROUP BY store HAVING count(*) > {}"
ANSWERS = {"policy reloaded", "policy not reloaded"}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return shop_in_duckdb(tmp_path)


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def workers(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, workers: int) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("shop")
    with served(shop_in_duckdb(directory), f"--workers={workers}") as running:
        yield running


@pytest.fixture
def keyhole(running: Served, workers: int) -> Iterator[Served]:
    """One that several tests share: its policy is read once more as it was."""
    before = running.policy.read_text(encoding="utf-8")
    yield running
    running.policy.write_text(before, encoding="utf-8")
    assert reload(running, answers=workers) == ["policy reloaded"] * workers


def log_in(keyhole: Served, user: str = "ada", password: str = PASSWORD) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host="127.0.0.1", port=keyhole.port, dbname="shop", user=user, password=password, autocommit=True
    )


def reload(keyhole: Served, *, answers: int) -> list[str]:
    """Tell the process to read its policy again; what was logged of it once so many have said so."""

    def heard() -> list[str]:
        return [event["event"] for event in keyhole.read_log() if event["event"] in ANSWERS]

    before = len(heard())
    keyhole.process.send_signal(signal.SIGHUP)
    eventually(lambda: len(heard()) >= before + answers)
    return heard()[before:]


def test_a_reload_changes_caps_and_analysts_and_drops_no_other_session(keyhole: Served, workers: int) -> None:
    policy = keyhole.policy
    before = policy.read_text(encoding="utf-8")
    with log_in(keyhole) as ada, log_in(keyhole, "bob") as bob:
        assert ada.execute(QUESTION.format(1000).encode()).fetchall() == [("north",), ("south",)]
        ada.execute("SET keyhole.fnr = 0.04")
        bobs = before[before.index("[analysts.bob]") :]
        changed = before.replace(bobs, f'[analysts.cleo]\npassword = "{VERIFIER}"\n')
        changed = changed.replace("epsilon_per_query = 100.0", "epsilon_per_query = 0.0001")
        assert changed != before
        policy.write_text(changed, encoding="utf-8")
        assert reload(keyhole, answers=workers) == ["policy reloaded"] * workers
        with pytest.raises(psycopg.errors.AdminShutdown):
            bob.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="KH401"):
            log_in(keyhole, "bob")
        with log_in(keyhole, "cleo") as cleo:
            assert cleo.execute("SELECT current_user").fetchone() == ("cleo",)
        assert ada.execute("SHOW keyhole.fnr").fetchone() == ("0.04",)
        spent = most_spent(command("budget", policy), "sales")
        with pytest.raises(psycopg.Error, match="KH30"):
            ada.execute(QUESTION.format(1200).encode())
        assert most_spent(command("budget", policy), "sales") == spent


def test_another_password_ends_the_sessions_that_had_the_old_one(keyhole: Served, workers: int) -> None:
    policy = keyhole.policy
    text = policy.read_text(encoding="utf-8")
    with log_in(keyhole) as ada, log_in(keyhole, "bob") as bob:
        first, found, rest = text.partition(f'[analysts.ada]\npassword = "{VERIFIER}"')
        assert found
        policy.write_text(f'{first}[analysts.ada]\npassword = "{make_verifier("another")}"{rest}', encoding="utf-8")
        assert reload(keyhole, answers=workers) == ["policy reloaded"] * workers
        with pytest.raises(psycopg.errors.AdminShutdown):
            ada.execute("SELECT 1")
        assert bob.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="KH401"):
            log_in(keyhole)
        log_in(keyhole, password="another").close()


def test_what_cannot_be_taken_changes_nothing(policy: Path) -> None:
    text = policy.read_text(encoding="utf-8")
    with served(policy) as keyhole, log_in(keyhole) as ada, log_in(keyhole, "bob") as bob:
        for old, new in (
            ("[budget]", "[budget"),
            ("epsilon_per_query", "epsilon_per_qeury"),
            ('tolerance = "5%"', 'tolerance = "many"'),
            ('url = "sqlite:///keyhole.db"', 'url = "sqlite:///another.db"'),
            ('database = "shop"', 'database = "shop"\nrest_port = 8433'),
            ('"C", "D"', '"C", "D", "E"'),
            ("[tables.visits.columns.cost]", "[tables.visits.columns.price]"),
        ):
            assert old in text
            policy.write_text(text.replace(old, new).replace("[analysts.bob]", "[analysts.eve]"), encoding="utf-8")
            assert reload(keyhole, answers=1) == ["policy not reloaded"]
            with log_in(keyhole, "bob") as later:
                for connection in (ada, bob, later):
                    assert connection.execute("SELECT 1").fetchone() == (1,)
            with pytest.raises(psycopg.OperationalError, match="KH401"):
                log_in(keyhole, "eve")
        policy.write_text(text, encoding="utf-8")
        assert reload(keyhole, answers=1) == ["policy reloaded"]
        assert ada.execute(QUESTION.format(1000).encode()).fetchall() == [("north",), ("south",)]


def test_limits_and_the_level_of_the_log_hold_from_then_on(policy: Path) -> None:
    text = policy.read_text(encoding="utf-8")
    fewer = 'log_level = "error"\n\n[server.limits]\nconnections_per_analyst = 1\n'
    with served(policy) as keyhole, log_in(keyhole) as ada:
        policy.write_text(text.replace('database = "shop"\n', f'database = "shop"\n{fewer}'), encoding="utf-8")
        assert reload(keyhole, answers=1) == ["policy reloaded"]
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            log_in(keyhole)
        assert ada.execute(QUESTION.format(1000).encode()).fetchall() == [("north",), ("south",)]
        logged = len(keyhole.read_log())
        log_in(keyhole, "bob").close()
        assert len(keyhole.read_log()) == logged


def test_a_link_that_leads_elsewhere_names_another_ledger(tmp_path: Path) -> None:
    """Both files say the same, relative to where they lie: what is spent stays with the ledger that is open."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        write_policy(tmp_path / name, source=f"duckdb:///{tmp_path}/shop.duckdb")
    link = tmp_path / "link"
    link.symlink_to("first")
    before = Policy.load(link / "keyhole.toml")
    in_force = PolicyInForce.make_for_shadow(before, "digest", None)
    in_force.check_no_restart(Policy.load(link / "keyhole.toml"))
    link.unlink()
    link.symlink_to("second")
    with pytest.raises(RestartNeeded) as refused:
        in_force.check_no_restart(Policy.load(link / "keyhole.toml"))
    assert refused.value.changed == ("ledger",)
    assert find_ledger_url(before) == f"sqlite:///{tmp_path}/first/keyhole.db"


@pytest.mark.parametrize(
    ("change", "goes_on"),
    [
        (("epsilon_per_query = 100.0", "epsilon_per_query = 99.0"), True),
        (("bands = [2037, 60037]", "bands = [2037, 60038]"), False),
        (("bands = { units = [107, 307] }\n", ""), False),
    ],
)
def test_other_bands_are_shown_by_another_shadow(policy: Path, change: tuple[str, str], *, goes_on: bool) -> None:
    before = Policy.load(policy)
    with closing(open_policy_source(before)) as source:
        in_force = PolicyInForce.make_for_shadow(before, read_pinned_catalog(before, source).digest, None)
        text = policy.read_text(encoding="utf-8")
        assert change[0] in text
        policy.write_text(text.replace(*change), encoding="utf-8")
        assert (in_force.find_usable_catalog(Policy.load(policy), source) is not None) is goes_on


def test_a_hangup_while_it_starts_is_seen_to_when_it_serves(policy: Path) -> None:
    log = policy.with_name("log")
    arguments = [*COMMAND, "serve", "--policy", str(policy), "--port=0", "--rest-port=0"]
    with (
        tempfile.TemporaryDirectory(prefix="kh") as folder,
        log.open("w") as errors,
        subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env={**os.environ, "TMPDIR": folder}
        ) as process,
    ):
        eventually(lambda: bool(list(Path(folder).glob("*/shadow"))))
        process.send_signal(signal.SIGHUP)
        eventually(lambda: process.poll() is not None or "policy reloaded" in log.read_text(encoding="utf-8"))
        process.terminate()
        assert process.wait() == 0
