"""A monitor's life in the ledger: started, looked at, paused, resumed, ended; and what it refuses."""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
import sqlalchemy as sa

from accountant.charges import NANO, Amounts, Reservation
from accountant.errors import (
    LedgerMisuse,
    LedgerUnavailable,
    LookAlreadyRecorded,
    MonitorNotEnded,
    MonitorStopped,
    NotApproved,
    OverBudget,
    WindowClosed,
    WindowLost,
)
from accountant.events.digests import digest
from accountant.events.events import GENESIS
from accountant.ledger import Ledger
from accountant.monitor_model import MonitorAlert, MonitorState, WindowAxis
from accountant.store.snapshot import pack_balances
from tests.accountant.balances.test_noise_paths import engine_of
from tests.accountant.conftest import now
from tests.accountant.examples import all_of, cells, charge, limits
from tests.accountant.verbs.test_verify_everything import unguarded
from tests.accountant.watching import BY, CAPS, DAYS, KEYS, OWNER, horizon, look, look_at, moment, start


def test_a_started_monitor_is_one_reservation_for_its_horizon(ledger: Ledger) -> None:
    run = start(ledger)
    assert run == ledger.monitors.find_newest_run("crowded") == ledger.monitors.list_runs()[0]
    assert (run.state, run.looks_made, run.last_look, run.reason) == (MonitorState.RUNNING, 0, 0, "to see")
    assert ledger.monitors.find_newest_run("another") is None
    one_day = charge(NANO, keys=cells(day=DAYS[:1]), table="visits")
    assert ledger.find_headroom(one_day, CAPS).epsilon_nano == 99 * NANO
    assert ledger.verify_everything() == 2


def test_what_does_not_fit_is_not_started(ledger: Ledger) -> None:
    with pytest.raises(OverBudget):
        start(ledger, caps=limits(NANO - 1))
    with pytest.raises(NotApproved):
        start(ledger, caps=limits(NANO, approval_above=NANO - 1))
    ledger.owner.approve_question("m1", **BY)
    assert start(ledger, caps=limits(NANO, approval_above=NANO - 1)).monitor == "crowded"


def test_what_a_monitor_cannot_be_charged_is_refused(ledger: Ledger) -> None:
    for charged, windows in (
        (replace(horizon(), shared=False), WindowAxis("day", 1)),
        (horizon(), WindowAxis("month", 1)),
    ):
        with pytest.raises(LedgerMisuse):
            start(ledger, charged, windows=windows)
    for overlap, first in ((0, 0), (1, -1), (2, -2)):
        with pytest.raises(LedgerMisuse):
            WindowAxis("day", overlap, first)
    assert ledger.verify_everything() == 0


def test_looks_are_recorded_with_their_alerts(ledger: Ledger) -> None:
    run = start(ledger).run
    drawn = ledger.monitors.begin_window(run, 1, b"drawn")
    assert (drawn.window, drawn.look, drawn.body) == (1, 0, b"drawn")
    ledger.monitors.record_look(run, [look(drawn, 0, 2)], number=3, at=moment(3))
    (state,) = ledger.monitors.list_open_windows(run)
    assert (state.look, state.body) == (1, b"drawn+1")
    again = ledger.monitors.begin_window(run, 2, b"drawn anew")
    ledger.monitors.record_look(run, [look(again, 1), look(state, 1, look=5)], number=4, at=moment(4))
    assert [one.look for one in ledger.monitors.list_open_windows(run)] == [5, 1]
    page = ledger.monitors.read_alerts(run)
    assert page.alerts == (
        MonitorAlert("crowded", run, 3, 1, 0, moment(3)),
        MonitorAlert("crowded", run, 3, 1, 2, moment(3)),
        MonitorAlert("crowded", run, 4, 1, 1, moment(4)),
        MonitorAlert("crowded", run, 4, 2, 1, moment(4)),
    )
    assert (page.last_look, page.has_more) == (4, False)
    found = ledger.monitors.find_newest_run("crowded")
    assert found is not None
    assert (found.looks_made, found.last_look) == (2, 4)
    assert ledger.verify_everything() == 6


def test_alerts_come_in_pages_of_whole_looks(ledger: Ledger) -> None:
    run = start(ledger).run
    look_at(ledger, run, 0, number=1, keys=(0, 1))
    look_at(ledger, run, 1, number=2)
    look_at(ledger, run, 0, number=3, keys=(2,))
    first = ledger.monitors.read_alerts(run, limit=1)
    assert ([one.key for one in first.alerts], first.last_look, first.has_more) == ([0, 1], 1, True)
    second = ledger.monitors.read_alerts(run, after_number=first.last_look, limit=1)
    assert ([one.key for one in second.alerts], second.last_look, second.has_more) == ([2], 3, False)
    assert ledger.monitors.read_alerts(run, after_number=3).alerts == ()
    assert ledger.monitors.read_alerts(run, after_number=9).last_look == 9


def test_a_window_that_has_begun_keeps_its_draw(ledger: Ledger) -> None:
    run = start(ledger).run
    first = ledger.monitors.begin_window(run, 0, b"drawn")
    assert ledger.monitors.begin_window(run, 0, b"drawn anew") == first
    look_at(ledger, run, 0, number=1)
    assert ledger.monitors.begin_window(run, 0, b"drawn anew").body == b"drawn+1"
    assert ledger.monitors.list_begun_windows(run) == {0}
    with pytest.raises(LedgerMisuse, match="does not pay for window 4"):
        ledger.monitors.begin_window(run, 4, b"after the horizon")


def test_a_look_that_was_recorded_meanwhile_is_refused(ledger: Ledger) -> None:
    """Whoever computed it of a state that is not the newest, or for a moment that was looked at."""
    run = start(ledger).run
    drawn = ledger.monitors.begin_window(run, 0, b"drawn")
    ledger.monitors.record_look(run, [look(drawn)], number=2, at=moment(2))
    for late, number in ((look(drawn), 2), (look(drawn), 3), (look(drawn, look=7), 3), (look(drawn, look=7), 1)):
        with pytest.raises(LookAlreadyRecorded):
            ledger.monitors.record_look(run, [late], number=number, at=moment(number))
    assert ledger.verify_everything() == 4


def test_a_look_of_windows_twice_or_none_and_of_other_keys_is_refused(ledger: Ledger) -> None:
    run = start(ledger).run
    drawn = ledger.monitors.begin_window(run, 0, b"drawn")
    for looks in ([], [look(drawn), look(drawn)], [look(drawn, 3)], [look(drawn, -1)]):
        with pytest.raises(LedgerMisuse):
            ledger.monitors.record_look(run, looks, number=1, at=moment(1))
    with pytest.raises(LedgerMisuse):
        look(drawn, 1, 0)
    ledger.monitors.record_look(run, [look(drawn, 1)], number=1, at=moment(1))
    (state,) = ledger.monitors.list_open_windows(run)
    with pytest.raises(LedgerMisuse, match="once in a window"):
        ledger.monitors.record_look(run, [look(state, 1)], number=2, at=moment(2))
    with pytest.raises(WindowClosed):
        ledger.monitors.record_look(run, [replace(look(state), window=2)], number=2, at=moment(2))


def test_the_last_look_closes_with_it(ledger: Ledger) -> None:
    run = start(ledger).run
    drawn = ledger.monitors.begin_window(run, 0, b"drawn")
    ledger.monitors.record_look(run, [look(drawn, 1)], number=1, at=moment(1), closing={0: None})
    assert ledger.monitors.list_open_windows(run) == ()
    assert ledger.monitors.list_closed_windows(run) == ledger.monitors.list_begun_windows(run) == {0}
    for verb in (
        lambda: ledger.monitors.begin_window(run, 0, b"anew"),
        lambda: ledger.monitors.close_window(run, 0, None),
        lambda: ledger.monitors.record_look(run, [look(drawn)], number=2, at=moment(2)),
    ):
        with pytest.raises(WindowClosed):
            verb()
    assert len(ledger.monitors.read_alerts(run).alerts) == 1
    assert ledger.verify_everything() == 5


def test_more_than_was_reserved_is_not_spent(ledger: Ledger) -> None:
    run = start(ledger).run
    ledger.monitors.begin_window(run, 0, b"drawn")
    for losses in ([NANO + 1, 0, 0], [-1, 0, 0], [0, 0], []):
        with pytest.raises(LedgerMisuse):
            ledger.monitors.close_window(run, 0, np.array(losses, dtype=np.int64))
    assert ledger.verify_everything() == 3


def test_a_paused_monitor_makes_no_look(ledger: Ledger) -> None:
    run = start(ledger).run
    drawn = ledger.monitors.begin_window(run, 0, b"drawn")
    ledger.monitors.pause_run(run, by="kim", why="the source moves")
    for verb in (
        lambda: ledger.monitors.record_look(run, [look(drawn)], number=1, at=moment(1)),
        lambda: ledger.monitors.begin_window(run, 0, b"anew"),
        lambda: ledger.monitors.begin_window(run, 1, b"anew"),
        lambda: ledger.monitors.pause_run(run, **BY),
    ):
        with pytest.raises(MonitorStopped, match="paused"):
            verb()
    found = ledger.monitors.find_newest_run("crowded")
    assert found is not None
    assert (found.state, found.reason) == (MonitorState.PAUSED, "the source moves")
    ledger.monitors.resume_run(run, **BY)
    with pytest.raises(MonitorStopped, match="running"):
        ledger.monitors.resume_run(run, **BY)
    ledger.monitors.record_look(run, [look(drawn)], number=1, at=moment(1))
    ledger.monitors.pause_run(run, **BY)
    ledger.monitors.close_window(run, 0, None)
    assert ledger.verify_everything() == 8


def test_an_ended_monitor_makes_no_look_and_begins_no_window_again(ledger: Ledger) -> None:
    first = start(ledger)
    look_at(ledger, first.run, 0, number=1, keys=(1,))
    with pytest.raises(MonitorNotEnded, match="crowded"):
        start(ledger)
    ledger.monitors.pause_run(first.run, **BY)
    with pytest.raises(MonitorNotEnded, match="crowded"):
        start(ledger)
    ledger.monitors.end_run(first.run, **BY)
    for verb in (
        lambda: ledger.monitors.begin_window(first.run, 1, b"drawn"),
        lambda: ledger.monitors.close_window(first.run, 0, None),
        lambda: ledger.monitors.resume_run(first.run, **BY),
        lambda: ledger.monitors.end_run(first.run, **BY),
    ):
        with pytest.raises(MonitorStopped, match="ended"):
            verb()
    second = start(ledger)
    assert (second.excluded_windows, first.excluded_windows) == (frozenset({0}), frozenset())
    assert ledger.monitors.find_newest_run("crowded") == second
    with pytest.raises(WindowClosed):
        ledger.monitors.begin_window(second.run, 0, b"drawn")
    look_at(ledger, second.run, 1, number=1)
    ledger.monitors.end_run(second.run, **BY)
    changed = start(ledger, horizon(fingerprint="m2"))
    assert changed.excluded_windows == frozenset()
    assert len(ledger.monitors.read_alerts(first.run).alerts) == 1
    assert ledger.verify_everything() > 0


def test_a_monitor_may_begin_late_in_its_horizon(ledger: Ledger) -> None:
    rest = charge(NANO, keys=cells(day=DAYS[2:], ward=("A", "B", "C")), analyst=OWNER, question="m1", table="visits")
    run = start(ledger, rest, windows=WindowAxis("day", 1, 2)).run
    for window in (0, 1, 4):
        with pytest.raises(LedgerMisuse, match="does not pay"):
            ledger.monitors.begin_window(run, window, b"drawn")
    look_at(ledger, run, 2, 3, number=30)
    ledger.monitors.close_window(run, 3, np.array([0, 5, 0]))
    ledger.monitors.end_run(run, **BY)
    (family,) = ledger.report_balances(CAPS).families
    assert family.spent_nano == (NANO, NANO, NANO, 0, 5, 0)


def test_a_monitors_reservation_is_no_question_that_died(ledger: Ledger) -> None:
    run = start(ledger)
    reservation = Reservation(run.run, run.charge, run.started_at)
    for verb in (
        lambda: ledger.owner.settle_reservation(run.run, untouched=True, **BY),
        lambda: ledger.owner.settle_reservation(run.run, untouched=False, **BY),
        lambda: ledger.release(reservation),
        lambda: ledger.commit(reservation, all_of(run.charge), None),
        lambda: ledger.owner.open_window(**BY),
    ):
        with pytest.raises(MonitorNotEnded, match="crowded"):
            verb()
    assert ledger.list_open_reservations() == ()
    assert ledger.read_page(analyst=None, before=None, limit=9, only_open=True).questions == ()
    (shown,) = ledger.read_page(analyst=None, before=None, limit=9, only_open=False).questions
    assert (shown.status, shown.monitor, shown.spent) == ("standing", "crowded", None)
    hour = timedelta(hours=1)
    assert ledger.reserve(replace(run.charge, analyst=OWNER), CAPS, once_within=hour).id != run.run
    ledger.monitors.pause_run(run.run, **BY)
    with pytest.raises(MonitorNotEnded):
        ledger.owner.open_window(**BY)
    ledger.monitors.end_run(run.run, **BY)
    ended = ledger.read_history()[0]
    assert (ended.status, ended.largest_losses) == ("ended", Amounts(0, 0))
    ledger.owner.open_window(**BY)
    with pytest.raises(LedgerMisuse, match="ended"):
        ledger.owner.settle_reservation(run.run, untouched=False, **BY)


def test_a_lease_is_somebody_elses_until_it_is_over(ledger: Ledger) -> None:
    monitors = ledger.monitors

    def take(*names: str, holder: str, seconds: int = 3600) -> set[str]:
        return set(monitors.take_leases(names, holder=holder, seconds=seconds))

    assert take("crowded", holder="one") == {"crowded"}
    assert take("crowded", "another", holder="two") == {"another"}
    assert take("crowded", holder="one", seconds=0) == {"crowded"}
    assert take("crowded", holder="two") == {"crowded"}
    monitors.release_leases(["crowded", "another"], holder="one")
    assert take("crowded", "another", holder="one") == set()
    monitors.release_leases(["crowded"], holder="two")
    assert take("crowded", "another", holder="one") == {"crowded"}


def test_a_state_that_is_gone_is_never_drawn_anew(ledger: Ledger) -> None:
    run = start(ledger).run
    look_at(ledger, run, 0, 1, number=1)
    with ledger._journal.begin_write() as (transaction, _):
        transaction.monitors.drop_states(run, (1,))
    with pytest.raises(WindowLost) as lost:
        ledger.monitors.list_open_windows(run)
    assert lost.value.windows == (1,)
    with pytest.raises(WindowLost):
        ledger.monitors.begin_window(run, 1, b"drawn anew")
    ledger.monitors.close_window(run, 1, None)
    assert [one.window for one in ledger.monitors.list_open_windows(run)] == [0]
    assert ledger.verify_everything() > 0


def test_a_reader_pays_once_and_gets_back_what_never_began(ledger: Ledger) -> None:
    caps = limits(100 * NANO, analyst_per_predicate=NANO, analyst_per_unit=2 * NANO, apart=True)
    run = start(ledger, horizon(unit="person"), caps=caps).run
    before = ledger.find_headroom(horizon(unit="person"), caps)
    assert ledger.monitors.charge_reader(run, "bob", caps) is not None
    assert ledger.monitors.charge_reader(run, "bob", caps) is None
    assert ledger.find_headroom(horizon(unit="person"), caps).shared_room == before.shared_room
    with pytest.raises(OverBudget):
        ledger.reserve(charge(1, keys=KEYS, analyst="bob", table="visits", unit="person"), caps)
    look_at(ledger, run, 0, number=1)
    ledger.monitors.close_window(run, 0, np.array([7, 8, 9]))
    ledger.monitors.end_run(run, **BY)
    (read,) = ledger.read_history(analyst="bob")
    assert (read.status, read.read_reservation) == ("read", run)
    own = ledger.report_balances(caps, analyst="bob")
    assert own.families[0].spent_nano == (7, 8, 9, *[0] * 9)
    assert own.unit_spent_nano == 17
    ledger.monitors.charge_reader(run, "carl", caps)
    assert ledger.report_balances(caps, analyst="carl").families[0].spent_nano == (7, 8, 9, *[0] * 9)
    with pytest.raises(OverBudget):
        ledger.monitors.charge_reader(run, "dan", limits(100 * NANO, analyst_per_predicate=NANO - 1))
    assert ledger.verify_everything() > 0


def test_what_windows_did_not_cost_is_given_back_as_they_close(ledger: Ledger) -> None:
    run = start(ledger).run
    look_at(ledger, run, 0, 1, number=1)
    ledger.monitors.close_window(run, 0, np.array([NANO, 5, 0]))
    ledger.monitors.close_window(run, 1, np.array([3, 3, 3]))
    (family,) = ledger.report_balances(CAPS).families
    assert family.spent_nano == (NANO, 5, 0, 3, 3, 3, *[NANO] * 6)
    assert ledger.report_balances(CAPS).tables[0].spent_nano == NANO
    ledger.monitors.end_run(run, **BY)
    assert ledger.report_balances(CAPS).families[0].spent_nano == (NANO, 5, 0, 3, 3, 3, *[0] * 6)


def test_what_windows_that_overlap_did_not_cost_is_kept(ledger: Ledger) -> None:
    """A cell is charged for all windows of its rows together; those near one that has begun are not given back."""
    run = start(ledger, windows=WindowAxis("day", 2)).run
    look_at(ledger, run, 0, number=1)
    ledger.monitors.close_window(run, 0, np.array([0, 0, 0]))
    assert ledger.report_balances(CAPS).families[0].spent_nano == (NANO,) * 12
    ledger.monitors.end_run(run, **BY)
    assert ledger.report_balances(CAPS).families[0].spent_nano == (NANO,) * 6 + (0,) * 6
    assert ledger.verify_everything() > 0


def test_windows_that_are_read_before_the_horizon_are_charged_and_never_begin(ledger: Ledger) -> None:
    """The first of four days is read by the second alone. What no begun window read is given back at the end."""
    run = start(ledger, windows=WindowAxis("day", 2, first=-1)).run
    for window in (-1, 3):
        with pytest.raises(LedgerMisuse):
            ledger.monitors.begin_window(run, window, b"drawn")
    look_at(ledger, run, 0, number=1)
    ledger.monitors.end_run(run, **BY)
    assert ledger.report_balances(CAPS).families[0].spent_nano == (NANO,) * 9 + (0,) * 3
    assert ledger.verify_everything() > 0


def test_what_windows_did_not_cost_shows_in_nobody_elses_balances(ledger: Ledger) -> None:
    caps = limits(2 * NANO, apart=True)
    run = start(ledger, caps=caps).run
    look_at(ledger, run, 0, number=1)
    asked = {one: charge(0, keys=cells(day=DAYS[:1]), table="visits", analyst=one) for one in ("bob", OWNER)}
    ledger.monitors.close_window(run, 0, np.array([0, 0, 0]))
    assert ledger.find_headroom(asked["bob"], caps).epsilon_nano == NANO
    assert ledger.find_headroom(asked[OWNER], caps).epsilon_nano == 2 * NANO
    ledger.monitors.end_run(run, **BY)
    assert ledger.find_headroom(asked["bob"], caps).epsilon_nano == NANO
    later = charge(0, keys=cells(day=DAYS[1:2]), table="visits", analyst="bob")
    assert ledger.find_headroom(later, caps).epsilon_nano == 2 * NANO


def test_what_is_secret_is_in_no_export_and_no_report(ledger: Ledger) -> None:
    secret, alerted = b"U" * 40, 2
    run = start(ledger).run
    drawn = ledger.monitors.begin_window(run, 0, secret)
    ledger.monitors.record_look(run, [look(drawn, alerted)], number=1, at=moment(1))
    (state,) = ledger.monitors.list_open_windows(run)
    found = ledger.monitors.find_newest_run("crowded")
    told = (
        *(
            list(ledger.owner.export_events()),
            ledger.owner.read_log(),
            ledger.read_history(),
            ledger.find_questions(run),
        ),
        *(
            ledger.report_balances(CAPS),
            found,
            ledger.monitors.list_runs(),
            state,
            look(state),
            ledger.monitors.read_alerts(run),
        ),
    )
    for one in told:
        assert secret.decode() not in repr(one)
        assert secret.hex() not in repr(one)
    begun, looked = list(ledger.owner.export_events())[2:]
    assert (begun.kind, begun.run, begun.window) == ("MonitorWindowBegun", run, 0)
    assert (looked.kind, looked.run, looked.look, looked.looked_at) == ("MonitorLooked", run, 1, 1)
    with ledger._journal.begin_read() as (transaction, balances):
        assert secret not in pack_balances(balances)
        assert all(secret.decode() not in record.payload for record in transaction.read_records_after(0, GENESIS))
    ledger.monitors.close_window(run, 0, None)
    with ledger._journal.begin_log_read() as transaction:
        assert list(transaction.monitors.find_states(None)) == []


def test_what_the_log_tells_of_a_state_cannot_be_guessed(ledger: Ledger) -> None:
    """A state may be an exact count and no more, one of a few: neither its digest nor that of the next look, which may
    be of the same bytes, is among those that could be tried."""
    guesses = {digest(b"count %d" % number) for number in range(100)}
    run = start(ledger).run
    drawn = ledger.monitors.begin_window(run, 0, b"count 17")
    ledger.monitors.record_look(run, [look(drawn, body=b"count 17")], number=1, at=moment(1))
    with ledger._journal.begin_read() as (transaction, balances):
        payloads = [json.loads(record.payload) for record in transaction.read_records_after(0, GENESIS)]
        assert balances.monitors.find_run(run).open_windows[0].state not in guesses
    told = {payloads[2]["state"], payloads[3]["windows"][0][2]}
    assert len(told) == 2
    assert not told & guesses
    (state,) = ledger.monitors.list_open_windows(run)
    assert state.body == b"count 17"
    ledger.verify_everything()


def test_every_event_of_a_monitor_is_exported(ledger: Ledger) -> None:
    run = start(ledger).run
    look_at(ledger, run, 0, number=1)
    ledger.monitors.close_window(run, 0, np.array([1, 2, 3]))
    ledger.monitors.pause_run(run, by="kim", why="quiet")
    ledger.monitors.resume_run(run, **BY)
    ledger.monitors.end_run(run, by="kim", why="over")
    rows = list(ledger.owner.export_events())
    assert [row.kind for row in rows][1:] == [
        *("MonitorStarted", "MonitorWindowBegun", "MonitorLooked", "MonitorWindowClosed"),
        *("MonitorPaused", "MonitorResumed", "MonitorEnded"),
    ]
    assert (rows[1].about, rows[1].monitor, rows[1].question, rows[1].by) == (run, "crowded", "m1", "the owner")
    assert (rows[4].epsilon_nano, rows[5].why, rows[7].epsilon_nano, rows[7].why) == (3, "quiet", 3, "over")


def test_a_ledger_whose_newest_look_was_cut_off_is_not_verified(ledger_url: str) -> None:
    """The chain of events cannot tell; the state that is there was made by a look that is not."""
    with Ledger.open(ledger_url, clock=now) as ledger:
        run = start(ledger).run
        look_at(ledger, run, 0, number=1)
    engine = engine_of(ledger_url)
    with unguarded(engine) as connection:
        connection.execute(sa.text("DELETE FROM events WHERE kind = 'MonitorLooked'"))
    engine.dispose()
    with Ledger.open(ledger_url, clock=now) as ledger:
        with pytest.raises(LedgerUnavailable, match="not what was written"):
            ledger.verify_everything()
        with pytest.raises(WindowLost):
            ledger.monitors.list_open_windows(run)


def test_a_ledger_opened_from_a_snapshot_knows_its_monitors(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        first = start(ledger).run
        look_at(ledger, first, 0, 1, number=1, keys=(0,))
        ledger.monitors.close_window(first, 0, np.array([1, 2, 3]))
        ledger.monitors.charge_reader(first, "bob", CAPS)
        ledger.monitors.end_run(first, **BY)
        second = start(ledger).run
        look_at(ledger, second, 2, number=1)
        runs = ledger.monitors.list_runs()
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        assert ledger.monitors.list_runs() == runs
        assert runs[1].excluded_windows == {0, 1}
        assert ledger.monitors.charge_reader(first, "bob", CAPS) is None
        look_at(ledger, second, 2, number=2)
        ledger.monitors.end_run(second, **BY)
        assert ledger.verify_everything() > 0
