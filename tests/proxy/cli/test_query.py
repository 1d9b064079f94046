"""`keyhole query` and `keyhole explain`: answers, plans and refusals, for people and for programs."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import typer.main

from planner.errors import KeyholeError
from planner.statements.settings import SETTINGS
from proxy.cli import main as cli
from proxy.report.report_refusals import write_as_psql
from proxy.report.terminal import write_psql_table
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.worlds.wards import EXPLAINED, QUESTION


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


def test_an_answer_in_psqls_form_and_a_repetition(checked: Path, run: Any) -> None:
    answered = run("query", "SELECT ward FROM visits GROUP BY ward HAVING NOT count(*) > 1500")
    assert answered.err == ""
    assert answered.out.splitlines()[:6] == [" ward", "---------", " B", " [bold]C", "(2 rows)", ""]
    assert answered.out.splitlines()[6].startswith("Guarantee: a group that truly qualifies is missed at most 5 %")
    again = run("query", "SELECT ward FROM visits GROUP BY ward HAVING NOT count(*) > 1500")
    assert "(2 rows, released before: nothing is spent)" in again.out
    assert "(1 row)" in run("query", QUESTION.format(1500)).out


def test_a_query_for_a_program(checked: Path, run: Any) -> None:
    answer = run("query", "--json", "--tolerance", "9%", "--fnr", "0.01", QUESTION.format(1500)).document
    assert {"columns", "keys", "guarantee"} <= set(answer)
    assert answer["columns"] == ["ward"]
    assert answer["keys"] == [["A"]]
    assert answer["reused"] is False
    assert answer["guarantee"]["fnr"] == 0.01
    assert answer["guarantee"]["tolerance"] == {"count(*)": 135.0}
    again = run("query", "--json", "--tolerance", "9%", "--fnr", "0.01", QUESTION.format(1500)).document
    assert again == answer | {"reused": True, "cost": None}


def test_an_answer_is_drawn_in_the_terminal_and_as_a_page(checked: Path, run: Any) -> None:
    """False alarms as in `wards`: all thresholds are between 1,000 and 2,000."""
    sql = (
        "SELECT ward, width_bucket(count(*), ARRAY[1500, 1700]) AS busy, count(*) BETWEEN 1400 AND 9000 AS usual "
        "FROM visits GROUP BY ward"
    )
    page = checked.parent / "card.html"
    drawn = run("query", "--map", "--html", str(page), "--max-epsilon", "0.4", sql)
    assert drawn.err == ""
    marks = {line.split()[0]: line.split()[1:] for line in drawn.out.splitlines() if line.split()[1:]}
    assert (marks["A"], marks["B"], marks["[bold]C"]) == (["2", "yes"], ["0", "no"], ["0", "no"])
    assert "count(*):   0  none of these    1  >= 1500    2  >= 1700" in drawn.out
    assert "(3 rows)" in drawn.out
    told = page.read_text()
    assert "<h1>visits by ward</h1>" in told
    assert re.search(r'<th scope="row">\[bold\]C</th><td class="s\d">0</td><td class="s\d">no</td>', told)
    assert "Guarantee: a predicate that truly holds" in told
    fewer = run("query", "--map", "--rows", "1", "--max-epsilon", "0.4", sql)
    assert "Left out: 2 rows, those in the lowest bands." in fewer.out
    assert "(3 rows, released before: nothing is spent)" in fewer.out


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_spent(checked: Path, run: Any) -> None:
    refused = run("query", "--html", "card.svg", QUESTION.format(1500))
    assert (refused.status, refused.out) == (1, "")
    assert "KH011: pictures are written as HTML, and card.svg is the name of another format" in refused.err
    assert "HINT:  Write --html card.html: every browser opens it" in refused.err
    nowhere = run("query", "--html", str(checked.parent / "no" / "card.html"), QUESTION.format(1500))
    assert nowhere.status == 2
    assert "(1 row)" in run("query", QUESTION.format(1500)).out


def test_an_explanation_has_what_is_promised_and_changes_nothing(checked: Path, run: Any) -> None:
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
    assert "  Asked: (count(*) > 1500 AND " in text
    assert "  Tolerance: count(*) > 1500: may err between " in text
    assert "minimal" not in text
    text = run("explain", "--verbose", sql).out
    assert "A        minimal; 1 way to be true, 1 way to be false" in text
    assert run("budget", "--json").document == before


def test_a_refusal_in_psqls_form(checked: Path, run: Any) -> None:
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


def test_a_refusal_for_a_program(checked: Path, run: Any) -> None:
    for command in ("query", "explain"):
        told = run(command, "--json", "SELECT ward, count(*) FROM visits GROUP BY ward")
        assert told.status == 1
        assert told.err == ""
        assert told.document["code"] == "KH101"
        assert told.document["position"] == 14
        assert told.document["hint"].startswith("Instead you can ask: SELECT ward, count(*) > ")
    assert run("check", "--json", "--policy", "nowhere.toml").document["code"] == "KH001"
    assert run("budget", "--json", "--as", "nobody").document["code"] == "KH401"


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


def test_a_setting_of_the_command_line_is_the_setting_of_that_name(checked: Path, run: Any) -> None:
    """Each with a value that it cannot have: the refusal names it."""
    for setting in SETTINGS[:: rounds(1, quick=2)]:
        flag = "--" + setting.name.removeprefix("keyhole.").replace("_", "-")
        for command in ("query", "explain"):
            told = run(command, QUESTION.format(1500), flag, "no such value")
            assert (told.status, told.out) == (1, "")
            assert told.err.startswith(("ERROR:  KH402: ", "ERROR:  KH304: "))
        assert run("simulate", QUESTION.format(1500), "--units", "9", flag, "no such value").status == 1


@in_turn(
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
    told = write_as_psql(KeyholeError("KH100", "no", position=position), sql=sql)
    assert told.split("\n") == ["ERROR:  KH100: no", *lines]


def test_a_table_shows_every_character_and_obeys_none() -> None:
    rows = [("plain", "[red]x[/]"), ("\x1b[31m", "a\nb"), ("", "é")]
    assert list(write_psql_table(("key", "other"), rows)) == [
        " key      | other",
        "----------+-----------",
        " plain    | [red]x[/]",
        " \\x1b[31m | a\\nb",
        "          | é",
    ]


def test_a_formula_drawn_in_the_terminal_and_as_a_picture(checked: Path, run: Any, tmp_path: Path) -> None:
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
        drawn.out.splitlines()[-2],
        drawn.out.splitlines()[-1],
    ]
    assert re.fullmatch(
        r"as it is evaluated: minimal, worst case 0\.\d\d epsilon for a group", drawn.out.splitlines()[-2]
    )
    assert drawn.out.splitlines()[-1].startswith("└── A  count(*) > 1500   epsilon 0.")
    root = ET.parse(tmp_path / "formula.svg").getroot()
    assert root.findtext("{http://www.w3.org/2000/svg}title") == sql
    assert run("explain", "--svg", str(tmp_path / "other.svg"), sql).out.startswith("Question over ")
    assert (tmp_path / "other.svg").read_text() == (tmp_path / "formula.svg").read_text()
    assert run("explain", "--svg", str(tmp_path / "nowhere" / "x.svg"), sql).status == 2
    assert run("budget", "--json").document == before
