"""Burn-downs end where reports are, begin anew with a window, and stay short however long the log is."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from accountant.charges import NANO, Spent
from accountant.ledger import Ledger
from accountant.reports.burn_down import EVERYBODY, MOST_MOMENTS, BurnDown
from tests.accountant.examples import cells, charge, limits

BEGINNING = datetime(2026, 3, 1, tzinfo=UTC)
CAPS = limits(900 * NANO, per_unit=900 * NANO)
BY = {"by": "owner", "why": "agreed"}


class Clock:
    def __init__(self) -> None:
        self.now = BEGINNING

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=7)
        return self.now


def ask(ledger: Ledger, number: int, analyst: str) -> None:
    asked = charge(
        NANO // 10, analyst=analyst, question=f"{number:064x}", unit="customer_id", keys=cells(country=("DE", "FR"))
    )
    made = ledger.reserve(asked, CAPS)
    if number % 3 == 0:
        ledger.commit(made, Spent.from_uniform(number + 1, unit_epsilon_nano=number + 1), b"answer")
    elif number % 3 == 1:
        ledger.release(made)


def last(found: BurnDown) -> dict[str, tuple[int, int]]:
    return {line.analyst: (line.spent[-1].largest_key_nano, line.spent[-1].unit_nano) for line in found.lines}


def reported(ledger: Ledger) -> dict[str, tuple[int, int]]:
    report = ledger.report_balances(CAPS)
    most = max((max(family.lost_nano) for family in report.families), default=0)
    return {
        EVERYBODY: (most, report.unit_spent_nano),
        **{one.analyst: (one.most_spent_nano, one.unit_spent_nano) for one in report.analysts},
    }


@pytest.mark.parametrize("questions", [1, 2, 5, 150])
def test_lines_end_where_the_report_is(questions: int, tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=Clock()) as ledger:
        for number in range(questions):
            ask(ledger, number, "bob" if number % 4 == 0 else "ann")
            if number % 50 == 0:
                assert last(ledger.report_burn_down(CAPS)) == reported(ledger)
        found = ledger.report_burn_down(CAPS)
        assert last(found) == reported(ledger)
    for line in found.lines:
        assert line.cap_nano == line.unit_cap_nano == 900 * NANO
        assert [one.at for one in line.spent] == sorted(one.at for one in line.spent)
        assert 0 < len(line.spent) <= MOST_MOMENTS + 1


def test_each_window_begins_anew(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=Clock()) as ledger:
        for number in (0, 3, 6):
            ask(ledger, number, "ann")
        before = reported(ledger)
        ledger.owner.open_window(**BY)
        found = ledger.report_burn_down(CAPS)
        assert last(found)[EVERYBODY] == (0, 0)
        assert len(found.windows) == 1
        earlier = [one for one in found.lines[0].spent if one.at < found.windows[0]]
        assert (earlier[-1].largest_key_nano, earlier[-1].unit_nano) == before[EVERYBODY]


def test_an_analysts_own_cap_counts_where_it_is_lower(tmp_path: Path) -> None:
    caps = replace(CAPS, analyst_per_predicate_nano=2 * NANO, analyst_per_unit_nano=3 * NANO)
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=Clock()) as ledger:
        ask(ledger, 0, "ann")
        everybody, ann = ledger.report_burn_down(caps).lines
        assert (everybody.cap_nano, everybody.unit_cap_nano) == (900 * NANO, 900 * NANO)
        assert (ann.cap_nano, ann.unit_cap_nano) == (2 * NANO, 3 * NANO)


def test_a_ledger_without_questions_has_no_line_but_everybodys(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=Clock()) as ledger:
        (line,) = ledger.report_burn_down(CAPS).lines
        assert (line.analyst, line.spent) == (EVERYBODY, ())
