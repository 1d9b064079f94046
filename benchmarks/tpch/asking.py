"""Asks TPC-H's statements through Keyhole and plainly, and holds each answer against the truth.

Each question is asked over the PostgreSQL endpoint, at the policy's accuracy, of a data version of its own: first with
nothing kept, again once the steps of its statement are, and a last time once its rollup is, if it has one. These have
thresholds a little lower, for else they would be the stored answer, and a wider tolerance, which costs
little and changes no statement. "Right" are rows of the first that
qualify when thresholds are a tolerance lower, in the data *before* bounding.

All are timed warm and alone. The plain query has run before, the shadow has its public tables, and nothing is built
meanwhile. The plain query's time is the least of two.
"""

import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.tpch.data import Plain
from benchmarks.tpch.processor import Processor, find_server
from benchmarks.tpch.statements import Statement, read_statements
from planner.policy.file import Policy
from proxy.cli.check import check
from proxy.open_policy.pins import refresh
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background
from proxy.sources.protocol import Source

SLACK = 0.1  # the policy's tolerance
_COST = re.compile(r"cost: at most ([0-9.]+) epsilon(?:.*?, ([0-9.]+) for one)?")
_PRICE = re.compile(r"costs ([0-9.]+) epsilon")
_LOWER = (1 / 64, 1 / 32)  # of the thresholds: the second and third question
_WIDE = b"80%"  # their tolerance
_TIMES = 2  # that the plain query is timed: the least counts
_PLANNED = ("KH3", "KH501")  # refused for its accuracy or price, or not read in time, once it was planned
PUBLIC = "public"


@dataclass(frozen=True, slots=True)
class Asked:
    """One question on one engine. `outcome` is "planned", "public", or the refusal, with its `hint`.

    `group_epsilon` and `unit_epsilon` are the most that it can cost a group, and all of a customer. `true` rows qualify
    in the data, `returned` were answered, `found` are both, and `right` qualify with the slack. Times are in seconds,
    on the clock and of the processor: of Keyhole with its shadow and the source, and of the source alone. `kept` and
    `rolled` are those of the second and the third question.
    """

    engine: str
    query: str
    outcome: str
    group_epsilon: float | None = None
    unit_epsilon: float | None = None
    true: int | None = None
    returned: int | None = None
    found: int | None = None
    right: int | None = None
    plain_s: float | None = None
    keyhole_s: float | None = None
    plain_processor_s: float | None = None
    keyhole_processor_s: float | None = None
    kept_processor_s: float | None = None
    rolled_processor_s: float | None = None
    hint: str | None = None

    @property
    def planned(self) -> bool:
        """Return True if it was planned, whatever became of it then."""
        return self.outcome.startswith("planned")

    @property
    def ratios(self) -> tuple[float | None, float | None, float | None]:
        """Return how many times the plain query's processor time each of the three questions took."""
        first, kept, rolled = (
            None if used is None or not self.plain_processor_s else used / self.plain_processor_s
            for used in (self.keyhole_processor_s, self.kept_processor_s, self.rolled_processor_s)
        )
        return first, kept, rolled


def ask_all(
    engine: str,
    policy: Path,
    plain: Plain,
    *,
    scale: float,
    tell: Callable[[str], None],
    queries: Collection[int] = (),
    rounds: int = 3,
) -> Iterator[Asked]:
    """Ask every statement of an engine, or those of some queries; `tell` is given a line before and after each step.

    Parameters:
        rounds: how often at most a question is asked.
    """
    tell(f"{engine}: keyhole check")
    check(policy, confirm=False)
    declared = Policy.load(policy)
    tell(f"{engine}: keyhole serve")
    with (
        Service.open(policy) as service,
        serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
        psycopg.connect(
            f"host={addresses.host} port={addresses.port} dbname={addresses.database} user=demo password=demo",
            autocommit=True,
        ) as connection,
    ):
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        processor = Processor((find_server(connection), *plain.list_servers()))
        for table in service.catalog.public_tables:  # the shadow copies them when a session begins
            connection.execute(f"SELECT count(*) FROM {table.name}".encode())
        for statement in (one for one in read_statements() if not queries or one.number in queries):
            notices.clear()
            if statement.private:  # others never reach the source
                refresh(declared, *declared.private_tables, now=datetime.now(UTC))
                _warm(statement.write_sql(scale), plain, service.source)
            asked = _ask(engine, statement, connection, plain, notices, processor, scale=scale)
            if statement.private and asked.plain_s is not None:
                kept, rolled, *_ = (
                    *(
                        _ask_again(statement.write_sql(scale, slack=lower), connection, service.source, processor)
                        for lower in _LOWER[: rounds - 1]
                    ),
                    None,
                    None,
                )
                asked = replace(asked, kept_processor_s=kept, rolled_processor_s=rolled)
            times = "" if asked.keyhole_s is None else f", {asked.keyhole_s:.1f} s"
            times += "" if asked.plain_s is None else f", plain {asked.plain_s:.1f} s"
            tell(f"{engine} Q{asked.query}: {asked.outcome}{times}")
            yield asked


def _warm(sql: str, plain: Plain, source: Source) -> None:
    """Have the files of what a statement reads in memory, and wait until the source prepares nothing more."""
    with suppress(TimeoutError):
        plain.fetch(sql)
    source.wait_for_rollups()


def _ask_again(
    sql: str, connection: "psycopg.Connection[tuple[Any, ...]]", source: Source, processor: Processor
) -> float | None:
    """Return the processor time of a question for which the source has built what it will; None where it is refused."""
    source.wait_for_rollups()
    connection.execute(b"SET keyhole.tolerance = '%s'" % _WIDE)
    before = processor.measure_used_s()
    try:
        connection.execute(sql.encode()).fetchall()
    except psycopg.Error:
        return None
    else:
        return processor.measure_used_s() - before
    finally:
        connection.execute(b"RESET keyhole.tolerance")


def _ask(
    engine: str,
    statement: Statement,
    connection: "psycopg.Connection[tuple[Any, ...]]",
    plain: Plain,
    notices: list[str],
    processor: Processor,
    *,
    scale: float,
) -> Asked:
    query = f"{statement.number}{' instead' if statement.instead else ''}"
    sql, before, began = statement.write_sql(scale), processor.measure_used_s(), time.perf_counter()
    try:
        rows = connection.execute(sql.encode()).fetchall()
    except psycopg.Error as refusal:
        message = refusal.diag.message_primary or str(refusal)
        if not statement.private:
            return Asked(engine, query, f"{PUBLIC}; {message}", keyhole_s=time.perf_counter() - began)
        if not message.startswith(_PLANNED):
            return Asked(engine, query, message, hint=refusal.diag.message_hint)
        found = _PRICE.search(message)
        epsilon = None if found is None else float(found[1])
        return Asked(engine, query, f"planned; {message}", epsilon, keyhole_s=time.perf_counter() - began)
    took, used = time.perf_counter() - began, processor.measure_used_s() - before
    cost = next((one for text in notices if (one := _COST.search(text)) is not None), None)
    outcome, price, whole = "planned" if statement.private else PUBLIC, None, None
    if cost is not None:
        price, whole = float(cost[1]), float(cost[2] or cost[1])
    try:
        relaxed_rows = plain.fetch(statement.write_sql(scale, slack=SLACK)) if statement.private else None
        timed = []
        for _ in range(_TIMES):
            before, began = processor.measure_used_s(), time.perf_counter()
            true = plain.fetch(sql)
            timed.append((time.perf_counter() - began, processor.measure_used_s() - before))
    except TimeoutError:
        return Asked(engine, query, outcome, price, whole, returned=len(rows), keyhole_s=took, keyhole_processor_s=used)
    plain_s, plain_processor_s = map(min, zip(*timed, strict=True))
    shown = [place for place, column in enumerate(zip(*rows, strict=True)) if set(column) != {None}]
    known, relaxed, returned = (
        {tuple(str(row[place]) for place in shown) for row in several}
        for several in (true, true if relaxed_rows is None else relaxed_rows, rows)
    )
    return Asked(
        engine,
        query,
        outcome,
        price,
        whole,
        len(true),
        len(rows),
        len(known & returned) if rows else 0,
        len(relaxed & returned) if rows else 0,
        plain_s,
        took,
        plain_processor_s,
        used,
    )
