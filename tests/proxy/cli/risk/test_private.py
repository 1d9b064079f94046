"""`keyhole risk --private`: exact, for the owner alone and marked so on every page; nothing else learns of it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from proxy.report.section import OWNER_ONLY
from tests.proxy.cli.risk.hospital import COUNTS, HOSTILE, QUESTION, SHARE, install, write_prior
from tests.proxy.cli.risk.report_document import RiskDocument
from tests.proxy.cli.risk.test_risk import sections
from tests.proxy.report.html.test_page import read
from tests.worlds.house import check_once

RARE = "illness=rare:0.02"


@pytest.fixture
def hospital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = check_once(install(tmp_path))
    monkeypatch.setenv("KEYHOLE_POLICY", str(path))
    monkeypatch.setenv("NO_COLOR", "1")
    return path


def test_every_page_begins_and_ends_with_owner_only(hospital: Path, run: Any, tmp_path: Path) -> None:
    page = tmp_path / "risk.html"
    told = run("risk", QUESTION, "--private", "--sensitive", RARE, "--html", str(page))
    lines = told.out.rstrip("\n").split("\n")
    assert (lines[0], lines[-1]) == (OWNER_ONLY, OWNER_ONLY)
    assert "Do not hand this on" in OWNER_ONLY
    read(page.read_text())  # well-formed
    body = page.read_text().partition("<body>")[2]
    assert body.lstrip().startswith(f'<p class="warning">{OWNER_ONLY}')
    assert "position:fixed" in page.read_text()  # on every sheet that is printed
    asked = run("risk", QUESTION, "--private", "--json")
    assert next(iter(json.loads(asked.out).items())) == ("owner_only", OWNER_ONLY)
    assert asked.err.strip() == OWNER_ONLY


def test_true_sizes_and_shares_are_those_of_the_data(hospital: Path, run: Any) -> None:
    found = sections(run, QUESTION, "--private", "--sensitive", RARE)["true_shares"]["figures"]
    (one,) = found["shares"]
    assert (one["share_of"], one["members"], one["base_rate"]) == ("illness = rare", "units", 0.02)
    groups = {tuple(group["key"]): group for group in one["groups"]}
    assert set(groups) == {("ICU", "9"), ("ICU", "10")}
    assert (groups["ICU", "9"]["size"], groups["ICU", "9"]["holders"]) == (12, 6)
    assert (groups["ICU", "10"]["size"], groups["ICU", "10"]["holders"]) == (50, 25)
    assert groups["ICU", "10"]["jump"] == pytest.approx(25)
    assert one["disclosed"] == sum(group["disclosed"] for group in one["groups"]) >= 1


def test_a_share_that_a_question_says_is_of_its_rows(hospital: Path, run: Any) -> None:
    (one,) = sections(run, SHARE, "--private")["true_shares"]["figures"]["shares"]
    # of every ten patients of a room and hour the first has five rows, an even one of the ICU among them
    rows = {room: sum(n + 4 * -(-n // 10) for (r, _), n in COUNTS.items() if r == room) for room in ("ER", "ICU")}
    ill = sum(n // 2 + 4 * -(-n // 10) for (r, _), n in COUNTS.items() if r == "ICU")
    (group,) = one["groups"]
    assert (one["members"], group["key"], group["size"], group["holders"]) == ("rows", ["ICU"], rows["ICU"], ill)
    everybody = sum(n + 4 * -(-n // 10) for n in COUNTS.values())
    assert one["base_rate"] == pytest.approx(ill / everybody)


def test_a_share_that_a_question_says_of_units_is_of_units(hospital: Path, run: Any) -> None:
    (one,) = sections(run, SHARE.replace("count(*)", "count(DISTINCT patient)"), "--private")["true_shares"]["figures"][
        "shares"
    ]
    (group,) = one["groups"]
    people, ill = (sum(n // part for (room, _), n in COUNTS.items() if room == "ICU") for part in (1, 2))
    assert (one["members"], group["key"], group["size"], group["holders"]) == ("units", ["ICU"], people, ill)


def test_what_bounding_cuts_is_told(hospital: Path, run: Any) -> None:
    (one,) = sections(run, QUESTION, "--private")["bounding"]["figures"]["questions"]
    everybody = sum(COUNTS.values())
    first = sum(-(-count // 10) for count in COUNTS.values())
    assert (one["units"], one["units_cut"]) == (everybody, 0)
    assert one["rows_left_out"] == pytest.approx(3 * first / (everybody + 4 * first))  # 5 rows, of which 2 count


def test_true_posteriors_are_of_the_true_counts(hospital: Path, run: Any, tmp_path: Path) -> None:
    found = sections(run, QUESTION, "--private", "--prior", str(write_prior(tmp_path)))
    made_up, true = found["attackers"]["figures"], found["true_attackers"]["figures"]
    assert (made_up["private"], true["private"]) == (False, True)
    (outsider,) = true["attackers"]
    assert outsider["people"] == sum(COUNTS.values())
    shown = {one["view"]: one for one in outsider["shown"]}
    nine = [count for (_, hour), count in COUNTS.items() if hour == 9]
    ten = [count for (_, hour), count in COUNTS.items() if hour == 10]
    exact = sum(count * count for count in nine) / sum(nine) + sum(count * count for count in ten) / sum(ten)
    assert shown["exact counts"]["mean_belief"] == pytest.approx(exact / sum(COUNTS.values()))


def test_a_prior_about_other_keys_is_told(hospital: Path, run: Any, tmp_path: Path) -> None:
    prior = tmp_path / "other.csv"
    prior.write_text("room,hour,people\nKitchen,9,3\nER,9,4\n", encoding="utf-8")
    ran = run("risk", QUESTION, "--private", "--prior", str(prior))
    assert ran.status == 2
    assert "Kitchen" in ran.err


def test_hostile_keys_are_only_text(hospital: Path, run: Any, tmp_path: Path) -> None:
    page = tmp_path / "risk.html"
    common = "illness=common:0.1"
    told = run("risk", QUESTION, "--private", "--sensitive", common, "--html", str(page))
    text = page.read_text()
    tags = read(text)
    assert "<script" not in text
    assert "http-equiv" in text
    assert text.replace("http-equiv", "").count("http") == text.count("http://evil") > 0  # as text alone
    assert not any(name in ("href", "src") for _, attributes in tags.seen for name in attributes)
    assert "default-src 'none'" in text
    assert "alert(1)" in tags.text
    assert "\x1b" not in told.out + text


@pytest.mark.parametrize("private", [False, True])
def test_the_document_fits_its_schema(hospital: Path, run: Any, tmp_path: Path, private: bool) -> None:
    more = ["--private"] if private else []
    prior = ["--prior", str(write_prior(tmp_path)), "--units", "200", "--rows", "400", "--target", "guess 100 0.05"]
    told = run("risk", QUESTION, SHARE, "--sensitive", RARE, "--simulate", "1", "--json", *prior, *more)
    document = RiskDocument.model_validate_json(told.out)
    assert (document.owner_only is None) != private


def test_the_schema_that_is_documented_is_the_one_that_is_held() -> None:
    """`python -m tests.proxy.cli.risk.report_document` writes it."""
    page = Path(__file__).parents[4] / "docs" / "risk-report.schema.json"
    assert json.loads(page.read_text(encoding="utf-8")) == RiskDocument.model_json_schema()


def test_no_private_figure_enters_the_other_sections(hospital: Path, run: Any, tmp_path: Path) -> None:
    arguments = [QUESTION, "--target", "advantage 0.1", "--units", "200", "--sensitive", RARE]
    public, private = sections(run, *arguments), sections(run, *arguments, "--private")
    assert set(private) - set(public) == {"true_shares", "bounding"}
    assert all(private[name] == public[name] for name in public if name != "silent")
    assert "do not hand this report on" in " ".join(private["silent"]["sentences"])
    stays = tmp_path / "stays.csv"
    stays.write_text("\n".join(stays.read_text().split("\n")[:40]) + "\n", encoding="utf-8")
    other = sections(run, *arguments, "--private")
    assert other["target"] == public["target"]
    assert other["true_shares"] != private["true_shares"]


def test_nothing_is_written(hospital: Path, run: Any, tmp_path: Path) -> None:
    def everything() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    before = everything()
    assert run("risk", QUESTION, "--private", "--sensitive", RARE).status == 0
    assert everything() == before


def test_the_ledger_has_no_event_of_it(hospital: Path, run: Any, tmp_path: Path) -> None:
    assert run("query", QUESTION).status == 0

    def count() -> int:
        with sqlite3.connect(tmp_path / "keyhole.db") as ledger:
            ((events,),) = ledger.execute("SELECT count(*) FROM events").fetchall()
        return int(events)

    before = count()
    assert run("risk", QUESTION, "--private", "--from", "ledger").status == 0
    assert count() == before


def test_without_private_a_source_that_is_down_does_not_matter(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install(tmp_path, source="postgresql://nobody@127.0.0.1:1/nowhere", relation="stays")
    monkeypatch.setenv("KEYHOLE_POLICY", str(path))
    prior = ["--prior", str(write_prior(tmp_path)), "--units", "200", "--sensitive", RARE]
    assert run("risk", QUESTION, "--views", *prior, "--html", str(tmp_path / "risk.html")).status == 0
    refused = run("risk", QUESTION, "--private")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("ERROR:  KH008")


def test_a_sensitive_value_that_nobody_can_have_is_refused_before_anything_is_told(hospital: Path, run: Any) -> None:
    ran = run("risk", QUESTION, "--private", "--sensitive", "age=many:0.1")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("ERROR:  KH212")


@pytest.mark.parametrize("more", [[], ["--private"]])
def test_a_sensitive_column_that_there_is_not_is_told(hospital: Path, run: Any, more: list[str]) -> None:
    ran = run("risk", QUESTION, "--sensitive", "ilness=rare:0.1", *more)
    assert ran.status == 2
    assert "ilness" in ran.err


@pytest.mark.parametrize("typed", ["illness", "illness=rare", "illness=rare:2", "=rare:.1", "illness=:.1", "a=b:nan"])
def test_a_sensitive_value_is_typed_whole(hospital: Path, run: Any, typed: str) -> None:
    ran = run("risk", QUESTION, "--sensitive", typed)
    assert ran.status == 2
    assert "COLUMN=VALUE:SHARE" in ran.err


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["age=51:0.1"], "51 is no value that the policy declares for age"),
        (["hour=9:0.5", "room=no such room:0.1"], "no value that the policy declares for room"),
        ([RARE, RARE], "has one share of everybody"),
    ],
)
def test_a_sensitive_value_that_the_policy_does_not_declare_is_told(
    hospital: Path, run: Any, typed: list[str], told: str
) -> None:
    ran = run("risk", QUESTION, *(part for one in typed for part in ("--sensitive", one)))
    assert (ran.status, ran.out) == (2, "")
    assert told in " ".join(ran.err.replace("│", " ").split())


def test_rows_that_are_units_are_counted_as_rows(policy: Path, run: Any) -> None:
    assert run("check").status == 0
    sql = "SELECT ward FROM visits GROUP BY ward HAVING 1.0 * count(*) FILTER (WHERE age > 60) / count(*) > 0.5"
    found = sections(run, sql, "--private")
    (one,) = found["true_shares"]["figures"]["shares"]
    groups = {tuple(group["key"]): group for group in one["groups"]}
    assert (groups["A",]["size"], groups["A",]["holders"]) == (3000, sum(n % 90 > 60 for n in range(3000)))
    assert any("each row is its own unit" in text for text in found["bounding"]["sentences"])
    assert HOSTILE not in str(found)
