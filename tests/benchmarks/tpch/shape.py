"""Counts of casts, joins and the like in TPC-H's statements: `python -m tests.benchmarks.tpch.shape` writes them.

Time is noisy and counts are not: a cast a row, a window or a hash that somebody adds shows in a change of that file.
"""

import csv
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.tpch.statements import read_statements
from planner.catalog.catalog import Catalog
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.policy.file import Policy
from proxy.cli.check import check
from proxy.open_policy.pins import make_catalog_from_pins
from tests.benchmarks.tpch.test_tpch_benchmark import REFUSED, load
from tests.planner.asked import asked

KEPT = Path(__file__).with_name("shape.csv")
PARTS = {
    "casts": re.compile(r"CAST\("),
    "windows": re.compile(r" OVER \("),
    "hashes": re.compile(r"md5\("),
    "joins": re.compile(r" JOIN "),
    "unions": re.compile(r"UNION ALL"),
    "groupings": re.compile(r"GROUP BY"),
}
HEAD = ["engine", "query", "form", *PARTS]


def count_parts(catalog: Catalog) -> Iterator[list[str]]:
    """Count the parts of each statement: at first, with its steps kept, and with the rows of heavy units apart."""
    for dialect in (DUCKDB, POSTGRES):
        for statement in read_statements():
            query = f"{statement.number}{' instead' if statement.instead else ''}"
            if not statement.private or query in REFUSED:
                continue
            written = plan_question(asked(statement.write_sql(1.0), catalog=catalog), dialect=dialect).rewritten
            forms = {"first": written.sql}
            for name, one in (("steps kept", written), ("heavy units apart", written.from_kept_steps)):
                if one is not None and one.steps:
                    forms[name] = one.write_from_kept(
                        {step.name: "kept" for step in one.steps if step.kept_rows is not None}
                    )
            for form, sql in forms.items():
                yield [dialect.name, query, form, *(str(len(part.findall(sql))) for part in PARTS.values())]


def read_shape(folder: Path) -> list[list[str]]:
    """Return the counts over tables in a folder that have TPC-H's schema and hardly a row."""
    policy = load(folder)
    check(policy, confirm=False)
    return [HEAD, *count_parts(make_catalog_from_pins(Policy.load(policy)))]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made, KEPT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(read_shape(Path(made)))
