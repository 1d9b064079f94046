"""The experiments' data have the papers' shapes, follow from their seed, and their filters are parts of the whole."""

import numpy as np
import pytest

from benchmarks.experiments import mide, mim, occupancy, retail, taxi
from benchmarks.experiments.measures import Measures
from benchmarks.experiments.questions import COMBINED, Setting, has_or, join_distributed, join_grouped, make_literals
from mechanisms.formula import evaluate_formula
from planner.plan.minimise import minimise

SEED = 5


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(taxi.VARIABLE, raising=False)


def _all() -> list[Measures]:
    return [
        retail.count_countries_by_day(),
        retail.compute_averages(),
        taxi.count_zones_by_day(seed=SEED),
        occupancy.count_rooms_by_day(seed=SEED),
    ]


def test_keys_are_places_by_days() -> None:
    assert [m.keys for m in _all()] == [37 * 14, 43 * 14, 34 * 15, 41 * 14]
    for m in _all():
        assert m.aggregates.dtype == np.int64
        assert {len(part) for part in (m.functionals, m.sensitivities, m.declared, m.typed, m.bands)} == {6}
        assert m.aggregates.shape[0] == 6


def test_declared_ranges_hold_all_values() -> None:
    for m in _all():
        assert np.all(np.abs(m.aggregates).max(axis=1) <= np.array(m.declared))


def test_filtered_counts_are_parts_of_the_count() -> None:
    for m in (
        retail.count_countries_by_day(),
        taxi.count_zones_by_day(seed=SEED),
        occupancy.count_rooms_by_day(seed=SEED),
    ):
        assert np.all(m.aggregates >= 0)
        assert np.all(m.aggregates[1:] <= m.aggregates[0])


def test_typed_questions_have_both_answers() -> None:
    for m in _all():
        for literal in make_literals(m, Setting.TENTH):
            passing = literal.evaluate(m.aggregates[literal.functional])
            assert 0 < passing.sum() < m.keys


def test_synthetic_data_follow_from_the_seed() -> None:
    assert np.array_equal(taxi.draw_synthetic(seed=1), taxi.draw_synthetic(seed=1))
    assert not np.array_equal(taxi.draw_synthetic(seed=1), taxi.draw_synthetic(seed=2))
    assert np.array_equal(occupancy.draw_occupancy(seed=1).visits, occupancy.draw_occupancy(seed=1).visits)
    assert not np.array_equal(occupancy.draw_occupancy(seed=1).visits, occupancy.draw_occupancy(seed=2).visits)


def test_weekends_are_quiet_and_counts_over_dispersed() -> None:
    """Weekends differ by more than a factor of two, the index of dispersion from one by more than ten: no matter of
    chance."""
    daily = occupancy.draw_occupancy(seed=SEED).visits[0].sum(axis=2)
    weekend = daily[:, [5, 6, 12, 13]].mean()
    assert weekend * 2 < daily[:, :5].mean()
    assert np.var(daily[:, :5]) > 10 * daily[:, :5].mean()


def test_without_a_file_the_trips_are_synthetic() -> None:
    found = taxi.read_trips(seed=SEED + 1)
    assert not found.real
    assert "synthetic" in found.origin


@pytest.mark.parametrize(("question", "keys"), [("Q1", 360), ("Q2", 360), ("Q3", 34 * 14), ("Q4", 34 * 16)])
def test_higher_thresholds_leave_fewer_keys(question: str, keys: int) -> None:
    passing = [int((mide.count_less_share(question, share=share, seed=SEED) > 0).sum()) for share in mide.SHARES]
    assert mide.count_less_share(question, share=1.0, seed=SEED).shape == (1, keys)
    assert passing == sorted(passing)


@pytest.mark.parametrize("row", mim.DATA_SETS, ids=lambda row: row.name)
def test_mims_data_sets_have_the_printed_numbers(row: mim.Table1) -> None:
    values = row.draw_aggregates(seed=SEED)
    assert values.shape == (1, row.far_keys + row.near_keys + row.passing)
    assert int((values > mim.THRESHOLD).sum()) == row.passing


def test_the_tolerance_is_twice_the_shift() -> None:
    measures = occupancy.count_rooms_by_day(seed=SEED)
    for functional, literal in enumerate(make_literals(measures, Setting.TRUE_RANGE)):
        values = measures.aggregates[functional]
        assert literal.tolerance == int(0.6 * float(values.max() - values.min()))
    for declared, literal in zip(measures.declared, make_literals(measures, Setting.DECLARED_RANGE), strict=True):
        assert literal.tolerance == int(0.6 * declared)


def test_only_disjunctions_have_an_or() -> None:
    parts = make_literals(occupancy.count_rooms_by_day(seed=SEED), Setting.TENTH)
    for n in range(1, 7):
        assert not has_or(COMBINED["conjunction"](parts[:n]))
        assert has_or(COMBINED["disjunction"](parts[:n])) == (n > 1)
        assert has_or(COMBINED["mixed"](parts[:n])) == (n > 1)


def test_both_trees_are_one_question() -> None:
    measures = occupancy.count_rooms_by_day(seed=SEED)
    parts = make_literals(measures, Setting.TENTH)
    first, second = (
        evaluate_formula(tree(parts), lambda cut: cut.evaluate(measures.aggregates[cut.functional]), keys=measures.keys)
        for tree in (join_grouped, join_distributed)
    )
    assert np.array_equal(first, second)
    assert minimise(join_grouped(parts)).formula == minimise(join_distributed(parts)).formula
