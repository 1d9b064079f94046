"""What the ledger costs: `python -m benchmarks.accounting [--keys N] [--questions N] [--repeats N] [--json FILE]`.

Reservation and commit (each durable before it returns) of questions over 500 and a million keys, on SQLite and on
PostgreSQL, beside a transaction that inserts one row as durably; and a ledger of many questions: how long it takes to
open, and to check one more question.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TypeVar

import numpy as np
import sqlalchemy as sa

from accountant.charges import NANO, Cells, Charge, Family, NanoArray, Spent
from accountant.events.events import Committed, Event, Reserved, make_record
from accountant.ledger import Ledger
from accountant.limits import Limits
from accountant.store.store import LedgerStore
from proxy.shadow.wheel import make_postgres_server

Result = TypeVar("Result")

LIMITS = Limits(
    per_predicate_nano=10**6 * NANO,
    per_unit_nano=10**9 * NANO,
    per_query_nano=None,
    analyst_per_predicate_nano=10**6 * NANO,
    analyst_per_unit_nano=None,
    separates_analysts=False,
)
LOOKS = np.array([NANO // 8, NANO // 4, NANO // 2, NANO], dtype=np.int64)
COLUMNS = {
    "country": tuple(f"country {n:02}" for n in range(38)),
    "month": tuple(f"2011-{n:02}" for n in range(1, 13)),
    "product": tuple(f"product {n:02}" for n in range(25)),
    "channel": ("shop", "web", "phone", "post"),
}
# large ledgers: a name, the privacy unit, how many data versions, and the columns that never change
LARGE: tuple[tuple[str, str, int, tuple[str, ...]], ...] = (
    ("units", "customer_id", 30, ()),
    ("rows", "row", 300, ()),
    ("mixed", "row", 300, ("country", "product")),
)


def now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds: the median and the worst of the repeats, and the median of this process's own processor time."""

    store: str
    what: str
    median_ms: float
    worst_ms: float
    processor_ms: float


Took = tuple[float, float]


def make_charge(
    keys: Cells,
    *,
    number: int = 0,
    unit: str = "customer_id",
    where: str = "",
    version: str = "v1",
    immutable: frozenset[str] = frozenset(),
) -> Charge:
    family = Family("sales", unit, tuple(name for name, _ in keys.columns), where, version, immutable)
    return Charge(f"question {number}", "ann", family, keys, NANO, 0 if unit == "row" else NANO, shared=True)


def time_call(call: Callable[[], Result]) -> tuple[Took, Result]:
    """Milliseconds by the clock and of the processor, and the result."""
    start, worked = perf_counter(), process_time()
    result = call()
    return (1e3 * (perf_counter() - start), 1e3 * (process_time() - worked)), result


def add_times(one: Took, other: Took) -> Took:
    return one[0] + other[0], one[1] + other[1]


def spread(store: str, what: str, took: list[Took]) -> Measured:
    clock, processor = zip(*took, strict=True)
    return Measured(store, what, median(clock), max(clock), median(processor))


@contextmanager
def open_stores(only: str | None) -> Iterator[dict[str, str]]:
    """Empty places for ledgers, by name: a file in this folder's file system, and a PostgreSQL of its own."""
    with ExitStack() as stack:
        urls = {}
        if only in (None, "SQLite"):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="keyhole-", dir=Path.cwd()))
            urls["SQLite"] = f"sqlite:///{folder}/ledger.db"
        if only in (None, "PostgreSQL"):
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="keyhole-")))
            data.chmod(0o711)
            server = make_postgres_server(data / "data", cleanup_mode="stop")
            server.start()
            stack.callback(server.cleanup)
            urls["PostgreSQL"] = server.get_uri()
        yield urls


def open_place(url: str, name: str) -> str:
    """Another empty ledger of the same kind."""
    if url.startswith("sqlite"):
        return url.replace("ledger.db", f"{name}.db")
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return sa.make_url(url).set(database=name).render_as_string(hide_password=False)


def time_row(url: str, *, repeats: int) -> list[Took]:
    """A transaction that inserts one row, as durably as the ledger's."""
    store = LedgerStore.open(url)
    took = []
    with store.begin_write(store.make_deadline()) as transaction:
        transaction._connection.execute(sa.text("CREATE TABLE plain (id INTEGER, body TEXT)"))
    for number in range(repeats):

        def insert(number: int = number) -> None:
            with store.begin_write(store.make_deadline()) as transaction:
                transaction._connection.execute(
                    sa.text("INSERT INTO plain VALUES (:id, :body)"), {"id": number, "body": "x" * 400}
                )

        took.append(time_call(insert)[0])
    store.close()
    return took


def make_cells(size: int) -> Cells:
    """One column of so many keys, made anew as each question makes them."""
    return Cells((("customer", tuple(f"customer {number:07}" for number in range(size))),))


def measure_verbs(store: str, url: str, *, size: int, repeats: int, same_objects: bool) -> Iterator[Measured]:
    """Reservation and commit with a loss per key."""
    drawn = np.random.default_rng(1)
    with Ledger.open(url, clock=now) as ledger:
        reserving, committing = [], []
        keys = make_cells(size)
        for number in range(repeats + 1):
            asked = make_charge(keys if same_objects else make_cells(size), number=number)
            losses: NanoArray = LOOKS[drawn.integers(0, len(LOOKS), size)]
            spent = Spent.from_keys(losses, unit_epsilon_nano=NANO)
            reserve_ms, reservation = time_call(partial(ledger.reserve, asked, LIMITS))
            commit_ms, _ = time_call(partial(ledger.commit, reservation, spent, b"the released keys"))
            if number == 0:
                yield spread(
                    store, f"{size} keys never seen before: reserve and commit", [add_times(reserve_ms, commit_ms)]
                )
                continue
            reserving.append(reserve_ms)
            committing.append(commit_ms)
        of = f"{size} keys{'' if same_objects else ', made anew'}"
        yield spread(store, f"{of}: reserve", reserving)
        yield spread(store, f"{of}: commit, a loss for each key", committing)
        yield spread(store, f"{of}: both", list(map(add_times, reserving, committing)))
        uniform = []
        for number in range(repeats):
            asked = make_charge(keys, number=number)
            reservation = ledger.reserve(asked, LIMITS)
            spent = Spent.from_uniform(NANO // 2, unit_epsilon_nano=NANO)
            uniform.append(time_call(partial(ledger.commit, reservation, spent, b"the released keys"))[0])
        yield spread(store, f"{of}: commit, one loss for all (one row)", uniform)


def draw_events(
    questions: int, *, unit: str, versions: int, immutable: frozenset[str] = frozenset()
) -> Iterator[Event]:
    """Questions over up to four columns with filters, whole domains and parts of them, a loss for each key or one."""
    drawn = random.Random(7)
    losses = np.random.default_rng(7)
    for number in range(questions):
        columns = sorted(drawn.sample(sorted(COLUMNS), drawn.choice((1, 1, 2, 2, 3, 4))))
        keys = []
        for column in columns:
            values = COLUMNS[column]
            if drawn.random() < 0.3:
                first = drawn.randrange(len(values))
                values = values[first : first + drawn.randint(1, len(values))]
            keys.append((column, values))
        asked = make_charge(
            Cells(tuple(keys)),
            number=number,
            unit=unit,
            where=drawn.choice(("", "amount > 5", "amount < 9")),
            version=f"v{number * versions // questions}",
            immutable=immutable,
        )
        yield Reserved(f"{number:032x}", now(), asked)
        spent = Spent.from_uniform(NANO // 4, unit_epsilon_nano=0 if unit == "row" else NANO // 4)
        if asked.cells.key_count <= 500 and drawn.random() < 0.5:
            spent = Spent.from_keys(
                LOOKS[losses.integers(0, len(LOOKS), asked.cells.key_count)],
                unit_epsilon_nano=0 if unit == "row" else NANO,
            )
        yield Committed(f"{number:032x}", now(), spent, None, None)


def fill(url: str, events: Iterator[Event]) -> None:
    """Write many events in one transaction."""
    store = LedgerStore.open(url)
    with store.begin_write(store.make_deadline()) as transaction:
        for event in events:
            domains = {}
            if isinstance(event, Reserved):
                domains = transaction.store_domains(values for _, values in event.charge.cells.columns)
            number, previous = transaction.newest
            transaction.append_record(make_record(event, number=number + 1, previous_hash=previous, domains=domains))
    store.close()


def measure_large_ledger(
    store: str, url: str, *, questions: int, repeats: int, unit: str, versions: int, immutable: frozenset[str]
) -> Iterator[Measured]:
    """A ledger of many questions: opening it, and checking and reserving one more."""
    of = f"{questions} questions, {'rows' if unit == 'row' else 'units'}, {versions} versions"
    if immutable:
        of += f", {len(immutable)} immutable"
    fill(url, draw_events(questions, unit=unit, versions=versions, immutable=immutable))
    opening_ms, ledger = time_call(lambda: Ledger.open(url, clock=now))
    yield spread(store, f"{of}: opening, every event", [opening_ms])
    with ledger:
        drawn = random.Random(3)
        checks, reservations = [], []
        asked = make_charge(Cells(()), unit=unit, version=f"v{versions - 1}", immutable=immutable)
        first_ms, _ = time_call(lambda: ledger.find_headroom(asked, LIMITS))
        yield spread(store, f"{of}: first check", [first_ms])
        for number in range(repeats):
            columns = sorted(drawn.sample(sorted(COLUMNS), 1 + number % 4))
            keys = Cells(tuple((name, COLUMNS[name]) for name in columns))
            asked = make_charge(
                keys, number=questions + number, unit=unit, version=f"v{versions - 1}", immutable=immutable
            )
            checks.append(time_call(partial(ledger.find_headroom, asked, LIMITS))[0])
            reserve_ms, reservation = time_call(partial(ledger.reserve, asked, LIMITS))
            reservations.append(reserve_ms)
            ledger.release(reservation)
        yield spread(store, f"{of}: check", checks)
        yield spread(store, f"{of}: check and reserve", reservations)
    reopening_ms, ledger = time_call(lambda: Ledger.open(url, clock=now))
    yield spread(store, f"{of}: opening, from a snapshot", [reopening_ms])
    ledger.close()


def measure(*, keys: int, questions: int, repeats: int, only: str | None) -> Iterator[Measured]:
    """All of it: on 500 and on so many `keys`, and ledgers of so many `questions`."""
    with open_stores(only) as urls:
        for store, url in urls.items():
            yield spread(store, "one row inserted, for comparison", time_row(open_place(url, "plain"), repeats=repeats))
            yield from measure_verbs(store, open_place(url, "small"), size=500, repeats=repeats, same_objects=False)
            yield from measure_verbs(
                store, open_place(url, "million"), size=keys, repeats=max(3, repeats // 4), same_objects=True
            )
            yield from measure_verbs(
                store, open_place(url, "anew"), size=keys, repeats=max(3, repeats // 4), same_objects=False
            )
            for name, unit, versions, immutable in LARGE:
                yield from measure_large_ledger(
                    store,
                    open_place(url, f"large_{name}"),
                    questions=questions,
                    repeats=repeats,
                    unit=unit,
                    versions=versions,
                    immutable=frozenset(immutable),
                )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100_000, help="questions in the large ledgers")
    parser.add_argument("--keys", type=int, default=10**6, help="keys in the large questions")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--only", choices=["SQLite", "PostgreSQL"])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    given = parser.parse_args()
    rows = []
    print(f"{'store':10}  {'what':72}  {'median':>10}  {'worst':>10}  {'processor':>10}")
    for row in measure(keys=given.keys, questions=given.questions, repeats=given.repeats, only=given.only):
        rows.append(asdict(row))
        times = "  ".join(f"{took:7.1f} ms" for took in (row.median_ms, row.worst_ms, row.processor_ms))
        print(f"{row.store:10}  {row.what:72}  {times}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
