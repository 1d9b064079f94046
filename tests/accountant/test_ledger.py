"""The verbs of the ledger, on SQLite and PostgreSQL alike."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from accountant.charges import NANO, Cells, Charge, Family, Spent
from accountant.errors import BalanceScope, LedgerMisuse, LedgerUnavailable, OverBudget
from accountant.events.events import GENESIS
from accountant.ledger import Ledger
from accountant.limits import BalanceRoom
from accountant.verbs.in_flight import Repeated
from tests.accountant.conftest import now
from tests.accountant.examples import COUNTRIES, MONTHS, all_of, cells, charge, limits


def engine_of(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))


def test_a_reservation_counts_in_full_until_it_is_committed(ledger: Ledger) -> None:
    question = charge(3 * NANO)
    reservation = ledger.reserve(question, limits())
    assert ledger.find_headroom(question, limits()).room_without_paths == BalanceRoom(NANO, None)
    assert ledger.list_open_reservations() == (reservation,)
    ledger.commit(reservation, Spent.from_uniform(NANO, unit_epsilon_nano=0), None)
    assert ledger.find_headroom(question, limits()).room_without_paths == BalanceRoom(3 * NANO, None)
    assert ledger.list_open_reservations() == ()


def test_a_release_gives_everything_back(ledger: Ledger) -> None:
    question = charge(3 * NANO, unit="customer_id", unit_epsilon_nano=9 * NANO)
    before = ledger.find_headroom(question, limits()).room_without_paths
    ledger.release(ledger.reserve(question, limits()))
    assert ledger.find_headroom(question, limits()).room_without_paths == before == BalanceRoom(4 * NANO, 100 * NANO)


def test_a_commit_per_key_charges_each_key_its_own_loss(ledger: Ledger) -> None:
    question = charge(2 * NANO, unit="customer_id", unit_epsilon_nano=6 * NANO)
    reservation = ledger.reserve(question, limits())
    ledger.commit(reservation, Spent.from_keys([NANO, 0, 2 * NANO], unit_epsilon_nano=3 * NANO), b"UK")
    (family,) = ledger.report_balances(limits()).families
    assert list(family.list_keys()) == [("DE",), ("FR",), ("UK",)]
    assert family.spent_nano == (NANO, 0, 2 * NANO)
    assert family.left_nano == (3 * NANO, 4 * NANO, 2 * NANO)
    with pytest.raises(OverBudget) as refusal:
        ledger.reserve(charge(3 * NANO + 1, unit="customer_id"), limits())
    assert (refusal.value.left_nano, refusal.value.short_keys, refusal.value.total_keys) == (2 * NANO, 2, 3)
    assert ledger.find_headroom(question, limits()).unit_epsilon_nano == 97 * NANO


def test_verbs_out_of_order_change_nothing(ledger: Ledger) -> None:
    question = charge(2 * NANO)
    committed = ledger.reserve(question, limits())
    ledger.commit(committed, all_of(question), b"answer")
    released = ledger.reserve(question, limits())
    ledger.release(released)
    still_open = ledger.reserve(question, limits())
    events = ledger.verify_everything()
    for closed in (committed, released):
        with pytest.raises(LedgerMisuse):
            ledger.commit(closed, all_of(question), None)
        with pytest.raises(LedgerMisuse):
            ledger.release(closed)
    with pytest.raises(LedgerMisuse):
        ledger.commit(still_open, Spent.from_uniform(2 * NANO + 1, unit_epsilon_nano=0), None)
    with pytest.raises(LedgerMisuse):
        ledger.commit(still_open, Spent.from_keys([1, 1], unit_epsilon_nano=0), None)
    with pytest.raises(LedgerMisuse):
        ledger.commit(still_open, Spent.from_uniform(1, unit_epsilon_nano=1), None)
    for most, losses in ((0, [5, 5, 5]), (0, [-1, 0, 0]), (2, [1, 0, 0]), (1, [1, 0])):
        wrong = Spent(most, 0, np.array(losses, dtype="<i8").tobytes())
        for spent in (wrong, Spent(2, 0, None, wrong)):
            with pytest.raises(LedgerMisuse):
                ledger.commit(still_open, spent, None)
    with pytest.raises(LedgerMisuse):
        ledger.commit(still_open, Spent(0, 0, b"odd"), None)
    with pytest.raises(LedgerMisuse):
        ledger.reserve(charge(shared=False), limits())
    assert ledger.verify_everything() == events
    assert ledger.list_open_reservations() == (still_open,)


def test_each_balance_refuses_by_its_own_name(ledger: Ledger) -> None:
    question = charge(2 * NANO, unit="customer_id", unit_epsilon_nano=6 * NANO)
    wide = limits(10 * NANO, per_unit=100 * NANO)
    ledger.reserve(question, wide)
    refusals = {
        BalanceScope.PER_QUERY: (limits(10 * NANO, per_query=2 * NANO - 1), 2 * NANO, 2 * NANO - 1),
        BalanceScope.PER_PREDICATE: (limits(4 * NANO - 1), 2 * NANO, 2 * NANO - 1),
        BalanceScope.PER_UNIT: (limits(10 * NANO, per_unit=12 * NANO - 1), 6 * NANO, 6 * NANO - 1),
        BalanceScope.ANALYST_PER_PREDICATE: (limits(10 * NANO, analyst_per_predicate=3 * NANO), 2 * NANO, NANO),
        BalanceScope.ANALYST_PER_UNIT: (limits(10 * NANO, analyst_per_unit=6 * NANO), 6 * NANO, 0),
    }
    for scope, (caps, needed, left) in refusals.items():
        with pytest.raises(OverBudget) as refusal:
            ledger.reserve(question, caps)
        found = refusal.value
        assert (found.scope, found.needed_nano, found.left_nano) == (scope, needed, left)
        assert (found.short_keys, found.total_keys) == (3, 3)
    assert ledger.verify_everything() == 1


def test_exactly_the_last_of_a_budget_can_be_taken(ledger: Ledger) -> None:
    for _ in range(4):
        ledger.reserve(charge(NANO), limits(4 * NANO))
    with pytest.raises(OverBudget):
        ledger.reserve(charge(1), limits(4 * NANO))
    assert ledger.find_headroom(charge(1), limits(4 * NANO)).epsilon_nano == 0
    assert ledger.find_headroom(charge(1), limits(NANO)).epsilon_nano == -3 * NANO


def test_a_unit_pays_over_all_questions_and_tables_whatever_their_keys(ledger: Ledger) -> None:
    """Contradicting keys and filters are no disjointness for a unit: it may have rows in both."""
    caps = limits(4 * NANO, per_unit=5 * NANO)
    ledger.reserve(charge(2 * NANO, unit="customer_id", keys=cells(country=("FR",)), where="a"), caps)
    ledger.reserve(charge(2 * NANO, unit="customer_id", keys=cells(country=("DE",)), where="b", table="x"), caps)
    with pytest.raises(OverBudget) as refusal:
        ledger.reserve(charge(2 * NANO, unit="customer_id", keys=cells(country=("UK",)), analyst="bob"), caps)
    assert refusal.value.scope is BalanceScope.PER_UNIT
    ledger.reserve(charge(4 * NANO, unit="row", table="y"), caps)


def test_a_table_with_units_needs_a_cap_per_unit(ledger: Ledger) -> None:
    with pytest.raises(LedgerMisuse):
        ledger.reserve(charge(unit="customer_id"), limits(per_unit=None))
    ledger.reserve(charge(unit="row"), limits(per_unit=None))


def test_an_analyst_s_cap_counts_that_analyst_alone(ledger: Ledger) -> None:
    caps = limits(10 * NANO, analyst_per_predicate=2 * NANO)
    ledger.reserve(charge(2 * NANO, analyst="ann"), caps)
    ledger.reserve(charge(2 * NANO, analyst="bob"), caps)
    with pytest.raises(OverBudget) as refusal:
        ledger.reserve(charge(1, analyst="bob"), caps)
    assert refusal.value.scope is BalanceScope.ANALYST_PER_PREDICATE
    assert ledger.report_balances(caps, analyst="bob").families[0].left_nano == (0, 0, 0)
    assert ledger.report_balances(caps).families[0].left_nano == (6 * NANO,) * 3


def test_a_stored_answer_costs_its_reader_and_spares_everybody_else(ledger: Ledger) -> None:
    question = charge(2 * NANO, unit="customer_id", unit_epsilon_nano=6 * NANO)
    ledger.commit(ledger.reserve(question, limits()), Spent.from_uniform(NANO, unit_epsilon_nano=3 * NANO), b"FR,UK")

    own = ledger.find_answer("q1", "v1", analyst="ann")
    assert own is not None
    assert (own.answer, own.analyst, own.epsilon_nano, own.is_held) == (b"FR,UK", "ann", NANO, True)
    assert ledger.find_answer("q1", "v2", analyst="ann") is None
    assert ledger.find_answer("q2", "v1", analyst="ann") is None

    stored = ledger.find_answer("q1", "v1", analyst="bob")
    assert stored is not None
    assert not stored.is_held
    reading = stored.make_reading_charge("bob")
    assert reading == charge(2 * NANO, unit="customer_id", unit_epsilon_nano=6 * NANO, analyst="bob", shared=False)
    caps = limits(4 * NANO, analyst_per_predicate=2 * NANO, analyst_per_unit=6 * NANO)
    with pytest.raises(OverBudget):
        ledger.charge_reader(reading, limits(analyst_per_predicate=2 * NANO - 1), answer=stored)
    assert ledger.charge_reader(reading, caps, answer=stored) is not None
    assert ledger.charge_reader(reading, caps, answer=stored) is None
    again = ledger.find_answer("q1", "v1", analyst="bob")
    assert again is not None
    assert again.is_held

    fresh = charge(1, unit="customer_id")
    assert ledger.find_headroom(fresh, limits()).room_without_paths == BalanceRoom(3 * NANO, 97 * NANO)
    ledger.reserve(charge(NANO, unit="customer_id", analyst="bob"), caps)
    with pytest.raises(OverBudget) as refusal:
        ledger.reserve(charge(1, unit="customer_id", analyst="bob"), caps)
    assert refusal.value.scope is BalanceScope.ANALYST_PER_PREDICATE


def test_analysts_told_apart_see_others_at_their_worst_case_and_their_own_refunds(ledger: Ledger) -> None:
    question = charge(2 * NANO, unit="customer_id", unit_epsilon_nano=6 * NANO)
    apart, together = limits(apart=True), limits()
    before = ledger.reserve(question, apart)
    seen = ledger.find_headroom(replace(question, analyst="bob"), apart).room_without_paths
    ledger.commit(before, Spent.from_keys([NANO, 0, 2 * NANO], unit_epsilon_nano=3 * NANO), b"UK")
    assert (
        ledger.find_headroom(replace(question, analyst="bob"), apart).room_without_paths
        == seen
        == BalanceRoom(2 * NANO, 94 * NANO)
    )
    for caps in (apart, together):
        assert ledger.find_headroom(question, caps).room_without_paths == BalanceRoom(2 * NANO, 97 * NANO)
    with pytest.raises(OverBudget):
        ledger.reserve(charge(2 * NANO + 1, unit="customer_id", analyst="bob"), apart)
    (hers,) = ledger.report_balances(apart, analyst="ann").families
    assert hers.left_nano == (3 * NANO, 4 * NANO, 2 * NANO)
    released = ledger.reserve(question, apart)
    ledger.release(released)
    assert ledger.find_headroom(replace(question, analyst="bob"), apart).room_without_paths == seen


def test_a_reader_pays_per_key_when_the_answer_did(ledger: Ledger) -> None:
    question = charge(2 * NANO)
    losses = [NANO, 0, 2 * NANO]
    ledger.commit(ledger.reserve(question, limits()), Spent.from_keys(losses, unit_epsilon_nano=0), b"UK")
    stored = ledger.find_answer("q1", "v1", analyst="bob")
    assert stored is not None
    ledger.charge_reader(stored.make_reading_charge("bob"), limits(), answer=stored)
    assert ledger.report_balances(limits(), analyst="bob").families[0].spent_nano == tuple(losses)


def test_a_reader_is_charged_exactly_what_the_answer_was_charged_for(ledger: Ledger) -> None:
    question = charge(2 * NANO)
    ledger.commit(ledger.reserve(question, limits()), all_of(question), b"UK")
    stored = ledger.find_answer("q1", "v1", analyst="bob")
    assert stored is not None
    for wrong in (
        charge(NANO, analyst="bob", shared=False),
        charge(2 * NANO, analyst="bob", shared=True),
        charge(2 * NANO, analyst="bob", shared=False, question="q2"),
        charge(2 * NANO, analyst="bob", shared=False, version="v2"),
        charge(2 * NANO, analyst="bob", shared=False, keys=cells(country=("FR",))),
        charge(2 * NANO, analyst="bob", shared=False, table="other"),
        charge(2 * NANO, analyst="bob", shared=False, where="x"),
    ):
        with pytest.raises(LedgerMisuse):
            ledger.charge_reader(wrong, limits(), answer=stored)
    assert ledger.verify_everything() == 2


def test_two_runs_of_one_question_are_two_answers_and_each_payer_rereads_its_own(ledger: Ledger) -> None:
    """The other run's noise is news to a payer: reading it would be a second release, so it is never free."""
    reservations = [ledger.reserve(charge(analyst=name), limits()) for name in ("ann", "bob")]
    for reservation, answer in zip(reservations, (b"first", b"second"), strict=True):
        ledger.commit(reservation, all_of(reservation.charge), answer)
    for name, answer in (("ann", b"first"), ("bob", b"second")):
        stored = ledger.find_answer("q1", "v1", analyst=name)
        assert stored is not None
        assert (stored.answer, stored.is_held) == (answer, True)


def test_reopening_gives_identical_balances(ledger_url: str) -> None:
    keys = cells(country=COUNTRIES, month=MONTHS)
    with Ledger.open(ledger_url, clock=now) as first:
        for index in range(6):
            asked = charge(NANO // 2, keys=keys, where=f"f{index % 2}", question=f"q{index}")
            reservation = first.reserve(asked, limits())
            if index % 3 == 0:
                first.commit(reservation, Spent.from_keys([index] * keys.key_count, unit_epsilon_nano=0), b"x")
            if index % 3 == 1:
                first.release(reservation)
        before = (
            first.report_balances(limits()),
            first.find_headroom(charge(), limits()),
            first.list_open_reservations(),
        )
    with Ledger.open(ledger_url, clock=now) as second:
        assert (
            second.report_balances(limits()),
            second.find_headroom(charge(), limits()),
            second.list_open_reservations(),
        ) == before
        assert second.verify_everything() == 10


def test_two_open_ledgers_see_each_other_at_once(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as one, Ledger.open(ledger_url, clock=now) as other:
        reservation = one.reserve(charge(3 * NANO), limits())
        with pytest.raises(OverBudget):
            other.reserve(charge(2 * NANO), limits())
        other.commit(reservation, Spent.from_uniform(NANO, unit_epsilon_nano=0), None)
        one.reserve(charge(3 * NANO), limits())
        with pytest.raises(LedgerMisuse):
            one.release(reservation)


def test_times_are_kept_in_utc_and_decide_nothing(ledger_url: str) -> None:
    moments = iter(
        [
            datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=5))),
            datetime(1990, 1, 1, tzinfo=UTC),
        ]
    )
    with Ledger.open(ledger_url, clock=lambda: next(moments)) as ledger:
        reservation = ledger.reserve(charge(), limits())
        ledger.commit(reservation, all_of(charge()), None)
        assert ledger.verify_everything() == 2
    engine = engine_of(ledger_url)
    with engine.connect() as connection:
        assert connection.scalars(sa.text("SELECT at FROM events ORDER BY id")).all() == [
            "2030-01-01T07:00:00.000000+00:00",
            "1990-01-01T00:00:00.000000+00:00",
        ]
    engine.dispose()


@pytest.mark.parametrize("table", ["events", "domains", "answers"])
@pytest.mark.parametrize("statement", ["UPDATE {t} SET {c} = {c}", "DELETE FROM {t}", "TRUNCATE {t} CASCADE"])
def test_the_database_itself_refuses_to_change_what_was_written(ledger_url: str, table: str, statement: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        ledger.commit(ledger.reserve(charge(), limits()), all_of(charge()), b"answer")
        column = {"events": "payload", "domains": "body", "answers": "answer"}[table]
        engine = engine_of(ledger_url)
        with engine.connect() as connection:
            with pytest.raises(DatabaseError, match=r"append-only|syntax error"):
                connection.execute(sa.text(statement.format(t=table, c=column)))
            connection.rollback()
        engine.dispose()
        assert ledger.verify_everything() == 2


def test_sqlite_refuses_replacement_and_gaps(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now) as ledger:
        ledger.reserve(charge(), limits())
        engine = engine_of(url)
        with engine.connect() as connection:
            for identity, error in ((1, "append-only|without gaps"), (3, "without gaps")):
                with pytest.raises(DatabaseError, match=error):
                    connection.execute(
                        sa.text(
                            "INSERT OR REPLACE INTO events (id, kind, reservation, at, payload, previous_hash, hash) "
                            f"VALUES ({identity}, 'Released', 'r', '', '', '', '')"
                        )
                    )
        engine.dispose()
        assert ledger.verify_everything() == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET payload = replace(payload, '1000000000', '1000000001') WHERE id = 1",
        "UPDATE events SET at = '' WHERE id = 2",
        "DELETE FROM events WHERE id = 1",
        "UPDATE domains SET body = x'00'",
        "UPDATE answers SET answer = x'00'",
    ],
)
def test_a_changed_ledger_is_found_out(tmp_path: Path, change: str) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now) as ledger:
        ledger.commit(ledger.reserve(charge(), limits()), all_of(charge()), b"answer")
    engine = engine_of(url)
    with engine.begin() as connection:
        for name in connection.scalars(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
            connection.execute(sa.text(f"DROP TRIGGER {name}"))
        connection.execute(sa.text(change))
    engine.dispose()
    with pytest.raises(LedgerUnavailable), Ledger.open(url, clock=now) as ledger:
        ledger.verify_everything()


def test_a_ledger_replaced_under_a_running_process_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now) as ledger:
        ledger.reserve(charge(), limits())
        ledger.reserve(charge(), limits())
        engine = engine_of(url)
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TRIGGER events_no_delete"))
            connection.execute(sa.text("DELETE FROM events WHERE id = 2"))
        engine.dispose()
        with pytest.raises(LedgerUnavailable):
            ledger.reserve(charge(), limits())


def test_the_losses_of_an_event_that_is_folded_are_not_read_again(ledger: Ledger) -> None:
    """They may be of millions of keys, at every look at the log; its hash is, and what came after it is read whole."""
    for _ in range(2):
        reservation = ledger.reserve(charge(2 * NANO), limits())
        ledger.commit(reservation, Spent.from_keys([NANO, 0, 2 * NANO], unit_epsilon_nano=0), None)
    with ledger._journal.begin_log_read() as transaction:
        events = transaction.read_records_after(0, GENESIS)
        assert [event.spent_keys is None for event in events] == [True, False, True, False]
        assert transaction.read_records_after(2, events[1].hash) == events[2:]
        folded, *later = transaction._read_events(2, known=2)
        assert (folded.hash, folded.spent_keys, later) == (events[1].hash, None, events[2:])
        with pytest.raises(LedgerUnavailable, match="event 2 is gone"):
            transaction.read_records_after(2, events[2].hash)


def test_migrations_run_once_and_a_newer_schema_is_refused(ledger_url: str) -> None:
    for _ in range(3):
        Ledger.open(ledger_url, clock=now).close()
    engine = engine_of(ledger_url)
    with engine.begin() as connection:
        assert connection.scalars(sa.text("SELECT version_num FROM ledger_version")).all() == ["0010"]
        assert connection.scalars(sa.text("SELECT id FROM writer")).all() == [1]
        connection.execute(sa.text("UPDATE ledger_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(LedgerUnavailable):
        Ledger.open(ledger_url, clock=now)


def test_an_unknown_event_is_refused_rather_than_skipped(tmp_path: Path) -> None:
    from accountant.events.events import chain_record, check_chain, parse_event

    foreign = [("Reserved", '{"v":3}'), ("Granted", '{"v":1}'), ("Moved", '{"v":1}'), ("Committed", "[]")]
    for kind, payload in (*foreign, ("Reserved", "{}"), ("Settled", '{"v":2}')):
        record = chain_record(
            number=1, kind=kind, reservation="r", at="2011-01-01T00:00:00+00:00", payload=payload,
            spent_keys=None, previous_hash="0" * 64,
        )  # fmt: skip
        check_chain([record], last_id=0, last_hash="0" * 64)
        with pytest.raises(LedgerUnavailable):
            parse_event(record, domains={})


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:////nonexistent/folder/ledger.db",
        "postgresql://someone:secret@127.0.0.1:1/nowhere",
        "mysql://someone:secret@127.0.0.1/nowhere",
        "no url at all: secret",
    ],
)
def test_a_ledger_that_cannot_be_opened_says_so_without_its_address(url: str) -> None:
    with pytest.raises(LedgerUnavailable) as error:
        Ledger.open(url, clock=now)
    assert not re.search("secret|someone|127", str(error.value))


def test_impossible_charges_cannot_be_expressed() -> None:
    family = Family("t", "row", ("a",), "", "v1", frozenset())
    keys = cells(a=("x", "y"))
    for epsilon, unit_epsilon in ((-1, 0), (1, 1), (1001 * NANO, 0)):
        with pytest.raises(LedgerMisuse):
            Charge("q", "ann", family, keys, epsilon, unit_epsilon, True)
    with pytest.raises(LedgerMisuse):
        charge(5, unit="customer_id", unit_epsilon_nano=2)  # a cell bears at most two presences
    for columns in ((("b", ("x",)), ("a", ("x",))), (("a", ()),), (("a", ("x", "x")),)):
        with pytest.raises(LedgerMisuse):
            Cells(columns)
    with pytest.raises(LedgerMisuse):
        Charge("q", "ann", family, cells(b=("x",)), 1, 0, True)
    with pytest.raises(LedgerMisuse):
        Family("t", "row", ("b", "a"), "", "v1", frozenset())
    with pytest.raises(LedgerMisuse):
        Spent.from_keys([-1], unit_epsilon_nano=0)


def test_a_question_without_grouping_columns_has_one_key(ledger: Ledger) -> None:
    whole = charge(NANO, keys=cells())
    ledger.reserve(whole, limits())
    assert ledger.find_headroom(whole, limits()).epsilon_nano == 3 * NANO
    assert ledger.find_headroom(charge(), limits()).epsilon_nano == 3 * NANO
    assert ledger.report_balances(limits()).families[0].spent_nano == (NANO,)


def test_a_report_shows_all_questions_on_a_live_table_as_one_family(ledger: Ledger) -> None:
    for number, losses in enumerate(([3, 1, 2], [1, 1, 4])):
        asked = charge(5, question=f"q{number}", version=f"live {number:032x}")
        ledger.commit(ledger.reserve(asked, limits()), Spent.from_keys(losses, unit_epsilon_nano=0), b"DE")
    (family,) = ledger.report_balances(limits(100)).families
    assert family.family.version == "live"
    assert family.spent_nano == (4, 2, 6)
    assert family.lost_nano == (7, 7, 7)  # a row may have been wherever most was lost, both times
    assert family.left_nano == (93, 93, 93)
    (own,) = ledger.report_balances(limits(100), analyst="ann").families
    assert (own.spent_nano, own.lost_nano) == (family.spent_nano, family.lost_nano)
    asked = charge(93, question="q3", version=f"live {3:032x}")
    assert ledger.find_headroom(asked, limits(100)).shared_room.epsilon_nano == 93


def test_long_lists_of_key_values_are_distinct_each_time_they_are_looked_at() -> None:
    values = tuple(map(str, range(20_000)))
    for _ in range(2):
        assert Cells((("country", values),)).key_count == 20_000
        with pytest.raises(LedgerMisuse, match="distinct"):
            Cells((("country", (*values, "7")),))


def test_what_remains_is_known_without_reading_up_to_the_own_last_event(ledger_url: str) -> None:
    """The ledger is asked by two. Each knows its own charges at once, and another's as soon as it has read them."""
    with Ledger.open(ledger_url, clock=now) as one, Ledger.open(ledger_url, clock=now) as other:

        def know(ledger: Ledger) -> int:
            return ledger.find_known_headroom(charge(), limits()).epsilon_nano

        reservation = one.reserve(charge(2 * NANO), limits())
        assert know(one) == 2 * NANO
        assert know(other) == 4 * NANO
        other.reserve(charge(NANO), limits())
        assert know(other) == NANO
        one.commit(reservation, Spent.from_uniform(NANO, unit_epsilon_nano=0), None)
        assert know(one) == 2 * NANO
        assert know(other) == NANO
        for ledger in (one, other):
            assert ledger.find_headroom(charge(), limits()).epsilon_nano == know(ledger) == 2 * NANO


def test_what_remains_is_read_where_the_fold_lacks_an_own_event(ledger: Ledger) -> None:
    ledger.reserve(charge(3 * NANO), limits())
    ledger._journal._drop_fold()  # as after a fault, or where a reader held the fold for too long
    assert ledger.find_known_headroom(charge(), limits()).epsilon_nano == NANO


def test_an_answer_or_the_paths_are_found_at_one_moment(ledger: Ledger) -> None:
    listed: list[str] = []

    def find(question: str) -> object:
        def list_identities() -> list[str]:
            listed.append(question)
            return ["sum", "count"]

        return ledger.find_answer_or_paths(
            question, "v1", analyst="ann", once_within=timedelta(hours=1), list_identities=list_identities
        )

    assert find("q1") == {}
    reservation = ledger.reserve(charge(), limits())
    with ledger.hold_in_flight(reservation), pytest.raises(Repeated):
        find("q1")
    ledger.commit(reservation, Spent.from_uniform(NANO, unit_epsilon_nano=0), b"FR", paths={"sum": b"values"})
    assert find("q1") == ledger.find_answer("q1", "v1", analyst="ann")
    assert listed == ["q1"]
    assert find("another") == ledger.find_paths(["sum", "count"], "v1") != {}
    assert listed == ["q1", "another"]
