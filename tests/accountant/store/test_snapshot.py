"""A long ledger opens from stored balances, and never trusts them over the log."""

import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given

from accountant.balances.fold import fold
from accountant.charges import NANO, Charge, Spent, Wording
from accountant.errors import LedgerUnavailable, NotApproved
from accountant.events.digests import digest
from accountant.events.events import Committed, Event, Reserved
from accountant.ledger import Ledger
from accountant.store.snapshot import SNAPSHOT_FORMAT, pack_balances, unpack_balances
from tests.accountant.balances.test_noise_paths import engine_of
from tests.accountant.balances.test_overlap import workloads
from tests.accountant.conftest import now
from tests.accountant.examples import cells, charge, continuing, limits, per_key
from tests.effort import examples

CAPS = limits(1000 * NANO)


def busy(ledger: Ledger) -> None:
    """A bit of everything."""
    first = ledger.reserve(charge(2 * NANO, unit="customer_id"), CAPS)
    losses = per_key([NANO, 0, 1], unit="customer_id")
    ledger.commit(first, losses, b"FR", paths={"sum": b"values", "count": b"1"})
    paths = ledger.find_paths(["sum", "count"], "v1")
    news = continuing(paths["sum"].state, shared=NANO, known=1, unit="customer_id")
    ledger.reserve(charge(2 * NANO, unit="customer_id", analyst="bob", continuing=news), CAPS)
    ledger.release(ledger.reserve(charge(2 * NANO), CAPS))
    ledger.owner.approve_question(f"q{ledger.verify_everything()}", by="owner", why="asked")
    refusal = NotApproved(question="q", needed_nano=NANO, above_nano=1, declined=None)
    ledger.store_waiting_question(
        refusal, charge(question="q"), Wording(text=None, guarantee="sure", fnr=None, fpr=None)
    )
    ledger.owner.decline_question("q", by="owner", why="too dear")


@examples(50)
@given(workloads())
def test_balances_come_back_from_bytes_and_go_on_alike(
    workload: tuple[list[Event], list[tuple[Charge, Spent]], Charge],
) -> None:
    events, _, _ = workload
    half = len(events) // 2
    balances = unpack_balances(pack_balances(fold(events[:half])))
    assert pack_balances(balances) == pack_balances(fold(events[:half]))
    for event in events[half:]:
        balances.apply_event(event)
    assert pack_balances(balances) == pack_balances(fold(events))


def stored(url: str) -> list[tuple[int, str]]:
    engine = engine_of(url)
    with engine.connect() as connection:
        rows = [(row[0], row[1]) for row in connection.execute(sa.text("SELECT event, digest FROM snapshots"))]
    engine.dispose()
    return rows


def test_reopening_from_a_snapshot_gives_identical_balances(ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=now, snapshot_every=3) as ledger:
        busy(ledger)
        assert stored(ledger_url) == []
    ((number, _),) = stored(ledger_url)
    for _ in range(2):
        with Ledger.open(ledger_url, clock=now, snapshot_every=3) as ledger:
            assert ledger.verify_everything() == number
            busy(ledger)
            report, left = ledger.report_balances(CAPS), ledger.find_headroom(charge(), CAPS)
        with Ledger.open(ledger_url, clock=now, snapshot_every=10**6) as ledger:
            assert (ledger.report_balances(CAPS), ledger.find_headroom(charge(), CAPS)) == (report, left)
            ((newer, _),) = stored(ledger_url)
            assert newer == ledger.verify_everything() > number
            number = newer


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE snapshots SET hash = 'another ledger'",
        "UPDATE snapshots SET event = event - 1",
        "UPDATE snapshots SET digest = 'x'",
        "UPDATE snapshots SET body = x'00'",
        "UPDATE snapshots SET body = 'a text'",
        "DELETE FROM snapshots",
    ],
)
def test_a_wrong_or_foreign_snapshot_is_ignored(tmp_path: Path, change: str) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now, snapshot_every=3) as ledger:
        busy(ledger)
        before = ledger.find_headroom(charge(), CAPS)
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(sa.text(change))
    engine.dispose()
    with Ledger.open(url, clock=now) as ledger:
        assert ledger.find_headroom(charge(), CAPS) == before
        ledger.reserve(charge(), CAPS)


def test_a_forged_snapshot_is_found_out(tmp_path: Path) -> None:
    """Whoever may write to the database can forge stored balances with their digest; reading the log tells."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now, snapshot_every=3) as ledger:
        busy(ledger)
    engine = engine_of(url)
    with engine.begin() as connection:
        body = connection.execute(sa.text("SELECT body FROM snapshots")).scalar_one()
        forged = re.sub(rb'"unit_nano":\d+', b'"unit_nano":1', zlib.decompress(body))
        connection.execute(
            sa.text("UPDATE snapshots SET body = :body, digest = :digest"),
            {"body": zlib.compress(forged), "digest": digest(forged)},
        )
    engine.dispose()
    with pytest.raises(LedgerUnavailable), Ledger.open(url, clock=now) as ledger:
        ledger.verify_everything()


def test_bytes_that_are_no_balances_are_refused() -> None:
    whole = pack_balances(fold([]))
    ours = b'"format":%d' % SNAPSHOT_FORMAT
    others = [whole.replace(ours, b'"format":%d' % other) for other in (SNAPSHOT_FORMAT - 1, SNAPSHOT_FORMAT + 1)]
    for content in (b"", b"{}", b"[]\n", whole + b"x", *others):
        with pytest.raises(LedgerUnavailable):
            unpack_balances(content)


def test_a_snapshot_of_an_older_format_is_passed_over(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    with Ledger.open(url, clock=now, snapshot_every=3) as ledger:
        busy(ledger)
        before = ledger.find_headroom(charge(), CAPS)
    engine = engine_of(url)
    older = b'{"format":1,"shared":"in another way"}\n'
    with engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE snapshots SET body = :body, digest = :digest"),
            {"body": zlib.compress(older), "digest": digest(older)},
        )
    engine.dispose()
    with Ledger.open(url, clock=now) as ledger:
        assert ledger.find_headroom(charge(), CAPS) == before
        assert ledger.verify_everything() == 7


def test_balances_are_the_same_bytes_whatever_compresses_them() -> None:
    """Two builds of zlib write other bytes for the same content."""
    keys = cells(country=tuple(map(str, range(2000))))
    spent = per_key([number % 60 for number in range(2000)])
    balances = fold(
        [
            Reserved("r1", now(), charge(60, keys=keys)),
            Committed("r1", now(), spent, None, None, paths=(("f", "digest"),)),
        ]
    )
    content = pack_balances(balances)
    refund = balances.paths.refunds["r1"]
    assert refund.packed_loss.keys is not None
    before = len(refund.packed_loss.keys) - len(
        zlib_part := refund.packed_loss.keys[12 + 8 * 60 :]
    )  # its mark, and 60 losses
    again = zlib.compress(zlib.decompress(zlib_part), 9)
    assert again != zlib_part
    refund.packed_loss = replace(refund.packed_loss, keys=refund.packed_loss.keys[:before] + again)
    assert pack_balances(balances) == content
    assert pack_balances(unpack_balances(content)) == content
    assert unpack_balances(content).paths.refunds["r1"].spent == spent
