"""Keys that leave a monitor's answer with a look and may come again, and runs that draw windows anew."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import DatabaseError

from accountant.charges import NANO
from accountant.errors import LedgerMisuse, LedgerUnavailable, LookAlreadyRecorded, WindowClosed
from accountant.ledger import Ledger
from accountant.monitor_model import MonitorAlert, WindowLook
from tests.accountant.balances.test_noise_paths import engine_of
from tests.accountant.conftest import now
from tests.accountant.examples import limits
from tests.accountant.verbs.test_verify_everything import unguarded
from tests.accountant.watching import BY, CAPS, horizon, look, look_at, moment, start
from tests.effort import examples

STEPS = st.lists(st.tuples(st.sets(st.integers(0, 2)), st.sets(st.integers(0, 2))), min_size=1, max_size=12)


def in_answer_after(alerts: Sequence[MonitorAlert], number: int) -> set[int]:
    """The keys in the answer after a look, by all alerts there ever were."""
    return {
        one.key
        for one in alerts
        if one.number <= number and (one.cleared_number is None or one.cleared_number > number)
    }


def test_a_key_goes_with_a_look_and_may_come_again(ledger: Ledger) -> None:
    run = start(ledger).run
    look_at(ledger, run, 0, number=1, keys=(0, 2))
    assert ledger.monitors.find_keys_in_answer(run, 0) == (0, 2)
    look_at(ledger, run, 0, number=4, keys=(1,), cleared=(0,))
    assert ledger.monitors.find_keys_in_answer(run, 0) == (1, 2)
    look_at(ledger, run, 0, number=5, keys=(0,), cleared=(1, 2))
    assert (ledger.monitors.find_keys_in_answer(run, 0), ledger.monitors.find_keys_in_answer(run, 1)) == ((0,), ())
    assert ledger.monitors.read_alerts(run).alerts == (
        MonitorAlert("crowded", run, 1, 0, 0, moment(1), 4, moment(4)),
        MonitorAlert("crowded", run, 1, 0, 2, moment(1), 5, moment(5)),
        MonitorAlert("crowded", run, 4, 0, 1, moment(4), 5, moment(5)),
        MonitorAlert("crowded", run, 5, 0, 0, moment(5)),
    )
    ledger.monitors.end_run(run, **BY)
    assert ledger.monitors.find_keys_in_answer(run, 0) == (0,)
    assert ledger.verify_everything() == 7


def test_windows_have_answers_of_their_own(ledger: Ledger) -> None:
    run = start(ledger).run
    look_at(ledger, run, 0, 1, number=1, keys=(1,))
    look_at(ledger, run, 1, number=2, cleared=(1,))
    assert (ledger.monitors.find_keys_in_answer(run, 0), ledger.monitors.find_keys_in_answer(run, 1)) == ((1,), ())
    assert [one.window for one in ledger.monitors.read_changes(run).cleared] == [1]


def test_what_comes_twice_or_goes_without_having_come_is_refused(ledger: Ledger) -> None:
    """And nothing is written: neither in this window nor in the one beside it."""
    run = start(ledger).run
    look_at(ledger, run, 0, 1, number=1, keys=(1,))
    first, second = ledger.monitors.list_open_windows(run)
    for wrong in (look(first, 1), look(first, cleared=(0,)), look(first, 0, cleared=(2,)), look(first, cleared=(3,))):
        with pytest.raises(LedgerMisuse):
            ledger.monitors.record_look(run, [look(second, 0, cleared=(1,)), wrong], number=2, at=moment(2))
    assert ledger.monitors.list_open_windows(run) == (first, second)
    assert ledger.monitors.find_keys_in_answer(run, 1) == (1,)
    ledger.monitors.record_look(run, [look(first, cleared=(1,))], number=2, at=moment(2))
    with pytest.raises(LookAlreadyRecorded):
        ledger.monitors.record_look(run, [look(first, cleared=(1,))], number=3, at=moment(3))
    (cleared, _) = ledger.monitors.list_open_windows(run)
    with pytest.raises(LedgerMisuse, match="is in the answer"):
        ledger.monitors.record_look(run, [look(cleared, cleared=(1,))], number=3, at=moment(3))
    assert ledger.verify_everything() == 6


@pytest.mark.parametrize(("came", "went"), [((1,), (1,)), ((), (2, 1)), ((), (1, 1))])
def test_a_look_that_cannot_be_is_refused(came: tuple[int, ...], went: tuple[int, ...]) -> None:
    with pytest.raises(LedgerMisuse):
        WindowLook(0, 0, 1, b"drawn", came, went)


def test_changes_come_in_pages_of_whole_looks(ledger: Ledger) -> None:
    """A clearing stands at its own look, however early the alert was."""
    run = start(ledger).run
    look_at(ledger, run, 0, number=1, keys=(0, 1))
    look_at(ledger, run, 0, number=2)
    look_at(ledger, run, 0, number=3, cleared=(0, 1))
    look_at(ledger, run, 0, number=7, keys=(0,))
    pages = []
    after, more = 0, True
    while more:
        page = ledger.monitors.read_changes(run, after_number=after, limit=1)
        pages.append(([one.key for one in page.alerts], [one.key for one in page.cleared], page.last_look))
        after, more = page.last_look, page.has_more
    assert pages == [([0, 1], [], 1), ([], [0, 1], 3), ([0], [], 7)]
    late = ledger.monitors.read_changes(run, after_number=2, limit=2)
    assert ([one.number for one in late.cleared], late.alerts, late.last_look, late.has_more) == ([1, 1], (), 3, True)
    assert ledger.monitors.read_changes(run, after_number=7).cleared == ()
    assert ledger.monitors.read_changes(run, after_number=9).last_look == 9


def test_answers_follow_from_what_looks_changed(tmp_path: Path) -> None:
    """What is refused leaves no trace; changes page by page lead to the same answers. Each example is a monitor."""
    names = count()

    @examples(40, quick=8)
    @given(steps=STEPS)
    def check(steps: list[tuple[set[int], set[int]]]) -> None:
        run, answers = start(ledger, horizon(1), monitor=f"monitor {next(names)}", anew=True).run, {0: set[int]()}
        for came, went in steps:
            number, before = max(answers) + 1, answers[max(answers)]
            fits = before.isdisjoint(came) and went <= before
            try:
                look_at(ledger, run, 0, number=number, keys=tuple(sorted(came)), cleared=tuple(sorted(went)))
            except LedgerMisuse:
                assert not fits or came & went
                continue
            assert fits
            answers[number] = (before | came) - went
            assert ledger.monitors.find_keys_in_answer(run, 0) == tuple(sorted(answers[number]))
        check_history(ledger, run, answers)

    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=now) as ledger:
        check()
        assert ledger.verify_everything() > 0


def check_history(ledger: Ledger, run: str, answers: dict[int, set[int]]) -> None:
    """By all alerts, and by all changes as pages of one look each."""
    alerts, built = ledger.monitors.read_alerts(run).alerts, set[int]()
    after, more = 0, True
    while more:
        page = ledger.monitors.read_changes(run, after_number=after, limit=1)
        assert len({one.number for one in page.alerts} | {one.cleared_number for one in page.cleared}) <= 1
        built = (built | {one.key for one in page.alerts}) - {one.key for one in page.cleared}
        assert built == answers[page.last_look]
        after, more = page.last_look, page.has_more
    assert after == max(answers)
    for number, expected in answers.items():
        assert in_answer_after(alerts, number) == expected


def test_what_cleared_is_told_neither_by_an_export_nor_by_a_report(ledger: Ledger) -> None:
    run = start(ledger).run
    look_at(ledger, run, 0, number=1, keys=(1,))
    before = list(ledger.owner.export_events())[-1]
    look_at(ledger, run, 0, number=2, cleared=(1,))
    after = list(ledger.owner.export_events())[-1]
    assert replace(after, event=before.event, at=before.at, about=before.about, look=1, hash=before.hash) == before


def test_an_alert_is_cleared_once_and_changed_in_nothing_else(ledger_url: str) -> None:
    """By the database itself."""
    with Ledger.open(ledger_url, clock=now) as ledger:
        run = start(ledger).run
        look_at(ledger, run, 0, number=1, keys=(0, 1))
        look_at(ledger, run, 0, number=2, cleared=(1,))
    engine = engine_of(ledger_url)
    for statement in (
        "UPDATE monitor_alerts SET at = '2020'",
        "UPDATE monitor_alerts SET cleared_number = 3",
        "UPDATE monitor_alerts SET cleared_number = 3, cleared_at = '2020' WHERE key_place = 1",
        "UPDATE monitor_alerts SET cleared_number = NULL, cleared_at = NULL WHERE key_place = 1",
        "UPDATE monitor_alerts SET cleared_number = 3, cleared_at = '2020', look_number = 2 WHERE key_place = 0",
        "DELETE FROM monitor_alerts",
    ):
        with engine.connect() as connection, pytest.raises(DatabaseError, match="append-only"):
            connection.execute(sa.text(statement))
    again = "INSERT INTO monitor_alerts VALUES (:run, 0, 0, 5, '2020', NULL, NULL)"
    with engine.connect() as connection, pytest.raises(DatabaseError):
        connection.execute(sa.text(again), {"run": run})
    engine.dispose()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE monitor_alerts SET cleared_number = NULL, cleared_at = NULL",
        "UPDATE monitor_alerts SET cleared_number = 1 WHERE cleared_number = 2",
        "UPDATE monitor_alerts SET cleared_number = 2, cleared_at = at WHERE key_place = 0",
        "UPDATE monitor_alerts SET look_number = 2 WHERE key_place = 1",
    ],
)
def test_clearings_that_looks_did_not_make_are_not_verified(ledger_url: str, statement: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        run = start(ledger).run
        look_at(ledger, run, 0, number=1, keys=(0, 1))
        look_at(ledger, run, 0, number=2, cleared=(1,))
        assert ledger.verify_everything() == 5
    engine = engine_of(ledger_url)
    with unguarded(engine) as connection:
        connection.execute(sa.text(statement))
    engine.dispose()
    with Ledger.open(ledger_url, clock=now) as ledger, pytest.raises(LedgerUnavailable, match="alerts of monitors"):
        ledger.verify_everything()


def test_a_run_that_is_anew_draws_windows_that_an_earlier_one_had_begun(ledger: Ledger) -> None:
    """It pays for them by itself: what the two told adds up on their cells."""
    first = start(ledger)
    look_at(ledger, first.run, 0, 1, number=1, keys=(1,))
    ledger.monitors.end_run(first.run, **BY)
    second = start(ledger, anew=True)
    assert (second.is_restarted, second.excluded_windows, first.is_restarted) == (True, frozenset(), False)
    drawn = ledger.monitors.begin_window(second.run, 0, b"drawn anew")
    assert (drawn.look, drawn.body) == (0, b"drawn anew")
    look_at(ledger, second.run, 0, number=1, keys=(1,))
    assert ledger.monitors.find_keys_in_answer(second.run, 0) == (1,)
    ledger.monitors.end_run(second.run, **BY)
    (family,) = ledger.report_balances(CAPS).families
    assert family.spent_nano == (2 * NANO,) * 3 + (NANO,) * 3 + (0,) * 6
    third = start(ledger)
    assert third.excluded_windows == {0, 1}
    with pytest.raises(WindowClosed):
        ledger.monitors.begin_window(third.run, 0, b"drawn again")
    rows = [row.anew for row in ledger.owner.export_events() if row.kind == "MonitorStarted"]
    assert rows == [None, True, None]
    assert ledger.verify_everything() > 0


def test_a_reader_pays_for_each_run(ledger: Ledger) -> None:
    caps = limits(100 * NANO, analyst_per_predicate=2 * NANO, apart=True)
    for anew in (False, True):
        run = start(ledger, caps=caps, anew=anew).run
        look_at(ledger, run, 0, number=1)
        assert ledger.monitors.charge_reader(run, "bob", caps) is not None
        ledger.monitors.end_run(run, **BY)
    own = ledger.report_balances(caps, analyst="bob")
    assert own.families[0].spent_nano == (2 * NANO,) * 3 + (0,) * 9


def test_a_ledger_opened_from_a_snapshot_knows_which_run_is_anew(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        first = start(ledger, horizon()).run
        look_at(ledger, first, 0, number=1, keys=(0,))
        ledger.monitors.end_run(first, **BY)
        second = start(ledger, anew=True).run
        look_at(ledger, second, 0, number=1, keys=(0,))
        runs = ledger.monitors.list_runs()
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        assert ledger.monitors.list_runs() == runs
        look_at(ledger, second, 0, number=2, cleared=(0,))
        assert ledger.verify_everything() > 0
