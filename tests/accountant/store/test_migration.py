"""Ledgers of the first schema go on as they were: the same events, hashes and answers, as unchangeable as before."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.exc import DatabaseError

import accountant
from accountant.charges import NANO, Spent
from accountant.errors import LedgerUnavailable
from accountant.events.digests import Domain, digest, encode_domain
from accountant.events.events import GENESIS, Committed, Event, Record, Reserved, make_record, parse_event
from accountant.events.monitor_events import LookOfWindow, MonitorLooked, MonitorStarted, MonitorWindowBegun
from accountant.ledger import Ledger
from accountant.store.schema import find_newest_revision
from tests.accountant.balances.test_noise_paths import engine_of
from tests.accountant.conftest import now
from tests.accountant.examples import COUNTRIES, charge, limits, per_key
from tests.accountant.watching import BY_DAY, KEYS, horizon, look_at, moment

EVENTS: list[Event] = [
    Reserved("r1", now(), charge(2 * NANO)),
    Committed("r1", now(), per_key([NANO, 0, 2 * NANO]), digest(b"UK"), None),
    Reserved("r2", now(), charge(NANO, analyst="bob")),
    Reserved("r3", now(), charge(2 * NANO, analyst="bob", shared=False)),
    Committed("r3", now(), per_key([NANO, 0, 2 * NANO]), None, "r1"),
]


MONITORED: list[Event] = [
    Reserved("r", moment(0), horizon(60)),
    MonitorStarted("r", moment(0), "crowded", "m1", BY_DAY, "kim", "to see"),
    MonitorWindowBegun("r", moment(0), 0, digest(b"drawn")),
    MonitorLooked("r", moment(1), 1, "a proxy", (LookOfWindow(0, 1, digest(b"drawn+1"), (0, 2)),)),
    MonitorWindowBegun("r", moment(1), 1, digest(b"drawn too")),
    MonitorLooked(
        *("r", moment(2), 2, ""),
        (LookOfWindow(0, 2, digest(b"drawn+1+2"), ()), LookOfWindow(1, 1, digest(b"drawn too+1"), (1,))),
    ),
]
HASH_OF_MONITORED = "8b5bc5cce24c1ec21638881e8ea76586593453c9e2b3091522d103434f041c70"
"""That of the last event, as the version wrote it in which alerts were never cleared."""


def records(events: Sequence[Event] = EVENTS) -> list[Record]:
    written: list[Record] = []
    previous = GENESIS
    for number, event in enumerate(events, start=1):
        domains: dict[Domain, str] = {
            values: digest(encode_domain(values)) for values in (COUNTRIES, *(values for _, values in KEYS.columns))
        }
        written.append(make_record(event, number=number, previous_hash=previous, domains=domains))
        previous = written[-1].hash
    return written


def test_events_that_need_nothing_new_are_written_as_ever() -> None:
    assert all('"v":1' in record.payload for record in records())
    assert '"epsilon_nano":2000000000,"family":{"columns":["country"]' in records()[0].payload
    assert set(records()[1].payload.split('"')[1::2]) >= {"answer", "epsilon_nano", "keys", "reads", "v"}


@pytest.mark.parametrize("losses", [[3 * NANO, 0, 0], [-NANO, 0, 2 * NANO], [NANO, 0, 0]])
def test_losses_per_key_beside_another_largest_one_are_not_read(losses: list[int]) -> None:
    wrong = Spent(2 * NANO, 0, np.array(losses, dtype="<i8").tobytes())
    for spent in (wrong, Spent(2 * NANO, 0, None, wrong)):
        event = Committed("r1", now(), spent, None, None)
        written = make_record(event, number=1, previous_hash=GENESIS, domains={})
        with pytest.raises(LedgerUnavailable):
            parse_event(written, domains={})


def test_the_newest_revision_is_where_the_migrations_lead() -> None:
    """Opening a ledger compares with it whether there is anything to do."""
    config = Config()
    config.set_main_option("script_location", str(Path(accountant.__file__).parent / "migrations"))
    assert ScriptDirectory.from_config(config).get_heads() == [find_newest_revision()]


def bring_to(connection: sa.Connection, revision: str) -> None:
    """Make the schema of a version."""
    config = Config()
    config.set_main_option("script_location", str(Path(accountant.__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def store(connection: sa.Connection, written: list[Record], *domains: Domain) -> None:
    """Write events and the key values that they refer to."""
    for values in domains:
        connection.execute(
            sa.text("INSERT INTO domains VALUES (:digest, :body)"),
            {"digest": digest(encode_domain(values)), "body": zlib.compress(encode_domain(values), 1)},
        )
    columns = ", ".join(f":{name}" for name in asdict(written[0]))
    connection.execute(sa.text(f"INSERT INTO events VALUES ({columns})"), [asdict(record) for record in written])


def test_a_ledger_of_the_first_schema_is_migrated(ledger_url: str) -> None:
    engine = engine_of(ledger_url)
    with engine.begin() as connection:
        bring_to(connection, "0001")
        store(connection, records(), COUNTRIES)
        connection.execute(
            sa.text("INSERT INTO answers VALUES ('r1', 2, 'q1', 'v1', 'ann', :answer)"), {"answer": b"UK"}
        )
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert ledger.verify_everything() == 5
        assert ledger.owner.find_newest_event() == (5, records()[-1].hash)
        assert ledger.report_balances(limits()).families[0].spent_nano == (2 * NANO, NANO, 3 * NANO)
        stored = ledger.find_answer("q1", "v1", analyst="bob")
        assert stored is not None
        assert (stored.answer, stored.is_held) == (b"UK", True)
        (still_open,) = ledger.list_open_reservations()
        ledger.commit(still_open, Spent.from_uniform(0, unit_epsilon_nano=0), b"FR", paths={"sum": b"values"})
        for statement in ("UPDATE events SET at = at", "DELETE FROM events", "DELETE FROM answers"):
            with engine.connect() as connection, pytest.raises(DatabaseError, match="append-only"):
                connection.execute(sa.text(statement))
        with engine.connect() as connection, pytest.raises(DatabaseError):
            connection.execute(sa.text("INSERT INTO events SELECT * FROM events"))
        assert ledger.verify_everything() == 6
    engine.dispose()


def test_alerts_of_before_clearings_are_migrated(ledger_url: str) -> None:
    """A chain of then has the hashes of then, and goes on; its alerts may be cleared, and in nothing else changed."""
    written = records(MONITORED)
    assert written[-1].hash == HASH_OF_MONITORED
    engine = engine_of(ledger_url)
    with engine.begin() as connection:
        bring_to(connection, "0007")
        store(connection, written, *(values for _, values in KEYS.columns))
        for window, look, body in ((0, 2, b"drawn+1+2"), (1, 1, b"drawn too+1")):
            connection.execute(
                sa.text("INSERT INTO monitor_state VALUES ('r', :window, :look, :body)"),
                {"window": window, "look": look, "body": body},
            )
        for window, key, number in ((0, 0, 1), (0, 2, 1), (1, 1, 2)):
            at = moment(number).isoformat(timespec="microseconds")
            connection.execute(
                sa.text("INSERT INTO monitor_alerts VALUES ('r', :window, :key, :number, :at)"),
                {"window": window, "key": key, "number": number, "at": at},
            )
    with Ledger.open(ledger_url, clock=now) as ledger:
        assert ledger.verify_everything() == 6
        assert ledger.owner.find_newest_event() == (6, HASH_OF_MONITORED)
        alerts = ledger.monitors.read_alerts("r").alerts
        assert [(one.key, one.cleared_number) for one in alerts] == [(0, None), (2, None), (1, None)]
        look_at(ledger, "r", 0, number=3, keys=(1,), cleared=(0,))
        assert (ledger.monitors.find_keys_in_answer("r", 0), ledger.monitors.find_keys_in_answer("r", 1)) == (
            (1, 2),
            (1,),
        )
        look_at(ledger, "r", 0, number=4, keys=(0,))
        newest = [record for record, _ in ledger._journal.read_events()][-2:]
        assert ['"v":2' in record.payload for record in newest] == [True, False]
        for statement in ("UPDATE monitor_alerts SET at = at", "DELETE FROM monitor_alerts"):
            with engine.connect() as connection, pytest.raises(DatabaseError, match="append-only"):
                connection.execute(sa.text(statement))
        assert ledger.verify_everything() == 8
        with engine.connect() as connection:
            salts = connection.execute(sa.text("SELECT window_number, salt FROM monitor_state ORDER BY 1")).all()
        assert [(window, len(salt)) for window, salt in salts] == [(0, 16), (1, 0)]
    engine.dispose()
