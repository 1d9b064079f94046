"""`keyhole bounds` at the command line: what it says before it is paid, and after."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proxy.cli.conftest import Ran
from tests.proxy.report.html.test_page import read

AGES = ("bounds", "visits", "--epsilon", "0.5", "--column", "age")


def test_without_yes_it_says_the_cost_and_spends_nothing(checked: Path, run: Callable[..., Ran]) -> None:
    told = run(*AGES)
    assert told.status == 0
    assert told.out.startswith("1 bound would be found for 0.5 epsilon, and the units are counted.\n")
    assert "Nothing was read or spent." in told.out
    assert run("budget", "--json").document["families"] == []


def test_without_yes_a_program_is_told_the_cost_as_json(checked: Path, run: Callable[..., Ran]) -> None:
    told = run(*AGES, "--json").document
    assert told == {"offered": True, "table": "visits", "epsilon": 0.5, "bounds": 1, "units_counted": True}


def test_a_share_that_is_kept_is_not_called_too_small(checked: Path, run: Callable[..., Ran]) -> None:
    """3,002 rows are enough for 5 %: 150 of them, where noise may add some 40."""
    assert "too few" not in run(*AGES, "--yes", "--why", "a test").out


def test_with_yes_it_prints_a_piece_of_policy_and_again_for_nothing(checked: Path, run: Callable[..., Ran]) -> None:
    paid = run(*AGES, "--yes", "--why", "a test", "--json").document
    assert not paid["paid_before"]
    (bound,) = tomllib.loads(paid["policy"])["tables"]["visits"]["columns"]["age"]["bounds"][1:]
    assert [one["bound"] for one in paid["bounds"]] == [str(bound)]
    again = run(*AGES)
    assert again.out.startswith("Bounds of one (row) in visits: released before, so it costs nothing\n")
    assert paid["policy"] in again.out
    (family,) = run("budget", "--json").document["families"]
    assert family["spent_at_most"] == 0.5
    assert "keyhole bounds visits --epsilon 0.5 --cut 5% --column age (why: a test)" in run("ledger", "list").out


def test_a_bound_that_lets_more_count_than_the_policy_says_so(policy: Path, run: Callable[..., Ran]) -> None:
    """Ages go far beyond 30, so noise on 3,000 rows cannot hide that."""
    policy.write_text(policy.read_text().replace("bounds = [0, 110]", "bounds = [0, 30]"))
    assert run("check").status == 0
    told = run(*AGES, "--yes", "--why", "a test")
    assert "; more than the 30 that the policy declares\n" in told.out
    assert "more of each unit counts" in told.out
    (bound,) = run(*AGES, "--json").document["bounds"]
    assert (bound["declared"], bound["wider_than_declared"]) == ("30", True)


def test_a_bound_within_the_policy_says_nothing_of_it(checked: Path, run: Callable[..., Ran]) -> None:
    assert "declares" not in run(*AGES, "--yes", "--why", "a test").out
    (bound,) = run(*AGES, "--json").document["bounds"]
    assert (bound["declared"], bound["wider_than_declared"]) == ("110", False)


def test_a_bound_that_the_policy_has_is_not_printed_as_new(policy: Path, run: Callable[..., Ran]) -> None:
    """Each id has one row, so bounds of 1 stand. Once the bounds of age are pasted, nothing is left to paste."""
    text = policy.read_text().replace('"row"', '"id"\nmax_groups_per_unit = 1\nrows_per_unit = 1')
    text = text.replace("epsilon_per_query", "epsilon_per_unit = 4.0\nepsilon_per_query", 1)
    text = text.replace("bounds = [0, 110]", "bounds = [0, 110]\nper_unit = [0, 110]")
    policy.write_text(text)
    assert run("check").status == 0
    asked = ("bounds", "visits", "--epsilon", "3", "--column", "age", "--keys", "ward")
    told = run(*asked, "--yes", "--why", "a test").out
    assert "the policy has these already: by ward: in at most 1 groups; by ward: at most 1 rows in one group\n" in told
    assert "groupings" not in told
    found = run(*asked, "--json").document
    assert [one["stands"] for one in found["bounds"]] == [True, True, False]
    (pair,) = [line for line in found["policy"].splitlines() if line.startswith("bounds")]
    policy.write_text(text.replace("bounds = [0, 110]", pair))
    assert run("check", "--confirm").status == 0
    again = run(*asked)
    assert "the policy has all already: by ward: in at most 1 groups; " in again.out
    assert again.out.startswith("Bounds of one (id) in visits: released before")
    assert "# found by" not in again.out
    assert run(*asked, "--json").document["policy"] == ""


def test_a_dry_run_opens_no_source(checked: Path, run: Callable[..., Ran]) -> None:
    source = checked.with_name("visits.csv")
    away = source.rename(checked.with_name("elsewhere.csv"))
    told = run(*AGES, "--dry-run", "--yes", "--why", "a test")
    assert told.status == 0
    assert "This is a dry run: no source was opened." in told.out
    assert run(*AGES, "--dry-run", "--json").document["paid_before"] is False
    assert "KH310" in run("bounds", "visits", "--epsilon", "9", "--column", "age", "--dry-run").err
    away.rename(source)
    assert run("budget", "--json").document["families"] == []


def test_a_page_has_what_is_printed_and_only_text(checked: Path, run: Callable[..., Ran], tmp_path: Path) -> None:
    page = tmp_path / "bounds.html"
    asked = (*AGES, "--html", str(page), "--yes", "--why", "a test")
    assert run(*asked[:-4], str(tmp_path / "nowhere" / "x.html"), *asked[-3:]).status == 2
    assert run("budget", "--json").document["families"] == []
    assert run(*asked).status == 0
    tags = read(page.read_text())
    assert "Bounds of one (row) in visits: paid 0.5 epsilon" in tags.text
    assert "[tables.visits.columns.age]" in tags.text
    assert {"script", "img", "a"}.isdisjoint(name for name, _ in tags.seen)
    assert [name for name, _ in tags.seen].count("svg") == 1
    assert "default-src 'none'" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*AGES, "--yes"), "say why"),
        (("bounds", "visits", "--epsilon", "0", "--column", "age"), "more than 0"),
        (("bounds", "visits", "--epsilon", "nan", "--column", "age"), "not a number"),
        (("bounds", "visits", "--epsilon", "0,2", "--column", "age"), "0,2 is not a number: write 0.2"),
        ((*AGES, "--cut", "100%"), "100% is no share between 0 and 1"),
        ((*AGES, "--cut", "5"), "5 is no share between 0 and 1: write 5%"),
        ((*AGES, "--most", "age"), "COLUMN=NUMBER"),
        ((*AGES, "--most", "age: 90"), "COLUMN=NUMBER, such as age=90"),
        ((*AGES, "--most", "age=90,5"), "write 90.5"),
        ((*AGES, "--most", "id=5"), "no bounds of id are asked for"),
        ((*AGES, "--most", "age=5", "--most", "age=6"), "once"),
        ((*AGES, "--column", "age"), "name each once"),
        ((*AGES, "--keys", "ward,ward"), "name each once"),
        ((*AGES, "--keys", "ward,day", "--keys", "day,ward"), "name each once"),
        (("bounds", "visits", "--epsilon", "1", "--total", "age"), "name the grouping columns"),
    ],
)
def test_what_is_called_wrongly_ends_with_two(
    checked: Path, run: Callable[..., Ran], arguments: tuple[str, ...], told: str
) -> None:
    ran = run(*arguments)
    assert ran.status == 2
    assert told in " ".join(ran.err.split())


def test_a_refusal_is_printed_as_psql_prints_it(checked: Path, run: Callable[..., Ran]) -> None:
    refused = run("bounds", "visits", "--epsilon", "0.001", "--units", "100", "--column", "age")
    assert refused.status == 1
    assert refused.err.startswith("ERROR:  KH311: 5 % of the units cannot be distinguished from none")
    assert "HINT:  Ask with --epsilon" in refused.err
