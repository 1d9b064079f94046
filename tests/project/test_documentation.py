"""docs/errors.md is the catalogue, docs/asking.md has every setting, docs/commands.md every flag, and nothing else."""

import ast
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup
from typer.testing import CliRunner

from deploy.demo.build import install_demo
from docs.generator import commands
from planner.errors import CATALOGUE, KeyholeError
from planner.extract.normalise import LAST_RULES, RULES
from planner.extract.virtual_relations import VIRTUAL_RELATIONS, VIRTUAL_SCHEMA
from planner.statements.settings import MECHANISMS, SETTINGS
from proxy.cli import check as checking
from proxy.cli.main import app as command
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.rest.app import create_app

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("accountant", "mechanisms", "planner", "proxy")
ERRORS = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
ASKING = (ROOT / "docs" / "asking.md").read_text(encoding="utf-8")
SESSION = (ROOT / "docs" / "session.md").read_text(encoding="utf-8")
REST = (ROOT / "docs" / "rest.md").read_text(encoding="utf-8")


def sections(text: str) -> dict[str, str]:
    """The text under each `### heading`, up to the next heading."""
    found: dict[str, str] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line.removeprefix("### ") if line.startswith("### ") else ""
            assert heading not in found
        elif heading:
            found[heading] = f"{found.get(heading, '')}{line}\n"
    return found


ENTRIES = sections(ERRORS)
EXAMPLES = {code: match[1] for code, text in ENTRIES.items() if (match := re.search(r"```sql\n(.*?)\n```", text, re.S))}


def test_every_code_is_documented_once_and_in_order() -> None:
    assert list(ENTRIES) == list(CATALOGUE)
    assert list(CATALOGUE) == sorted(CATALOGUE)


def test_an_entry_has_sqlstate_meaning_what_to_do_and_at_most_one_example() -> None:
    for code, entry in CATALOGUE.items():
        lines = ENTRIES[code].splitlines()
        assert lines[0] == f"`{entry.sqlstate}`: {entry.meaning}.", code
        assert re.fullmatch(r"[0-9A-Z]{5}", entry.sqlstate), code
        assert len([line for line in lines if re.match(r"\*\*Do:\*\* .{8}", line)]) == 1, code
        examples = [line for line in lines if line.startswith("**Example:** ")]
        assert len(examples) <= 1, code
        assert all(len(line) > 20 for line in examples), code


def test_a_code_of_a_statement_has_an_example() -> None:
    shown = {code for code in CATALOGUE if code in EXAMPLES or "**Example:** " in ENTRIES[code]}
    assert {code for code in CATALOGUE if code[2] in "12"} <= shown


def literals(package: str) -> Iterator[str]:
    for path in (ROOT / package).rglob("*.py"):
        if path != ROOT / "planner" / "errors.py":
            text = path.read_text(encoding="utf-8")
            nodes = ast.walk(ast.parse(text)) if "KH" in text else ()
            yield from (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_every_code_is_raised_somewhere_and_every_raised_code_is_catalogued() -> None:
    used = {value for package in PACKAGES for value in literals(package) if re.fullmatch(r"KH\d{3}", value)}
    assert used == set(CATALOGUE)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    policy = install_demo(tmp_path_factory.mktemp("demo"))
    checking.check(policy, confirm=False)
    with Service.open(policy) as opened:
        yield opened


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_is_refused_with_its_code(service: Service, code: str) -> None:
    lines = EXAMPLES[code].splitlines()
    settings: dict[str, str | None] = {}
    while set_one := re.fullmatch(r"SET (keyhole\.\w+) = '?([^']*)'?;", lines[0]):
        settings[set_one[1]] = set_one[2]
        del lines[0]
    with pytest.raises(KeyholeError) as caught:
        pipeline.plan_asked_question(
            service,
            Asked(
                question=read_bare_question("\n".join(lines), service.catalog),
                settings=settings,
                parameters={},
                analyst=service.find_analyst(None),
                today=date(2026, 3, 1),
            ),
        )
    assert caught.value.code == code


def rows(text: str) -> list[tuple[str, ...]]:
    """The first cells of the text's tables, each as the names in backquotes that it holds."""
    return [
        tuple(re.findall(r"`([^`]+)`", line.split(" | ")[0])) for line in text.splitlines() if line.startswith("| `")
    ]


def chapter(text: str, heading: str) -> str:
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_every_setting_is_documented_once() -> None:
    table = chapter(ASKING, "Settings")
    assert rows(table) == [(setting.name,) for setting in SETTINGS]
    (mechanisms,) = (line for line in table.splitlines() if line.startswith("| `keyhole.mechanism`"))
    assert all(f"`{name}`" in mechanisms for name in MECHANISMS)


def test_every_relation_of_a_session_and_every_rule_is_documented_once() -> None:
    named = [(f"{VIRTUAL_SCHEMA}.{relation.name}",) for relation in VIRTUAL_RELATIONS]
    assert rows(chapter(SESSION, "Views of the session")) == named
    for rule in (*RULES, *LAST_RULES):
        assert rule.__doc__, rule.__name__
        assert rule.__module__.startswith("planner.extract."), rule.__name__


def test_every_rest_request_is_documented_once(service: Service) -> None:
    paths = create_app(service).openapi()["paths"]
    requests = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    listed = [name for names in rows(REST) for name in names if name in requests]
    assert sorted(listed) == sorted(requests)


def test_every_command_and_flag_is_documented_once() -> None:
    """The generator writes those of each command; flags of many commands stand at the page's beginning by hand."""
    page = commands.PAGE.read_text(encoding="utf-8")
    assert commands.write_reference(page) == page, "run `make pages`"
    listed = dict(commands.list_commands())
    assert re.findall(r"^### `keyhole (.+)`$", page, re.MULTILINE) == list(listed)
    assert set(commands.read_notes(page)) == set(listed)
    by_hand = {flag for names in rows(page.split(commands.BEGIN)[0]) for flag in names}
    settings = {f"--{setting.name.removeprefix('keyhole.').replace('_', '-')}" for setting in SETTINGS}
    assert by_hand - {"-p", "--help"} == {*commands.COMMON, *settings, "--version"}


def commands_below(group: TyperGroup) -> Iterator[Any]:
    for found in group.commands.values():
        yield found
        if isinstance(found, TyperGroup):
            yield from commands_below(found)


def test_the_help_says_in_a_line_what_each_command_does_and_in_words_what_it_takes() -> None:
    """A line of 80 characters holds the longest name and the whole first sentence."""
    group = typer.main.get_group(command)
    for found in commands_below(group):
        summary = found.get_short_help_str(80 - 6 - max(map(len, group.commands)))
        assert summary
        assert not summary.endswith("..."), found.name
        assert all(taken.help for taken in found.params), found.name
    told = CliRunner().invoke(command, ["--help"]).output
    listed = [line.split()[0] for line in told.splitlines() if re.match(r"  \w+  +[A-Z]", line)]
    assert sorted(listed) == sorted(group.commands)


def test_every_test_that_the_threat_model_names_is_there() -> None:
    """A defence without its test is a claim; rows of what one person's rows or data versions tell name theirs."""
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8"))
    assert len(named) >= 15
    assert [name for name in named if not (ROOT / name).is_file()] == []
