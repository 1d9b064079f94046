"""The `keyhole` command, in this process and as a child of its own."""

import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import psycopg
import pytest
import typer.main

from deploy.demo.build import install as install_demo
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.statements.settings import SETTINGS
from proxy.cli import main as cli
from proxy.report.refusals import as_psql_prints
from proxy.report.terminal import psql_table
from proxy.service.service import Service
from proxy.wire import scram
from tests.effort import PATIENCE_S
from tests.worlds.wards import PASSWORD, QUESTION, TOKENS, install

SCRIPT = Path(sys.executable).with_name("keyhole")
EXPLAINED = {
    "formula",
    "minimised",
    "prime_implicants",
    "functionals",
    "keys",
    "mechanism",
    "worst_case_epsilon",
    "compared",
    "sql",
    "warnings",
}


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = install(tmp_path)
    monkeypatch.setenv("KEYHOLE_POLICY", str(path))
    monkeypatch.setenv("NO_COLOR", "1")
    return path


class Ran:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Any:
    def running(*arguments: str) -> Ran:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        out, err = capfd.readouterr()
        status = ended.value.code
        assert isinstance(status, int)
        assert "Traceback" not in out + err
        return Ran(status, out, err)

    return running


def child(*arguments: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False, **keywords
    )


def test_before_check_a_question_is_refused_and_check_makes_it_answerable(policy: Path, run: Any) -> None:
    early = run("query", QUESTION.format(1500))
    assert early.status == 1
    assert early.out == ""
    assert early.err.startswith("ERROR:  KH007: keyhole.toml, line ")
    assert "not pinned yet" in early.err
    assert "HINT:  Run keyhole check" in early.err
    checked = run("check")
    assert checked.status == 0
    assert "keyhole.toml is valid; pinned in keyhole.pins.json:" in checked.out
    assert "new: visits.ward (3 key values)" in checked.out
    assert "private table visits: protects each row by itself" in checked.out
    assert run("query", QUESTION.format(1500)).status == 0
    assert "nothing has changed" in run("check").out


def test_a_changed_domain_is_refused_until_the_owner_confirms(policy: Path, run: Any) -> None:
    assert run("check").status == 0
    policy.write_text(policy.read_text().replace('"B",', '"B", "D",'))
    for arguments in (["check"], ["query", QUESTION.format(1500)]):
        changed = run(*arguments)
        assert changed.status == 1
        assert "KH007" in changed.err
        assert "keyhole check --confirm" in changed.err
    confirmed = run("check", "--confirm", "--json")
    assert confirmed.document["changes"] == ["changed: visits.ward (3 key values -> 4)"]
    assert confirmed.document["tables"][0]["keys"] == {"ward": 4, "day": 28}
    assert run("query", QUESTION.format(1500)).status == 0


def test_a_token_belongs_to_one_analyst(policy: Path, run: Any) -> None:
    ada, bob = (sha256(token.encode()).hexdigest() for token in TOKENS.values())
    policy.write_text(policy.read_text().replace(bob, ada))
    told = run("check")
    assert told.status == 1
    assert "analysts.bob.token_sha256: is the token of analysts.ada too" in told.err
    assert ada not in told.err


def test_an_answer_in_psqls_form_and_a_repetition(policy: Path, run: Any) -> None:
    run("check")
    answered = run("query", "SELECT ward FROM visits GROUP BY ward HAVING NOT count(*) > 1500")
    assert answered.err == ""
    assert answered.out.splitlines()[:6] == [" ward", "---------", " B", " [bold]C", "(2 rows)", ""]
    assert answered.out.splitlines()[6].startswith("Guarantee: a group that truly qualifies is missed at most 5 %")
    again = run("query", "SELECT ward FROM visits GROUP BY ward HAVING NOT count(*) > 1500")
    assert "(2 rows, released before: nothing is spent)" in again.out
    assert "(1 row)" in run("query", QUESTION.format(1500)).out


def test_a_query_for_a_program(policy: Path, run: Any) -> None:
    run("check")
    answer = run("query", "--json", "--tolerance", "9%", "--fnr", "0.01", QUESTION.format(1500)).document
    assert {"columns", "keys", "guarantee"} <= set(answer)
    assert answer["columns"] == ["ward"]
    assert answer["keys"] == [["A"]]
    assert answer["reused"] is False
    assert answer["guarantee"]["fnr"] == 0.01
    assert answer["guarantee"]["tolerance"] == {"count(*)": 135.0}
    again = run("query", "--json", "--tolerance", "9%", "--fnr", "0.01", QUESTION.format(1500)).document
    assert again == answer | {"reused": True}


def test_an_explanation_has_what_is_promised_and_changes_nothing(policy: Path, run: Any) -> None:
    run("check")
    sql = (
        "SELECT ward FROM visits GROUP BY ward "
        "HAVING (count(*) > 1500 AND count(age) > 700) OR (count(*) > 1500 AND NOT count(age) > 700 AND count(*) > 900)"
    )
    before = run("budget", "--json").document
    plan = run("explain", "--json", sql).document
    assert set(plan) >= EXPLAINED
    assert plan["minimised"] == "count(*) > 1500"
    assert plan["prime_implicants"] == [["count(*) > 1500"]]
    (functional,) = plan["functionals"]
    assert {"name", "sensitivity", "epsilon", "fnr", "fpr", "shift", "tolerance"} <= set(functional)
    assert functional["sensitivity"] == 1
    assert plan["keys"] == 3
    assert plan["mechanism"] == "keyhole"
    assert 0 < plan["worst_case_epsilon"] <= min(plan["compared"].values())
    assert set(plan["compared"]) == {"naive", "probe"}
    assert "count(*)" in plan["sql"]
    assert plan["warnings"] == []
    text = run("explain", sql).out
    assert text.startswith("Question over 3 groups of visits (ward), data version static, nothing is spent by EXPLAIN")
    assert "A        minimal; 1 way to be true, 1 way to be false" in text
    assert run("budget", "--json").document == before


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
    assert "each may lose" in printed
    assert "'[red]B'" in printed
    assert run("budget", "--as", "nobody").status == 1


def test_a_refusal_in_psqls_form(policy: Path, run: Any) -> None:
    run("check")
    told = run("query", "SELECT ward\nFROM visits\n  GROUP BY ward HAVING stddev(age) + 1 > 3")
    assert told.status == 1
    assert told.out == ""
    assert told.err.splitlines()[:3] == [
        "ERROR:  KH204: stddev(age) is not supported",
        "LINE 3:   GROUP BY ward HAVING stddev(age) + 1 > 3",
        "                               ^",
    ]
    assert "DETAIL:  A variance or standard deviation" in told.err
    assert "HINT:  Compare it alone: stddev(age) > 10." in told.err


def test_a_refusal_for_a_program(policy: Path, run: Any) -> None:
    run("check")
    for command in ("query", "explain"):
        told = run(command, "--json", "SELECT ward, count(*) FROM visits GROUP BY ward")
        assert told.status == 1
        assert told.err == ""
        assert told.document["code"] == "KH101"
        assert told.document["position"] == 14
        assert told.document["hint"].startswith("SELECT ward FROM visits")
    assert run("check", "--json", "--policy", "nowhere.toml").document["code"] == "KH001"
    assert run("budget", "--json", "--as", "nobody").document["code"] == "KH401"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
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
    ],
)
def test_refusals_end_with_status_1(policy: Path, run: Any, arguments: list[str], code: str) -> None:
    run("check")
    told = run(*arguments)
    assert told.status == 1
    assert told.err.startswith(f"ERROR:  {code}: ")


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


TAKES_SETTINGS = ("query", "explain", "simulate")


def test_every_setting_is_an_option_of_each_command_that_takes_settings(run: Any) -> None:
    commands = typer.main.get_group(cli.app).commands
    flags = {"--" + setting.name.removeprefix("keyhole.").replace("_", "-"): setting for setting in SETTINGS}
    taking = {name for name, found in commands.items() if "fnr" in {option.name for option in found.params}}
    assert taking == set(TAKES_SETTINGS)
    for name in TAKES_SETTINGS:
        options = {option.opts[0]: option for option in commands[name].params}
        assert set(flags) <= set(options)
        told = " ".join(run(name, "--help").out.split())
        for flag, setting in flags.items():
            assert options[flag].default is None
            assert f"{setting.name}: {setting.meaning}." in told


def test_a_setting_of_the_command_line_is_the_setting_of_that_name(policy: Path, run: Any) -> None:
    """Each with a value that it cannot have: the refusal names it."""
    run("check")
    for setting in SETTINGS:
        flag = "--" + setting.name.removeprefix("keyhole.").replace("_", "-")
        for command in ("query", "explain"):
            told = run(command, QUESTION.format(1500), flag, "no such value")
            assert (told.status, told.out) == (1, "")
            assert told.err.startswith(("ERROR:  KH402: ", "ERROR:  KH304: "))
        assert run("simulate", QUESTION.format(1500), "--units", "9", flag, "no such value").status == 1


def test_a_simulation_holds_the_question_against_a_cap_of_its_own(policy: Path, run: Any) -> None:
    sized = ("simulate", SIMULATED, "--units", "3000")
    free = run(*sized, "--json").document
    tight = run(*sized, "--json", "--max-epsilon", "0.05").document
    assert (free["first_cap"], tight["first_cap"]) == ("epsilon_per_predicate", "max_epsilon")
    assert tight["questions_that_fit"] == 0
    assert tight["epsilon_per_group"] == free["epsilon_per_group"] > 0.05
    assert "it would be refused (keyhole.max_epsilon)" in run(*sized, "--max-epsilon", "0.05").out
    assert run(*sized, "--json", "--max-epsilon", "9").document == free


class Unprintable(Exception):
    def __str__(self) -> str:
        raise AssertionError("an exception's text was read")


def test_a_bug_is_told_by_its_place_alone(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Path) -> None:
        raise Unprintable

    monkeypatch.setattr(Service, "open", broken)
    told = run("budget")
    assert told.status == 1
    assert told.err.startswith("ERROR:  KH900: an internal error\n")
    assert f"Unprintable at {Path(__file__).name}:" in told.err


def test_a_starter_from_a_csv_becomes_a_policy_by_filling_in(
    policy: Path, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    starter = run("init", "--source", "visits.csv").out
    assert 'url = "duckdb://"' in starter
    filled = (
        starter.replace('privacy_unit = "" ', 'privacy_unit = "row" ')
        .replace("# [tables.visits.columns.ward]", "[tables.visits.columns.ward]")
        .replace('# key = { values = ["..."] }', 'key = { values = ["A", "B"] }')
    )
    other = tmp_path / "other.toml"
    other.write_text(filled)
    assert run("check", "-p", "other.toml").status == 0
    assert run("query", "-p", "other.toml", "--json", "--mechanism", "keyhole", QUESTION.format(1500)).document[
        "keys"
    ] == [["A"]]


def test_a_starter_from_a_duckdb_file_lists_its_tables(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    install_demo(tmp_path)
    starter = run("init", "--source", "duckdb:///retail.duckdb")
    assert starter.status == 0
    assert "[tables.sales]" in starter.out
    assert "[tables.countries]" in starter.out
    assert "United Kingdom" not in starter.out


def test_the_demo_policy_from_check_to_budget(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYHOLE_POLICY", str(install_demo(tmp_path)))
    assert "public table countries: 38 rows, copied" in run("check").out
    sql = "SELECT month FROM sales GROUP BY month HAVING count(*) > 1000"
    months = run("query", "--json", sql).document["keys"]
    assert ["2011-11-01"] in months
    assert run("explain", "--json", sql).document["privacy_unit"] == "customer_id, month"
    unit = run("budget", "--json").document["unit"]
    assert 0 < unit["spent_at_most"] < 8 == unit["spent_at_most"] + unit["left"]


def test_an_explicit_refresh_is_another_data_version(policy: Path, run: Any) -> None:
    policy.write_text(policy.read_text().replace('privacy_unit = "row"', 'privacy_unit = "row"\nrefresh = "explicit"'))
    run("check")
    first = run("query", "--json", QUESTION.format(1500)).document
    refreshed = run("refresh", "visits")
    assert refreshed.status == 0
    assert refreshed.out.startswith("visits: data version 2")
    second = run("query", "--json", QUESTION.format(1500)).document
    assert second["data_version"] in refreshed.out
    assert second["data_version"] != first["data_version"]
    assert second["reused"] is False


def test_the_console_script_as_a_child(policy: Path) -> None:
    assert child("check").returncode == 0
    answered = child("query", QUESTION.format(1500))
    assert answered.returncode == 0
    assert answered.stdout.splitlines()[:4] == [" ward", "------", " A", "(1 row)"]
    told = child("query", "SELECT ward, count(*) FROM visits GROUP BY ward")
    assert (told.returncode, told.stdout) == (1, "")
    assert "\nLINE 1: SELECT ward, count(*) FROM" in told.stderr
    wrong = child("query", "--magic")
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


def test_no_command_waits_for_the_statistics_that_the_audit_alone_needs() -> None:
    loaded = "import sys, proxy.cli; print([name for name in ('scipy.stats', 'matplotlib') if name in sys.modules])"
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


def test_passwd_makes_what_a_real_client_logs_in_with(policy: Path, run: Any) -> None:
    """`keyhole passwd` and `--token` into the policy, `keyhole serve` as a child, psycopg and httpx as clients."""
    made = child("passwd", input="sésame ouvre-toi\n")
    assert made.returncode == 0
    line = made.stdout.strip()
    assert scram.Verifier.parse(line.removeprefix('password = "').removesuffix('"')).iterations == scram.ITERATIONS
    told, hashed = run("passwd", "--token").out.splitlines()
    policy.write_text(f"{policy.read_text()}\n[analysts.dora]\n{line}\n{hashed}\n", encoding="utf-8")
    run("check")
    with subprocess.Popen(
        [SCRIPT, "serve", "--port", "0", "--rest-port", "0"], stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        try:
            words = serving.stdout.readline().replace(",", " ").split()
            postgresql, docs = words[1], words[-1]
            url = postgresql.replace("postgresql://", "postgresql://dora@")
            with psycopg.connect(url, password="sésame ouvre-toi", autocommit=True) as connection:
                assert connection.execute(QUESTION.format(1500).encode()).fetchall() == [("A",)]
            with pytest.raises(psycopg.OperationalError, match="KH401"):
                psycopg.connect(url, password="sesame ouvre-toi")
            answer = httpx.post(
                docs.replace("/docs", "/v1/question"),
                headers={"Authorization": f"Bearer {told.split()[-1]}"},
                json={"sql": QUESTION.format(1500)},
                trust_env=False,
                timeout=PATIENCE_S,
            ).json()
            assert (answer["keys"], answer["reused"]) == ([["A"]], True)
            port = postgresql.rsplit(":", 1)[1].split("/")[0]
            taken = run("serve", "--port", port)
            assert taken.status == 1
            assert f"KH406: cannot listen on 127.0.0.1:{port} (Address already in use)" in taken.err
        finally:
            serving.send_signal(signal.SIGTERM)
        assert serving.wait(timeout=PATIENCE_S) == 0


def test_an_empty_password_is_refused() -> None:
    for given in ("", "\n"):
        assert child("passwd", input=given).returncode == 2


def test_the_wards_password_is_what_the_policy_says(policy: Path) -> None:
    for name in TOKENS:
        verifier = Policy.load(policy, environment={}).analysts[name].password
        salt = scram.Verifier.parse(verifier).salt
        assert scram.verifier(PASSWORD, salt=salt) == verifier


@pytest.mark.parametrize(
    ("sql", "position", "lines"),
    [
        ("a b", 3, ["LINE 1: a b", "          ^"]),
        ("a\nb c", 5, ["LINE 2: b c", "          ^"]),
        ("a\r\nb", 4, ["LINE 2: b", "        ^"]),
        ("a\tb", 3, ["LINE 1: a b", "          ^"]),
        ("a\u2028b", 3, ["LINE 1: a b", "          ^"]),
        ("ab", 3, ["LINE 1: ab", "          ^"]),
        ("", 1, ["LINE 1:", "        ^"]),
        ("x" * 100 + "yz", 101, ["LINE 1: ..." + "x" * 60 + "yz", " " * 71 + "^"]),
        ("ab" + "x" * 200, 2, ["LINE 1: ab" + "x" * 88 + "...", "         ^"]),
        ("ab", 4, []),
        ("ab", 0, []),
    ],
)
def test_the_caret_stands_under_the_position(sql: str, position: int, lines: list[str]) -> None:
    told = as_psql_prints(KeyholeError("KH100", "no", position=position), sql=sql)
    assert told.split("\n") == ["ERROR:  KH100: no", *lines]


def test_a_table_shows_every_character_and_obeys_none() -> None:
    rows = [("plain", "[red]x[/]"), ("\x1b[31m", "a\nb"), ("", "é")]
    assert list(psql_table(("key", "other"), rows)) == [
        " key      | other",
        "----------+-----------",
        " plain    | [red]x[/]",
        " \\x1b[31m | a\\nb",
        "          | é",
    ]


def test_an_audit_tries_to_refute_what_the_mechanisms_claim(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong verdict has a probability of 1e-6 a question at most."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "--mechanism", "keyhole", "--samples", "4000", "--json"])
    assert ended.value.code == 0
    reports = json.loads(capsys.readouterr().out)
    assert len(reports) >= 3
    assert all(0 < report["epsilon_lower"] <= report["claimed_epsilon"] for report in reports)
    assert not any(report["flagged"] for report in reports)


def test_an_audit_of_an_unknown_mechanism_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "--mechanism", "laplace"])
    assert ended.value.code == 2
    assert "progressive" in capsys.readouterr().err


SIMULATED = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1500 OR sum(age) > 90000"


def test_a_formula_drawn_in_the_terminal_and_as_a_picture(policy: Path, run: Any, tmp_path: Path) -> None:
    run("check")
    sql = (
        "SELECT ward FROM visits WHERE ward <> '[red]<&' GROUP BY ward "
        "HAVING count(*) > 1500 AND (count(*) > 900 OR sum(age) > 5)"
    )
    before = run("budget", "--json").document
    drawn = run("explain", "--tree", "--svg", str(tmp_path / "formula.svg"), sql)
    assert drawn.status == 0
    assert drawn.out.splitlines() == [
        "as typed",
        "└── AND",
        "    ├── A  count(*) > 1500",
        "    └── OR",
        "        ├── B  count(*) > 900   does not matter, costs nothing",
        "        └── C  sum(age) > 5   does not matter, costs nothing",
        "as it is evaluated: minimal",
        drawn.out.splitlines()[-1],
    ]
    assert drawn.out.splitlines()[-1].startswith("└── A  count(*) > 1500   epsilon 0.")
    root = ET.parse(tmp_path / "formula.svg").getroot()
    assert root.findtext("{http://www.w3.org/2000/svg}title") == sql
    assert run("explain", "--svg", str(tmp_path / "other.svg"), sql).out.startswith("Question over ")
    assert (tmp_path / "other.svg").read_text() == (tmp_path / "formula.svg").read_text()
    assert run("explain", "--svg", str(tmp_path / "nowhere" / "x.svg"), sql).status == 2
    assert run("budget", "--json").document == before


def test_a_simulation_needs_neither_source_nor_pins_nor_ledger(policy: Path, run: Any, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").unlink()
    files = {path.name for path in tmp_path.iterdir()}
    told = run("simulate", SIMULATED, "--units", "3000")
    assert told.status == 0
    assert told.out.startswith("Simulated: 3 groups of visits (ward), 3,000 privacy units (row); no data, no source")
    assert "Bounding: nothing is cut, each row is its own unit" in told.out
    assert " such questions fit (budget.epsilon_per_predicate is first)" in told.out
    assert {path.name for path in tmp_path.iterdir()} == files


def test_a_simulation_costs_what_the_question_costs(policy: Path, run: Any) -> None:
    simulated = run("simulate", SIMULATED, "--units", "3000", "--json", "--tolerance", "7%").document
    run("check")
    explained = run("explain", SIMULATED, "--json", "--tolerance", "7%").document
    assert simulated["epsilon_per_group"] == explained["worst_case_epsilon"]
    assert simulated["plan"]["formula"] == explained["formula"]
    assert simulated["plan"]["sql"].replace('"', "").count("count(") == explained["sql"].count("count(")
    assert simulated["stand_ins"] == []
    assert simulated["questions_that_fit"] == int(4.0 / simulated["epsilon_per_group"])
    assert simulated["units_per_group"] == 1000


def bounded(policy: Path) -> None:
    text = policy.read_text().replace(
        'privacy_unit = "row"', 'privacy_unit = "id"\nmax_groups_per_unit = 2\nrows_per_unit = 5'
    )
    text = text.replace("bounds = [0, 110]", "bounds = [0, 110]\nper_unit = [0, 200]")
    text = text.replace("epsilon_per_query = 0.5", "epsilon_per_query = 0.5\nepsilon_per_unit = 6.0")
    policy.write_text(text.replace('key = { values = ["A", "B", "[bold]C"] }', ""))


def test_what_a_simulation_proposes_fits_as_often_as_it_says(policy: Path, run: Any) -> None:
    bounded(policy)
    sizes = ("--units", "20000", "--keys", "60", "--rows", "60000")
    sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 300"
    first = run("simulate", sql, *sizes, "--json", "--tolerance", "1%").document
    assert first["questions_that_fit"] == 0
    assert first["first_cap"] == "epsilon_per_query"
    assert first["epsilon_per_unit"] == 2 * first["epsilon_per_group"]
    assert first["stand_ins"] == ["ward has 60 public values"]
    (cut,) = first["bounding"]["cut"]
    assert 0 < cut["spread"] < cut["together"] < 1
    proposals = [(one["questions"], text) for one in first["affordable"] for text in one["settings"]]
    assert {questions for questions, _ in proposals} >= {1, 5}
    for questions, setting in proposals:
        name, _, value = setting.removeprefix("keyhole.").partition(" = ")
        given = ["--tolerance", "1%"] if name == "fnr" else []
        again = run("simulate", sql, *sizes, "--json", *given, f"--{name}", value.strip("'")).document
        assert again["questions_that_fit"] >= questions
    printed = run("simulate", sql, *sizes, "--tolerance", "1%").out
    assert "The caps: it would be refused (budget.epsilon_per_query)" in printed
    assert "Bounding cuts about " in printed
    assert "    - every row adds the middle of its column's bounds to a sum" in printed


def test_a_simulation_asks_for_the_sizes_it_needs_and_refuses_as_a_question_does(policy: Path, run: Any) -> None:
    bounded(policy)
    sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 300"
    missing = run("simulate", sql, "--units", "20000")
    assert missing.status == 2
    assert "--keys: the policy lists no values of ward" in missing.err
    assert run("simulate", sql).status == 2
    told = run("simulate", "SELECT ward, count(*) FROM visits GROUP BY ward", "--units", "9", "--keys", "2", "--json")
    assert (told.status, told.document["code"]) == (1, "KH101")
    assert run("simulate", sql, "--units", "9", "--keys", "2", "--policy", "nowhere.toml").status == 1


def test_a_constant_question_costs_nothing_in_a_simulation(policy: Path, run: Any) -> None:
    always = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 OR count(*) <= 5"
    document = run("simulate", always, "--units", "10", "--json").document
    assert (document["epsilon_per_group"], document["questions_that_fit"], document["affordable"]) == (0, None, [])
    assert "the answer is exact and nothing was spent" in run("simulate", always, "--units", "10").out


def test_a_simulation_of_the_example_policy_needs_none_of_its_secrets(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KEYHOLE_SOURCE_PASSWORD", "KEYHOLE_LEDGER_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    example = Path(__file__).resolve().parents[3] / "deploy" / "policies" / "hospital.toml"
    sql = "SELECT disease FROM visits GROUP BY disease HAVING count(*) > 400"
    told = run("simulate", sql, "--policy", str(example), "--units", "20000", "--keys", "60", "--rows", "50000")
    assert told.status == 0
    assert "disease has 60 public values" in told.out
