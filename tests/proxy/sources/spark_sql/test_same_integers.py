"""Spark and Sail give the integers that the definition gives, on any rows, or refuse the question by its text alone."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given

from planner.errors import KeyholeError
from planner.lower.scan import rewrite
from planner.question.model import Question
from planner.question.row_work import are_dear
from tests.effort import examples
from tests.proxy.sources.oracle import Row, true_aggregates
from tests.proxy.sources.worlds import TYPES, UNITS, questions, rows, spelled

_GIVEN = examples(
    500,
    quick=6,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
_FILES = count()


def write_rows(found: list[Row], folder: Path) -> str:
    """The rows as a file; the relation that reads it."""
    path = folder / f"visits{next(_FILES)}.parquet"
    declared = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
    with duckdb.connect() as writer:
        writer.execute(f"CREATE TABLE visits ({declared})")
        for row in found:
            values = ", ".join(spelled(row[name], kind) for name, kind in TYPES.items())
            writer.execute(f"INSERT INTO visits VALUES ({values})")
        writer.execute(f"COPY visits TO '{path}'")
    return f"parquet.`{path}`"


def _is_dear(question: Question) -> bool:
    filters = (term.condition for functional in question.functionals for term in functional.terms)
    return are_dear((question.where, *dict.fromkeys(filters)), question.table)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@_GIVEN
@given(question=questions(units=((), *UNITS)), found=rows())
def test_random_worlds(connected: Any, folder: Path, question: Question, found: list[Row]) -> None:
    asked = replace(question, table=replace(question.table, relation=write_rows(found, folder)))
    if _is_dear(asked):
        with pytest.raises(KeyholeError, match="KH214"):
            rewrite(asked, dialect=connected.dialect)
        return
    rewritten = rewrite(asked, dialect=connected.dialect)
    answer = connected.aggregates(rewritten, asked.keys, functionals=len(asked.functionals), timeout_ms=60_000)
    np.testing.assert_array_equal(answer.values, true_aggregates(question, found))
