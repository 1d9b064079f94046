"""The speed of a source, which `keyhole check` measures on generated rows.

Guarantee: no relation of the source is read, so the measured times reveal nothing of private rows.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Budget, Catalog, Column, Defaults, SqlType, Table
from planner.catalog.pace import EngineWork, Pace, TableSize
from planner.catalog.pins import Pins
from planner.plan.build import plan_question
from planner.plan.expected_time import estimate_work
from planner.policy.compile import identify_engine
from planner.policy.file import Policy
from planner.question.plan import Plan
from planner.statements.settings import read_accuracy
from proxy.pipeline.messages import read_bare_question
from proxy.sources.protocol import Source

ROWS = 1_000_000  # some seconds a question at most; of fewer rows, what fits into caches looks too fast
_FEW, _MANY = 11, 1_009  # groups: primes, so that with a prime number of units no two rows are of one unit and group
_RUNS = 2  # of each question; the faster one counts, as others may use the machine
_TIMEOUT_MS = 60_000  # of each question: a source that takes longer has no pace
_NAME = "generated"


def pin_pace(policy: Policy, source: Source, pins: Pins, *, confirm: bool) -> Pins:
    """Measure the source's speed and add it to the pins, if a table of the policy declares its size. Return the pins.

    A pinned speed is kept until the source or its settings change, or the owner passes `confirm`. Raise KH501 if
    reading the source fails.
    """
    if all(table.size is None for table in policy.private_tables.values()):
        return replace(pins, pace=None)
    engine = identify_engine(policy.source)
    if pins.pace is not None and pins.pace.engine == engine and not confirm:
        return pins
    return replace(pins, pace=measure_pace(source, engine=engine, rows=ROWS))


def measure_pace(source: Source, *, engine: str, rows: int) -> Pace:
    """Measure the seconds that each part of a question takes at the source. Raise KH501 if reading the source fails.

    Parameters:
        engine: a digest of the source and its settings.
        rows: the number of generated rows of the largest questions.
    """
    works: list[EngineWork] = []
    seconds: list[float] = []
    for asked in _make_questions(source, rows=rows):
        work = estimate_work(asked[0], {_NAME: asked[1]})
        if work is not None:
            works.append(work)
            seconds.append(_measure(source, asked[0]))
    return Pace(engine=engine, seconds=_fit(works, seconds))


def _make_questions(source: Source, *, rows: int) -> Sequence[tuple[Plan, TableSize]]:
    """Return test questions that differ in rows, aggregates, groups and units, each with the size of its table."""
    one_each = 100_003  # units: a prime beyond `rows / _MANY`, so that each row is a pair of its own
    shapes = [
        # rows, groups, units (0: each row is one), groups that a unit may be in, aggregates
        (rows // 40, _FEW, 0, 1, 1),
        (rows, _FEW, 0, 1, 1),
        (rows, _FEW, 0, 1, 9),
        (rows, 100_003, 0, 1, 1),
        (rows, _FEW, 997, _FEW, 1),
        (rows, _FEW, 997, _FEW, 9),
        (rows, _MANY, one_each, _MANY, 1),
        (rows, _MANY, one_each, _MANY, 9),
        (rows, _MANY, one_each, 4, 1),
    ]
    return [_make_question(source, *shape) for shape in shapes]


def _make_question(
    source: Source, rows: int, groups: int, units: int, groups_per_unit: int, aggregates: int
) -> tuple[Plan, TableSize]:
    dialect, place = source.dialect, f"i * 104729 % {groups}"
    named = groups <= _MANY  # as wards are; more groups are numbers, whose list is no part of the statement
    if named:
        place = dialect.spelling.write_cast(place, dialect.spelling.text_type)
    made = (
        f"SELECT i * 7919 % {max(units, 1)} AS unit, {place} AS place, "
        f"CAST(i % 100 AS decimal(15, 2)) AS amount "
        f"FROM {dialect.generate_rows(rows)}"
    )
    table = Table(
        name=_NAME,
        relation=f"({made}) AS {_NAME}",
        columns=(
            Column("unit", SqlType.INTEGER, "bigint"),
            Column("place", SqlType.TEXT, "text", domain=tuple(map(str, range(groups))))
            if named
            else Column("place", SqlType.INTEGER, "bigint", domain=tuple(range(groups))),
            Column(
                "amount",
                SqlType.NUMERIC,
                "numeric(15,2)",
                bounds=(Decimal(0), Decimal(100)),
                grid=Decimal(1),
                per_unit=(Decimal(0), Decimal(400)) if units else None,
            ),
        ),
        unit=("unit",) if units else (),
        groups_per_unit=groups_per_unit,
        rows_per_unit=4 if units else None,
        row_cap=None,
        refresh="live",
        seed=_NAME,
    )
    catalog = Catalog(
        tables=(table,),
        public_tables=(),
        stored_questions=(),
        analysts=(),
        defaults=Defaults(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=50, mechanism="keyhole"),
        budget=Budget(per_predicate=1e6, per_unit=1e9, per_query=1e6),
        database=_NAME,
        max_keys=groups,
        statement_timeout_ms=_TIMEOUT_MS,
        digest="",
    )
    having = " AND ".join(f"sum(amount) FILTER (WHERE amount > {9 * n}) > 1000" for n in range(aggregates))
    question = bind_question(
        read_bare_question(f"SELECT place FROM {_NAME} GROUP BY place HAVING {having}", catalog),
        catalog,
        accuracy=read_accuracy({}, catalog.defaults),
        parameters={},
        today=date(2000, 1, 1),
        is_utc=True,
    )
    return plan_question(question, dialect=dialect), TableSize(rows=rows, units=units or rows)


def _measure(source: Source, asked: Plan) -> float:
    """Return the seconds that the source takes for a test question. Generating a row takes the place of reading one."""
    rewritten, keys, functionals = (
        replace(asked.rewritten, relations=(), rollup=None),
        asked.question.keys,
        len(asked.question.computed_functionals),
    )
    return _time_fastest(
        lambda: source.read_aggregates(rewritten, keys, functionals=functionals, timeout_ms=_TIMEOUT_MS)
    )


def _time_fastest(run: Callable[[], object]) -> float:
    found = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return min(found)


def _fit(works: Sequence[EngineWork], seconds: Sequence[float]) -> EngineWork:
    """Fit the seconds for each part of a question by least squares of relative errors. None is below 0."""
    import numpy as np  # only here: no other process waits for it
    from scipy.optimize import nnls

    amounts = np.array([work.amounts for work in works])
    scale = np.maximum(amounts.max(axis=0), 1.0)
    found, _ = nnls(amounts / scale / np.array(seconds)[:, None], np.ones(len(seconds)))
    return EngineWork(*(float(each) for each in found / scale))
