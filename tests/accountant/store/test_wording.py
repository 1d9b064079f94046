"""How a question was put stays beside its charge: chained, verified, exported, and without any say in balances."""

import json
from dataclasses import replace

import pytest
import sqlalchemy as sa

from accountant.charges import NANO, PathState, Spent, Wording
from accountant.errors import LedgerUnavailable
from accountant.events.events import GENESIS, Committed, Reserved, chain_record, make_record, parse_event
from accountant.ledger import Ledger
from accountant.store.snapshot import pack_balances
from tests.accountant.balances.test_noise_paths import engine_of
from tests.accountant.conftest import now
from tests.accountant.examples import COUNTRIES, all_of, charge, continuing, limits

WORDING = Wording(text="SELECT \"a\" → 'b'", guarantee="at most so much.", fnr="0.05", fpr=None)
PATH = PathState("sum", "v1", "r0")


@pytest.mark.parametrize(
    "asked", [charge(NANO), charge(NANO, continuing=continuing(PATH, shared=NANO // 2, known=NANO // 4))]
)
@pytest.mark.parametrize("wording", [None, WORDING, replace(WORDING, text=None, fpr="0.1")])
def test_a_charge_with_its_wording_and_back(asked: object, wording: Wording | None) -> None:
    event = Reserved("r1", now(), asked, wording)  # type: ignore[arg-type]
    record = make_record(event, number=1, previous_hash=GENESIS, domains={COUNTRIES: "d"})
    assert parse_event(record, domains={"d": COUNTRIES}) == event
    assert (json.loads(record.payload)["v"] == 3) == (wording is not None)


def test_a_loss_of_the_newest_form_of_a_charge_is_from_a_newer_version() -> None:
    record = make_record(
        Committed("r1", now(), Spent.from_uniform(0, unit_epsilon_nano=0), None, None),
        number=1,
        previous_hash=GENESIS,
        domains={},
    )
    payload = record.payload.replace('"v":1', '"v":4')
    written = chain_record(
        number=1,
        kind=record.kind,
        reservation="r1",
        at=record.at,
        payload=payload,
        spent_keys=None,
        previous_hash=GENESIS,
    )
    with pytest.raises(LedgerUnavailable, match="newer version"):
        parse_event(written, domains={})


def test_every_reader_of_the_log_finds_the_words_and_balances_do_not(ledger_url: str) -> None:
    plain, worded = charge(NANO), charge(NANO, question="q2")
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        before = ledger.reserve(plain, limits())
        ledger.commit(before, all_of(plain), b"UK")
        paid = ledger.reserve(worded, limits(), wording=WORDING)
        ledger.commit(paid, all_of(worded), b"UK")
        stored = ledger.find_answer("q2", "v1", analyst="bob")
        assert stored is not None
        own = replace(WORDING, text="as bob put it")
        ledger.charge_reader(stored.make_reading_charge("bob"), limits(), answer=stored, wording=own)
        open_ = ledger.reserve(charge(NANO, question="q3"), limits(), wording=WORDING)
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert ledger.verify_everything() == 7
        assert [asked.wording for asked in ledger.read_history()] == [None, WORDING, own, WORDING]
        assert [asked.wording for asked in ledger.read_history(analyst="bob")] == [own]
        page = ledger.read_page(analyst=None, before=None, limit=10, only_open=True)
        assert [(asked.reservation, asked.wording) for asked in page.questions] == [(open_.id, WORDING)]
        (found,) = ledger.find_questions("q3")
        assert found.wording == WORDING
        exported = [event for event in ledger.owner.export_events() if event.kind == "Reserved"]
        assert [(event.text, event.guarantee, event.fnr, event.fpr) for event in exported] == [
            (None, None, None, None),
            (WORDING.text, WORDING.guarantee, "0.05", None),
            (own.text, own.guarantee, "0.05", None),
            (WORDING.text, WORDING.guarantee, "0.05", None),
        ]
        with ledger._journal.begin_read() as (_, balances):
            assert b"so much" not in pack_balances(balances)
            assert "→".encode() not in pack_balances(balances)


def test_words_that_were_changed_break_the_chain(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        ledger.reserve(charge(NANO), limits(), wording=WORDING)
    engine = engine_of(ledger_url)
    with engine.begin() as connection:
        for trigger in ("events_no_update", "events_append_only"):
            if engine.dialect.name == "sqlite" and trigger == "events_no_update":
                connection.execute(sa.text(f"DROP TRIGGER {trigger}"))
            elif engine.dialect.name == "postgresql" and trigger == "events_append_only":
                connection.execute(sa.text(f"DROP TRIGGER {trigger} ON events"))
        connection.execute(sa.text("UPDATE events SET payload = replace(payload, 'so much', 'no more')"))
    engine.dispose()
    with pytest.raises(LedgerUnavailable), Ledger.open(ledger_url, clock=now) as ledger:
        ledger.verify_everything()
