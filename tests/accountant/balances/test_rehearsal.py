"""What fits in a rehearsal is granted, whatever the questions answer; a rehearsal changes nothing."""

import tempfile
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from accountant.charges import Charge
from accountant.ledger import Ledger
from accountant.limits import Limits
from tests.accountant.balances.test_overlap import questions
from tests.accountant.conftest import now
from tests.accountant.drawing import a_loss
from tests.accountant.examples import limits
from tests.effort import examples


def caps(*, apart: bool) -> Limits:
    return limits(150, per_unit=200, analyst_per_predicate=100, analyst_per_unit=130, per_table=250, apart=apart)


def ask(data: st.DataObject, ledger: Ledger, charge: Charge, caps: Limits) -> None:
    """For real, with a loss that follows from its answer."""
    ledger.commit(ledger.reserve(charge, caps), a_loss(data, charge), b"answer")


@examples(150, quick=5)
@given(st.data(), st.sampled_from(["row", "customer_id"]), st.booleans())
def test_what_fits_one_after_the_other_is_granted(data: st.DataObject, unit: str, apart: bool) -> None:
    drawn = data.draw(st.lists(questions(unit), min_size=2, max_size=8))
    charges = [
        replace(charge, question=f"q{number}", analyst=analyst)
        for number, charge in enumerate(drawn)
        for analyst in (data.draw(st.sampled_from(["ann", "bob"])),)
    ]
    before = data.draw(st.integers(0, len(charges) - 1))
    cap = caps(apart=apart)
    with tempfile.TemporaryDirectory() as folder, Ledger.open(f"sqlite:///{folder}/ledger.db", clock=now) as ledger:
        for charge in charges[:before]:
            if ledger.find_shortage(charge, cap) is None:
                ask(data, ledger, charge, cap)
        left = [ledger.find_headroom(charge, cap) for charge in charges]
        stage = ledger.begin_rehearsal(frozenset(charge.family.table for charge in charges))
        run, fitting = stage.copy(), []
        for charge in charges[before:]:
            if run.find_shortage(charge, cap) is None:
                run.spend_charge(charge, cap)
                fitting.append(charge)
        assert [ledger.find_headroom(charge, cap) for charge in charges] == left
        assert [stage.find_headroom(charge, cap) for charge in charges] == left
        for charge in fitting:
            ask(data, ledger, charge, cap)
        for charge in charges:
            there, rehearsed = ledger.find_headroom(charge, cap), run.find_headroom(charge, cap)
            assert there.epsilon_nano >= rehearsed.epsilon_nano
