"""Parameters of stored questions: typed constants that a session may set, refused where they are anything else."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, StoredParameter, StoredQuestion, Value
from planner.catalog.fault import Fault
from planner.errors import KeyholeError
from planner.plan.question_identity import find_fingerprint
from planner.policy.stored_questions import number_parameters
from planner.question.question import Question
from planner.scope.embedded import EmbeddedQuestion
from planner.statements import stored_parameters
from planner.statements.classify import KeyholeSetting, classify
from planner.statements.settings import read_accuracy
from planner.statements.stored_parameters import check_parameter, fill_in_defaults, list_settings, read_parameters
from tests.planner.asked import TODAY, asking
from tests.worlds.retail import retail

DEFAULTS: dict[str, Value] = {
    "threshold": 40,
    "age": Decimal("65.5"),
    "insured": True,
    "since": date(2026, 1, 3),
    "disease": "it's",
}
SQL = (
    "SELECT ward FROM visits WHERE age > :age AND insured = :insured AND day >= :since::date AND disease = :disease "
    "GROUP BY ward HAVING count(*) > :threshold AND count(age) > :threshold"
)
SETTING = "keyhole.param.crowded.threshold"


def _catalog(sql: str = SQL, defaults: dict[str, Value] | None = None) -> Catalog:
    defaults = DEFAULTS if defaults is None else defaults
    parameters = tuple(StoredParameter(name, value) for name, value in defaults.items())
    return replace(
        retail(), stored_questions=(StoredQuestion("crowded", number_parameters(sql, defaults), parameters=parameters),)
    )


def _question(**settings: str) -> Question:
    catalog = _catalog()
    (question,) = asking("SELECT * FROM crowded", catalog).questions
    values = read_parameters(question, {f"keyhole.param.crowded.{name}": value for name, value in settings.items()})
    return bind_question(
        question, catalog, accuracy=read_accuracy({}, catalog.defaults), parameters=values, today=TODAY
    )


def test_defaults_are_the_constants_of_the_question() -> None:
    by_hand = (
        SQL.replace(":threshold", "40")
        .replace(":age", "65.5")
        .replace(":insured", "true")
        .replace(":since", "'2026-01-03'")
        .replace(":disease", "'it''s'")
    )
    (question,) = asking(by_hand).questions
    asked = bind_question(question, retail(), accuracy=read_accuracy({}, retail().defaults), parameters={}, today=TODAY)
    assert find_fingerprint(_question()) == find_fingerprint(asked)


@pytest.mark.parametrize(
    ("name", "value"),
    [("threshold", "60"), ("age", "70"), ("insured", "off"), ("since", "2026-01-05"), ("disease", "flu")],
)
def test_a_session_s_value_makes_another_question(name: str, value: str) -> None:
    assert find_fingerprint(_question(**{name: value})) != find_fingerprint(_question())
    assert find_fingerprint(_question(**{name: ""})) == find_fingerprint(_question())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", "60.5"),
        ("threshold", "1; SELECT 1"),
        ("threshold", "1 OR true"),
        ("age", "NaN"),
        ("age", "1e9"),
        ("insured", "maybe"),
        ("since", "yesterday"),
        ("disease", "\x00"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: str) -> None:
    with pytest.raises(KeyholeError, match="KH402") as error:
        _question(**{name: value})
    hint = error.value.hint or ""
    assert isinstance(classify(hint, _catalog()), KeyholeSetting)


def test_a_text_is_a_constant_whatever_it_holds() -> None:
    assert "' OR true --" in fingerprint_text(_question(disease="' OR true --"))


def fingerprint_text(question: Question) -> str:
    return repr(question.where)


def test_set_is_checked_when_it_is_typed() -> None:
    catalog = _catalog()
    assert classify(f"SET {SETTING} = 60", catalog) == KeyholeSetting(SETTING, "60", is_local=False)
    assert classify(f"SET LOCAL {SETTING} TO DEFAULT", catalog) == KeyholeSetting(SETTING, None, is_local=True)
    for bad, code in (("= 'x'", "KH402"), ("= -x", "KH402")):
        with pytest.raises(KeyholeError, match=code):
            classify(f"SET {SETTING} {bad}", catalog)
    with pytest.raises(KeyholeError, match="KH403"):
        check_parameter("keyhole.param.crowded.nope", "1", catalog)
    with pytest.raises(KeyholeError, match="KH403"):
        check_parameter("keyhole.param.busy.threshold", None, retail())
    read_accuracy({SETTING: "60"}, catalog.defaults)


def test_settings_and_meanings() -> None:
    assert list_settings(_catalog()) == {
        "keyhole.param.crowded.threshold": "40",
        "keyhole.param.crowded.age": "65.5",
        "keyhole.param.crowded.insured": "true",
        "keyhole.param.crowded.since": "2026-01-03",
        "keyhole.param.crowded.disease": "it's",
    }
    assert (
        stored_parameters.list_meanings(_catalog())[SETTING]
        == "parameter of the stored question crowded, a whole number"
    )


def test_the_shadow_sees_the_defaults() -> None:
    (stored,) = _catalog().stored_questions
    assert fill_in_defaults(stored) == SQL.replace(":threshold", "(40)").replace(":age", "(65.5)").replace(
        ":insured", "true"
    ).replace(":since", "date '2026-01-03'").replace(":disease", "'it''s'")


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT :a", []),
        ("SELECT 1", ["a"]),
        ("SELECT $1, :a", ["a"]),
        ("SELECT :b", ["a"]),
    ],
)
def test_undeclared_and_unused_names_are_faults(sql: str, names: list[str]) -> None:
    with pytest.raises(Fault):
        number_parameters(sql, names)


def test_strings_comments_and_casts_hold_no_parameters() -> None:
    sql = "SELECT ':a' AS \":a\", x::a /* :a */ -- :a\n, $$:a$$, y > :a"
    assert number_parameters(sql, ["a"]) == sql.replace("> :a", "> $1")


def test_a_parameter_outside_where_and_having_is_refused() -> None:
    catalog = _catalog("SELECT ward, :x FROM visits GROUP BY ward HAVING count(*) > 5", {"x": 1})
    with pytest.raises(KeyholeError, match="KH106"):
        classify("SELECT * FROM crowded", catalog)


def test_the_client_s_own_parameters_are_not_the_owner_s() -> None:
    statement = asking("SELECT * FROM crowded WHERE ward > $1", _catalog())
    (question,) = statement.questions
    assert isinstance(question, EmbeddedQuestion)
    assert dict(read_parameters(question, {})) == dict(enumerate(DEFAULTS.values(), start=1))
