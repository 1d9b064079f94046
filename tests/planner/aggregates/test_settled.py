"""What declared bounds are said to decide holds in every group, of clipped units and of no rows alike."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st

from mechanisms.formula import evaluate_formula
from planner.catalog.catalog import Column, RowCap, SqlType, Table
from planner.errors import KeyholeError
from planner.functionals.atoms import read_comparison
from planner.question.question import Question
from tests.effort import examples
from tests.planner.asked import asked
from tests.proxy.sources.oracle import true_aggregates
from tests.worlds.retail import retail

_WARDS = ("A", "B", "C")
_FILTERS = ("", "", " FILTER (WHERE flag)", " FILTER (WHERE cost > 1)", " FILTER (WHERE cost < 2)")
_WHERES = ("", "", " WHERE cost > 0.5", " WHERE cost <= -1 OR cost IS NULL", " WHERE flag AND cost >= 3")
_FORMS = (
    "avg(cost){0} {1} {2}",
    "sum(cost){0} {1} {2}",
    "sum(cost * 2 - 1){0} {1} {2}",
    "avg(cost){0} {1} avg(cost){0} - {2}",
    "1.0 * count(*){0} / count(*) {1} {2}",
    "count(*){0} {1} count(*) + {2}",
    "NOT avg(cost){0} {1} {2}",
    "avg(cost){0} {1} {2} AND sum(cost) > -3",
    "(avg(cost){0} {1} {2}) IS NOT TRUE",
    "count(CASE WHEN flag THEN cost ELSE 0 END){0} >= 1 AND sum(CASE WHEN flag THEN cost ELSE 0 END){0} {1} {2}",
)


def _table(bounds: tuple[int, int], per_unit: tuple[int, int] | None = None) -> Table:
    """Rows that are units, with a column between bounds."""
    (low, high), total = bounds, None if per_unit is None else (Decimal(per_unit[0]), Decimal(per_unit[1]))
    return Table(
        name="stays",
        relation="stays",
        columns=(
            Column("id", SqlType.INTEGER, "integer"),
            Column("person", SqlType.TEXT, "text"),
            Column("ward", SqlType.TEXT, "text", domain=_WARDS),
            Column("flag", SqlType.BOOLEAN, "boolean"),
            Column(
                "cost",
                SqlType.NUMERIC,
                "numeric",
                bounds=(Decimal(low), Decimal(high)),
                grid=Decimal("0.5"),
                per_unit=total,
            ),
        ),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="stays",
    )


@st.composite
def _tables(draw: st.DrawFn) -> Table:
    low = draw(st.integers(-6, 4))
    bounds = (low, low + draw(st.integers(1, 6)))
    table = _table(bounds, (draw(st.integers(-4, 2)), draw(st.integers(3, 9))))
    units = replace(table, unit=("person",), rows_per_unit=draw(st.integers(1, 3)))
    capped = replace(table, unit=("person",), row_cap=RowCap(rows=2, unique="id"))
    return draw(st.sampled_from((table, units, capped)))


_rows = st.lists(
    st.tuples(
        st.sampled_from(("ann", "bob", "cas")),
        st.sampled_from(_WARDS[:2]),
        st.sampled_from((True, False, None)),
        st.one_of(st.none(), st.decimals(-9, 12, places=2)),
    ),
    max_size=9,
)


def _ask(having: str, where: str, table: Table) -> Question:
    catalog = replace(retail(), tables=(table,))
    return asked(f"SELECT ward FROM stays{where} GROUP BY ward HAVING {having}", catalog=catalog, tolerance="1")


def _holding(question: Question, rows: Sequence[dict[str, Any]]) -> list[bool]:
    values = true_aggregates(question, rows)
    held = evaluate_formula(question.formula, lambda cut: cut.evaluate(values[cut.functional]), keys=question.keys.size)
    return [bool(one) for one in np.broadcast_to(held, question.keys.size)]


@examples(2000, quick=50)
@given(
    table=_tables(),
    form=st.sampled_from(_FORMS),
    filter_=st.sampled_from(_FILTERS),
    operator=st.sampled_from(("<", "<=", ">", ">=")),
    threshold=st.one_of(st.integers(-8, 12), st.sampled_from((0.5, -0.5, 1, 2))),
    where=st.sampled_from(_WHERES),
    found=_rows,
)
def test_bounds_decide_what_every_group_shows(
    table: Table, form: str, filter_: str, operator: str, threshold: float, where: str, found: list[tuple[Any, ...]]
) -> None:
    """The integers of the same question, planned without KH220, on rows drawn within and outside the bounds."""
    having = form.format(filter_, operator, threshold)
    rows = [dict(zip(("id", "person", "ward", "flag", "cost"), (i, *row), strict=True)) for i, row in enumerate(found)]
    message = ""
    try:
        settled = _ask(having, where, table)
    except KeyholeError as error:
        if error.code != "KH220":
            return
        message = error.message
    try:
        with patch.object(read_comparison, "settle", return_value=None):
            question = _ask(having, where, table)
    except KeyholeError as error:
        assert error.code in ("KH206", "KH304"), error  # noqa: PT017 (no guard is needed where bounds decide)
        return
    note(f"{having} on {table.get_column('cost').bounds}: {message}")
    holding = _holding(question, rows)
    if not message:
        assert holding == _holding(settled, rows)
    elif "is false for every group" in message and "IS NOT TRUE" not in form:
        assert not any(holding)
    elif "with values" not in message:
        assert all(holding)


def test_the_zeros_of_an_else_are_values() -> None:
    """No flagged row adds less than 4, and yet a group of rows without a flag lies below."""
    value = "CASE WHEN flag THEN cost ELSE 0 END"
    question = _ask(f"count({value}) >= 1 AND sum({value}) < 4", "", _table((4, 9)))
    rows = [{"ward": ward, "flag": flag, "cost": Decimal(5)} for ward, flag in (("A", False), ("B", True))]
    assert _holding(question, rows) == [True, False, False]
