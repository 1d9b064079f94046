"""Losses per key lie packed in the ledger, and nobody who reads it sees that."""

from dataclasses import replace

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from accountant.charges import NANO
from accountant.errors import LedgerUnavailable
from accountant.events.digests import Domain, digest, encode_domain
from accountant.events.events import GENESIS, Committed, Reserved, make_record
from accountant.events.packed_losses import pack_losses, unpack_losses
from accountant.ledger import Ledger
from tests.accountant.balances.test_noise_paths import engine_of
from tests.accountant.conftest import now
from tests.accountant.examples import cells, charge, limits, per_key
from tests.accountant.store.test_migration import bring_to, store

KEYS = tuple(f"c{number}" for number in range(2_000))
LOSSES = [(number % 7) * NANO // 7 for number in range(len(KEYS))]
RAW = np.array(LOSSES, dtype="<i8").tobytes()


@given(st.lists(st.integers(0, 2**63 - 1), max_size=40), st.integers(1, 3), st.sampled_from((1, 17, 700)))
def test_what_is_unpacked_is_what_was_packed(levels: list[int], step: int, times: int) -> None:
    losses = np.array(levels * times, dtype="<i8")[::step].tobytes()
    assert unpack_losses(pack_losses(losses)) == losses
    assert len(pack_losses(losses)) <= len(losses)


@pytest.mark.parametrize(
    ("levels", "most"), [(1, 1_000), (256, 2**17 + 3_000), (257, 2**18 + 3_000), (2**16 + 1, 2**20)]
)
def test_a_key_takes_the_bytes_that_its_number_needs(levels: int, most: int) -> None:
    losses = (np.random.default_rng(1).permutation(2**17) % levels).astype("<i8").tobytes()
    assert unpack_losses(pack_losses(losses)) == losses
    assert len(pack_losses(losses)) <= most


@pytest.mark.parametrize("damage", [slice(None, 8), slice(None, 11), slice(None, 40), slice(None, -1), slice(None, -9)])
def test_what_was_not_packed_by_keyhole_is_said_to_be_unreadable(damage: slice) -> None:
    with pytest.raises(LedgerUnavailable, match="losses per key cannot be read"):
        unpack_losses(pack_losses(RAW)[damage])


def test_a_ledger_with_losses_as_they_lay_before_goes_on_packed(ledger_url: str) -> None:
    asked = charge(NANO, keys=cells(country=KEYS))
    domains: dict[Domain, str] = {KEYS: digest(encode_domain(KEYS))}
    reserved = make_record(Reserved("r1", now(), asked), number=1, previous_hash=GENESIS, domains=domains)
    event = Committed("r1", now(), per_key(LOSSES), None, None)
    committed = make_record(event, number=2, previous_hash=reserved.hash, domains=domains)
    engine = engine_of(ledger_url)
    with engine.begin() as connection:
        bring_to(connection, "0009")
        store(connection, [reserved, committed], KEYS)
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert ledger.owner.find_newest_event() == (2, committed.hash)
        second = ledger.reserve(replace(asked, question="q2"), limits())
        ledger.commit(second, per_key(LOSSES), None)
        assert ledger.verify_everything() == 4
        assert set(ledger.report_balances(limits()).families[0].spent_nano) == {2 * loss for loss in LOSSES}
    with engine.connect() as connection:
        lying = connection.execute(sa.text("SELECT spent_keys FROM events WHERE kind = 'Committed' ORDER BY id"))
        first, packed = (bytes(body) for (body,) in lying)
        told = connection.execute(sa.text("SELECT payload FROM events WHERE kind = 'Committed'")).scalars().all()
    engine.dispose()
    assert first == RAW
    assert 8 * len(packed) < len(RAW)
    assert all(digest(RAW) in payload for payload in told)
