"""pgcli: what it asks the catalog to complete names, its special commands, and the program itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgcli.pgexecute import PGExecute
from pgspecial.main import PGSpecial

from tests.effort import PATIENCE_S
from tests.worlds import gallery
from tests.worlds.house import PASSWORD
from tests.worlds.served import Served, unchanged

# fmt: off
COMMANDS = (
    r"\d", r"\d+", r"\dt", r"\dt+", r"\dv", r"\dn", r"\du", r"\df", r"\l", r"\dT", r"\dp", r"\dx", r"\di", r"\ds",
)
# fmt: on


@pytest.fixture
def executor(clinic: Served) -> Iterator[PGExecute]:
    opened = PGExecute(clinic.database, "ada", PASSWORD, clinic.host, str(clinic.port), None)
    yield opened
    opened.conn.close()


def run(executor: PGExecute, text: str) -> list[Any]:
    """The rows of the only result."""
    ((_, rows, *_),) = executor.run(text, PGSpecial())
    return list(rows)


def test_what_it_completes(executor: PGExecute, clinic: Served) -> None:
    with unchanged(clinic):
        assert {name for schema, name in executor.tables() if schema == "public"} == set(gallery.TABLES)
        assert {name for schema, name in executor.views() if schema == "public"} == set(gallery.VIEWS)
        columns = {(table, column, kind) for _, table, column, kind, *_ in executor.table_columns()}
        assert ("visits", "cost", "numeric") in columns
        assert ("busy_days", "day", "date") in {(row[1], row[2], row[3]) for row in executor.view_columns()}
        assert {"public", "keyhole"} <= set(executor.schemata())
        assert executor.search_path()[-1] == "public"
        assert clinic.database in executor.databases()
        assert list(executor.foreignkeys()) == []
        assert "median" in {function.func_name for function in executor.functions()}
        list(executor.datatypes())
        assert "FROM visits" in executor.view_definition("crowded")


@pytest.mark.parametrize("command", COMMANDS)
def test_special_commands(executor: PGExecute, command: str, clinic: Served) -> None:
    with unchanged(clinic):
        for text in (command, f"{command} visits"):
            for _, rows, _, status, _, success, special in executor.run(text, PGSpecial()):
                assert success, status
                assert special
                assert rows is None or list(rows) is not None


def test_values_answers_and_refusals(executor: PGExecute) -> None:
    assert run(executor, gallery.QUESTION) == [("A",), ("B",)]
    assert [row[0] for row in run(executor, gallery.about("day"))] == [str(day) for day in gallery.TYPED["day"]]
    with pytest.raises(psycopg.Error, match="KH103") as refused:
        run(executor, gallery.REFUSED)
    assert refused.value.diag.message_hint == gallery.REFUSED_HINT


def test_the_program(clinic: Served, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("pgcli")
    done = subprocess.run(
        [program, "--pgclirc", tmp_path / "config", "--less-chatty", "-c", gallery.QUESTION, "-c", r"\dt", clinic.uri],
        env={**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PAGER": "cat"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "| A" in done.stdout, done.stderr
    assert gallery.GUARANTEE in done.stdout
    assert "visits" in done.stdout
