"""`keyhole diagnose` at the command line: what it says before it is paid, and after; on the wards' visits."""

import shlex
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from proxy.cli.diagnose.curves import describe_noise
from tests.proxy.cli.conftest import Ran
from tests.proxy.report.html.test_page import read
from tests.worlds.house import check_once

# the older, the later in the month: neither foretells the other much
ROC = ("diagnose", "roc", "visits", "--score", "age", "--outcome", "day > '2026-01-14'", "--epsilon", "0.5")
PAID = ("--yes", "--why", "a test")


def test_without_yes_it_says_the_cost_and_spends_nothing(checked: Path, run: Callable[..., Ran]) -> None:
    told = run(*ROC, "--by", "ward")
    assert told.status == 0
    assert told.out.startswith("ROC curve of age against day > '2026-01-14' would be released of 3 groups.\n")
    assert "It costs each group 0.5 epsilon, and a unit 0.5. Nothing was read or spent." in told.out
    assert run("budget", "--json").document["families"] == []


def test_without_yes_a_program_is_told_the_cost_as_json(checked: Path, run: Callable[..., Ran]) -> None:
    told = run(*ROC, "--by", "ward", "--json").document
    cost = {"groups": 3, "epsilon": 0.5, "unit_epsilon": 0.5}
    assert told == {"offered": True, "plot": "roc", "table": "visits", **cost}


@pytest.mark.parametrize(("noise_sd", "told"), [(0.0001, "<0.001"), (0.01, "+-0.020"), (0.3, "all of it")])
def test_an_area_that_is_all_noise_says_so(noise_sd: float, told: str) -> None:
    """An error of more than a half on either side is every area that there is."""
    assert describe_noise(noise_sd) == told


def test_with_yes_it_is_drawn_and_told_again_for_nothing(
    checked: Path, run: Callable[..., Ran], tmp_path: Path
) -> None:
    page = tmp_path / "roc.html"
    paid = run(*ROC, "--by", "ward", *PAID, "--json", "--html", str(page)).document
    assert not paid["paid_before"]
    assert [one["keys"]["ward"] for one in paid["groups"]] == ["A", "B", "[bold]C"]
    curve = paid["groups"][0]
    assert 0.4 < curve["area"] < 0.6  # 3,000 rows: noise moves it by about .003
    assert curve["true_positive_rate"][-1] == curve["false_positive_rate"][-1] == 1.0
    assert len(curve["thresholds"]) == 33
    again = run(*ROC, "--by", "ward")
    assert "3 groups, released before, so it costs nothing." in again.out
    assert f" A       | {curve['area']:.3f} |" in again.out
    (family,) = run("budget", "--json").document["families"]
    assert family["spent_at_most"] == 0.5
    assert run("ledger", "verify").status == 0
    assert "keyhole diagnose roc visits --score 'age'" in run("ledger", "list").out
    tags = read(page.read_text())
    assert "[bold]C" in tags.text
    assert "http:" not in page.read_text().replace("http-equiv", "")
    assert {"script", "img", "a"}.isdisjoint(name for name, _ in tags.seen)
    assert [name for name, _ in tags.seen].count("svg") >= 2


@pytest.mark.parametrize(
    ("plot", "arguments"),
    [
        ("calibration", ("--score", "age / 110.0", "--outcome", "day > '2026-01-14'")),
        ("calibration", ("--score", "age / 110.0", "--outcome", "age > 60", "--method", "pribrp")),
        ("calibration", ("--score", "age / 110.0", "--outcome", "age > 60", "--method", "adaptive")),
        ("residuals", ("--score", "0.5 * age", "--outcome", "age", "--units", "3000")),
        ("residuals", ("--score", "0.5 * age", "--outcome", "age", "--method", "prirp", "--where", "ward = 'A'")),
        ("roc", ("--score", "age", "--outcome", "age > 60", "--method", "priroc_fix")),
        ("roc", ("--score", "age", "--outcome", "age > 60", "--epsilon", "0.001")),
    ],
)
def test_every_plot_and_method_reports_in_text_and_as_a_page(
    checked: Path, run: Callable[..., Ran], tmp_path: Path, plot: str, arguments: tuple[str, ...]
) -> None:
    page = tmp_path / "page.html"
    paid = run("diagnose", plot, "visits", "--epsilon", "0.5", *arguments, *PAID, "--html", str(page))
    assert paid.status == 0
    assert "1 group, paid 0." in paid.out
    read(page.read_text())
    told = run("diagnose", plot, "visits", "--epsilon", "0.5", *arguments, "--json").document
    assert told["plot"] == plot
    assert told["paid_before"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*ROC, "--yes"), "say why"),
        ((*ROC, "--method", "pribrp"), "roc is made by ours, adaptive, priroc, priroc_fix"),
        ((*ROC, "--method", "adaptive", "--bins", "16"), "finds its bins itself"),
        (("diagnose", "residuals", *ROC[2:], "--bins", "16"), "finds its cells itself"),
        ((*ROC[:-1], "0"), "more than 0"),
        ((*ROC, "--by", "ward,ward"), "every column once"),
        ((*ROC[:-1], "much"), "not a number"),
        ((*ROC[:-1], "0,5"), "0,5 is not a number: write 0.5"),
        (("diagnose", "pie", *ROC[2:]), "pie"),
        ((*ROC, "--out", "../curves"), "small letters, digits and _"),
        ((*ROC, "--out", "visits"), "private table of that name"),
        ((*ROC, "--format", "csv"), "there is a file only with --out"),
        (ROC[:5], "--outcome"),
    ],
)
def test_what_is_called_wrongly_ends_with_two(
    policy: Path, run: Callable[..., Ran], arguments: tuple[str, ...], told: str
) -> None:
    ran = run(*arguments)
    assert ran.status == 2
    assert told in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("flag", "typed", "written"),
    [
        ("--score", "Age Years", """--score '"Age Years"'"""),
        ("--score", "0.5 * [age years]", """--score '0.5 * "Age Years"'"""),
        ("--outcome", "`Age Years` > 60", """--outcome '"Age Years" > 60'"""),
        ("--where", "Age Years > 20,5", """--where '"Age Years" > 20.5'"""),
        ("--where", "age > 20,5", "--where 'age > 20.5'"),
        ("--where", "ward = 'A' AND", None),
        ("--score", "age)", None),
    ],
)
def test_what_is_no_sql_is_told_by_its_flag_and_as_it_would_be_read(
    policy: Path, run: Callable[..., Ran], flag: str, typed: str, written: str | None
) -> None:
    data = policy.with_name("visits.csv")
    rows = data.read_text().splitlines()
    at = rows[0].split(",").index("age")
    named = [f"{rows[0]},Age Years", *(f"{row},{row.split(',')[at]}" for row in rows[1:])]
    data.write_text("\n".join(named) + "\n")
    section = '[tables.visits.columns."Age Years"]\nbounds = [0, 110]\n'
    policy.write_text(
        policy.read_text().replace("[tables.visits.columns.age]", f"{section}[tables.visits.columns.age]")
    )
    check_once(policy)
    asked = {"--score": "age", "--outcome": "age > 60", "--epsilon": "0.5", "--where": "age > 10", flag: typed}
    refused = run("diagnose", "roc", "visits", *(part for one in asked.items() for part in one))
    assert refused.status == 1
    assert refused.err.startswith(f"ERROR:  KH100: {flag} {typed} cannot be read as SQL\n")
    if written is None:
        assert "HINT" not in refused.err
        return
    assert f"HINT:  Write {written}\n" in refused.err
    corrected = asked | dict([shlex.split(written)])
    assert run("diagnose", "roc", "visits", *(part for one in corrected.items() for part in one)).status == 0


def test_a_page_that_cannot_be_written_costs_nothing(checked: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    assert run(*ROC, *PAID, "--html", str(tmp_path / "nowhere" / "roc.html")).status == 2
    assert run(*ROC, *PAID, "--html", str(tmp_path / "roc.pdf")).status == 1
    assert run("budget", "--json").document["families"] == []


def test_a_dry_run_opens_no_source(checked: Path, run: Callable[..., Ran]) -> None:
    assert run(*ROC, *PAID).status == 0
    checked.with_name("visits.csv").unlink()
    assert "printed again, which costs nothing" in run(*ROC, "--dry-run").out
    other = run(*ROC, "--by", "ward", "--dry-run", "--json").document
    assert (other["groups"], other["paid_before"]) == (3, False)
    assert "AS counted" in other["sql"]
    assert "KH310" in run(*ROC[:-1], "9", "--dry-run").err


def _read(path: Path) -> list[dict[str, object]]:
    with duckdb.connect() as connection:
        rows = connection.execute(f"FROM '{path}'")
        names = [column[0] for column in rows.description or ()]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def test_the_curve_is_a_table_that_the_policy_takes(checked: Path, run: Callable[..., Ran]) -> None:
    told = run(*ROC, "--by", "ward", "--out", "curves").out
    assert "would be released of 3 groups, and written as releases/curves.parquet." in told
    assert not (checked.parent / "releases").exists()
    paid = run(*ROC, "--by", "ward", *PAID, "--out", "curves", "--json").document
    assert paid["file"] == "releases/curves.parquet"
    file = checked.parent / paid["file"]
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    rows, curve = [one for one in _read(file) if one["ward"] == "A"], paid["groups"][0]
    assert [one["threshold"] for one in rows] == curve["thresholds"]
    for name in ("true_positive_rate", "false_positive_rate", "precision", "true_positive_noise_sd"):
        assert [one[name] for one in rows] == curve[name]
    assert {(one["area"], one["area_noise_sd"]) for one in rows} == {(curve["area"], curve["area_noise_sd"])}
    again = run(*ROC, "--by", "ward", "--out", "curves").out
    assert "3 groups, released before, so it costs nothing." in again
    assert f"As a table: releases/curves.parquet, {paid['rows']} rows.\nSHA-256 {paid['sha256']}\n" in again
    checked.write_text(f"{checked.read_text()}\n{paid['policy']}\n")
    assert f"public table curves: {paid['rows']} rows" in run("check", "--confirm").out
    with duckdb.connect() as connection:
        ((told_in_file,),) = connection.execute(
            "SELECT decode(value) FROM parquet_kv_metadata(?) WHERE decode(key) = 'keyhole'", [str(file)]
        ).fetchall()
    assert "Differentially private: epsilon 0.5 of each group, 0.5 of a privacy unit." in told_in_file
    (family,) = run("budget", "--json").document["families"]
    assert family["spent_at_most"] == 0.5


@pytest.mark.parametrize(
    ("plot", "arguments", "columns"),
    [
        ("calibration", ("--score", "age / 110.0", "--outcome", "age > 60"), {"off", "band", "mean_outcome"}),
        ("calibration", ("--score", "age / 110.0", "--outcome", "age > 60", "--method", "pribrp"), {"off", "band"}),
        ("residuals", ("--score", "0.5 * age", "--outcome", "age", "--units", "3000"), {"mean_residual", "error"}),
    ],
)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_bins_and_strips_are_tables_as_well(
    checked: Path, run: Callable[..., Ran], plot: str, arguments: tuple[str, ...], columns: set[str], form: str
) -> None:
    whole = ("diagnose", plot, "visits", "--epsilon", "0.5", *arguments, *PAID, "--out", "made", "--format", form)
    paid = run(*whole, "--json").document
    rows, (group,) = _read(checked.parent / paid["file"]), paid["groups"]
    told = group["bins" if plot == "calibration" else "strips"]
    assert len(rows) == paid["rows"] > 1
    assert columns <= set(rows[0])
    assert [[one[name] for name in sorted(columns)] for one in rows] == [
        [one[name] for name in sorted(columns)] for one in told
    ]


def test_a_column_of_the_table_has_another_name_than_what_it_is_grouped_by(
    checked: Path, run: Callable[..., Ran]
) -> None:
    column = '\n[tables.visits.columns.Area]\nexpression = "extract(dow from day)"\nkey = { range = [0, 6] }\n'
    checked.write_text(checked.read_text() + column)
    assert run("check", "--confirm").status == 0
    paid = run(*ROC, "--by", "Area", *PAID, "--out", "days", "--json").document
    rows = _read(checked.parent / paid["file"])
    assert {one["Area"] for one in rows} == set(range(7))
    assert {one["area_"] for one in rows} == {one["area"] for one in paid["groups"]}


def test_another_file_of_that_name_is_left_alone_before_anything_is_paid(
    checked: Path, run: Callable[..., Ran]
) -> None:
    file = checked.parent / "releases" / "curves.csv"
    file.parent.mkdir()
    file.write_text("mine")
    whole = (*ROC, "--out", "curves", "--format", "csv")
    for refused in (run(*whole, *PAID), run(*whole, "--dry-run")):
        assert refused.status == 2
        assert "releases/curves.csv exists; name a new file" in " ".join(refused.err.split())
    assert run("budget", "--json").document["families"] == []
    file.unlink()
    paid = run(*whole, *PAID, "--json").document
    file.write_text("mine")
    beside = file.with_name("curves.csv.txt")
    beside.write_text("mine as well")
    assert run(*whole).status == 2
    assert sorted(one.name for one in file.parent.iterdir()) == [".lock", "curves.csv", "curves.csv.txt"]
    assert (file.read_text(), beside.read_text()) == ("mine", "mine as well")
    file.unlink()
    assert run(*whole, "--json").document["sha256"] == paid["sha256"]


def test_a_refusal_is_printed_as_psql_prints_it(checked: Path, run: Callable[..., Ran]) -> None:
    refused = run(*ROC[:6], "age", *ROC[7:])
    assert refused.status == 1
    assert "KH314: age is neither a condition nor a number that is 0 or 1" in refused.err
    assert "HINT:  Say which rows are positive" in refused.err


def test_a_saturated_score_is_warned_of(checked: Path, run: Callable[..., Ran]) -> None:
    told = run(*ROC[:4], "CASE WHEN age > 85 THEN 1.0 ELSE 0.01 * age END", *ROC[5:], "--bins", "2", *PAID)
    assert "one bin holds more than half of the rows" in " ".join(told.out.split())
