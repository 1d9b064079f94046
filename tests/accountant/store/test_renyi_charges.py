"""Charges by Rényi curves in the log: written, read, verified, exported; and what the ledger refuses of them."""

import json
from dataclasses import replace

import pytest

from accountant.charges import NANO, Amounts, Charge, PathContinuation, PathState, Spent, Wording
from accountant.errors import LedgerMisuse, OverBudget, PathTaken
from accountant.events.events import GENESIS, Reserved, make_record, parse_event
from accountant.ledger import Ledger
from accountant.unit_balance import UnitLoss
from mechanisms.threshold.renyi import ORDERS, bound_curve
from tests.accountant.conftest import now
from tests.accountant.examples import COUNTRIES, all_of, charge, limits

WORDING = Wording(text="SELECT", guarantee="at most so much.", fnr="0.05", fpr=None)
# 50 groups of a twenty-fifth of an epsilon: two epsilon as a sum
CURVE = bound_curve(NANO // 25, groups=50)
ASKED = replace(charge(NANO // 25, unit="person"), unit_epsilon_nano=2 * NANO, renyi=CURVE)
CAPS = replace(limits(per_unit=8 * NANO), delta=1e-9)


def numbered(number: int) -> Charge:
    return replace(ASKED, question=f"q{number}")


@pytest.mark.parametrize("wording", [None, WORDING])
def test_a_charge_with_its_curve_and_back(wording: Wording | None) -> None:
    event = Reserved("r1", now(), ASKED, wording)
    record = make_record(event, number=1, previous_hash=GENESIS, domains={COUNTRIES: "d"})
    assert parse_event(record, domains={"d": COUNTRIES}) == event
    assert json.loads(record.payload)["v"] == 4


def test_a_ledger_reopens_with_its_curves_verifies_and_exports_them(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        first = ledger.reserve(numbered(1), CAPS)
        ledger.commit(first, all_of(first.charge), b"UK", paths={"f": b"noise"})
        ledger.reserve(numbered(2), CAPS)
        ledger.release(ledger.reserve(numbered(3), CAPS))
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        unit = ledger.report_balances(CAPS).unit_loss
        assert unit == UnitLoss(4 * NANO, 4 * NANO, tuple(2 * nano for nano in CURVE))
        assert ledger.verify_everything() == 5
        exported = [one.renyi_nano for one in ledger.owner.export_events() if one.kind == "Reserved"]
        assert exported == [" ".join(map(str, CURVE))] * 3
        ledger.owner.open_window(by="kim", why="all rows are new")
        assert ledger.report_balances(CAPS).unit_loss == UnitLoss(2 * NANO, 2 * NANO, CURVE)
        assert ledger.report_balances(CAPS, covers_all_windows=True).unit_loss == unit


def test_as_many_fit_as_the_filter_says_and_without_a_delta_as_ever(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        told = ledger.find_headroom(ASKED, CAPS)
        assert told.uses_curve
        room = next(one.unit_room for one in told.balances if one.unit_room is not None)
        fit = room.count_further_questions(2 * NANO, CURVE)
        for number in range(fit):
            ledger.reserve(numbered(number), CAPS)
        assert fit == 16
        with pytest.raises(OverBudget):
            ledger.reserve(numbered(fit), CAPS)
        # nothing is forgotten: without a delta the sum counts, thirty-two epsilon, and a grant of less is not enough
        without = replace(CAPS, delta=None)
        assert ledger.report_balances(without).unit_spent_nano == 32 * NANO
        with pytest.raises(OverBudget):
            ledger.reserve(numbered(fit), replace(without, per_unit_nano=33 * NANO))
        granted = ledger.reserve(numbered(fit), replace(without, per_unit_nano=34 * NANO))
        assert granted.charge.renyi is None


def test_what_is_charged_by_curve_is_spent_in_full_and_never_continued(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        reserved = ledger.reserve(ASKED, CAPS)
        for less in (
            Spent.from_uniform(0, unit_epsilon_nano=0),
            Spent.from_uniform(NANO // 25, unit_epsilon_nano=NANO),
        ):
            with pytest.raises(LedgerMisuse):
                ledger.commit(reserved, less, b"UK")
        ledger.commit(reserved, all_of(reserved.charge), b"UK", paths={"f": b"noise"})
        (path,) = ledger.find_paths(["f"], "v1").values()
        assert (path.is_taken, path.body) == (True, b"noise")
        news = PathContinuation((path.state,), shared_loss=Amounts(1, 1), public_loss=Amounts(1, 1))
        with pytest.raises(PathTaken):
            ledger.reserve(replace(numbered(2), renyi=None, path_continuation=news), CAPS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"shared": False},
        {
            "path_continuation": PathContinuation(
                (PathState("f", "v1", "r0"),), shared_loss=Amounts(0, 0), public_loss=Amounts(0, 0)
            )
        },
        {"renyi": CURVE[1:]},
        {"renyi": (2 * NANO + 1,) * len(ORDERS)},
        {"renyi": (-1,) * len(ORDERS)},
    ],
)
def test_a_curve_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(LedgerMisuse):
        replace(ASKED, **wrong)  # type: ignore[arg-type]
    with pytest.raises(LedgerMisuse):
        replace(charge(NANO), renyi=CURVE)
