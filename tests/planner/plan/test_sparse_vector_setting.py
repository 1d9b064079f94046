"""A sparse vector by its settings: refused with a hint that works, planned with its limit, and honest about it."""

import re
from dataclasses import replace

import pytest

from mechanisms.formula import list_literals
from mechanisms.published.sparse_vector import GeneralisedSparseVector
from planner.errors import KeyholeError
from planner.explain.document import explain_json
from planner.explain.guarantee import write_guarantee, write_guarantee_json
from planner.explain.render import explain_text
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.statements.settings import read_accuracy
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.worlds.retail import EVERY_MECHANISM, retail

FREE = replace(retail(), defaults=EVERY_MECHANISM)
COUNT = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100"
TWO = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 AND count(*) FILTER (WHERE age > 65) > 40"
UNITS = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100 OR avg(age) > 60"


def with_settings(sql: str, settings: dict[str, str]) -> Plan:
    names = ("mechanism", "most_positives", "public_knowledge", "tolerance")
    assert settings.keys() <= set(names)
    mechanism, most_positives, public_knowledge, tolerance = (settings.get(name, "") for name in names)
    question = asked(
        sql,
        catalog=FREE,
        mechanism=mechanism,
        most_positives=most_positives,
        public_knowledge=public_knowledge,
        tolerance=tolerance,
    )
    return plan_question(question, dialect=DUCKDB)


def planned(sql: str = COUNT, *, mechanism: str = "svt", most_positives: str = "3") -> Plan:
    question = asked(sql, catalog=FREE, mechanism=mechanism, most_positives=most_positives)
    return plan_question(question, dialect=DUCKDB)


def followed(hint: str | None, **settings: str) -> list[dict[str, str]]:
    """The settings after each of a hint's alternatives."""
    assert hint is not None
    found = []
    for alternative in hint.split("  or  "):
        after = dict(settings)
        if match := re.fullmatch(r"SET keyhole\.(\w+) = '?([^']*?)'?;", alternative):
            after[match[1]] = match[2]
        else:
            match = re.fullmatch(r"RESET keyhole\.(\w+);", alternative)
            assert match is not None, alternative
            del after[match[1]]
        found.append(after)
    return found


@in_turn(
    ("sql", "settings", "code"),
    [
        (COUNT, {"mechanism": "svt"}, "KH402"),
        (COUNT, {"mechanism": "svt_generalised", "most_positives": ""}, "KH402"),
        (COUNT, {"mechanism": "keyhole", "most_positives": "3"}, "KH402"),
        (COUNT, {"most_positives": "3"}, "KH402"),
        (COUNT, {"mechanism": "nlm", "public_knowledge": "24 far by 90, 28 near by 75"}, "KH402"),
        (COUNT, {"mechanism": "svt", "most_positives": "0"}, "KH402"),
        (COUNT, {"mechanism": "mim", "public_knowledge": "24 far"}, "KH402"),
        (COUNT, {"mechanism": "mim", "public_knowledge": "24 far by 90, 28 near by 0.5"}, "KH402"),
        (TWO, {"mechanism": "svt", "most_positives": "3"}, "KH303"),
        (COUNT, {"mechanism": "svt", "most_positives": "1000"}, "KH303"),
    ],
)
def test_what_does_not_fit_is_refused_with_hints_that_work(sql: str, settings: dict[str, str], code: str) -> None:
    with pytest.raises(KeyholeError) as refusal:
        with_settings(sql, settings)
    assert refusal.value.code == code
    for after in followed(refusal.value.hint, **settings):
        assert with_settings(sql, after).worst_case_epsilon > 0


@pytest.mark.parametrize(
    ("allowed", "hint"),
    [
        (("svt", "svt_generalised"), "SET keyhole.mechanism = 'svt_generalised';"),
        (("svt", "probe", "keyhole"), "SET keyhole.mechanism = 'keyhole'; RESET keyhole.most_positives;"),
        (("svt", "tslm", "progressive"), "SET keyhole.mechanism = 'progressive'; RESET keyhole.most_positives;"),
        (("svt", "probe"), "Ask the owner to add svt_generalised to [accuracy] mechanisms."),
    ],
)
def test_a_hint_names_only_mechanisms_that_the_policy_allows(allowed: tuple[str, ...], hint: str) -> None:
    strict = replace(retail(), defaults=replace(EVERY_MECHANISM, mechanism="svt", mechanisms=allowed))
    with pytest.raises(KeyholeError, match="KH303") as refusal:
        plan_question(asked(TWO, catalog=strict, mechanism="svt", most_positives="3"), dialect=DUCKDB)
    assert refusal.value.hint == hint


def test_an_unset_limit_is_none_whatever_its_spelling() -> None:
    for value in (None, "", "  "):
        assert read_accuracy({"keyhole.most_positives": value}, EVERY_MECHANISM).most_positives is None
    found = read_accuracy({"keyhole.mechanism": "SVT", "keyhole.most_positives": " 3.0 "}, EVERY_MECHANISM)
    assert (found.mechanism, found.most_positives) == ("svt", 3)


def test_each_limit_is_a_question_of_its_own_and_costs_more_than_a_lower_one() -> None:
    plans = [planned(most_positives=limit) for limit in ("1", "2", "5")]
    assert len({made.fingerprint for made in plans}) == 3
    losses = [made.worst_case_epsilon for made in plans]
    assert losses == sorted(losses)
    assert planned(most_positives="02").fingerprint == plans[1].fingerprint
    assert planned(mechanism="svt_generalised", most_positives="2").fingerprint != plans[1].fingerprint


def test_other_mechanisms_keep_their_fingerprints() -> None:
    plain, reset = asked(COUNT), asked(COUNT, most_positives="", public_knowledge=" ")
    assert plan_question(plain, dialect=DUCKDB).fingerprint == plan_question(reset, dialect=DUCKDB).fingerprint


@pytest.mark.parametrize(("limit", "groups"), [("1", "1 group is"), ("3", "3 groups are")])
def test_the_guarantee_says_what_a_limit_does(limit: str, groups: str) -> None:
    made = planned(most_positives=limit)
    sentence = write_guarantee(made)
    assert "a group that truly qualifies is tested and missed at most 5 % of the time, " in sentence
    assert f"but at most {groups} returned, and any that come later in the order of the keys are missed" in sentence
    assert "one that fails even with 10 % slack is returned at most 10 % of the time" in sentence
    assert "epsilon for all groups together" in sentence
    document = write_guarantee_json(made)
    assert (document["fnr"], document["fpr"], document["most_groups"]) == (None, 0.1, int(limit))
    assert write_guarantee_json(plan_question(asked(COUNT), dialect=DUCKDB))["most_groups"] is None


def test_explain_says_that_the_loss_is_of_all_groups() -> None:
    made = planned(TWO, mechanism="svt_generalised", most_positives="2")
    lines = explain_text(made, left=None)
    assert "epsilon" in lines[2]
    assert "decided together with A" in lines[3]
    assert "with mechanism svt_generalised, for all groups together (ProBE" in lines[4]
    assert "separate sums" not in lines[4]
    assert any("At most 2 groups are returned, in the order of the key domain" in line for line in lines)
    assert any("a privacy unit is charged once" in line for line in lines)
    assert explain_json(made, left=None)["separate_sums_epsilon"] == made.worst_case_epsilon


def test_units_of_different_size_are_decided_together() -> None:
    """The loss is about that of the condition that needs most noise, not of the largest unit at the least tolerance."""
    both = planned(UNITS, mechanism="svt_generalised", most_positives="1").calibration
    task = both.task
    dearest = max(
        GeneralisedSparseVector().calibrate(replace(task, formula=cut)).worst_case_epsilon
        for cut in list_literals(task.formula)
    )
    assert len(task.sensitivities) > 1
    assert dearest <= both.worst_case_epsilon < 1.2 * dearest
