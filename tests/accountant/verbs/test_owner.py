"""What owners decide: grants, windows, approvals, settlements, and what they read."""

from dataclasses import replace

import pytest

from accountant.charges import MOST_NANO_PER_CHARGE, NANO, Amounts, PathState, Spent, Wording
from accountant.errors import BalanceScope, LedgerMisuse, NotApproved, OverBudget, PathTaken
from accountant.events.owner_events import Approved, Declined, Grant, Granted, Revoked, Settled, WindowOpened
from accountant.ledger import Ledger
from accountant.limits import BalanceRoom, Limits
from tests.accountant.conftest import now
from tests.accountant.examples import all_of, cells, charge, continuing, limits, per_key

BY = {"by": "owner", "why": "the study board agreed"}


def grant(scope: BalanceScope, amount: int = NANO, *, table: str | None = None, analyst: str | None = None) -> Grant:
    return Grant(scope=scope, amount_nano=amount, table=table, analyst=analyst)


@pytest.mark.parametrize(
    ("caps", "given"),
    [
        (limits(2 * NANO), grant(BalanceScope.PER_PREDICATE)),
        (limits(2 * NANO), grant(BalanceScope.PER_PREDICATE, table="sales")),
        (limits(9 * NANO, per_unit=2 * NANO), grant(BalanceScope.PER_UNIT)),
        (limits(9 * NANO, per_table=2 * NANO), grant(BalanceScope.PER_TABLE, table="sales")),
        (limits(9 * NANO, analyst_per_predicate=2 * NANO), grant(BalanceScope.ANALYST_PER_PREDICATE, analyst="ann")),
        (limits(9 * NANO, analyst_per_unit=2 * NANO), grant(BalanceScope.ANALYST_PER_UNIT, analyst="ann")),
    ],
)
def test_a_grant_raises_its_cap_until_it_is_revoked(ledger_url: str, caps: Limits, given: Grant) -> None:
    asked = charge(3 * NANO, unit="customer_id")
    with Ledger.open(ledger_url, clock=now) as ledger, Ledger.open(ledger_url, clock=now) as other:
        with pytest.raises(OverBudget):
            ledger.reserve(asked, caps)
        identity = ledger.owner.write_grant(given, **BY)
        assert other.owner.list_grants() == {identity: given}
        assert other.find_headroom(asked, caps).admits_charge(asked)
        other.release(other.reserve(asked, caps))
        ledger.owner.revoke_grant(identity, **BY)
        with pytest.raises(OverBudget):
            other.reserve(asked, caps)
        with pytest.raises(LedgerMisuse):
            ledger.owner.revoke_grant(identity, **BY)
        assert ledger.verify_everything() == 4


def test_grants_for_others_raise_nothing(ledger: Ledger) -> None:
    caps = limits(2 * NANO, per_table=2 * NANO, analyst_per_predicate=2 * NANO)
    for given in (
        grant(BalanceScope.PER_PREDICATE, table="visits"),
        grant(BalanceScope.PER_TABLE, table="visits"),
        grant(BalanceScope.ANALYST_PER_PREDICATE, analyst="bob"),
    ):
        ledger.owner.write_grant(given, **BY)
    assert ledger.find_headroom(charge(), caps).room_without_paths == BalanceRoom(2 * NANO, None)
    assert ledger.report_balances(caps).tables == ()


def test_what_was_spent_within_a_revoked_grant_stays_spent(ledger: Ledger) -> None:
    identity = ledger.owner.write_grant(grant(BalanceScope.PER_PREDICATE, 2 * NANO), **BY)
    ledger.reserve(charge(5 * NANO), limits(4 * NANO))
    ledger.owner.revoke_grant(identity, **BY)
    assert ledger.find_headroom(charge(), limits(4 * NANO)).epsilon_nano == -NANO
    assert ledger.find_headroom(charge(), limits(6 * NANO)).epsilon_nano == NANO


def test_impossible_grants_cannot_be_expressed() -> None:
    for scope, amount, table, analyst in (
        (BalanceScope.PER_PREDICATE, 0, None, None),
        (BalanceScope.PER_PREDICATE, -1, None, None),
        (BalanceScope.PER_PREDICATE, 1000 * MOST_NANO_PER_CHARGE + 1, None, None),
        (BalanceScope.PER_QUERY, 1, None, None),
        (BalanceScope.PER_PREDICATE, 1, None, "ann"),
        (BalanceScope.ANALYST_PER_UNIT, 1, None, None),
        (BalanceScope.PER_TABLE, 1, None, None),
        (BalanceScope.PER_UNIT, 1, "sales", None),
    ):
        with pytest.raises(LedgerMisuse):
            grant(scope, amount, table=table, analyst=analyst)


def test_caps_too_large_to_count_are_as_large_as_can_be_counted(ledger: Ledger) -> None:
    ledger.owner.write_grant(grant(BalanceScope.PER_PREDICATE, 1000 * MOST_NANO_PER_CHARGE), **BY)
    caps = limits(2**63 - 1, per_unit=2**80, analyst_per_predicate=2**63)
    for unit in ("row", "customer_id"):
        ledger.reserve(charge(3 * NANO, unit=unit), caps)
        assert ledger.find_headroom(charge(unit=unit), caps).epsilon_nano == MOST_NANO_PER_CHARGE
    ledger.report_balances(caps)
    ledger.report_balances(caps, analyst="ann")


def test_a_table_s_cap_adds_up_questions_whatever_their_keys(ledger: Ledger) -> None:
    caps = limits(4 * NANO, per_table=5 * NANO)
    ledger.reserve(charge(3 * NANO, keys=cells(country=("FR",))), caps)
    second = ledger.reserve(charge(2 * NANO, keys=cells(country=("DE",))), caps)
    with pytest.raises(OverBudget) as refusal:
        ledger.reserve(charge(1, keys=cells(country=("UK",))), caps)
    assert (refusal.value.scope, refusal.value.left_nano) == (BalanceScope.PER_TABLE, 0)
    ledger.reserve(charge(1, table="visits"), caps)
    ledger.commit(second, per_key([NANO]), None)
    assert ledger.find_headroom(charge(), caps).epsilon_nano == NANO
    sales, visits = ledger.report_balances(caps).tables
    assert (sales.table, sales.spent_nano, sales.cap_nano, sales.left_nano) == ("sales", 4 * NANO, 5 * NANO, NANO)
    assert visits.spent_nano == 1


def test_a_table_with_units_counts_whole_units(ledger: Ledger) -> None:
    caps = limits(9 * NANO, per_table=5 * NANO)
    ledger.reserve(charge(NANO, unit="customer_id", unit_epsilon_nano=4 * NANO), caps)
    asked = charge(NANO, unit="customer_id", unit_epsilon_nano=2 * NANO)
    with pytest.raises(OverBudget) as refusal:
        ledger.reserve(asked, caps)
    assert (refusal.value.scope, refusal.value.needed_nano) == (BalanceScope.PER_TABLE, 2 * NANO)
    assert ledger.find_headroom(asked, caps).room_without_paths == BalanceRoom(8 * NANO, NANO)


def test_a_question_above_the_threshold_waits_for_approval(ledger: Ledger) -> None:
    caps = limits(approval_above=NANO)
    ledger.release(ledger.reserve(charge(NANO), caps))
    with pytest.raises(NotApproved) as refusal:
        ledger.reserve(charge(NANO + 1), caps)
    assert (refusal.value.question, refusal.value.above_nano) == ("q1", NANO)
    assert not ledger.is_approved("q1")
    assert ledger.owner.approve_question("q1", **BY)
    assert not ledger.owner.approve_question("q1", **BY)
    assert ledger.is_approved("q1")
    ledger.reserve(charge(NANO + 1), caps)
    with pytest.raises(NotApproved):
        ledger.reserve(charge(NANO + 1, question="q2"), caps)
    with pytest.raises(OverBudget):
        ledger.reserve(charge(4 * NANO, question="q2"), caps)
    assert ledger.verify_everything() == 4


def test_a_stored_answer_is_read_by_others_only_once_its_question_is_approved(ledger: Ledger) -> None:
    before, since = limits(), limits(approval_above=NANO)
    first = ledger.reserve(charge(2 * NANO), before)
    ledger.commit(first, all_of(first.charge), b"FR")
    stored = ledger.find_answer("q1", "v1", analyst="bob")
    assert stored is not None
    with pytest.raises(NotApproved):
        ledger.charge_reader(stored.make_reading_charge("bob"), since, answer=stored)
    assert ledger.charge_reader(stored.make_reading_charge("ann"), since, answer=stored) is None
    assert ledger.verify_everything() == 2
    ledger.owner.approve_question("q1", **BY)
    assert ledger.charge_reader(stored.make_reading_charge("bob"), since, answer=stored) is not None


def test_a_window_lets_balances_start_anew_but_for_what_is_open(ledger_url: str) -> None:
    caps = limits(4 * NANO, per_unit=4 * NANO, per_table=4 * NANO, analyst_per_predicate=4 * NANO)
    with Ledger.open(ledger_url, clock=now) as ledger:
        spent = ledger.reserve(charge(2 * NANO, unit="customer_id"), caps)
        ledger.commit(spent, all_of(spent.charge), b"FR", paths={"sum": b"values"})
        ended = ledger.reserve(charge(NANO, unit="customer_id"), caps)
        still_open = ledger.reserve(charge(NANO, unit="customer_id"), caps)
        ledger.owner.open_window(**BY)
        asked = charge(1, unit="customer_id")
        assert ledger.find_headroom(asked, caps).room_without_paths == BalanceRoom(2 * NANO, 2 * NANO)
        ledger.release(ended)
        assert ledger.find_headroom(asked, caps).room_without_paths == BalanceRoom(3 * NANO, 3 * NANO)
        ledger.commit(still_open, Spent.from_uniform(NANO // 2, unit_epsilon_nano=NANO // 2), None)
        assert ledger.find_headroom(asked, caps).room_without_paths == BalanceRoom(
            3 * NANO + NANO // 2, 3 * NANO + NANO // 2
        )
        assert ledger.find_paths(["sum"], "v1") == {}
        stored = ledger.find_answer("q1", "v1", analyst="ann")
        assert stored is not None
        assert stored.is_held
        report, overall = ledger.report_balances(caps), ledger.report_balances(caps, covers_all_windows=True)
        assert (report.unit_spent_nano, overall.unit_spent_nano) == (NANO // 2, 5 * NANO // 2)
        assert (report.window_count, report.window_opened_at is None, overall.window_opened_at) == (2, False, None)
        assert [question.window_number for question in ledger.read_history()] == [1, 1, 1]
    with Ledger.open(ledger_url, clock=now) as again:
        assert again.report_balances(caps) == report
        assert again.verify_everything() == 7


def test_a_question_that_continues_a_path_across_a_window_is_charged_in_full_there(ledger: Ledger) -> None:
    """What it tells is less than the difference only together with what the old window told."""
    caps = limits(9 * NANO)
    first = ledger.reserve(charge(2 * NANO), caps)
    ledger.commit(first, all_of(first.charge), None, paths={"sum": b"values"})
    state = ledger.find_paths(["sum"], "v1")["sum"].state
    asked = charge(3 * NANO, analyst="bob", continuing=continuing(state, shared=NANO, known=NANO))
    for apart in (False, True):
        second = ledger.reserve(asked, caps)
        ledger.owner.open_window(**BY)
        seen = replace(caps, separates_analysts=apart)
        assert ledger.find_headroom(charge(1, analyst="eve"), seen).epsilon_nano == 6 * NANO
        with pytest.raises(PathTaken):
            ledger.reserve(asked, caps)
        ledger.commit(second, per_key([3 * NANO] * 3, fresh=[NANO] * 3), None, paths={"sum": b"more"})
        assert ledger.find_headroom(charge(1, analyst="eve"), seen).epsilon_nano == 6 * NANO
        assert ledger.find_paths(["sum"], "v1") == {}
        again = ledger.reserve(charge(0, analyst="bob"), caps)
        ledger.commit(again, all_of(again.charge), None, paths={"sum": b"values"})
        state = ledger.find_paths(["sum"], "v1")["sum"].state
        asked = replace(asked, path_continuation=continuing(state, shared=NANO, known=NANO))
    (family,) = ledger.report_balances(caps, covers_all_windows=True).families
    assert family.spent_nano == (4 * NANO,) * 3
    assert ledger.verify_everything() == 12


def test_no_path_survives_a_window(ledger_url: str) -> None:
    """What everybody reads of a path in a window was all charged in it."""
    caps = limits(100)
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        first = ledger.reserve(charge(60), caps)
        ledger.commit(first, all_of(first.charge), None, paths={"f": b"60"})
        state = ledger.find_paths(["f"], "v1")["f"].state
        asked = charge(10, keys=cells(country=("DE",)), continuing=continuing(state, shared=0, known=0))
        second = ledger.reserve(asked, caps)
        ledger.owner.open_window(**BY)
        ledger.owner.open_window(**BY)
    with Ledger.open(ledger_url, clock=now) as ledger:
        ledger.verify_everything()
        fresh = per_key([10], fresh=[0])
        ledger.commit(second, fresh, b"DE", paths={"f": b"60"})
        assert ledger.find_paths(["f"], "v1") == {}
        assert [sizes.state_count for sizes in ledger.owner.measure_paths()] == [1]
        with pytest.raises(PathTaken):
            ledger.reserve(
                replace(asked, path_continuation=continuing(PathState("f", "v1", second.id), shared=0, known=0)), caps
            )
        assert ledger.verify_everything() == 6
        for all_windows, spent in ((False, 10), (True, 60)):
            reports = ledger.report_balances(caps, covers_all_windows=all_windows).families
            assert max(nano for family in reports for nano in family.spent_nano) == spent


def test_a_commit_across_a_window_is_covered_in_the_old_one_too(ledger: Ledger) -> None:
    caps = limits(100)
    first = ledger.reserve(charge(60), caps)
    ledger.commit(first, all_of(first.charge), None, paths={"f": b"60"})
    state = ledger.find_paths(["f"], "v1")["f"].state
    asked = charge(80, continuing=continuing(state, shared=20, known=20))
    second = ledger.reserve(asked, caps)
    ledger.owner.open_window(**BY)
    for spent in (per_key([80] * 3), per_key([80] * 3, fresh=[21] * 3), per_key([81] * 3, fresh=[20] * 3)):
        with pytest.raises(LedgerMisuse):
            ledger.commit(second, spent, None)
    ledger.commit(second, per_key([80] * 3, fresh=[20] * 3), None)
    for all_windows in (False, True):
        (family,) = ledger.report_balances(caps, covers_all_windows=all_windows).families
        assert family.spent_nano == (80,) * 3
    assert ledger.verify_everything() == 5


def test_history_and_export_list_everything(ledger: Ledger) -> None:
    caps = limits(20 * NANO)
    first = ledger.reserve(charge(2 * NANO), caps)
    ledger.commit(first, per_key([NANO, 0, 0]), b"FR", paths={"sum": b"values"})
    state = ledger.find_paths(["sum"], "v1")["sum"].state
    second = ledger.reserve(charge(3 * NANO, analyst="bob", continuing=continuing(state, shared=3, known=2)), caps)
    ledger.commit(second, per_key([NANO, 0, 0], fresh=[2, 0, 1]), None)
    stored = ledger.find_answer("q1", "v1", analyst="bob")
    assert stored is not None
    ledger.charge_reader(stored.make_reading_charge("bob"), caps, answer=stored)
    dead = ledger.reserve(charge(NANO), caps)
    ledger.owner.settle_reservation(dead.id, untouched=False, by="owner", why="killed")
    ledger.owner.write_grant(grant(BalanceScope.PER_UNIT), **BY)
    ledger.owner.open_window(**BY)
    listed = ledger.read_history()
    assert [question.status for question in listed] == ["committed", "committed", "read", "settled"]
    assert (listed[2].read_reservation, listed[3].settled_by, listed[3].settled_why) == (first.id, "owner", "killed")
    assert [question.reservation for question in listed][:2] == [first.id, second.id]
    exported = list(ledger.owner.export_events())
    assert [record.event for record in exported] == list(range(1, 11))
    assert [record.kind for record in exported[:4]] == ["Reserved", "Committed", "Reserved", "Committed"]
    committed = exported[3]
    assert (committed.epsilon_nano, committed.shared_epsilon_nano) == (NANO, 2)
    assert (exported[2].shared_epsilon_nano, exported[2].paths, exported[4].shared_epsilon_nano) == (3, 1, 0)
    assert (exported[8].scope, exported[8].why) == ("per_unit", BY["why"])
    number, newest = ledger.owner.find_newest_event()
    assert (number, newest) == (10, exported[-1].hash)
    assert ledger.owner.has_event(10, newest)
    assert not ledger.owner.has_event(9, newest)
    assert not ledger.owner.has_event(11, newest)
    assert not ledger.owner.has_event(0, newest)
    assert "values" not in repr(exported)


def test_what_owners_decided_reads_back_as_it_was(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        reservation = ledger.reserve(charge(), limits())
        identity = ledger.owner.write_grant(grant(BalanceScope.PER_PREDICATE, table="sales"), **BY)
        ledger.owner.revoke_grant(identity, **BY)
        ledger.owner.settle_reservation(reservation.id, untouched=True, **BY)
        ledger.owner.approve_question("q1", **BY)
        ledger.owner.open_window(**BY)
        ledger.owner.prune_paths("sales", "v1", **BY)
    with Ledger.open(ledger_url, clock=now) as ledger:
        decided = list(ledger.owner.read_decisions())
        assert [type(event).__name__ for event in decided] == [
            "Granted", "Revoked", "Settled", "Approved", "WindowOpened", "Pruned",
        ]  # fmt: skip
        assert all((event.by, event.why) == (BY["by"], BY["why"]) for event in decided)
        given, revoked, settled, approved, window, _ = decided
        assert isinstance(given, Granted)
        assert given.grant == grant(BalanceScope.PER_PREDICATE, table="sales")
        assert isinstance(revoked, Revoked)
        assert revoked.grant_id == given.grant_id == identity
        assert isinstance(settled, Settled)
        assert (settled.reservation, settled.untouched) == (reservation.id, True)
        assert isinstance(approved, Approved)
        assert approved.question == "q1"
        assert isinstance(window, WindowOpened)
        assert ledger.find_headroom(charge(), limits()).epsilon_nano == 4 * NANO
        newest = ledger.owner.list_latest_decisions(limit=100)
        assert [event for _, event in newest] == decided[::-1]
        assert [number for number, _ in newest] == [7, 6, 5, 4, 3, 2]
        assert ledger.owner.list_latest_decisions(limit=2) == newest[:2]


def test_what_no_budget_covers_is_written_down_once_and_read_back(ledger_url: str) -> None:
    told = {"table": "sales", "version": "v1", "method": "sps", "file": "sales.parquet", "file_hash": "0" * 64}
    with Ledger.open(ledger_url, clock=now) as ledger, Ledger.open(ledger_url, clock=now) as other:
        before = ledger.find_headroom(charge(), limits())
        assert ledger.owner.find_publications() == ()
        assert ledger.owner.record_publication("p1", **told, statement="It shows <who> is there: é.", **BY)
        assert not other.owner.record_publication("p1", **{**told, "file": "more.parquet"}, statement="", **BY)
        assert other.owner.record_publication("p2", **told, statement="And again.", **BY)
        first, second = ledger.owner.find_publications()
        assert (first.publication, first.by, first.why) == ("p1", BY["by"], BY["why"])
        assert first.statement == "It shows <who> is there: é."
        assert {name: getattr(first, name) for name in told} == told
        assert ledger.owner.find_publications("p2") == (second,)
        assert list(other.owner.read_decisions()) == [first, second]
        assert ledger.verify_everything() == 2
        (exported, _) = ledger.owner.export_events()
        assert (exported.kind, exported.about, exported.method) == ("Published", "p1", "sps")
        assert (exported.file, exported.file_hash, exported.statement) == (
            first.file, first.file_hash, first.statement,
        )  # fmt: skip
        assert ledger.find_headroom(charge(), limits()) == before
        ledger.owner.open_window(**BY)
        assert ledger.owner.find_publications() == (first, second)


def test_amounts_of_a_table_are_those_of_a_unit_or_a_row() -> None:
    assert Amounts(3, 0).table_nano == 3
    assert Amounts(3, 9).table_nano == 9


def test_a_wish_that_is_sent_twice_is_granted_once(ledger_url: str) -> None:
    given, once = grant(BalanceScope.PER_PREDICATE), "0123456789abcdef" * 2
    with Ledger.open(ledger_url, clock=now) as ledger, Ledger.open(ledger_url, clock=now) as other:
        assert ledger.owner.write_grant(given, once=once, **BY) == once
        assert other.owner.write_grant(given, once=once, **BY) == once
        assert other.owner.list_grants() == {once: given}
        ledger.owner.revoke_grant(once, **BY)
        other.owner.write_grant(given, once=once, **BY)
        assert ledger.owner.list_grants() == {}
        assert ledger.owner.open_window(once=once, **BY) == once
        other.owner.open_window(once=once, **BY)
        assert len(list(ledger.owner.read_decisions())) == ledger.verify_everything() == 3
        for foreign in ("", "g" * 32, "0" * 31, "0" * 32 + "\n", "A" * 32):
            with pytest.raises(LedgerMisuse):
                ledger.owner.write_grant(given, once=foreign, **BY)


def test_what_is_declined_waits_no_longer_and_may_be_asked_and_approved_later(ledger_url: str) -> None:
    asked, caps = charge(2 * NANO, question="q1"), replace(limits(4 * NANO), approval_above_nano=NANO)
    wording = Wording(text="SELECT 1", guarantee="sure", fnr=None, fpr=None)
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert not ledger.owner.decline_question("q1", **BY)
        for _ in range(2):
            with pytest.raises(NotApproved) as refused:
                ledger.reserve(asked, caps)
            ledger.store_waiting_question(refused.value, asked, wording)
            assert [one.question for one in ledger.owner.find_waiting_questions()] == ["q1"]
            assert ledger.owner.decline_question("q1", **BY)
            assert ledger.owner.find_waiting_questions() == ()
        assert ledger.owner.approve_question("q1", **BY)
        ledger.reserve(asked, caps)
    with Ledger.open(ledger_url, clock=now) as ledger:
        decided = [event for event in ledger.owner.read_decisions() if isinstance(event, Declined)]
        assert [(event.question, event.by, event.why) for event in decided] == [("q1", BY["by"], BY["why"])] * 2
        assert [record.question for record in ledger.owner.export_events() if record.kind == "Declined"] == ["q1", "q1"]
        assert ledger.verify_everything() == 4
