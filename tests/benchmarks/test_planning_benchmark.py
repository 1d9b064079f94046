"""The planning benchmark plans what it says: every question is one that Keyhole takes. Nothing is timed."""

import pytest

from benchmarks import planning as planning_benchmark
from benchmarks.planning import TODAY, adapt_to_unit, compile_catalogs, draw_typical, make_large, measure
from mechanisms.formula import list_literals
from mechanisms.registry import DEFAULT
from planner.bind.bind_question import bind_question
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan import build as planning
from planner.statements import settings
from planner.statements.classify import classify
from tests.effort import rounds

LITERALS_OF_LARGE = {"16 means beside the mean of all groups": 18}
"""Large formulas of another number than 64: each comparison is a literal, and both means bound their rows by one."""


def test_every_unit_and_mechanism_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """At quick one of the large formulas, and few typical questions to begin with."""
    shapes = rounds(len(make_large(0)), quick=1)
    monkeypatch.setattr(planning_benchmark, "make_large", lambda shift: dict(list(make_large(shift).items())[:shapes]))
    monkeypatch.setattr(
        planning_benchmark, "draw_typical", lambda number, seed: draw_typical(rounds(number, quick=2), seed=seed)
    )
    rows = list(measure(2, 1))
    assert len({(unit, mechanism) for unit, mechanism, *_ in rows}) == 4
    assert len(rows) == 4 * (1 + shapes)
    assert all(0 < middle <= high for *_, middle, high in rows if high)


def test_the_large_formulas_have_as_many_literals_as_planned_for_and_typical_ones_up_to_twelve() -> None:
    of_large = {sql: LITERALS_OF_LARGE.get(shape, 64) for shape, sql in make_large(0).items()}
    for unit, catalog in compile_catalogs().items():
        accuracy = settings.read_accuracy({"keyhole.mechanism": DEFAULT}, catalog.defaults)
        for sql in (*make_large(0).values(), *(adapt_to_unit(one, unit) for one in draw_typical(30, seed=3))):
            statement = classify(sql, catalog)
            assert isinstance(statement, Asking)
            question = bind_question(statement.questions[0], catalog, accuracy=accuracy, parameters={}, today=TODAY)
            literals = len(list(list_literals(question.formula)))
            assert literals == of_large[sql] if sql in of_large else 1 <= literals <= 12


def test_ordered_thresholds_fold_into_one() -> None:
    catalog = compile_catalogs()["row"]
    accuracy = settings.read_accuracy({}, catalog.defaults)
    statement = classify(make_large(0)["64 thresholds on one aggregate, ordered"], catalog)
    assert isinstance(statement, Asking)
    question = bind_question(statement.questions[0], catalog, accuracy=accuracy, parameters={}, today=TODAY)
    made = planning.plan_question(question, dialect=DUCKDB)
    assert made.minimised.is_minimal
    assert len(list(list_literals(made.minimised.formula))) == 1
