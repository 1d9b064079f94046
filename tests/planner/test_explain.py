"""EXPLAIN and guarantees: what a plan will do, in the analyst's words and units, from public inputs alone."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.formula import AllOf, AnyOf
from planner.asking import ask
from planner.catalog import Budget, Catalog, Defaults, Table
from planner.embedded import Embedded
from planner.explain import Left, explain_json, explain_text, guarantee_json, guarantee_sentence
from planner.plan import Plan
from planner.planning import plan
from planner.question import Accuracy, Question
from tests.planner.questions import ACCURACY, CAPPED, CLIPPED, ROWS, above, below, count, question, total, units

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
    embedded = Embedded(
        text=f"SELECT country, month FROM sales GROUP BY country, month HAVING {having}",
        offset=0,
        table=table,
        alias="sales",
        keys=(table.column("country"), table.column("month")),
        stored=None,
    )
    return ask(embedded, CATALOG, accuracy=accuracy, parameters={}, today=date(2011, 12, 10))


def planned(having: str, *, table: Table = ROWS, accuracy: Accuracy = ACCURACY) -> Plan:
    return plan(typed(having, table=table, accuracy=accuracy), dialect="duckdb")


NEGATED = "NOT (count(*) <= 500 OR count(DISTINCT customer_id) >= 70) OR count(*) = 20"
KPI = "(count(*) > 500 AND avg(amount) > 20) OR count(DISTINCT customer_id) > 30"


def test_explain_shows_formula_functionals_cost_and_sql() -> None:
    lines = explain_text(planned(KPI, table=CLIPPED), left=None)
    text = "\n".join(lines)
    assert lines[0] == "Question over 12 groups of sales (country, month), nothing is spent by EXPLAIN"
    assert lines[1] == "  (A and B) or C        minimal; 2 ways to be true, 2 ways to be false"
    assert "A  count(*) > 500 " in lines[2]
    assert "may err between 450 and 500 " in lines[2]
    assert "one (customer_id, month) counts at most 20 rows" in lines[2]
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
    refused = Left(version="2011-12-10", epsilon=1.999, would_fit=("keyhole.tolerance = '40%'", "keyhole.fnr = 0.2"))
    text = "\n".join(explain_text(made, left=refused))
    assert "(country, month), data version 2011-12-10, nothing is spent" in text
    assert "Left for these groups: 1.99   -> this question would be refused" in text
    assert "Would fit: keyhole.tolerance = '40%', or keyhole.fnr = 0.2" in text
    enough = Left(version="2011-12-10", epsilon=100.0)
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
    epsilon = guarantee_sentence(made).removesuffix(" epsilon.").rpartition(" ")[2]
    assert guarantee_sentence(made) == (
        "a group that truly qualifies is missed at most 5 % of the time; one that fails even with 10 % slack "
        f"is returned at most 10 % of the time; at most {epsilon} epsilon."
    )
    assert made.worst_case_epsilon <= float(epsilon) < made.worst_case_epsilon + 0.01
    assert guarantee_json(made) == {
        "sentence": guarantee_sentence(made),
        "fnr": 0.05,
        "fpr": 0.1,
        "tolerance": {"count(*)": 50.0, "sum(amount)": 2000.0},
        "epsilon_at_most": made.worst_case_epsilon,
        "most_groups": None,
    }


def test_the_guarantee_names_the_bounding_of_larger_units() -> None:
    sentence = guarantee_sentence(planned(KPI, table=CLIPPED))
    assert "aggregates after bounding each (customer_id, month)" in sentence
    assert "rows without customer_id or month are left out" in sentence
    assert guarantee_json(planned(KPI, table=CLIPPED))["tolerance"]["avg(amount)"] == 2.0


def test_the_slack_reads_as_it_was_set() -> None:
    named = replace(ACCURACY, tolerance="10%, count=25", fnr=0.0125)
    sentence = guarantee_sentence(planned("count(*) > 500", accuracy=named))
    assert "with a slack of 10%, count=25 is returned" in sentence
    assert "missed at most 1.25 % of the time" in sentence


def test_what_is_not_promised_is_not_said() -> None:
    nlm = planned("count(*) > 500", accuracy=replace(ACCURACY, mechanism="nlm"))
    assert "without a bound" in guarantee_sentence(nlm)
    assert guarantee_json(nlm)["fnr"] is None
    empty = planned("count(*) <> 500")
    assert "any group may be returned" in guarantee_sentence(empty)
    assert guarantee_json(empty)["fpr"] is None


def test_a_constant_condition_promises_exactness_for_nothing() -> None:
    made = planned("count(*) > 5 OR count(*) <= 5")
    assert (
        guarantee_sentence(made) == "the condition does not depend on data: the answer is exact and nothing was spent."
    )
    assert guarantee_json(made)["epsilon_at_most"] == 0
    assert explain_text(made, left=None)[-1] == "  Nothing is sent to the source."
    assert explain_json(made, left=None)["minimised"] == "true"


def test_beyond_twelve_thresholds_the_typed_tree_is_shown() -> None:
    many = " AND ".join(f"(count(*) > {100 * n} OR sum(amount) > {1000 * n})" for n in range(1, 8))
    lines = explain_text(planned(many), left=None)
    assert lines[1].endswith("as typed")
    assert "(A or B) and (C or D)" in lines[1]


@given(tolerance=st.integers(0, 40), cut=st.integers(1, 1000), table=st.sampled_from([ROWS, CLIPPED, CAPPED]))
@settings(max_examples=40, deadline=None)
def test_what_is_printed_is_never_less_than_what_is_spent(tolerance: int, cut: int, table: Table) -> None:
    formula = AnyOf((AllOf((above(0, cut, tolerance), below(1, 3 * cut, 2 * tolerance))), above(2, cut, tolerance)))
    asked = question(formula, count(table=table), total(table=table), units(), table=table)
    made = plan(asked, dialect="postgres")
    printed = next(line for line in explain_text(made, left=None) if "Worst case" in line).split()[2]
    assert Decimal(printed) >= Decimal(made.worst_case_epsilon)
    assert Decimal(printed) < Decimal(made.worst_case_epsilon) + Decimal("0.011")


def test_explain_depends_on_the_plan_alone() -> None:
    made = planned(KPI, table=CLIPPED)
    assert explain_text(made, left=None) == explain_text(planned(KPI, table=CLIPPED), left=None)
    assert explain_json(made, left=None) == explain_json(planned(KPI, table=CLIPPED), left=None)
