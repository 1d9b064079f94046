"""What holds on DuckDB and PostgreSQL holds on a third dialect: the same tests, asked of other engines."""

from decimal import Decimal

import numpy as np
import pytest

from planner.question.condition import ALWAYS, And, Compare, IsNull, Like, Not, Or
from tests.effort import cases
from tests.proxy.sources.looks.test_arrivals import (
    test_one_unit_is_in_few_groups_of_all_looks,
    test_rows_that_had_come,
    test_units_that_had_come,
    test_what_a_unit_adds_never_falls,
)
from tests.proxy.sources.looks.test_shared_looks import test_together_each_has_its_own_integers
from tests.proxy.sources.oracle import true_aggregates
from tests.proxy.sources.rows.test_no_row_fails import test_a_far_row_neither_fails_nor_moves_more_than_its_bound
from tests.proxy.sources.rows.test_row_sums import test_a_row_adds_what_its_terms_add_one_by_one
from tests.proxy.sources.rows.test_row_values import test_row_value, test_sums_stay_within_sixty_two_bits
from tests.proxy.sources.test_joins import joined_tables, test_the_integers_are_those_of_the_real_join
from tests.proxy.sources.test_key_thresholds import test_the_groups_are_those_of_the_real_join
from tests.proxy.sources.test_narrowing import test_no_row_leaves_the_narrowed_range
from tests.proxy.sources.test_pinned_relations import (
    bought,
    test_a_relation_of_the_same_name_in_the_source_is_not_read,
    test_the_integers_of_a_large_join_are_those_of_the_real_one,
)
from tests.proxy.sources.test_same_integers import crowd_question, different_values, test_bounded_units, test_row_unit
from tests.proxy.sources.test_sensitivity import test_one_unit_changes_few_keys_by_little
from tests.proxy.sources.test_unit_rows import (
    test_a_look_at_the_units_that_had_come,
    test_one_unit_changes_every_functional_by_no_more_than_its_sensitivity,
    test_the_integers_of_bounding_by_hand,
)
from tests.proxy.sources.worlds import UNITS, Engines, crowd

__all__ = [
    "bought",
    "joined_tables",
    "test_a_far_row_neither_fails_nor_moves_more_than_its_bound",
    "test_a_look_at_the_units_that_had_come",
    "test_a_relation_of_the_same_name_in_the_source_is_not_read",
    "test_a_row_adds_what_its_terms_add_one_by_one",
    "test_bounded_units",
    "test_no_row_leaves_the_narrowed_range",
    "test_one_unit_changes_every_functional_by_no_more_than_its_sensitivity",
    "test_one_unit_changes_few_keys_by_little",
    "test_one_unit_is_in_few_groups_of_all_looks",
    "test_row_unit",
    "test_row_value",
    "test_rows_that_had_come",
    "test_sums_stay_within_sixty_two_bits",
    "test_the_groups_are_those_of_the_real_join",
    "test_the_integers_are_those_of_the_real_join",
    "test_the_integers_of_a_large_join_are_those_of_the_real_one",
    "test_the_integers_of_bounding_by_hand",
    "test_together_each_has_its_own_integers",
    "test_units_that_had_come",
    "test_what_a_unit_adds_never_falls",
]

# as many as Spark is asked at once, and no text behind a %
_CONDITIONS = (
    ALWAYS,
    Compare("cost", ">", Decimal("0.45")),
    Not(Or((Compare("cost", "<=", Decimal(0)), IsNull("cost")))),
    And((Like("person", "o%"), Not(Compare("age", "=", 5)))),
)
_CROWD = crowd(seed=7, size=400)


@pytest.fixture(scope="module")
def crowded(engines: Engines) -> dict[str, str]:
    return engines.load(_CROWD, postgres="crowd")


@pytest.mark.parametrize(
    ("unit", "cap", "groups", "keys"),
    cases([()], [None], [1], [("ward", "level"), ()], quick=1)
    + cases(UNITS, [None, 2], [1, 3], [("ward", "month"), ("born", "flag")], quick=4),
    ids=str,
)
def test_crowd(
    engines: Engines,
    crowded: dict[str, str],
    unit: tuple[str, ...],
    cap: int | None,
    groups: int,
    keys: tuple[str, ...],
) -> None:
    asked = crowd_question(unit=unit, keys=keys, cap=cap, groups=groups, conditions=_CONDITIONS)
    for question in (asked, different_values(asked)):
        (answer,) = engines.answers(question, crowded)
        np.testing.assert_array_equal(answer, true_aggregates(question, _CROWD))


@pytest.mark.parametrize("keys", [("week", "born"), ("born", "week"), ("dow", "week")], ids=str)
@pytest.mark.parametrize("unit", [("person",), ("person", "month"), ("visited", "flag")], ids=str)
def test_a_date_beside_what_is_computed_of_it(
    engines: Engines, crowded: dict[str, str], unit: tuple[str, ...], keys: tuple[str, ...]
) -> None:
    """A unit's first rows in each key, which a window finds that is partitioned by both."""
    asked = crowd_question(unit=unit, keys=keys, cap=2, groups=2, conditions=(ALWAYS,))
    (answer,) = engines.answers(asked, crowded)
    np.testing.assert_array_equal(answer, true_aggregates(asked, _CROWD))
