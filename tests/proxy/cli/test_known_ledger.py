"""What commands do where the ledger, or a file of the source, is gone or another one than the policy was charged on."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa

from tests.proxy.cli.conftest import Ran
from tests.worlds.house import make_once, new_database
from tests.worlds.wards import QUESTION

Run = Callable[..., Ran]
GRANT = ("grant", "1", "--cap", "predicate", "--why", "more")
COMMANDS = (
    ("budget",),
    GRANT,
    ("revoke", "abc", "--why", "less"),
    ("grants",),
    ("queue",),
    ("ledger", "list"),
    ("ledger", "verify"),
    ("odometer",),
    ("query", QUESTION.format(1500)),
    ("explain", QUESTION.format(1500)),
    ("check",),
    ("serve", "--port", "0", "--rest-port", "0"),
)


def delete(folder: Path) -> None:
    for file in folder.glob("keyhole.db*"):
        file.unlink()


@pytest.fixture
def asked(policy: Path, run: Run) -> Path:
    """The policy after a question, of which there is a backup, and another one."""

    def ask() -> None:
        assert run("check").status == 0
        assert run("query", QUESTION.format(1500)).status == 0
        assert run("ledger", "backup", str(policy.parent / "backup.db")).status == 0
        assert run("query", QUESTION.format(1200)).status == 0

    return make_once(policy, ask, what="asked twice")


def test_no_command_starts_on_a_ledger_that_lost_something_or_makes_an_empty_one(asked: Path, run: Run) -> None:
    folder = asked.parent
    delete(folder)
    for command in COMMANDS:
        found = run(*command)
        assert found.status == 1, command
        assert "KH016: there is no ledger: keyhole.db does not exist" in found.err
        assert not list(folder.glob("keyhole.db*"))
    shutil.copy(folder / "backup.db", folder / "keyhole.db")
    for command in COMMANDS:
        found = run(*command)
        assert found.status == 1, command
        assert "KH016: the ledger is not the one that was in use: it ends at event 2" in found.err
        assert "its witness has seen event 4" in found.err
    done = run("check", "--confirm")
    assert done.status == 0
    assert "changed: the ledger (the ledger is not the one that was in use: it ends at event 2" in done.out
    assert "may be spent again" in done.out
    for command in (("check",), ("budget",), GRANT, ("query", QUESTION.format(1200)), ("ledger", "verify")):
        assert run(*command).status == 0
    assert "changed: the ledger" not in run("check", "--confirm").out


def test_pins_alone_keep_an_empty_ledger_out(asked: Path, run: Run) -> None:
    """A policy's folder of before there were witnesses."""
    (asked.parent / "keyhole.ledger-witness").unlink()
    assert run("budget").status == 0  # the ledger that it was charged to speaks for itself
    (asked.parent / "keyhole.ledger-witness").unlink()
    delete(asked.parent)
    for command in COMMANDS:
        assert "KH016" in run(*command).err
    assert not list(asked.parent.glob("keyhole.db*"))
    assert "changed: the ledger (it is empty, and what was spent" in run("check", "--confirm").out
    assert run("query", QUESTION.format(1500)).status == 0


def test_a_check_that_spent_nothing_may_be_made_again(policy: Path, run: Run) -> None:
    assert run("check").status == 0
    delete(policy.parent)
    assert "KH016" in run("query", QUESTION.format(1500)).err
    assert run("check").status == 0
    assert run("query", QUESTION.format(1500)).status == 0


def test_a_witness_that_was_edited_waits_for_its_owner(asked: Path, run: Run) -> None:
    witness = asked.parent / "keyhole.ledger-witness"
    witness.write_text("4\n")
    found = run("budget")
    assert found.status == 1
    assert "its witness keyhole.ledger-witness is not what Keyhole wrote" in found.err
    assert run("check").status == 1
    assert "changed: the ledger" in run("check", "--confirm").out
    assert run("budget").status == 0


def test_a_ledger_that_moves_to_postgresql_keeps_what_was_spent(asked: Path, run: Run, postgres_url: str) -> None:
    with new_database(postgres_url) as url:
        sqlite = f"sqlite:///{asked.parent}/keyhole.db"
        kept = run("ledger", "verify", "--json").document["keep"]
        spent = json.dumps(run("budget", "--json").document["families"])
        asked.write_text(f'{asked.read_text()}\n[ledger]\nurl = "{url}"\n')
        for command in COMMANDS:  # an empty database, as it was begun before without a word
            found = run(*command)
            assert found.status == 1, command
            assert "KH016: there is no ledger at that address" in found.err
        done = run("ledger", "copy", sqlite, url)
        assert done.status == 0
        assert "4 events copied, and verified." in done.out
        assert kept in done.out
        assert run("ledger", "verify", "--expect", kept).status == 0
        assert json.dumps(run("budget", "--json").document["families"]) == spent
        assert run("check").status == 0
        assert run("query", QUESTION.format(1300)).status == 0
        again = run("ledger", "copy", sqlite, url)
        assert again.status == 2
        assert "not empty" in again.err
        assert run("ledger", "copy", sqlite, "somewhere").status == 2
        assert "KH016" in run("ledger", "copy", f"sqlite:///{asked.parent}/gone.db", f"{sqlite}2").err


def test_a_full_storage_is_no_broken_ledger(asked: Path, run: Run) -> None:
    """SQLite at its own limit of pages fails as on a full disk (SQLITE_FULL). Nobody is sent to the backup."""

    def leave_no_room(connection: Any, _: object) -> None:
        connection.execute("PRAGMA max_page_count = 1").close()  # which is as many as there are

    sa.event.listen(sa.pool.Pool, "connect", leave_no_room)
    try:
        found = run("grant", "1", "--cap", "predicate", "--why", "more " * 4_000)
    finally:
        sa.event.remove(sa.pool.Pool, "connect", leave_no_room)
    assert found.status == 1
    assert "KH009: the ledger's storage failed" in found.err
    assert "its disk is full" in found.err
    assert "Free space on the ledger's disk, and try again. Do not restore a backup" in found.err
    assert run("ledger", "verify", "--json").document["events"] == 4
    assert run(*GRANT).status == 0


BEDS = """
[tables.beds]
relation = "beds.csv"
privacy_unit = "row"
refresh = "static"

[tables.beds.columns.ward]
key = { values = ["A", "B"] }

[tables.cities]
relation = "cities.csv"
public = true
"""


@pytest.fixture
def more_tables(policy: Path, run: Run) -> Path:
    """The wards' policy with another private table and a public one, checked and more_tables."""
    (policy.parent / "beds.csv").write_text("bed,ward\n1,A\n2,B\n", encoding="ascii")
    (policy.parent / "cities.csv").write_text("city\nBath\nYork\n", encoding="ascii")
    text = policy.read_text(encoding="utf-8")
    policy.write_text(text.replace("[analysts.ada]", f"{BEDS}\n[analysts.ada]", 1), encoding="utf-8")

    def ask() -> None:
        assert run("check").status == 0
        assert run("query", QUESTION.format(1500)).status == 0

    return make_once(policy, ask, what="asked")


def spoil(path: Path) -> None:
    path.write_bytes(b"\0\xff" * 3_000)


@pytest.mark.parametrize("file", ["visits.csv", "beds.csv", "cities.csv"])
@pytest.mark.parametrize("make", [Path.unlink, spoil])
def test_the_budget_needs_no_source(more_tables: Path, run: Run, make: Callable[[Path], None], file: str) -> None:
    before = run("budget", "--json").document
    assert before["families"]
    make(more_tables.parent / file)
    assert run("budget", "--json").document == before
    assert run("budget").status == run("monitor", "list").status == run("odometer").status == 0


@pytest.mark.parametrize("make", [Path.unlink, spoil])
def test_to_explain_and_to_plan_needs_no_source(more_tables: Path, run: Run, make: Callable[[Path], None]) -> None:
    questions = more_tables.with_name("board.sql")
    questions.write_text(f"{QUESTION.format(1500)};\n{QUESTION.format(1100)};\n", encoding="ascii")
    commands = (("explain", QUESTION.format(1500)), ("explain", QUESTION.format(1100)), ("plan", str(questions)))
    before = [run(*command) for command in commands]
    assert [one.status for one in before] == [0, 0, 0]
    make(more_tables.parent / "visits.csv")
    assert [run(*command).out for command in commands] == [one.out for one in before]
    assert run("query", QUESTION.format(1100)).status == 1


def rename_column(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"bed,ward", b"bed,room"))


@pytest.mark.parametrize(
    ("name", "make", "why"),
    [
        ("beds", Path.unlink, "the source has no file {folder}/beds.csv, or not with"),
        ("cities", Path.unlink, "the source has no file {folder}/cities.csv, or not with"),
        ("beds", rename_column, 'the source has no column "ward" there'),
    ],
)
def test_a_check_tells_which_table_is_broken_and_of_the_others(
    more_tables: Path, run: Run, name: str, make: Callable[[Path], None], why: str
) -> None:
    file, whole, pins = (
        more_tables.parent / f"{name}.csv",
        run("check", "--json").document,
        more_tables.with_name("keyhole.pins.json"),
    )
    content, pinned = file.read_bytes(), pins.read_bytes()
    make(file)
    found = run("check", "--json")
    assert found.status == 1
    assert list(found.document["broken"]) == [name]
    assert found.document["tables"] == whole["tables"]
    assert found.document["changes"] == []
    told = run("check")
    assert told.status == 1
    assert f"BROKEN: tables.{name} cannot be read: {why.format(folder=more_tables.parent)}" in told.out
    assert "visits: " in told.out
    assert pins.read_bytes() == pinned
    file.write_bytes(content)
    again = run("check", "--json")
    assert again.status == 0
    assert again.document["broken"] == {}


@pytest.mark.parametrize("make", [Path.unlink, spoil])
def test_a_check_tells_of_the_others_where_a_parquet_file_is_broken(
    more_tables: Path, run: Run, make: Callable[[Path], None]
) -> None:
    """What a parquet file says of its columns is read again in each check, of the files that can be read."""
    file = more_tables.parent / "beds.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS bed, 'A' AS ward) TO '{file}'")
    text = more_tables.read_text(encoding="utf-8")
    more_tables.write_text(text.replace("beds.csv", file.name), encoding="utf-8")
    assert run("check", "--confirm").status == 0
    whole = run("check", "--json").document
    make(file)
    found = run("check", "--json")
    assert found.status == 1
    assert list(found.document["broken"]) == ["beds"]
    assert found.document["tables"] == whole["tables"]
    assert found.document["changes"] == []


def test_a_broken_table_that_was_never_pinned_is_left_out(more_tables: Path, run: Run) -> None:
    """It is named, and the others are told of. What cannot do without it is refused with its name."""
    text, pins = more_tables.read_text(encoding="utf-8"), more_tables.with_name("keyhole.pins.json")
    spoil(more_tables.parent / "beds.csv")
    pins.unlink()
    told = run("check")
    assert told.status == 1
    assert "BROKEN: tables.beds cannot be read: the source has no file" in told.out
    assert "It was never pinned and is left out." in told.out
    assert "visits: " in told.out
    assert "public table cities: 2 rows" in told.out
    spent = run("budget", "--json")
    assert spent.status == 0
    assert [one["table"] for one in spent.document["families"]] == ["visits"]
    left_out = "tables.beds was never pinned and is left out: run keyhole check\n"
    assert spent.err == left_out
    assert run("explain", QUESTION.format(1500)).err == left_out
    for wrong in (
        text + '\n[views.full]\nsql = "SELECT ward FROM beds GROUP BY ward HAVING count(*) > 90"\n',
        text.replace('relation = "visits.csv"', 'relation = "elsewhere.csv"'),
    ):
        more_tables.write_text(wrong, encoding="utf-8")
        pins.unlink(missing_ok=True)
        refused = run("check")
        assert refused.status == 1
        assert "KH006" in refused.err
        assert "tables.beds" in refused.err or "tables.visits" in refused.err
        assert run("budget").err.startswith("ERROR:  KH007")
