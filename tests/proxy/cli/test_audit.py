"""`keyhole audit`: it tries to refute what the mechanisms claim."""

import json

import pytest

from mechanisms.audit.subjects import plan_audits
from proxy.cli import main as cli
from tests.proxy.cli.script import child, child_on_a_terminal


def test_an_audit_tries_to_refute_what_the_mechanisms_claim(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong verdict has a probability of 1e-6 a question at most."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "--mechanism", "keyhole", "--samples", "4000", "--processes", "1", "--json"])
    told = capsys.readouterr()
    assert ended.value.code == 0
    reports = json.loads(told.out)
    assert len(reports) == 15
    assert all(0 < report["epsilon_lower"] <= report["claimed_epsilon"] for report in reports)
    assert all(report["conclusive"] and not report["flagged"] for report in reports)
    assert told.err == ""


def test_how_bounds_are_found_is_audited_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong verdict as above."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "--mechanism", "bounds", "--samples", "4000", "--processes", "1", "--json"])
    assert ended.value.code == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["subject"] == "bounds, a unit between candidates"
    assert 1 / 8 <= report["epsilon_lower"] <= report["claimed_epsilon"] == 1


def test_an_audit_that_could_not_fail_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 62 questions 31 measure: at most .3 could be proved, less than an eighth of the 3.3 claimed for three sums."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "--mechanism", "dppwlm", "--samples", "1000", "--processes", "1"])
    assert ended.value.code == 1
    told = capsys.readouterr().out
    assert "NOTHING PROVED" in told
    assert "NOT PRIVATE" not in told
    assert "take more --samples" in told


def test_audits_run_in_processes_and_tell_what_is_done() -> None:
    """The same table in the same order, whoever ran them; a wrong verdict as above."""
    told = child("audit", "--mechanism", "tslm", "--samples", "4000", "--processes", "2", "--progress")
    assert told.returncode == 0
    subjects = [line.split("|")[0].strip() for line in told.stdout.splitlines() if line.startswith(" tslm, ")]
    assert subjects == [audit.subject for audit in plan_audits(["tslm"])]
    lines = told.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"{done} of 5" for done in range(1, 6)]
    assert {line.split(": ")[1] for line in lines} == set(subjects)


def test_an_audit_in_a_terminal_draws_a_bar() -> None:
    ended, told = child_on_a_terminal("audit", "--mechanism", "tslm", "--samples", "1000", "--processes", "1")
    assert "tslm, one condition" in ended.stdout
    assert "auditing" in told
    assert "5/5" in told


def test_an_audit_of_an_unknown_mechanism_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["audit", "--mechanism", "laplace"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert all(name in told for name in ("progressive", "pegasus", "alarm", "ranking", "bounds"))
