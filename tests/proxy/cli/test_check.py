"""`keyhole check`, `keyhole init` and `keyhole refresh`: what owners do before questions are asked."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.build import install_demo as install_demo
from tests.proxy.cli.script import child, child_on_a_terminal
from tests.worlds.wards import QUESTION, TOKENS


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


def test_a_starter_from_a_csv_becomes_a_policy_by_filling_in(
    policy: Path, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    starter = run("init", "--source", "visits.csv", "--unit", "row", "--for", "audit").out
    assert 'url = "duckdb://"' in starter
    filled = (
        starter.replace('refresh = "FILL IN" ', 'refresh = "static" ')
        .replace("# [tables.visits.columns.ward]", "[tables.visits.columns.ward]")
        .replace('# key = { values = ["FILL IN"] }', 'key = { values = ["A", "B"] }')
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
    checked = run("check").out
    assert "public table countries: 38 rows, copied" in checked
    assert (
        "  amount: measure clipped to 0..100 in steps of 0.01, a unit's total per group to 0..1000, bands of sum: 2"
        in checked
    )
    assert "  bands of units: 20, 100" in checked
    sql = "SELECT month FROM sales GROUP BY month HAVING count(*) > 1000"
    months = run("query", "--json", sql).document["keys"]
    assert ["2011-11-01"] in months
    assert run("explain", "--json", sql).document["privacy_unit"] == "customer_id, month"
    unit = run("budget", "--json").document["unit"]
    assert 0 < unit["spent_at_most"] < 8 == unit["spent_at_most"] + unit["left"]


def test_an_explicit_refresh_is_another_data_version(policy: Path, run: Any) -> None:
    policy.write_text(policy.read_text().replace('refresh = "static"', 'refresh = "explicit"'))
    run("check")
    first = run("query", "--json", QUESTION.format(1500)).document
    refreshed = run("refresh", "visits")
    assert refreshed.status == 0
    assert refreshed.out.startswith("visits: data version 2")
    second = run("query", "--json", QUESTION.format(1500)).document
    assert second["data_version"] in refreshed.out
    assert second["data_version"] != first["data_version"]
    assert second["reused"] is False


def test_check_says_when_answers_had_better_wait_for_their_moments(policy: Path, run: Any) -> None:
    def told() -> list[str]:
        ran = run("check")
        assert ran.status == 0, ran.err
        return [line for line in ran.out.splitlines() if "release_every_ms" in line]

    text = policy.read_text(encoding="utf-8")
    assert told() == []
    long = text.replace("[tables.visits.columns.ward]", "[tables.visits.columns.ward]\nmax_length = 4000", 1)
    assert long != text
    policy.write_text(long, encoding="utf-8")
    (warning,) = told()
    assert "tables.visits.columns.ward is a text of up to 4,000 characters" in warning
    policy.write_text(f"{long}\n[server]\nrelease_every_ms = 1000\n", encoding="utf-8")
    assert told() == []


def test_a_check_says_in_a_terminal_what_it_is_doing(policy: Path) -> None:
    ended, told = child_on_a_terminal("check", "-p", str(policy))
    assert ended.returncode == 0
    assert "is valid" in ended.stdout
    assert "reading the source's schema" in told
    elsewhere = child("check", "-p", str(policy))
    assert elsewhere.returncode == 0
    assert elsewhere.stderr == ""
