"""README.md and docs/demo.md show what happens: their commands exist, their questions and figures are the demo's."""

import re
import tomllib
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import typer.main

from deploy.demo.build import install_demo
from planner.errors import KeyholeError
from proxy.cli import check as checking
from proxy.cli.main import app
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.report import report_refusals

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DEMO = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
(SESSION,) = (text for _, text in FENCED.findall(README) if text.startswith("retail=> "))
COMMANDS = "".join(text for language, text in FENCED.findall(README + DEMO) if language == "sh")
(SHOWN,) = (text for _, text in FENCED.findall(DEMO) if text.startswith("Keyhole demo"))
MOST_WORDS = 900  # all that a newcomer reads before trying it
FIRST_LINES = 15  # of the README: the SQL and its answer stand in them, before any picture
QUESTIONS = tomllib.loads((ROOT / "deploy" / "demo" / "questions.toml").read_text(encoding="utf-8"))["questions"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    policy = install_demo(tmp_path_factory.mktemp("demo"))
    checking.check(policy, confirm=False)
    with Service.open(policy) as opened:
        yield opened


def asked(service: Service, sql: str, settings: dict[str, str | None]) -> Asked:
    return Asked(
        question=read_bare_question(sql, service.catalog),
        settings=settings,
        parameters={},
        analyst=service.find_analyst(None),
        today=date(2026, 3, 1),
    )


def test_the_first_question_is_the_demos_and_costs_what_is_said(service: Service) -> None:
    first = QUESTIONS[0]
    assert f"1. {first['title']}\n" in SHOWN
    assert all(f"   {line}\n" in SHOWN for line in first["sql"].strip().splitlines())
    settings: dict[str, str | None] = {f"keyhole.{name}": value for name, value in first["settings"].items()}
    assert all(f"   SET {name} = '{value}';\n" in SHOWN for name, value in settings.items())
    plan = stages.plan_asked_question(service, asked(service, first["sql"], settings))
    said = re.search(r"Reserved: ([\d.]+) epsilon a group \(ProBE ([\d.]+), equal split ([\d.]+)\)", SHOWN)
    assert said is not None
    assert f"at most {said[1]} epsilon" in SHOWN
    found = (plan.worst_case_epsilon, plan.compared["probe"], plan.compared["naive"])
    for shown, true in zip(said.groups(), found, strict=True):
        assert true <= float(shown) + 1e-9 < true + 0.011
    typed = bare(re.sub(r"^retail[-=]> ", "", SESSION, flags=re.MULTILINE))
    assert typed.startswith(f"SET keyhole.tolerance = '{first['settings']['tolerance']}'; {bare(first['sql'])};")
    assert f"NOTICE:  cost: at most {said[1]} epsilon for a group" in SESSION


def bare(sql: str) -> str:
    return " ".join(sql.split())


def test_a_newcomer_reads_one_page_that_begins_with_a_question_and_its_answer() -> None:
    assert len(README.split()) <= MOST_WORDS
    first = "\n".join(README.splitlines()[:FIRST_LINES])
    assert SESSION.splitlines()[0] in first
    assert "France" in first
    assert "![" not in first


def test_the_readme_makes_no_promise_per_cell() -> None:
    """Its conditions need a sentence that stands elsewhere: tests/project/test_promise_of_cells.py."""
    assert "epsilon_per_predicate" not in README


def test_the_refusal_is_printed_as_it_is_shown(service: Service) -> None:
    shown = SHOWN[SHOWN.index("ERROR:") :]
    sql = "SELECT country, count(*) FROM sales GROUP BY country"
    assert f"   {sql}\n{shown}" in SHOWN
    with pytest.raises(KeyholeError) as caught:
        stages.plan_asked_question(service, asked(service, sql, {}))
    assert report_refusals.write_as_psql(caught.value, sql=sql) == shown.strip()


def test_every_command_that_is_shown_exists() -> None:
    group = typer.main.get_group(app)
    shown = re.findall(r"^keyhole ([a-z]+)", COMMANDS, re.MULTILINE)
    assert len(shown) >= 4
    assert set(shown) <= set(group.commands)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([a-z-]+)", COMMANDS, re.MULTILINE)
    assert {"demo", "test"} <= set(targets)
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_every_folder_is_in_the_table_and_every_link_leads_somewhere() -> None:
    folders = set(re.findall(r"^\| `([a-z]+)/` \|", README, re.M))
    there = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"}
    assert {folder for folder in there if any((ROOT / folder).rglob("*.py"))} == folders
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in link or (ROOT / link).exists(), link
