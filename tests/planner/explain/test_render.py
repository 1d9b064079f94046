"""EXPLAIN and guarantees: what a plan will do, in the analyst's words and units, from public inputs alone."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import AllOf, AnyOf
from mechanisms.keyhole.progressive import Progressive
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Budget, Catalog, Defaults, Table
from planner.explain.balances import QuestionBalance
from planner.explain.cost_breakdown import list_expected_losses
from planner.explain.document import explain_json
from planner.explain.guarantee import PROMISE_OF_CELLS, write_guarantee, write_guarantee_json
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.question.question import Accuracy, Question
from planner.scope.embedded import EmbeddedQuestion
from tests.effort import examples
from tests.planner.asked import asked, select
from tests.seeded_noise import SeededNoise
from tests.worlds.questions import ACCURACY, CAPPED, CLIPPED, ROWS, above, below, count, question, total, units

CATALOG = Catalog(
    tables=(ROWS,),
    public_tables=(),
    stored_questions=(),
    analysts=(),
    defaults=Defaults(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=50, mechanism="keyhole"),
    budget=Budget(per_predicate=4.0, per_unit=8.0, per_query=2.0),
    database="retail",
    max_keys=1000,
    statement_timeout_ms=1000,
    digest="",
)


def typed(having: str, *, table: Table = ROWS, accuracy: Accuracy = ACCURACY) -> Question:
    text = f"SELECT country, month FROM sales GROUP BY country, month HAVING {having}"
    embedded = EmbeddedQuestion(
        text=text,
        offset=0,
        table=table,
        alias="sales",
        keys=(table.get_column("country"), table.get_column("month")),
        stored_question=None,
        tree=select(text),
    )
    return bind_question(embedded, CATALOG, accuracy=accuracy, parameters={}, today=date(2011, 12, 10))


def planned(having: str, *, table: Table = ROWS, accuracy: Accuracy = ACCURACY) -> Plan:
    return plan_question(typed(having, table=table, accuracy=accuracy), dialect=DUCKDB)


NEGATED = "NOT (count(*) <= 500 OR count(DISTINCT customer_id) >= 70) OR count(*) = 20"
KPI = "(count(*) > 500 AND avg(amount) > 20) OR count(DISTINCT customer_id) > 30"


def test_explain_shows_formula_functionals_cost_and_sql() -> None:
    lines = explain_text(planned(KPI, table=CLIPPED), left=None)
    text = "\n".join(lines)
    assert lines[0] == "Question over 12 groups of sales (country, month), nothing is spent by EXPLAIN"
    assert lines[1] == "  (A and B) or C        minimal; 2 ways to be true, 2 ways to be false"
    assert "A  count(*) > 500 " in lines[2]
    assert "may err between 450 and 500 " in lines[2]
    assert "Noise of A: sensitivity 20; one (customer_id, month) counts at most 20 rows" in text
    assert "B  avg(amount) > 20 " in lines[3]
    assert "may err between 18 and 20 for groups of at least 50 rows" in lines[3]
    assert "C  count(DISTINCT customer_id) > 30 " in lines[4]
    assert "Worst case " in lines[5]
    assert "separate sums" in lines[5]
    assert "ProBE" in lines[5]
    assert "equal split" in lines[5]
    assert "values of amount are clipped to 0 .. 100" in text
    assert "rows without customer_id or month are left out" in text
    assert "SQL sent to the source (duckdb):" in text
    assert not any("\n" in line for line in lines)


def test_explain_says_what_is_left_and_what_would_fit() -> None:
    made = planned(KPI, table=CLIPPED)
    refused = QuestionBalance(
        version="2011-12-10", epsilon=1.999, fitting_settings=("keyhole.tolerance = '40%'", "keyhole.fnr = 0.2")
    )
    text = "\n".join(explain_text(made, left=refused))
    assert "(country, month), data version 2011-12-10, nothing is spent" in text
    assert "Left for these groups: 1.99   -> this question would be refused" in text
    assert "Would fit: keyhole.tolerance = '40%', or keyhole.fnr = 0.2" in text
    enough = QuestionBalance(version="2011-12-10", epsilon=100.0)
    text = "\n".join(explain_text(made, left=enough))
    assert "refused" not in text
    assert explain_json(made, left=refused)["refused"] is True
    assert explain_json(made, left=enough)["refused"] is False


def test_two_thresholds_on_one_functional_share_its_noise() -> None:
    lines = explain_text(planned("count(*) >= 500 AND count(*) < 900"), left=None)
    assert "A  count(*) >= 500 " in lines[2]
    assert "B  count(*) < 900 " in lines[3]
    assert "same noise as A" in lines[3]
    assert "epsilon" not in lines[3]


def test_negations_and_intervals_are_shown_as_what_they_mean() -> None:
    document = explain_json(planned(NEGATED, table=CLIPPED), left=None)
    texts = {literal["letter"]: literal["text"] for literal in document["literals"]}
    assert texts["A"] == "count(*) > 500"
    assert texts["B"] == "count(DISTINCT customer_id) < 70"
    assert {texts["C"], texts["D"]} == {"count(*) > 19", "count(*) <= 20"}
    assert document["letters"] == "(A and B) or (C and D)"


def test_near_thresholds_keep_their_own_words() -> None:
    document = explain_json(
        planned("count(*) > 5 AND sum(amount) > 9 OR count(*) >= 5 AND sum(amount) > 90"), left=None
    )
    assert {literal["text"] for literal in document["literals"] if "count" in literal["text"]} == {
        "count(*) > 5",
        "count(*) >= 5",
    }


def test_the_document_holds_what_a_program_reads() -> None:
    redundant = f"({KPI}) AND (count(*) > 100 OR count(DISTINCT customer_id) > 10)"
    document = explain_json(planned(redundant, table=CLIPPED), left=None)
    assert document["formula"].startswith("((count(*) > 500 AND avg(amount) > 20)")
    assert document["minimised"] == KPI
    assert document["prime_implicants"] == [
        ["count(*) > 500", "avg(amount) > 20"],
        ["count(DISTINCT customer_id) > 30"],
    ]
    assert len(document["prime_clauses"]) == 2
    assert len(document["functionals"]) == 3
    for functional in document["functionals"]:
        assert {"name", "sensitivity", "epsilon", "fnr", "fpr", "shift", "tolerance"} <= functional.keys()
    assert document["keys"] == 12
    assert document["mechanism"] == "keyhole"
    assert set(document["compared"]) == {"naive", "probe"}
    assert document["worst_case_epsilon"] == pytest.approx(sum(f["epsilon"] for f in document["functionals"]))
    assert document["sql"]
    assert isinstance(document["warnings"], list)
    without_tolerance = explain_json(planned("count(*) > 5", accuracy=replace(ACCURACY, tolerance="0")), left=None)
    assert without_tolerance["compared"] == {"naive": None, "probe": None}
    assert json.loads(json.dumps(document)) == document


def test_the_guarantee_is_one_sentence_in_rates_slack_and_loss() -> None:
    made = planned("count(*) > 500 OR sum(amount) > 20000")
    epsilon = write_guarantee(made).removesuffix(" epsilon.").rpartition(" ")[2]
    assert write_guarantee(made) == (
        "a group that truly qualifies is missed at most 5 % of the time; one that fails even with 10 % slack "
        f"is returned at most 10 % of the time; at most {epsilon} epsilon."
    )
    assert made.worst_case_epsilon <= float(epsilon) < made.worst_case_epsilon + 0.01
    assert write_guarantee_json(made) == {
        "sentence": write_guarantee(made),
        "fnr": 0.05,
        "fpr": 0.1,
        "tolerance": {"count(*)": 50.0, "sum(amount)": 2000.0},
        "epsilon_at_most": made.worst_case_epsilon,
        "wrong_groups_at_most": pytest.approx(made.question.keys.size * 0.1),
        "most_groups": None,
        "predicates": {},
        "ranking": None,
        "cells": None,
    }


def test_the_guarantee_names_the_bounding_of_larger_units() -> None:
    sentence = write_guarantee(planned(KPI, table=CLIPPED))
    assert "aggregates after bounding each (customer_id, month)" in sentence
    assert "rows without customer_id or month are left out" in sentence
    assert write_guarantee_json(planned(KPI, table=CLIPPED))["tolerance"]["avg(amount)"] == 2.0
    assert write_guarantee_json(planned(KPI, table=CLIPPED))["cells"] == PROMISE_OF_CELLS


def test_the_slack_reads_as_it_was_set() -> None:
    named = replace(ACCURACY, tolerance="10%, count=25", fnr=0.0125)
    sentence = write_guarantee(planned("count(*) > 500", accuracy=named))
    assert "with a slack of 10%, count=25 is returned" in sentence
    assert "missed at most 1.25 % of the time" in sentence


def test_what_is_not_promised_is_not_said() -> None:
    nlm = planned("count(*) > 500", accuracy=replace(ACCURACY, mechanism="nlm"))
    assert "without a bound" in write_guarantee(nlm)
    assert write_guarantee_json(nlm)["fnr"] is None
    empty = planned("count(*) <> 500")
    assert "any group may be returned" in write_guarantee(empty)
    assert write_guarantee_json(empty)["fpr"] is None


def test_a_constant_condition_promises_exactness_for_nothing() -> None:
    made = planned("count(*) > 5 OR count(*) <= 5")
    assert write_guarantee(made) == "the condition does not depend on data: the answer is exact and nothing was spent."
    assert write_guarantee_json(made)["epsilon_at_most"] == 0
    assert explain_text(made, left=None)[-1] == "  Nothing is sent to the source."
    assert explain_json(made, left=None)["minimised"] == "true"


def test_beyond_twelve_thresholds_the_typed_tree_is_shown() -> None:
    many = " AND ".join(f"(count(*) > {100 * n} OR sum(amount) > {1000 * n})" for n in range(1, 8))
    lines = explain_text(planned(many), left=None)
    assert lines[1].endswith("folded, not minimised")
    assert "(A or B) and (C or D)" in lines[1]


@given(tolerance=st.integers(0, 40), cut=st.integers(1, 1000), table=st.sampled_from([ROWS, CLIPPED, CAPPED]))
@examples(40)
def test_what_is_printed_is_never_less_than_what_is_spent(tolerance: int, cut: int, table: Table) -> None:
    formula = AnyOf((AllOf((above(0, cut, tolerance), below(1, 3 * cut, 2 * tolerance))), above(2, cut, tolerance)))
    asked = question(formula, count(table=table), total(table=table), units(), table=table)
    made = plan_question(asked, dialect=POSTGRES)
    printed = next(line for line in explain_text(made, left=None) if "Worst case" in line).split()[2]
    assert Decimal(printed) >= Decimal(made.worst_case_epsilon)
    assert Decimal(printed) < Decimal(made.worst_case_epsilon) + Decimal("0.011")


def test_explain_depends_on_the_plan_alone() -> None:
    made = planned(KPI, table=CLIPPED)
    assert explain_text(made, left=None) == explain_text(planned(KPI, table=CLIPPED), left=None)
    assert explain_json(made, left=None) == explain_json(planned(KPI, table=CLIPPED), left=None)


REDUNDANT = f"({KPI}) AND (count(*) > 100 OR count(DISTINCT customer_id) > 10)"
APART = (
    "count(*) FILTER (WHERE country = 'France') > 100 OR sum(amount) FILTER (WHERE country = 'Spain') > 2000 "
    "OR (count(*) >= 300 AND count(*) < 600)"
)
PROGRESSIVE = replace(ACCURACY, mechanism="progressive")
LARGE = " AND ".join(f"(count(*) > {100 * n} OR sum(amount) > {1000 * n})" for n in range(1, 33))


def test_the_formula_before_and_after_has_the_same_letters() -> None:
    made = planned(REDUNDANT, table=CLIPPED)
    text = "\n".join(explain_text(made, left=None))
    assert "  (A and B) or C        minimal" in text
    assert "  As typed: ((A and B) or C) and (D or E)" in text
    assert "  D  count(*) > 100   does not matter, costs nothing" in text
    assert "As typed" not in "\n".join(explain_text(planned(KPI, table=CLIPPED), left=None))
    document = explain_json(made, left=None)
    assert document["typed_letters"] == "((A and B) or C) and (D or E)"
    assert [one["letter"] for one in document["idle"]] == ["D", "E"]


def test_the_shares_of_the_worst_case_sum_to_it() -> None:
    for having, table in ((KPI, CLIPPED), (APART, ROWS), (NEGATED, CLIPPED)):
        document = explain_json(planned(having, table=table, accuracy=PROGRESSIVE), left=None)
        assert sum(one["share_of_worst_case"] for one in document["functionals"]) == pytest.approx(1)
        assert document["sets_together"][0]["epsilon"] == pytest.approx(document["worst_case_epsilon"])
        for one in document["functionals"]:
            assert one["share_of_worst_case"] == 0 or one["share_of_worst_case"] == pytest.approx(
                one["epsilon"] / document["worst_case_epsilon"]
            )


def test_who_is_affected_together_is_shown_where_it_is_less_than_the_plain_sum() -> None:
    made = planned(APART)
    text = "\n".join(explain_text(made, left=None))
    assert "  No row changes all of them, so the worst case is the most expensive of B + C = " in text
    document = explain_json(made, left=None)
    assert document["worst_case_epsilon"] < document["separate_sums_epsilon"]
    assert len(document["sets_together"]) == len(document["affected_together"]) == 2
    assert "changes all of them" not in "\n".join(explain_text(planned(KPI, table=CLIPPED), left=None))


def test_most_groups_lose_less_under_the_progressive_mechanism() -> None:
    document = explain_json(planned("count(*) > 500", accuracy=PROGRESSIVE), left=None)
    losses = [one["epsilon"] for one in document["expected_epsilon"]]
    assert [one["tolerances_short"] for one in document["expected_epsilon"]] == [1, 3, 10]
    assert document["worst_case_epsilon"] >= losses[0] > losses[1] > losses[2] > 0
    (functional,) = document["functionals"]
    assert functional["looks"][0] <= losses[2]
    assert functional["looks"] == sorted(functional["looks"])
    text = "\n".join(explain_text(planned("count(*) > 500", accuracy=PROGRESSIVE), left=None))
    assert "Most groups stop early: a group 1, 3, 10 tolerances short of its thresholds loses about " in text
    assert "one-shot keyhole " in text
    alone = explain_json(planned("count(*) > 500"), left=None)
    assert (alone["expected_epsilon"], alone["one_shot_epsilon"]) == ([], None)
    assert document["one_shot_epsilon"] == pytest.approx(alone["worst_case_epsilon"])


def test_what_a_group_is_expected_to_lose_is_what_runs_lose_on_average() -> None:
    """2,000 groups at 3 tolerances; the mean of losses between 0 and w differs from its expectation by more than
    w * sqrt(ln(2 / 1e-6) / (2 * 2000)) with probability below 1e-6 (Hoeffding)."""
    made = planned("count(*) > 500", accuracy=PROGRESSIVE)
    tolerance = made.calibration.tests[0].tolerance
    values = np.full((1, 2000), 500 - 3 * tolerance, dtype=np.int64)
    outcome = Progressive().decide(made.calibration, values, noise=SeededNoise(7))
    expected = dict(list_expected_losses(made))[3]
    assert abs(outcome.epsilon.mean() - expected) < made.worst_case_epsilon * sqrt(log(2 / 1e-6) / 4000)


@pytest.mark.parametrize(("having", "table"), [(LARGE, ROWS), (REDUNDANT, CLIPPED), (APART, ROWS), (NEGATED, CLIPPED)])
def test_explain_fits_on_a_screen(having: str, table: Table) -> None:
    lines = explain_text(planned(having, table=table, accuracy=PROGRESSIVE), left=None)
    assert len(lines) <= 48
    assert lines[1].startswith("  ")
    assert len(lines[1]) <= 400


def test_a_large_formula_shows_its_dearest_literals_and_the_document_all() -> None:
    made = planned(LARGE)
    lines = explain_text(made, left=None)
    assert "  ... 52 more literals: EXPLAIN (FORMAT JSON)" in lines
    assert len(explain_json(made, left=None)["literals"]) == 64


def test_warnings_about_zero_and_about_the_grid_are_shown_with_what_they_cost() -> None:
    near = "\n".join(explain_text(planned("count(*) > 5", accuracy=replace(ACCURACY, tolerance="6")), left=None))
    assert "  Warning: groups without rows lie within the tolerance and may be returned" in near
    fine = planned("count(*) > 5", accuracy=replace(ACCURACY, tolerance="10%"))
    text = "\n".join(explain_text(fine, left=None))
    assert "  Warning: count(*) > 5: the tolerance is below one row and counts as zero" in text
    step = explain_json(fine, left=None)["with_one_step_epsilon"]
    assert step == planned("count(*) > 5", accuracy=replace(ACCURACY, tolerance="1")).worst_case_epsilon
    assert step < fine.worst_case_epsilon
    assert "  With a tolerance of one step for literals without one, the worst case would be " in text
    assert explain_json(planned("count(*) > 500"), left=None)["with_one_step_epsilon"] is None


def test_a_rollup_is_told_where_bounding_chooses_rows() -> None:
    made = planned("count(*) > 500", table=CAPPED)
    assert made.rewritten.rollup is not None
    told = [
        line for line in explain_text(made, left=None) if line.startswith("  Rollup, where one can be kept: bounding")
    ]
    assert len(told) == 1
    document = explain_json(made, left=None)
    assert document["rollup"] == {"build": made.rewritten.rollup.build, "sql": made.rewritten.rollup.sql}
    plain = planned("count(*) > 500")
    assert explain_json(plain, left=None)["rollup"] is None
    assert not any("Rollup" in line for line in explain_text(plain, left=None))


def test_what_hinges_on_records_or_shares_of_rows_is_told_in_rows() -> None:
    """Never as a band of zeros, or as if half of a group's rows were an amount."""
    rows = replace(ACCURACY, tolerance="max(amount)=2, 10%")
    extreme = planned("max(amount) > 65")
    assert "A  max(amount) > 65   one record decides, no slack   " in "\n".join(explain_text(extreme, left=None))
    assert "may err by 2 rows beyond the threshold" in "\n".join(
        explain_text(planned("max(amount) > 65", accuracy=rows), left=None)
    )
    half = planned("percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) > 65")
    text = "\n".join(explain_text(half, left=None))
    assert "may err between 40 and 50 % of the rows for groups of at least 50 rows" in text
    assert [explain_json(one, left=None)["literals"][0]["may_err_in"] for one in (extreme, half)] == [
        "rows",
        "% of rows",
    ]
    assert explain_json(planned("count(*) > 5"), left=None)["literals"][0]["may_err_in"] is None


def test_parts_are_shown_where_no_row_changes_all_in_full() -> None:
    made = planned("avg(amount) > 65 OR avg(amount) < 5", accuracy=replace(ACCURACY, tolerance="8"))
    document = explain_json(made, left=None)
    assert document["worst_case_epsilon"] < 0.9 * document["separate_sums_epsilon"]
    assert [len(group["parts"]) for group in document["sets_together"]] == [2, 2]
    assert document["sets_together"][0]["epsilon"] == pytest.approx(document["worst_case_epsilon"])
    shares = [one["share_of_worst_case"] for one in document["functionals"]]
    assert sum(shares) == pytest.approx(1)
    text = "\n".join(explain_text(made, left=None))
    assert "  No row changes all of them in full, so the worst case is the most expensive of " in text
    assert "A + 0.06 B = " in text


def test_a_whole_table_and_a_product_are_said_as_they_are() -> None:
    made = plan_question(asked("SELECT true FROM sales HAVING sum(amount * quantity) > 1000"), dialect=DUCKDB)
    lines = explain_text(made, left=None)
    assert lines[0] == "Question over 1 group of sales (the whole table as one group), nothing is spent by EXPLAIN"
    assert "  Bounding: values of amount are clipped to -500 .. 500" in lines
    assert "  Bounding: values of quantity are clipped to -100 .. 100" in lines
    assert "  Bounding: amount * quantity is multiplied of these, and lies in -50000 .. 50000" in lines
    assert any(line.startswith("  Bounding: one (customer_id, month) is in at most 1 group;") for line in lines)
