"""What one privacy unit changes, measured on the engines themselves."""

import numpy as np
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from planner.question.question import Question
from tests.effort import examples
from tests.proxy.sources.oracle import Row, read
from tests.proxy.sources.worlds import UNITS, Engines, questions, rows


@examples(
    80,
    quick=12,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(question=questions(units=((), *UNITS)), found=rows(), data=st.data())
def test_one_unit_changes_few_keys_by_little(
    engines: Engines, question: Question, found: list[Row], data: st.DataObject
) -> None:
    """Removing one unit moves each functional of each key by at most its sensitivity, and at most G keys at all."""
    table = question.table

    def unit(row: Row) -> tuple[object, ...]:
        return tuple(read(table, row, name) for name in table.unit or ("id",))

    removed = data.draw(st.sampled_from([unit(row) for row in found]))
    before = engines.answers(question, engines.load(found))
    after = engines.answers(question, engines.load([row for row in found if unit(row) != removed]))
    limits = np.array([[functional.sensitivity] for functional in question.functionals])
    for changed in (abs(a - b) for a, b in zip(before, after, strict=True)):
        assert np.all(changed <= limits)
        assert np.count_nonzero(changed.any(axis=0)) <= (table.groups_per_unit if table.unit else 1)
