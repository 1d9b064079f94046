"""`keyhole publish` at the command line: what it says before, what it writes, and who is told of it for ever."""

import json
import stat
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tests.proxy.cli.conftest import Ran

TABLE = ("publish", "visits", "--public", "ward", "--sensitive", "day", "--epsilon", "0.5", "--out", "wards")
PERTURBED = (*TABLE[:6], "--method", "perturbed", "--out", "rows", "--not-differentially-private")
PAID = ("--yes", "--why", "open [bold]data", "--by", "mia")
ONE_RELEASE = 2  # events


def test_without_yes_it_says_the_cost_and_touches_nothing(checked: Path, run: Callable[..., Ran]) -> None:
    told = run(*TABLE).out
    assert told.startswith("visits would be published over 84 combinations of ward, day.\n")
    assert "It costs each of them 0.5 epsilon, and a unit 0.5. Nothing was read or spent." in told
    assert "Noise on a count is at most 6, 95 times in 100." in told
    assert run(*TABLE, *PAID, "--dry-run", "--json").document["noise_95"] == 6
    assert "No budget covers it. Nothing was read." in run(*PERTURBED).out
    assert not (checked.parent / "releases").exists()
    assert run("budget", "--json").document["families"] == []


def test_with_yes_there_is_a_file_whose_table_the_policy_takes(checked: Path, run: Callable[..., Ran]) -> None:
    paid = run(*TABLE, *PAID, "--json").document
    assert not paid["paid_before"]
    file = checked.parent / paid["file"]
    assert paid["file"] == "releases/wards.parquet"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    again = run(*TABLE).out
    assert "visits as releases/wards.parquet, 84 rows: released before, so it costs nothing." in again
    assert f"SHA-256 {paid['sha256']}" in again
    rows = run(*TABLE[:-1], "made", "--method", "rows").out
    assert "released before, so it costs nothing" in rows
    assert "none is anybody's" in rows
    checked.write_text(f"{checked.read_text()}\n{paid['policy']}\n")
    assert "wards" in run("check", "--confirm").out
    (family,) = run("budget", "--json").document["families"]
    assert family["spent_at_most"] == 0.5
    assert run("ledger", "verify").status == 0
    assert "keyhole publish visits --public ward --sensitive day" in run("ledger", "list").out


def test_a_dry_run_opens_no_source_and_finds_what_was_paid(checked: Path, run: Callable[..., Ran]) -> None:
    """The file of the source is not even there."""
    source = checked.with_name("visits.csv")
    away = source.rename(checked.with_name("elsewhere.csv"))
    ran = run(*TABLE, "--dry-run")
    assert ran.status == 0
    assert "The budgets have room for it. This is a dry run: no source was opened." in ran.out
    assert "SELECT place, ARRAY[place, n] AS counted" in ran.out
    assert "KH310" in run(*TABLE[:7], "9", *TABLE[8:], "--dry-run").err
    assert "No budget covers it. Nothing was read." in run(*PERTURBED, "--dry-run").out
    assert not (checked.parent / "releases").exists()
    assert run(*TABLE).status == 1
    away.rename(source)
    assert run("budget", "--json").document["families"] == []
    assert run(*TABLE, *PAID).status == 0
    source.rename(away)
    again = run(*TABLE, "--dry-run", "--json").document
    assert (again["dry_run"], again["paid_before"]) == (True, True)


def test_a_condition_leaves_rows_and_cells_out(checked: Path, run: Callable[..., Ran]) -> None:
    """Charged like a question with that filter: to the groups that it leaves, and of the same family as without it
    where it is about a key alone."""
    where = "age < 45 AND ward = 'A'"
    paid = run(*TABLE[:7], "4", *TABLE[8:], *PAID, "--where", where, "--json").document
    assert paid["cells"] == 28
    assert f"Counts of visits where {where} over all public values" in paid["statement"]
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT ward, noisy_count FROM read_parquet(?)", [str(checked.parent / paid["file"])])
        found = rows.fetchall()
    assert {ward for ward, _ in found} == {"A"}
    assert abs(sum(count for _, count in found) - 1508) < 60  # of noise 28 times .3, a deviation of less than 2
    assert where in run("ledger", "list", "--json").out
    other = run(*TABLE[:-1], "others", *PAID, "--where", "ward = 'B'")
    assert other.status == 0
    assert "KH310" in run(*TABLE[:-1], "more", *PAID, "--where", where).err  # all of group A is spent


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("age > 160", "KH315"),
        ("ward = 'Z'", "KH315"),
        ("random() < 0.5", "KH205"),
        ("1 = 1) GROUP BY ward --", "KH"),
        ("no_column = 1", "KH201"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_unspent(
    checked: Path, run: Callable[..., Ran], where: str, told: str
) -> None:
    refused = run(*TABLE, *PAID, "--where", where)
    assert refused.status == 1
    assert told in refused.err
    assert run("budget", "--json").document["families"] == []


def test_columns_in_another_order_are_the_same_release(checked: Path, run: Callable[..., Ran]) -> None:
    paid = run(*TABLE, *PAID, "--json").document
    turned = ("publish", "visits", "--public", "day", "--sensitive", "ward", *TABLE[6:-1], "days")
    again = run(*turned, "--json").document
    assert again["paid_before"]
    assert again["columns"] == ["day", "ward"]
    with duckdb.connect() as connection:
        files = [str(checked.parent / one["file"]) for one in (paid, again)]
        first, second = (connection.execute("SELECT * FROM read_parquet(?)", [file]).fetchall() for file in files)
    assert second == sorted((day, ward, count) for ward, day, count in first)
    refused = run(*turned[:-1], "wards")  # the file of another order is left alone
    assert refused.status == 2
    (family,) = run("budget", "--json").document["families"]
    assert family["spent_at_most"] == 0.5


def test_what_is_perturbed_has_the_order_of_its_first_publication(checked: Path, run: Callable[..., Ran]) -> None:
    both = ("publish", "visits", "--public", "ward,day", "--sensitive", "late", *PERTURBED[6:])
    column = '\n[tables.visits.columns.late]\nexpression = "extract(dow from day)"\nkey = { range = [0, 6] }\n'
    checked.write_text(checked.read_text() + column)
    assert run("check", "--confirm").status == 0
    made = run(*both, *PAID, "--format", "csv", "--json").document
    again = run(*both[:3], "day,ward", *both[4:], *PAID, "--format", "csv", "--json").document
    assert again["paid_before"]
    assert again["sha256"] == made["sha256"]
    assert (checked.parent / made["file"]).read_text().startswith('"ward","day","late"')


def test_another_file_of_that_name_is_left_alone_before_anything_is_paid(
    checked: Path, run: Callable[..., Ran]
) -> None:
    file = checked.parent / "releases" / "wards.parquet"
    file.parent.mkdir()
    file.write_text("mine")
    refused = run(*TABLE, *PAID)
    assert refused.status == 2
    assert "releases/wards.parquet exists; name a new file" in " ".join(refused.err.split())
    assert run("budget", "--json").document["families"] == []
    file.unlink()
    assert run(*TABLE, *PAID).status == 0
    file.write_text("mine")
    assert run(*TABLE).status == 2
    assert file.read_text() == "mine"


def test_a_file_that_was_lost_is_written_again_for_nothing(checked: Path, run: Callable[..., Ran]) -> None:
    """As after a process that died between paying and writing."""
    paid = run(*TABLE, *PAID, "--json").document
    (checked.parent / paid["file"]).unlink()
    again = run(*TABLE, "--json").document
    assert again["paid_before"]
    assert again["sha256"] == paid["sha256"]
    assert (checked.parent / paid["file"]).exists()


def test_what_is_not_private_is_refused_without_the_word_for_it(checked: Path, run: Callable[..., Ran]) -> None:
    for method in ("perturbed", "sps"):
        refused = run(*TABLE[:6], "--method", method, "--out", "rows", *PAID)
        assert refused.status == 1
        assert f"KH316: --method {method} is not differentially private" in refused.err
        assert "HINT:  Publish noisy counts with --method table, or confirm with" in refused.err
    assert not (checked.parent / "releases").exists()
    assert "nothing was told about anybody" in run("odometer").out


def test_what_is_not_private_is_told_for_ever(checked: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    made = run(*PERTURBED, *PAID, "--json").document
    assert made["rows"] == 3002
    assert not made["differentially_private"]
    again = run(*PERTURBED, *PAID)
    assert "visits as releases/rows.parquet: was published before." in again.out
    other = run(*PERTURBED[:-3], "--out", "more", PERTURBED[-1], *PAID)
    assert "KH317: the same was published before, as rows.parquet" in other.err
    sampled = run(*PERTURBED[:7], "sps", "--out", "sampled", PERTURBED[-1], *PAID, "--criterion", "exact")
    assert sampled.status == 0

    told = run("odometer").out
    assert told.startswith("No question has spent anything.\n")
    assert "Outside of all of this, mia published visits on " in told
    assert "as rows.parquet (perturbed; open [bold]data)." in told
    assert made["statement"] in told
    assert made["sha256"] in told
    assert "visits was published like that 2 times" in told
    assert [one["file"] for one in run("odometer", "--json").document["published"]] == [
        "rows.parquet",
        "sampled.parquet",
    ]
    assert run("budget", "--json").document["published"][0]["sha256"] == made["sha256"]
    assert "no budget covers these" in run("budget").out
    assert "published" not in run("budget", "--json", "--as", "ada").document
    listed = run("ledger", "list").out
    assert "Published; no budget covers these:" in listed
    assert "open [bold]data" in listed
    assert [one["status"] for one in run("ledger", "list", "--json").document] == ["published", "published"]
    assert "2 events, unbroken" in run("ledger", "verify").out
    assert run("ledger", "export", str(tmp_path / "log.jsonl")).status == 0
    exported = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [(one["kind"], one["method"], one["by"]) for one in exported] == [
        ("Published", "perturbed", "mia"),
        ("Published", "sps", "mia"),
    ]
    assert exported[0]["file_hash"] == made["sha256"]


def test_a_release_beyond_the_budget_is_refused_and_says_what_fits(checked: Path, run: Callable[..., Ran]) -> None:
    refused = run(*TABLE[:7], "9", *TABLE[8:], *PAID)
    assert refused.status == 1
    assert "KH310: not enough budget of a group for the release" in refused.err
    assert not (checked.parent / "releases").exists()


@pytest.mark.parametrize("name", ["../wards", "a/b", "", ".wards", "Wards", "wards.parquet", "w" * 64, "1st", "a b"])
def test_a_name_leads_nowhere_else(policy: Path, run: Callable[..., Ran], name: str) -> None:
    refused = run(*TABLE[:-1], name, *PAID)
    assert refused.status == 2
    assert "small letters, digits and _" in " ".join(refused.err.split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*TABLE, "--yes"), "say why"),
        ((*TABLE[:6], "--out", "wards"), "what it may cost"),
        ((*TABLE, "--method", "sps"), "has none: no budget covers it"),
        ((*TABLE, "--not-differentially-private"), "table is private"),
        ((*PERTURBED, "--where", "age > 3"), "drawn again, and could be averaged"),
        ((*TABLE[:3], "ward,day", *TABLE[4:]), "every column once"),
        ((*TABLE[:-1], "visits"), "private table of that name"),
        ((*PERTURBED, "--retention", "30"), "30 is no share between 0 and 1: write 30%"),
        ((*TABLE[:7], "much", *TABLE[8:]), "not a number"),
    ],
)
def test_what_is_called_wrongly_ends_with_two(
    policy: Path, run: Callable[..., Ran], arguments: tuple[str, ...], told: str
) -> None:
    ran = run(*arguments)
    assert ran.status == 2
    assert told in " ".join(ran.err.replace("│", " ").split())


def test_a_column_without_a_public_domain_is_refused(checked: Path, run: Callable[..., Ran]) -> None:
    refused = run(*TABLE[:5], "age", *TABLE[6:])
    assert refused.status == 1
    assert 'KH202: column "age" has no public domain' in refused.err
