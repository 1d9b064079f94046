"""Hints over REST name the fields of a request, with values that can be sent as they stand."""

import json
from dataclasses import replace
from pathlib import Path

from planner.errors import KeyholeError
from planner.statements.settings import SETTINGS
from proxy.rest.field_hints import _FIELDS, write_as_fields
from proxy.rest.models import QuestionIn
from proxy.rest.problems import make_problem
from tests.end_to_end.certainty import asked
from tests.end_to_end.spending.test_levers import ask, poor, refused
from tests.in_turn import in_turn


@in_turn(
    ("hint", "told"),
    [
        ("SET keyhole.tolerance = '13%';", '"tolerance": "13%"'),
        ("SET keyhole.fnr = 0.2;  or  SET keyhole.tolerance = '1%, x=''a''=2';", None),
        ("SET keyhole.min_rows = 620; SET keyhole.tolerance = '25%';", '"min_rows": 620, "tolerance": "25%"'),
        ("SET keyhole.max_epsilon = '';", 'without "max_epsilon"'),
        ("RESET keyhole.most_positives;", 'without "most_positives"'),
        ("Widen keyhole.tolerance, or see keyhole.budget.", "Widen tolerance, or see keyhole.budget."),
        ("SET keyhole.reuse = off;", '"reuse": "off"'),
        ("keyhole grant 0.5 --cap predicate", "keyhole grant 0.5 --cap predicate"),
    ],
)
def test_settings_are_fields(hint: str, told: str | None) -> None:
    assert write_as_fields(hint) == (told or '"fnr": 0.2  or  "tolerance": "1%, x=\'a\'=2"')


def test_every_setting_of_a_question_is_a_field() -> None:
    assert {setting.name.removeprefix("keyhole.") for setting in SETTINGS} == set(_FIELDS)
    assert set(_FIELDS) <= set(QuestionIn.model_fields)


def test_the_hint_of_a_refusal_for_budget_can_be_sent(tmp_path: Path) -> None:
    """The first way of the hint, put into a request, is answered."""
    sql = "SELECT store FROM sales GROUP BY store HAVING count(*) > 60"
    with poor(tmp_path, per_predicate=100.0, per_query=0.5) as service:
        document = make_problem(refused(service, asked(service, sql)))
        first = document["hint"].partition("  or  ")[0]
        question = QuestionIn(**{"sql": sql, **json.loads(f"{{{first}}}")})
        given = question.make_asked(service.find_analyst(None), service, today=asked(service, sql).today)
        ask(service, replace(given))


def test_other_words_of_a_refusal_stay() -> None:
    error = KeyholeError("KH304", "keyhole.tolerance says nothing", hint=None)
    assert make_problem(error)["title"] == "keyhole.tolerance says nothing"
    assert "hint" not in make_problem(error)
