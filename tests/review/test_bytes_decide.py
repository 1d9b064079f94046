"""Text is compared byte by byte, whatever collation a DuckDB column has.

Where a collation calls texts equal, the engine names their group after one of them: one row more could move a whole
group to another key, two units could share one bound, and disjoint filters could count one row twice.
"""

from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pytest

from mechanisms.formula import Cut
from planner.catalog.catalog import Column, SqlType, Table
from planner.catalog.key_space import KeySpace
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.scan import rewrite
from planner.question.condition import ALWAYS, Compare, Condition, Within
from planner.question.question import Accuracy, Functional, Measure, Question, Term
from proxy.sources.duckdb_source import DuckDBSource

WARDS = ("A", "a", "b")
WARD = Column("ward", SqlType.TEXT, "text", domain=WARDS)
PERSON = Column("person", SqlType.TEXT, "text")


def _question(unit: tuple[str, ...], condition: Condition) -> Question:
    table = Table(
        name="visits",
        relation="visits",
        columns=(PERSON, WARD),
        unit=unit,
        groups_per_unit=1,
        rows_per_unit=3 if unit else None,
        row_cap=None,
        refresh="static",
        seed="seed",
    )
    functional = Functional(
        name="count(*)",
        measure=Measure.ROWS,
        terms=(Term(1, None, condition, 0),),
        sensitivity=3 if unit else 1,
        unit_range=(0, 3) if unit else None,
        unit_size=Decimal(1),
        rows=1,
    )
    return Question(
        table=table,
        keys=KeySpace(columns=(WARD,), values=(WARDS,)),
        where=ALWAYS,
        functionals=(functional,),
        atoms=(),
        formula=Cut(functional=0, cut=1, above=True, tolerance=1),
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="1", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


def _counts(folder: Path, rows: list[tuple[str, str]], question: Question) -> list[int]:
    file = folder / f"{len(list(folder.iterdir()))}.duckdb"
    with duckdb.connect(str(file)) as writer:
        writer.execute("CREATE TABLE visits (person VARCHAR COLLATE NOCASE, ward VARCHAR COLLATE NOCASE)")
        places = ", ".join(["(?, ?)"] * len(rows))
        writer.execute(f"INSERT INTO visits VALUES {places}", [value for row in rows for value in row])
    source = DuckDBSource(file, directories=(folder,), settings={"threads": "1"})
    try:
        aggregates = source.read_aggregates(
            rewrite(question, dialect=DUCKDB), question.keys, functionals=1, timeout_ms=60_000
        )
    finally:
        source.close()
    return [int(count) for count in aggregates.values[0]]


def test_one_row_moves_no_group(tmp_path: Path) -> None:
    """A row in ward a leaves the thousand rows of ward A where they are, wherever it stands."""
    crowd = [("p", "A")] * 1000
    question = _question((), ALWAYS)
    assert _counts(tmp_path, crowd, question) == [1000, 0, 0]
    assert _counts(tmp_path, [("q", "a"), *crowd], question) == [1000, 1, 0]
    assert _counts(tmp_path, [*crowd, ("q", "a")], question) == [1000, 1, 0]


@pytest.mark.parametrize("condition", [Compare("ward", "=", "a"), Within("ward", ("a", "c"))])
def test_filters_that_are_disjoint_count_no_row_twice(tmp_path: Path, condition: Condition) -> None:
    """`ward = 'a'` counts no row of ward A: the joint loss relies on it."""
    assert _counts(tmp_path, [("p", "A")] * 5 + [("q", "a")], _question((), condition)) == [0, 1, 0]


def test_units_that_differ_in_case_are_two(tmp_path: Path) -> None:
    """Each of two persons counts with up to three rows, in one ward each."""
    rows = [("ann", "A")] * 5 + [("ANN", "A")] * 5 + [("Ann", "b")] * 2
    assert np.sum(_counts(tmp_path, rows, _question(("person",), ALWAYS))) == 8
