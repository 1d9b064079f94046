"""Questions by looks: the looks that ran are charged, the others come back to the asker alone."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from accountant.cell_balance import CellLosses
from accountant.charges import NANO, Charge, Spent
from accountant.errors import LedgerMisuse, OverBudget
from accountant.events.events import GENESIS, Committed, Reserved, make_record, parse_event
from accountant.ledger import Ledger
from accountant.look_losses import LossAfterLooks
from accountant.unit_balance import UnitLoss
from mechanisms.arc.divergences import compute_divergences, compute_pure_loss
from mechanisms.arc.look_table import BlockGrid, choose_slope, decide_by_words, make_looks
from mechanisms.threshold.renyi import Curve, to_nano
from tests.accountant.conftest import now
from tests.accountant.examples import COUNTRIES, all_of, cells, charge
from tests.accountant.store.test_cell_charges import ASKED, CAPS, EACH, OF_PERSON, numbered


def by_looks(asked: Charge) -> Charge:
    """The same question by three looks, of a quarter, a half and the whole of its loss."""
    assert asked.cell_renyi is not None
    looks = [
        LossAfterLooks(asked.epsilon_nano // share, tuple(nano // share for nano in asked.cell_renyi))
        for share in (4, 2, 1)
    ]
    return replace(asked, looks=tuple(looks))


LOOKS = by_looks(ASKED)
OF_LOOKS = by_looks(OF_PERSON)
OF_UNITS = replace(OF_LOOKS, cell_renyi=None, looks=tuple(replace(one, cell_renyi=None) for one in OF_LOOKS.looks))
# a unit in the two keys that ran longest: of all looks, and of two
RAN = replace(
    Spent.from_keys([EACH, EACH // 4, EACH // 2], unit_epsilon_nano=EACH + EACH // 2),
    renyi=tuple(3 * nano // 4 for nano in OF_PERSON.renyi or ()),
)


@pytest.mark.parametrize("asked", [LOOKS, OF_LOOKS, OF_UNITS])
def test_a_charge_by_looks_and_back(asked: Charge) -> None:
    event = Reserved("r1", now(), asked, None)
    record = make_record(event, number=1, previous_hash=GENESIS, domains={COUNTRIES: "d"})
    assert parse_event(record, domains={"d": COUNTRIES}) == event
    assert json.loads(record.payload)["v"] == 6


def test_a_commit_by_looks_and_back() -> None:
    event = Committed("r1", now(), RAN, None, None)
    record = make_record(event, number=1, previous_hash=GENESIS, domains={})
    assert parse_event(record, domains={}) == event
    assert json.loads(record.payload)["v"] == 3


def test_looks_that_did_not_run_come_back_to_the_asker_alone(ledger_url: str) -> None:
    apart = replace(CAPS, separates_analysts=True, delta=1e-9, analyst_per_predicate_nano=4 * NANO)
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        whole = [ledger.find_headroom(replace(OF_LOOKS, analyst=name), apart) for name in ("ann", "bob")]
        reserved = ledger.reserve(OF_LOOKS, apart)
        assert reserved.charge.looks
        before = [ledger.find_headroom(replace(OF_LOOKS, analyst=name), apart) for name in ("ann", "bob")]
        ledger.commit(reserved, RAN, b"UK")
    with Ledger.open(ledger_url, clock=now, snapshot_every=1) as ledger:
        assert ledger.verify_everything() == 2
        after = [ledger.find_headroom(replace(OF_LOOKS, analyst=name), apart) for name in ("ann", "bob")]
        # bob still counts what was reserved; ann has back what did not run, on her own balances and in her view
        assert after[1] == before[1]
        for one, there, full in zip(after[0].balances, before[0].balances, whole[0].balances, strict=True):
            if one.unit_room is not None:
                assert there.left_nano < one.left_nano < full.left_nano
                assert one.unit_room.loss == UnitLoss(RAN.unit_epsilon_nano, RAN.unit_epsilon_nano, RAN.renyi or ())
        (family,) = ledger.report_balances(apart).families
        assert family.spent_nano == (EACH, EACH // 4, EACH // 2)
        # a key by all looks, one by the first, one by two, each at its own curve
        losses = [
            (CellLosses(np.zeros(1, dtype=np.int64))).find_balances(
                1e-9, nano=look.epsilon_nano, curve=look.cell_renyi
            )[0]
            for look in (LOOKS.looks[2], LOOKS.looks[0], LOOKS.looks[1])
        ]
        assert family.lost_nano == tuple(losses)


def test_what_a_commit_by_looks_must_not_say(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now) as ledger:
        caps = replace(CAPS, delta=1e-9)
        reserved = ledger.reserve(OF_LOOKS, caps)
        for wrong in (
            replace(RAN, renyi=None),
            replace(RAN, renyi=tuple(nano + 1 for nano in OF_PERSON.renyi or ())),
            replace(Spent.from_keys([EACH, 1, EACH], unit_epsilon_nano=2 * EACH), renyi=RAN.renyi),
            Spent.from_uniform(0, unit_epsilon_nano=0),
        ):
            with pytest.raises(LedgerMisuse):
                ledger.commit(reserved, wrong, b"UK")
        drawn_at_once = ledger.reserve(numbered(2, OF_PERSON), caps)
        with pytest.raises(LedgerMisuse):
            ledger.commit(drawn_at_once, RAN, b"UK")
        ledger.commit(reserved, all_of(reserved.charge), b"UK")


@pytest.mark.parametrize(
    "looks",
    [
        LOOKS.looks[:2],
        (LOOKS.looks[1], LOOKS.looks[0], LOOKS.looks[2]),
        (replace(LOOKS.looks[0], cell_renyi=None), *LOOKS.looks[1:]),
        (LossAfterLooks(EACH // 4, LOOKS.looks[2].cell_renyi), *LOOKS.looks[1:]),
    ],
)
def test_looks_that_mean_nothing_are_refused(looks: tuple[LossAfterLooks, ...]) -> None:
    with pytest.raises(LedgerMisuse):
        replace(ASKED, looks=looks)
    with pytest.raises(LedgerMisuse):
        replace(ASKED, cell_renyi=None, looks=LOOKS.looks)


# of households in up to 52 weeks: a test of one count with a tolerance of 100, and rates of .05 and .1
GROUPS, KEYS = 52, 53
UNIT_CAPS = replace(CAPS, per_unit_nano=8 * NANO, delta=1e-9)
GRID = BlockGrid.from_contract(sensitivity=1, tolerance=100, in_full=False)
TABLES = make_looks(
    grid=GRID,
    fnr=0.05,
    fpr=0.1,
    slope=choose_slope(grid=GRID, fnr=0.05, fpr=0.1, multiple=1.5),
    early=(0.1, 0.3),
    early_share=0.08,
)
WEEKS = cells(week=tuple(map(str, range(KEYS))))


def find_losses_after_looks() -> tuple[LossAfterLooks, ...]:
    """What real tables cost one cell after each look."""
    pure = np.cumsum([to_nano(compute_pure_loss(table, 1)) for table in TABLES]).tolist()
    curves = np.cumsum([[to_nano(one) for one in compute_divergences(table, 1)] for table in TABLES], axis=0).tolist()
    return tuple(LossAfterLooks(nano, tuple(curve)) for nano, curve in zip(pure, curves, strict=True))


def times(curve: Curve | None, groups: int) -> Curve:
    return tuple(groups * nano for nano in curve or ())


def decide_week_by_week(totals: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """How many looks each week took, its households being so far above the threshold."""
    ran = np.ones(len(totals), dtype=np.int64)
    for number, table in enumerate(TABLES[:-1]):
        accepted, rejected = decide_by_words(table, totals, random.integers(0, 2**64, len(totals), dtype=np.uint64))
        ran[(ran == number + 1) & ~accepted & ~rejected] += 1
    return ran


@pytest.mark.parametrize("are_near", [True, False])
def test_as_many_questions_by_looks_fit_as_is_known_of_them(are_near: bool, tmp_path: Path) -> None:
    """Every week at its threshold: as many as if all looks always ran. Weeks spread over two decades: some hundreds."""
    looks, random = find_losses_after_looks(), np.random.default_rng(7)
    last = looks[-1]
    asked = replace(
        charge(last.epsilon_nano, keys=WEEKS, unit="household", unit_epsilon_nano=GROUPS * last.epsilon_nano),
        renyi=times(last.cell_renyi, GROUPS),
        cell_renyi=last.cell_renyi,
        looks=looks,
    )
    curves = np.array([look.cell_renyi for look in looks])
    pure = np.array([look.epsilon_nano for look in looks])
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=now) as ledger:
        answered = 0
        for answered in range(400):
            try:
                reserved = ledger.reserve(numbered(answered, asked), UNIT_CAPS)
            except OverBudget:
                break
            if are_near:
                ledger.commit(reserved, all_of(reserved.charge), None)
                continue
            above = 1000.0 * (10 ** random.uniform(-1, 1, KEYS) - 1)
            ran = decide_week_by_week(above.astype(np.int64), random)
            dearest = np.sort(ran)[-GROUPS:] - 1
            spent = Spent.from_keys(pure[ran - 1], unit_epsilon_nano=int(pure[dearest].sum()))
            ledger.commit(reserved, replace(spent, renyi=tuple(curves[dearest].sum(axis=0).tolist())), None)
        assert (answered == 44) if are_near else (180 < answered < 300)
