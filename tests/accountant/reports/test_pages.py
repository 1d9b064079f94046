"""Pages and reports that read what they show say what the whole log says, on both stores."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from accountant.charges import NANO, Reservation, Spent
from accountant.errors import BalanceScope, LedgerUnavailable, OverBudget
from accountant.events.owner_events import Grant
from accountant.ledger import Ledger
from accountant.reports.balance_report import Tally, report_balances
from accountant.reports.history import AskedQuestion, list_questions
from tests.accountant.conftest import now
from tests.accountant.examples import all_of, cells, charge, limits

CAPS = limits(900 * NANO)
BY = {"by": "owner", "why": "agreed"}


def ask(ledger: Ledger, number: int, analyst: str) -> Reservation:
    # a filter that quotes what a reader of the events could take for an analyst or a question
    where = 'note = \'{"analyst":"bob","question":"00\''
    keys = cells(country=("DE", "FR")) if number % 2 else cells(month=("2011-01",))
    return ledger.reserve(charge(analyst=analyst, question=f"{number:064x}", where=where, keys=keys), CAPS)


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    """Twelve questions of two analysts in two windows: committed, released, settled and open ones."""
    for number in range(12):
        made = ask(ledger, number, "bob" if number % 3 == 0 else "ann")
        if number % 4 == 0:
            ledger.commit(made, Spent.from_uniform(number, unit_epsilon_nano=0), b"answer")
        elif number % 4 == 1:
            ledger.release(made)
        elif number % 4 == 2:
            ledger.owner.settle_reservation(made.id, untouched=False, **BY)
        if number == 5:
            ledger.owner.open_window(**BY)
    return ledger


def whole(ledger: Ledger, analyst: str | None) -> tuple[AskedQuestion, ...]:
    return list_questions(ledger.owner.read_log(), analyst=analyst)


def test_pages_together_are_the_whole_log(filled: Ledger) -> None:
    for analyst, limit, only_open in product([None, "ann", "bob", "nobody"], [1, 3, 100], [False, True]):
        wanted = [one for one in reversed(whole(filled, analyst)) if not only_open or one.status == "open"]
        assert only_open or analyst == "nobody" or {one.window_number for one in wanted} == {1, 2}
        seen: list[AskedQuestion] = []
        while True:
            before = seen[-1].reservation if seen else None
            page = filled.read_page(analyst=analyst, before=before, limit=limit, only_open=only_open)
            assert len(page.questions) == min(limit, len(wanted) - len(seen))
            seen += page.questions
            assert page.older_count == len(wanted) - len(seen)
            if not page.older_count:
                break
        assert seen == wanted


def test_an_analysts_questions_and_those_of_an_id_are_the_logs(filled: Ledger) -> None:
    for analyst in ("ann", "bob", "nobody"):
        assert filled.read_history(analyst=analyst) == whole(filled, analyst)
    for one in filled.read_history():
        assert one in filled.find_questions(one.reservation[:20])
        assert filled.find_questions(one.charge.question) == (one,)
    assert filled.find_questions("0" * 63) == filled.read_history()
    assert filled.find_questions("%") == filled.find_questions("_") == ()


def test_a_report_is_that_of_the_whole_log_whoever_wrote_since_the_last(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger, Ledger.open(ledger_url, clock=now) as other:
        for number in range(8):
            made = ask(other if number % 2 else ledger, number, "ann" if number % 3 else "bob")
            if number == 4:
                other.owner.open_window(**BY)
            if number != 6:
                other.commit(made, all_of(made.charge), None)
            tally = Tally()
            for event in other.owner.read_log():
                tally.apply_event(event)
            for analyst in (None, "ann", "bob"):
                assert ledger.report_balances(CAPS, analyst=analyst) == report_balances(tally, CAPS, analyst=analyst)


def test_an_altered_event_is_shown_on_no_page(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now, snapshot_every=1) as ledger:
        for number in range(3):
            ask(ledger, number, "ann")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE events SET payload = replace(payload, '1000000000', '1000000001') WHERE id = 2")
        connection.commit()
    with Ledger.open(url, clock=now) as ledger:  # from stored balances
        with pytest.raises(LedgerUnavailable, match="broken at event 2"):
            ledger.read_page(analyst=None, before=None, limit=2, only_open=False)
        assert len(ledger.read_page(analyst=None, before=None, limit=1, only_open=False).questions) == 1


def test_a_tables_own_cap_holds_instead_of_the_one_for_all_and_is_raised_by_grants(ledger: Ledger) -> None:
    own = (("sales", 3 * NANO), ("visits", NANO // 2))
    for everybodys in (None, NANO // 2, 900 * NANO):
        caps = replace(limits(900 * NANO, per_table=everybodys), own_per_table_nano=own)
        made = ledger.reserve(charge(2 * NANO), caps)
        with pytest.raises(OverBudget) as caught:
            ledger.reserve(charge(2 * NANO), caps)
        assert (caught.value.scope, caught.value.left_nano) == (BalanceScope.PER_TABLE, NANO)
        given = ledger.owner.write_grant(Grant(BalanceScope.PER_TABLE, NANO, "sales", None), **BY)
        (table,) = ledger.report_balances(caps).tables
        assert (table.cap_nano, table.left_nano) == (4 * NANO, 2 * NANO)
        ledger.release(ledger.reserve(charge(2 * NANO), caps))
        ledger.owner.revoke_grant(given, **BY)
        ledger.release(made)
