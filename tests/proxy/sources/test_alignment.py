"""Groups find their keys."""

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Column, SqlType, Value
from planner.catalog.key_space import KeySpace
from proxy.sources.alignment import align_groups, write_groups
from tests.in_turn import in_turn

_DOMAINS: dict[str, tuple[SqlType, tuple[Any, ...]]] = {
    "text": (SqlType.TEXT, ("b", "a", "", "ü")),
    "integer": (SqlType.INTEGER, (5, -3, 2**40)),
    "without gaps": (SqlType.INTEGER, (4, 2, 5, 3)),
    "in order": (SqlType.INTEGER, (-1, 0, 1, 2)),
    "date": (SqlType.DATE, tuple(date(2026, 1, 3) - timedelta(days=i) for i in range(3))),
    "timestamp": (SqlType.TIMESTAMP, (datetime(2026, 1, 1), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 9))),
    "boolean": (SqlType.BOOLEAN, (True, False)),
}


@given(data=st.data())
def test_every_group_lands_on_its_key(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(_DOMAINS)), min_size=1, max_size=3))
    columns = tuple(Column(f"c{i}", _DOMAINS[kind][0], kind) for i, kind in enumerate(kinds))
    values: list[tuple[Value, ...]] = []
    for kind in kinds:
        chosen = data.draw(st.lists(st.sampled_from(_DOMAINS[kind][1]), min_size=1, unique=True))
        values.append(tuple(chosen))
    keys = KeySpace(columns=columns, values=tuple(values))
    group = st.tuples(*(st.sampled_from(_DOMAINS[kind][1]) for kind in kinds))
    sums = data.draw(st.dictionaries(group, st.integers(-(2**62), 2**62)))
    found = [list(part) for part in zip(*sums, strict=True)] or [[] for _ in kinds]
    expected = [sums.get(keys.get_key(i), 0) for i in range(keys.size)]
    assert align_groups(found, [list(sums.values())], keys).tolist() == [expected]
    in_pieces = np.zeros((1, keys.size), dtype=np.int64)
    for one, total in sums.items():
        write_groups([[value] for value in one], [[total]], keys, into=in_pieces)
    assert in_pieces.tolist() == [expected]


def test_groups_of_which_nothing_is_summed_have_no_sums() -> None:
    keys = KeySpace(columns=(Column("c", SqlType.TEXT, "text"),), values=(("a", "b"),))
    nothing = np.zeros((0, 2), dtype=np.int64)
    assert align_groups([["b"]], [], keys).shape == write_groups([["b"]], [], keys, into=nothing).shape == (0, 2)


@pytest.mark.parametrize("kind", ["datetime64[D]", "datetime64[us]", "datetime64[s]"])
def test_numpy_dates(kind: str) -> None:
    days = (date(2026, 1, 2), date(2025, 1, 1))
    keys = KeySpace(columns=(Column("day", SqlType.DATE, "date"),), values=(days,))
    found = np.array(["2025-01-01", "2030-01-01", "2026-01-02"], dtype=kind)
    assert align_groups([found], [np.array([1, 2, 3])], keys).tolist() == [[3, 1]]


@in_turn("beyond", [-(2**63), -4, 1, 6, 2**63 - 1])
@in_turn("values", [(2, 3, 4, 5), (4, 2, 5, 3), (5, 9)])
def test_numbers_that_are_no_key_are_dropped(values: tuple[int, ...], beyond: int) -> None:
    keys = KeySpace((Column("number", SqlType.INTEGER, "bigint"),), (values,))
    found = np.array([beyond, 5], dtype=np.int64)
    (counts,) = align_groups([found], [np.array([7, 8])], keys)
    assert counts.tolist() == [8 if value == 5 else 0 for value in values]
