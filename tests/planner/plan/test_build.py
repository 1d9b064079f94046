"""Plans: canonical, minimal, calibrated for the contract, and honest about what would fit."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import Calibration, DecisionTask
from mechanisms.registry import LIMITED, MECHANISMS, price_baselines
from mechanisms.threshold.joint_loss import expose_all_functionals
from planner.catalog.catalog import RowCap
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan import build as planning
from planner.plan.affordable_settings import (
    CostLimit,
    find_smallest_fnr,
    find_smallest_number,
    find_smallest_tolerance,
    list_round_numbers,
)
from planner.plan.build import plan_question
from planner.question import plan as planned
from planner.question.condition import ALWAYS, Compare, evaluate
from planner.question.question import Question
from tests.effort import cases
from tests.planner.asked import asked as sql_question
from tests.worlds.questions import (
    ACCURACY,
    CAPPED,
    CLIPPED,
    FRANCE,
    ROWS,
    SPAIN,
    above,
    average,
    below,
    count,
    question,
    total,
    units,
)

BOTH = AllOf((above(0, 500, 50), above(1, 2000, 200)))


def asked(formula: Formula = BOTH) -> Question:
    return question(formula, count(), total())


def test_a_plan_meets_the_contract_with_the_minimal_formula() -> None:
    redundant = AllOf((BOTH, above(0, 100, 10), AnyOf((above(0, 200, 20), above(1, 0, 1)))))
    made = plan_question(asked(redundant), dialect=DUCKDB)
    assert made.question.formula == made.minimised.formula == made.calibration.task.formula
    assert made.asked_question.formula == redundant
    assert made.fingerprint == plan_question(asked(), dialect=DUCKDB).fingerprint
    assert made.calibration.fnr is not None
    assert made.calibration.fpr is not None
    assert made.calibration.fnr <= ACCURACY.fnr
    assert made.calibration.fpr <= ACCURACY.fpr
    assert 0 < made.worst_case_epsilon < 100


def test_functionals_that_the_formula_does_not_need_are_not_computed() -> None:
    implied_guard = AllOf(
        (above(1, 9, 9), above(1, 0, 0), AnyOf((below(0, 20, 2), AllOf((below(0, 20, 2), above(2, 5, 1))))))
    )
    made = plan_question(question(implied_guard, total(), count(), count(FRANCE)), dialect=DUCKDB)
    assert [functional.name for functional in made.question.functionals] == ["count(*)", "sum(amount)"]
    assert len(made.calibration.tests) == 2
    assert " AS f1" in made.rewritten.sql
    assert " AS f2" not in made.rewritten.sql


def test_the_order_of_functionals_does_not_matter() -> None:
    functionals = (count(FRANCE), total(), count(SPAIN))
    literals = (above(0, 40, 4), above(1, 300, 30), below(2, 90, 9))
    made = set()
    for order in itertools.permutations(range(3)):
        moved = [replace(literals[old], functional=new) for new, old in enumerate(order)]
        formula = AnyOf((AllOf(tuple(moved[order.index(old)] for old in (0, 1))), moved[order.index(2)]))
        made.add(plan_question(question(formula, *(functionals[old] for old in order)), dialect=DUCKDB).fingerprint)
    assert len(made) == 1


def test_whatever_changes_the_answer_changes_the_fingerprint() -> None:
    base = asked()
    fewer = KeySpace(columns=base.keys.columns, values=(base.keys.values[0][:2], base.keys.values[1]))
    turned = KeySpace(columns=base.keys.columns[::-1], values=base.keys.values[::-1])
    coarser = tuple(replace(c, grid=Decimal(5)) if c.name == "amount" else c for c in ROWS.columns)
    others = [
        base,
        replace(base, where=FRANCE),
        replace(base, keys=fewer),
        replace(base, keys=turned),
        replace(base, accuracy=replace(ACCURACY, fnr=0.04)),
        replace(base, accuracy=replace(ACCURACY, fpr=0.2)),
        replace(base, accuracy=replace(ACCURACY, mechanism="tslm")),
        replace(base, table=replace(ROWS, seed="another")),
        replace(base, table=replace(ROWS, relation="elsewhere")),
        replace(base, table=replace(ROWS, columns=coarser)),
        asked(AnyOf(BOTH.children)),
        asked(AllOf((above(0, 500, 49), above(1, 2000, 200)))),
        asked(AllOf((above(0, 501, 50), above(1, 2000, 200)))),
        question(BOTH, count(FRANCE), total()),
        question(BOTH, count(table=CLIPPED), total(table=CLIPPED), table=CLIPPED),
        question(BOTH, count(table=CAPPED), total(table=CAPPED), table=CAPPED),
        question(
            BOTH,
            count(table=CAPPED),
            total(table=CAPPED),
            table=replace(CAPPED, row_cap=RowCap(rows=4, unique="line_id")),
        ),
    ]
    fingerprints = [plan_question(other, dialect=DUCKDB).fingerprint for other in others]
    assert len(set(fingerprints)) == len(others)
    assert all(len(fingerprint) == 64 for fingerprint in fingerprints)


def test_the_dialect_and_the_wording_do_not_change_the_fingerprint() -> None:
    base = plan_question(asked(), dialect=DUCKDB)
    assert plan_question(asked(), dialect=POSTGRES).fingerprint == base.fingerprint
    reworded = replace(asked(), accuracy=replace(ACCURACY, tolerance="count=50, sum=200"))
    assert plan_question(reworded, dialect=DUCKDB).fingerprint == base.fingerprint


@pytest.mark.parametrize(
    "formula", [TRUE, FALSE, AnyOf((above(0, 5, 1), below(0, 5, 1)))], ids=["true", "false", "tautology"]
)
def test_a_constant_formula_reads_and_costs_nothing(formula: Formula) -> None:
    made = plan_question(question(formula, count(), total()), dialect=DUCKDB)
    assert made.worst_case_epsilon == 0
    assert made.question.functionals == ()
    assert made.rewritten.sql == ""
    assert made.minimised.formula in (TRUE, FALSE)
    typed_as_constant = formula in (TRUE, FALSE)
    assert any("nothing is read or spent" in warning for warning in made.warnings) is not typed_as_constant


def test_disjoint_filters_cost_the_dearer_one_for_row_units() -> None:
    formula = AnyOf((above(0, 50, 5), above(1, 50, 5)))
    apart = plan_question(question(formula, count(FRANCE), count(SPAIN)), dialect=DUCKDB)
    together = plan_question(question(formula, count(FRANCE), count(Compare("amount", ">", 5))), dialect=DUCKDB)
    assert apart.worst_case_epsilon < 0.6 * together.worst_case_epsilon


@pytest.mark.parametrize("tolerance", [0, 1, 5, 40, 400])
def test_blocks_under_a_row_cap_are_never_charged_as_if_disjoint(tolerance: int) -> None:
    """One unit's rows may be split between two filters: each block index then moves by a whole step."""
    formula = AnyOf((above(0, 500, tolerance), above(1, 500, tolerance)))
    capped = question(formula, count(FRANCE, table=CAPPED), count(SPAIN, table=CAPPED), table=CAPPED)
    made = plan_question(capped, dialect=DUCKDB)
    losses = [test.epsilon for test in made.calibration.tests]
    in_blocks = any(test.block > 1 for test in made.calibration.tests)
    assert made.worst_case_epsilon >= (sum(losses) if in_blocks else max(losses)) - 1e-12


def test_filters_with_shared_noise_are_disjoint_under_a_row_cap_too() -> None:
    """Two thresholds on one functional rule blocks out, so the dearer filter is all that is paid."""
    between = [AllOf((above(index, 50, 5), below(index, 80, 8))) for index in (0, 1)]
    capped = question(AnyOf(tuple(between)), count(FRANCE, table=CAPPED), count(SPAIN, table=CAPPED), table=CAPPED)
    made = plan_question(capped, dialect=DUCKDB)
    assert made.worst_case_epsilon == max(test.epsilon for test in made.calibration.tests)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_every_mechanism_can_be_named(mechanism: str) -> None:
    wanted = replace(ACCURACY, mechanism=mechanism, most_positives=2 if mechanism in LIMITED else None)
    named = question(above(0, 500, 50), count()) if mechanism == "svt" else asked()
    made = plan_question(replace(named, accuracy=wanted), dialect=POSTGRES)
    assert made.calibration.mechanism == mechanism
    assert made.worst_case_epsilon > 0


def test_the_published_mechanisms_are_compared_on_the_formula_as_typed() -> None:
    typed = AnyOf((AllOf((above(0, 500, 50), above(1, 2000, 200))), AllOf((above(0, 500, 50), above(2, 40, 4)))))
    functionals = (count(), total(), count(FRANCE))
    made = plan_question(question(typed, *functionals), dialect=DUCKDB)
    task = DecisionTask(
        formula=typed,
        sensitivities=tuple(functional.sensitivity for functional in functionals),
        exposures=expose_all_functionals(3),
        fnr=ACCURACY.fnr,
        fpr=ACCURACY.fpr,
    )
    assert dict(made.compared) == price_baselines(task, typed)
    assert set(made.compared) == {"naive", "probe"}
    assert made.worst_case_epsilon < made.compared["probe"] < made.compared["naive"]


def test_published_mechanisms_are_calibrated_only_where_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrated = []

    def calibrate(task: DecisionTask, as_typed: Formula) -> dict[str, float]:
        calibrated.append(as_typed)
        return price_baselines(task, as_typed)

    monkeypatch.setattr(planned, "price_baselines", calibrate)
    made = plan_question(asked(above(0, 517, 51)), dialect=DUCKDB)
    assert calibrated == []
    assert made.compared == made.compared
    assert calibrated == [made.asked_question.formula]


def test_beyond_twelve_thresholds_the_plan_says_so() -> None:
    many = AllOf(tuple(AnyOf((above(0, 100 * step, 10), above(1, 1000 * step, 100))) for step in range(1, 8)))
    made = plan_question(asked(many), dialect=DUCKDB)
    assert not made.minimised.is_minimal
    assert made.question.formula == made.minimised.formula
    assert planning.NOT_MINIMISED in made.warnings


def test_an_unreachable_accuracy_is_refused_with_a_tolerance_that_works() -> None:
    strict = AllOf((above(0, 500, 0), above(1, 25, 0)))
    by_tslm = question(strict, count(), average(20), accuracy=replace(ACCURACY, mechanism="tslm"))
    with pytest.raises(KeyholeError) as refused:
        plan_question(by_tslm, dialect=DUCKDB)
    assert refused.value.code == "KH303"
    assert refused.value.hint is not None
    prefix, suffix = "SET keyhole.tolerance = '", "';"
    assert refused.value.hint.startswith(prefix)
    size = Decimal(refused.value.hint.removeprefix(prefix).removesuffix(suffix))
    steps = [int(size * functional.rows / functional.unit_size) for functional in by_tslm.functionals]
    wider = AllOf((above(0, 500, steps[0]), above(1, 25, steps[1])))
    assert plan_question(replace(by_tslm, formula=wider), dialect=DUCKDB).worst_case_epsilon > 0


def test_equal_questions_give_equal_plans() -> None:
    assert plan_question(asked(), dialect=DUCKDB) == plan_question(asked(), dialect=DUCKDB)
    planning._plan.cache_clear()
    again = plan_question(asked(), dialect=DUCKDB)
    planning._plan.cache_clear()
    assert plan_question(asked(), dialect=DUCKDB) == again


def percentage(cut: Cut, text: str) -> Cut:
    return replace(cut, tolerance=int(cut.cut * Decimal(text.removesuffix("%")) / 100))


def with_tolerance(calls: list[str]) -> Callable[[str], Question]:
    def ask(tolerance: str) -> Question:
        calls.append(tolerance)
        literals = (above(0, 500, 0), above(1, 30, 0))
        formula = AllOf(tuple(percentage(cut, tolerance) for cut in literals))
        return question(formula, count(), units(), accuracy=replace(ACCURACY, tolerance=tolerance))

    return ask


@pytest.mark.parametrize("epsilon", [0.4, 0.7, 1.5, 2.9])
def test_the_smallest_tolerance_fits_and_a_tenth_less_does_not(epsilon: float) -> None:
    calls: list[str] = []
    ask = with_tolerance([])
    now = plan_question(ask("10%"), dialect=DUCKDB).worst_case_epsilon
    found = find_smallest_tolerance(with_tolerance(calls), CostLimit(epsilon, now))
    assert found is not None
    assert len(calls) <= 14
    assert plan_question(ask(found.text), dialect=DUCKDB).worst_case_epsilon == found.epsilon <= epsilon
    less = f"{Decimal(found.text.removesuffix('%')) - Decimal('0.1')}%"
    assert plan_question(ask(less), dialect=DUCKDB).worst_case_epsilon > epsilon


def test_no_tolerance_fits_an_empty_budget() -> None:
    assert find_smallest_tolerance(with_tolerance([]), CostLimit(0.0, 1.0)) is None


def test_no_tolerance_above_half_or_above_what_is_wanted_is_tried() -> None:
    calls: list[str] = []
    assert find_smallest_tolerance(with_tolerance(calls), CostLimit(0.2, 4.0)) is None, "83 % would do"
    assert find_smallest_tolerance(with_tolerance(calls), CostLimit(1.5, 4.0), most=Decimal(6)) is None
    assert max(Decimal(one.removesuffix("%")) for one in calls) == 50


def test_a_refused_question_does_not_fit() -> None:
    def refused(tolerance: str) -> Question:
        raise KeyholeError("KH304", f"no tolerance {tolerance} for the threshold 0")

    assert find_smallest_tolerance(refused, CostLimit(100.0, 200.0)) is None


def test_the_smallest_fnr_fits() -> None:
    calls: list[float] = []

    def with_fnr(fnr: float) -> Question:
        calls.append(fnr)
        return replace(asked(), accuracy=replace(ACCURACY, fnr=fnr))

    wanted = plan_question(with_fnr(0.12), dialect=DUCKDB).worst_case_epsilon
    calls.clear()
    found = find_smallest_fnr(with_fnr, CostLimit(wanted, 2 * wanted))
    assert found is not None
    assert len(calls) <= 14
    assert float(found.text) <= 0.12
    assert plan_question(with_fnr(float(found.text)), dialect=DUCKDB).worst_case_epsilon <= wanted
    assert find_smallest_fnr(with_fnr, CostLimit(1e-9, 1.0)) is None


@pytest.mark.parametrize("cost", [0.3, 2.0, 400.0])
def test_the_smallest_round_number_fits_wherever_the_search_starts(cost: float) -> None:
    calls: list[int] = []

    def with_rows(rows: int) -> Question:
        calls.append(rows)
        return with_tolerance([])(f"{min(rows / 50, 100)}%")

    found = find_smallest_number(with_rows, CostLimit(0.7, cost), now=50)
    assert found is not None
    assert len(calls) <= 12
    rows = int(found.text)
    assert plan_question(with_rows(rows), dialect=DUCKDB).worst_case_epsilon == found.epsilon <= 0.7
    before = max(number for number in list_round_numbers(above=50, below=50_000) if number < rows)
    assert plan_question(with_rows(before), dialect=DUCKDB).worst_case_epsilon > 0.7
    assert find_smallest_number(with_rows, CostLimit(1e-4, cost), now=50) is None
    assert find_smallest_number(with_rows, CostLimit(0.7, cost), now=50, most=int(found.text) - 1) is None


def test_numbers_in_hints_are_round() -> None:
    assert list(list_round_numbers(above=40, below=200)) == [50, 60, 80, 100, 120, 150, 200]
    assert list(list_round_numbers(above=0, below=9)) == [1, 2, 3, 4, 5, 6, 8]
    assert list(list_round_numbers(above=9, below=9)) == []


def test_the_filter_that_is_always_true_is_no_filter() -> None:
    assert plan_question(replace(asked(), where=ALWAYS), dialect=DUCKDB) == plan_question(asked(), dialect=DUCKDB)


def test_two_means_of_one_column_cost_less_than_their_sum() -> None:
    """No row moves both in full; with narrow tolerances blocks are cheaper, and then both are paid in full."""
    either = question(AnyOf((above(0, 0, 400), below(1, 0, 400))), average(65), average(5))
    made = plan_question(either, dialect=DUCKDB)
    assert made.worst_case_epsilon < 0.9 * sum(test.epsilon for test in made.calibration.tests)
    assert all(test.block == 1 for test in made.calibration.tests)
    narrow = question(AnyOf((above(0, 0, 3), below(1, 0, 3))), average(65), average(5))
    made = plan_question(narrow, dialect=DUCKDB)
    assert all(test.block > 1 for test in made.calibration.tests)
    assert made.worst_case_epsilon == pytest.approx(sum(test.epsilon for test in made.calibration.tests))


@pytest.mark.parametrize(
    ("mechanism", "tolerance", "both"),
    cases(["keyhole", "progressive"], [0, 3, 30, 100, 400], [False, True], quick=10),
)
def test_no_row_loses_more_than_the_plan_says(mechanism: str, tolerance: int, both: bool) -> None:
    """Every row from 0 to 100, not only those at the corners; a block index moves by a whole step for any change."""
    literals = (above(0, 0, tolerance), below(1, 0, tolerance), above(2, 300, max(1, tolerance // 4)))
    formula = AllOf(literals) if both else AnyOf(literals)
    wanted = replace(ACCURACY, mechanism=mechanism)
    made = plan_question(question(formula, average(65), average(5), count(), accuracy=wanted), dialect=DUCKDB)
    for value in range(101):
        loss = Fraction(0)
        for functional, test in zip(made.question.functionals, made.calibration.tests, strict=True):
            change = sum(term.coefficient * (value if term.power else 1) for term in functional.terms)
            loss += test.rate * (-(-abs(change) // test.block))
        assert loss <= Fraction(made.worst_case_epsilon)


@pytest.mark.parametrize(
    ("tolerance", "wide", "shared", "reuse"),
    cases([3, 100, 300], [100, 400], [False, True], [False, True], quick=10),
)
def test_no_row_loses_more_where_some_are_in_blocks(tolerance: int, wide: int, shared: bool, reuse: bool) -> None:
    """Two means by their parts beside two sums in blocks, for every row; where the means share their noise between two
    thresholds, which no block can, that is cheapest."""
    wanted = replace(ACCURACY, allows_reuse=reuse)
    sums = (above(2, 300, tolerance), above(3, 300, tolerance))
    means = (AllOf((above(0, 0, wide), below(0, 900, wide))), AllOf((below(1, 0, wide), above(1, -900, wide))))
    formula = AnyOf((*means, *sums) if shared else (above(0, 0, wide), below(1, 0, wide), *sums))
    functionals = (average(65), average(5), total(FRANCE), total(SPAIN))
    made = plan_question(question(formula, *functionals, accuracy=wanted), dialect=DUCKDB)
    blocks = [test.block > 1 for test in made.calibration.tests]
    if shared and not reuse:
        assert sorted(blocks) == [False, False, True, True]
    for country in ("France", "Spain", "Norway"):
        counted = [
            ([term for term in functional.terms if evaluate(term.condition, {"country": country})], test)
            for functional, test in zip(made.question.functionals, made.calibration.tests, strict=True)
        ]
        for value in range(101):
            loss = Fraction(0)
            for counts, test in counted:
                change = sum(term.coefficient * (value if term.power else 1) for term in counts)
                loss += test.rate * (-(-abs(change) // test.block))
            assert loss <= Fraction(made.worst_case_epsilon)


def test_thresholds_that_differ_in_a_late_digit_are_charged_apart() -> None:
    """A row between the two thresholds moves both functionals, however close they are; so both losses add up."""
    having = "count(*) FILTER (WHERE cost > 1.{0}1) > 50 AND count(*) FILTER (WHERE cost > 1.{0}9) - count(*) > -40"
    wide, narrow = (
        plan_question(
            sql_question(f"SELECT ward FROM visits GROUP BY ward HAVING {having.format('0' * zeros)}"),
            dialect=POSTGRES,
        )
        for zeros in (1, 31)
    )
    assert narrow.calibration.task.exposures == wide.calibration.task.exposures == expose_all_functionals(2)
    assert narrow.worst_case_epsilon == wide.worst_case_epsilon


def test_questions_that_differ_in_a_late_digit_are_different_questions() -> None:
    one, other = (
        plan_question(
            sql_question(
                f"SELECT ward FROM visits WHERE cost > 1.{'0' * 31}{digit} GROUP BY ward HAVING count(*) > 50"
            ),
            dialect=POSTGRES,
        )
        for digit in (1, 9)
    )
    assert one.fingerprint != other.fingerprint


def test_the_same_thresholds_on_other_rows_are_calibrated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrated: list[DecisionTask] = []
    calibrate = Progressive.calibrate

    def count(self: Progressive, task: DecisionTask) -> Calibration:
        calibrated.append(task)
        return calibrate(self, task)

    monkeypatch.setattr(Progressive, "calibrate", count)

    def plan(having: str, where: str = "", tolerance: str = "10%", fnr: str = "0.05") -> planned.Plan:
        sql = f"SELECT country, month FROM sales {where} GROUP BY country, month HAVING {having}"
        asked = sql_question(sql, mechanism=Progressive.name, tolerance=tolerance, fnr=fnr)
        return plan_question(asked, dialect=DUCKDB)

    first = plan("count(*) > 61234")
    count_of_first = len(calibrated)
    assert count_of_first
    filtered = plan("count(*) > 61234", "WHERE amount > 7")
    assert len(calibrated) == count_of_first
    assert filtered.calibration == first.calibration
    assert filtered.fingerprint != first.fingerprint
    assert filtered.rewritten.sql != first.rewritten.sql
    plan("count(*) > 61235", tolerance="9%")
    plan("count(*) > 61234", fnr="0.04")
    assert len(calibrated) == 3 * count_of_first
