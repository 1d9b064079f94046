"""Charges by curve to cells, in both ledgers: written, read, verified, exported; and how many fit."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from accountant.charges import NANO, Charge, Spent, Wording
from accountant.errors import LedgerMisuse, OverBudget
from accountant.events.events import GENESIS, Reserved, make_record, parse_event
from accountant.ledger import Ledger
from mechanisms.threshold.one_shot import calibrate_test
from mechanisms.threshold.renyi import ORDERS, bound_curve, compute_divergence, to_nano
from tests.accountant.conftest import now
from tests.accountant.examples import COUNTRIES, all_of, charge, limits, per_key
from tests.effort import rounds

WORDING = Wording(text="SELECT", guarantee="at most so much.", fnr="0.05", fpr=None)
EACH = NANO // 25
CURVE = bound_curve(EACH, groups=1)
ASKED = replace(charge(EACH), cell_renyi=CURVE)
OF_PERSON = replace(
    charge(EACH, unit="person", unit_epsilon_nano=2 * EACH), renyi=bound_curve(EACH, groups=2), cell_renyi=CURVE
)
CAPS = replace(limits(), cell_delta=1e-9)


def numbered(number: int, asked: Charge = ASKED) -> Charge:
    return replace(asked, question=f"q{number}")


@pytest.mark.parametrize("asked", [ASKED, OF_PERSON])
@pytest.mark.parametrize("wording", [None, WORDING])
def test_a_charge_with_its_curves_and_back(asked: Charge, wording: Wording | None) -> None:
    event = Reserved("r1", now(), asked, wording)
    record = make_record(event, number=1, previous_hash=GENESIS, domains={COUNTRIES: "d"})
    assert parse_event(record, domains={"d": COUNTRIES}) == event
    assert json.loads(record.payload)["v"] == 5


def test_a_ledger_reopens_with_its_curves_verifies_and_exports_them(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        first = ledger.reserve(numbered(1), CAPS)
        ledger.commit(first, all_of(first.charge), b"UK", paths={"f": b"noise"})
        ledger.reserve(numbered(2), CAPS)
        ledger.release(ledger.reserve(numbered(3), CAPS))
        plain = ledger.reserve(replace(numbered(4), cell_renyi=None), CAPS)
        ledger.commit(plain, per_key([EACH, 0, 1]), b"FR")
        left = ledger.find_headroom(ASKED, CAPS)
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        assert ledger.find_headroom(ASKED, CAPS) == left
        (family,) = ledger.report_balances(CAPS).families
        assert family.spent_nano == (3 * EACH, 2 * EACH, 2 * EACH + 1)
        assert family.is_by_curve
        assert ledger.verify_everything() == 7
        exported = [one.cell_renyi_nano for one in ledger.owner.export_events() if one.kind == "Reserved"]
        assert exported == [" ".join(map(str, CURVE))] * 3 + [None]
        (path,) = ledger.find_paths(["f"], "v1").values()
        assert path.is_taken
        ledger.owner.open_window(by="kim", why="all rows are new")
        (family,) = ledger.report_balances(CAPS).families
        assert family.spent_nano == (EACH,) * 3
        assert ledger.verify_everything() == 8


# questions of one count with rates of .05 and .1, below a cap of 4 with a delta of 1e-9, in the worst case
FITTING = {50: (52, 69), 100: (103, 252), 25: (26, 26)}


@pytest.mark.parametrize("tolerance", list(FITTING)[: rounds(3, quick=1)])
def test_as_many_fit_as_the_filter_says_and_as_plain_sums_as_ever(tolerance: int, tmp_path: Path) -> None:
    rate = calibrate_test(sensitivity=1, tolerance=tolerance, fnr=0.05, fpr=0.1, allow_block=False).rate
    nano = to_nano(Decimal(rate.numerator) / Decimal(rate.denominator))
    curve = tuple(to_nano(compute_divergence(rate=rate, moved=rate / rate, order=order)) for order in ORDERS)
    asked = replace(charge(nano), cell_renyi=curve)
    for caps, fitting in zip((limits(), CAPS), FITTING[tolerance], strict=True):
        with Ledger.open(f"sqlite:///{tmp_path}/{caps.cell_delta}.db", clock=now) as ledger:
            told = ledger.find_headroom(asked, caps)
            assert told.uses_curve == (fitting > FITTING[tolerance][0])
            (room,) = told.balances
            assert room.count_further_questions(asked, amount_nano=nano, uses_curve=told.uses_curve) == fitting
            for number in range(fitting):
                ledger.reserve(numbered(number, asked), caps)
            with pytest.raises(OverBudget) as refused:
                ledger.reserve(numbered(fitting, asked), caps)
            assert refused.value.needed_nano > refused.value.left_nano >= 0
            assert (refused.value.short_keys, refused.value.total_keys) == (3, 3)


def test_a_delta_that_comes_later_or_goes_forgets_nothing(ledger_url: str) -> None:
    """What was charged before counts as it was, and every curve has its plain loss beside it."""
    without = limits()
    with Ledger.open(ledger_url, clock=now) as ledger:
        for number in range(20):
            assert not ledger.reserve(numbered(number), without).charge.is_by_curve
        fit = ledger.find_headroom(ASKED, CAPS).balances[0]
        count = fit.count_further_questions(ASKED, amount_nano=EACH, uses_curve=True)
        assert count is not None
        assert count > 80  # as plain sums a hundred fit altogether
        for number in range(count):
            ledger.reserve(numbered(100 + number), CAPS)
        lost = (20 + count) * EACH
        assert ledger.report_balances(without).families[0].lost_nano == (lost,) * 3
        with pytest.raises(OverBudget):
            ledger.reserve(numbered(999), replace(without, per_predicate_nano=lost + EACH - 1))
        ledger.reserve(numbered(999), replace(without, per_predicate_nano=lost + EACH))
        assert ledger.verify_everything() == 21 + count


def test_a_question_by_curve_is_spent_in_full_and_its_reader_pays_the_plain_loss(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        reserved = ledger.reserve(ASKED, CAPS)
        with pytest.raises(LedgerMisuse):
            ledger.commit(reserved, Spent.from_uniform(0, unit_epsilon_nano=0), b"UK")
        ledger.commit(reserved, all_of(reserved.charge), b"UK")
        stored = ledger.find_answer("q1", "v1", analyst="bob")
        assert stored is not None
        reading = stored.make_reading_charge("bob")
        assert (reading.is_by_curve, reading.epsilon_nano) == (False, EACH)
        ledger.charge_reader(reading, CAPS, answer=stored)


@pytest.mark.parametrize(
    "wrong", [{"shared": False}, {"cell_renyi": CURVE[1:]}, {"cell_renyi": (EACH + 1,) * len(ORDERS)}]
)
def test_a_curve_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(LedgerMisuse):
        replace(ASKED, **wrong)  # type: ignore[arg-type]
