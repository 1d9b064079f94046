"""How long planning takes, without data: `python -m benchmarks.planning`.

Typical questions are drawn from a seed, each with thresholds of its own, so that no plan is found ready made. Large
ones have 64 literals and are planned as a tree, or compare many means with one of all groups. From the text to the
plan: parse, minimise, calibrate, write the SQL. Keys that are computed stand beside declared ones of their size.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time

from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.registry import DEFAULT
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, SqlType
from planner.catalog.pins import Pins
from planner.extract.outer_query import Asking, write_outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan import build as planning
from planner.policy.file import Policy
from planner.policy.simulated_catalog import simulate_catalog
from planner.statements import settings
from planner.statements.classify import classify

DEMO = Path(__file__).resolve().parents[1] / "deploy" / "demo" / "keyhole.toml"
QUESTIONS = 500
REPEATS = 5
TODAY = date(2011, 12, 10)
SIZES = (1_000, 10_000, 100_000, 900_000)
KEYS = {
    "declared": "declared",
    "an integer": "whole",
    "whole division": "whole10 / 10",
    "floor of a numeric": "floor(price)",
    "width_bucket": "width_bucket(price, 0, {size}, {size})",
}


def draw_typical(count: int, *, seed: int) -> Iterator[str]:
    """Questions as analysts write them: one to six thresholds on one to four aggregates, often with filters."""
    drawn = random.Random(seed)
    for _ in range(count):
        aggregates = (
            f"count(*) > {drawn.randrange(50, 5000)}",
            f"sum(amount) >= {drawn.randrange(500, 90_000)}",
            f"avg(amount) > {drawn.randrange(51, 95)}",  # above every WHERE, else the bounds decide it
            f"count(DISTINCT customer_id) > {drawn.randrange(10, 400)}",
            f"count(*) FILTER (WHERE amount > {drawn.randrange(1, 90)}) > {drawn.randrange(20, 900)}",
            f"sum(amount) FILTER (WHERE quantity > {drawn.randrange(1, 10**6)}) > {drawn.randrange(500, 9000)}",
        )
        atoms = drawn.sample(aggregates, drawn.choice((1, 1, 1, 2, 2, 3, 4, 6)))
        formula = atoms[0]
        for atom in atoms[1:]:
            negated = "NOT " if atom.startswith("count") and drawn.random() < 0.2 else ""
            formula = f"({formula}) {drawn.choice(('AND', 'OR'))} {negated}{atom}"
        where = drawn.choice(("", f" WHERE amount > {drawn.randrange(50)}", " WHERE country IN ('France', 'Spain')"))
        yield f"SELECT country, month FROM sales{where} GROUP BY country, month HAVING {formula}"


def make_large(shift: int) -> dict[str, str]:
    """Formulas of 64 literals, and of comparisons with other groups, by their shape."""
    numbers = range(1, 33)

    def count(n: int) -> str:
        return f"count(*) FILTER (WHERE amount > {n}) > {100 * n + shift}"

    formulas = {
        "64 thresholds on one aggregate, ordered": " OR ".join(f"count(*) > {90 * n + shift}" for n in range(1, 65)),
        "64 thresholds on two aggregates": " AND ".join(
            f"(count(*) > {100 * n + shift} OR sum(amount) > {1000 * n})" for n in numbers
        ),
        "64 aggregates": " OR ".join(
            f"({count(n)} AND sum(amount) FILTER (WHERE quantity > {n}) > {1000 * n})" for n in numbers
        ),
        "33 aggregates, one of them in every term": " OR ".join(
            f"({count(n)} AND sum(amount) > {1000 * n})" for n in numbers
        ),
        "16 means beside the mean of all groups": " AND ".join(
            f"avg(amount) > {100 + n}.{shift} / 100 * (SELECT avg(amount) FROM sales) - {n}" for n in range(16)
        ),
    }
    return {
        shape: f"SELECT country, month FROM sales GROUP BY country, month HAVING {formula}"
        for shape, formula in formulas.items()
    }


def compile_catalogs() -> dict[str, Catalog]:
    """The demo's policy on stand-ins for what its source knows, and the same table with rows as units."""
    clipped = simulate_catalog(Policy.load(DEMO), next(draw_typical(1, seed=0)), pins=Pins(), keys=38).catalog
    (table,) = clipped.tables
    rows = replace(table, unit=(), rows_per_unit=None, groups_per_unit=1)
    return {"customer's month": clipped, "row": replace(clipped, tables=(rows,))}


def time_plan(sql: str, catalog: Catalog, *, mechanism: str) -> float:
    """Milliseconds from text to plan. The text is new, so no plan is found ready made."""
    accuracy = settings.read_accuracy({"keyhole.mechanism": mechanism}, catalog.defaults)
    start = perf_counter()
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    (embedded,) = statement.questions
    planning.plan_question(
        bind_question(embedded, catalog, accuracy=accuracy, parameters={}, today=TODAY), dialect=DUCKDB
    )
    return 1e3 * (perf_counter() - start)


def measure(questions: int, repeats: int) -> Iterator[tuple[str, str, str, float, float]]:
    """Unit, mechanism, what was planned, median and 95th percentile (or worst) in milliseconds."""
    for unit, catalog in compile_catalogs().items():
        for mechanism in (DEFAULT, Keyhole.name):
            for warm in draw_typical(20, seed=1):
                time_plan(adapt_to_unit(warm, unit), catalog, mechanism=mechanism)
            took = [
                time_plan(adapt_to_unit(sql, unit), catalog, mechanism=mechanism)
                for sql in draw_typical(questions, seed=2)
            ]
            yield unit, mechanism, f"{questions} typical questions", median(took), quantiles(took, n=20)[-1]
            shapes: dict[str, list[float]] = {}
            for repeat in range(repeats):
                for shape, sql in make_large(repeat).items():
                    shapes.setdefault(shape, []).append(time_plan(sql, catalog, mechanism=mechanism))
            for shape, times in shapes.items():
                yield unit, mechanism, shape, median(times), max(times)


def adapt_to_unit(sql: str, unit: str) -> str:
    """A typical question; where rows are units, rows are counted instead of customers."""
    return sql if unit != "row" else sql.replace("count(DISTINCT customer_id)", "count(quantity)")


def compile_large_catalog(size: int) -> Catalog:
    """The demo's table with a declared key of so many values, and columns whose steps are as many."""
    catalog = compile_catalogs()["customer's month"]
    (table,) = catalog.tables
    high = Decimal(size - 1)
    made = (
        Column("declared", SqlType.INTEGER, "integer", domain=tuple(range(size))),
        Column("whole", SqlType.INTEGER, "integer", bounds=(Decimal(0), high), grid=Decimal(1)),
        Column("whole10", SqlType.INTEGER, "integer", bounds=(Decimal(0), 10 * high + 9), grid=Decimal(1)),
        Column("price", SqlType.NUMERIC, "numeric(12,2)", bounds=(Decimal(0), high), grid=Decimal("0.01")),
    )
    return replace(catalog, tables=(replace(table, columns=(*table.columns, *made)),))


def time_plan_by_key(key: str, catalog: Catalog, threshold: int) -> float:
    """Milliseconds of the processor. The threshold is new, so no plan is found ready made."""
    sql = f"SELECT {key} FROM sales GROUP BY 1 HAVING count(*) > {threshold}"
    accuracy = settings.read_accuracy({}, catalog.defaults)
    start = process_time()
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    planning.plan_question(
        bind_question(statement.questions[0], catalog, accuracy=accuracy, parameters={}, today=TODAY), dialect=DUCKDB
    )
    write_outer_sql(statement, first_parameter=1)
    return 1e3 * (process_time() - start)


def print_computed_keys() -> None:
    """Print how long planning by computed keys takes, and how much longer than by a declared one of the same size."""
    print(f"\n{'key, ms of the processor':26}" + "".join(f"{size:>16,}" for size in SIZES))
    declared: list[float] = []
    for name, key in KEYS.items():
        taken = [
            median(
                time_plan_by_key(key.format(size=size), compile_large_catalog(size), 1000 + turn)
                for turn in range(REPEATS)
            )
            for size in SIZES
        ]
        declared = declared or taken
        cells = (f"{one:8.1f} {one - least:+7.1f}" for one, least in zip(taken, declared, strict=True))
        print(f"{name:26}" + "".join(cells))


def main() -> None:
    """Print the table."""
    print(f"{'unit':16}  {'mechanism':11}  {'from text to plan':40}  {'median':>9}  {'95 %, worst':>11}")
    for unit, mechanism, what, middle, high in measure(QUESTIONS, REPEATS):
        print(f"{unit:16}  {mechanism:11}  {what:40}  {middle:6.1f} ms  {high:8.1f} ms")
    print_computed_keys()


if __name__ == "__main__":
    main()
