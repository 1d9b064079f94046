"""The corpus under tests/spec: what becomes of every statement, one fingerprint for one question, every code raised."""

import re
from pathlib import Path
from zlib import crc32

import pytest

import planner
from mechanisms.formula import list_literals
from planner.bind.bind_question import bind_question
from planner.errors import CATALOGUE, KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import TODAY, asked
from tests.planner.hints import REFUSING
from tests.planner.rendering import question_text
from tests.planner.spec import SPEC, pairs
from tests.worlds.retail import retail

_FILES = (
    "aggregates.sql",
    "wrappings.sql",
    "joined.sql",
    "written_by_tools.sql",
    "flattened.sql",
    "guards.sql",
    "computed_keys.sql",
    "key_expressions.sql",
    "row_conditions.sql",
    "scorecards.sql",
    "windows.sql",
    "calendars.sql",
)
# What a catalog as in tests cannot raise, with the tests that raise it.
ELSEWHERE = {
    "KH210": "tests/planner/bind/test_question.py",
    "KH213": "tests/planner/bind/test_joins.py",
    "KH214": "tests/planner/question/test_row_work.py",
    "KH301": "tests/end_to_end/answers/test_refusals.py",
    "KH302": "tests/end_to_end/answers/test_refusals.py",
    "KH303": "tests/planner/plan/test_build.py",
    "KH305": "tests/end_to_end/answers/test_refusals.py",
    "KH306": "tests/end_to_end/answers/test_refusals.py",
    "KH307": "tests/end_to_end/spending/test_denial.py",
    "KH308": "tests/proxy/pipeline/test_approval.py",
    "KH309": "tests/proxy/pipeline/test_approval.py",
    "KH310": "tests/proxy/release/test_bounds.py",
    "KH311": "tests/proxy/release/test_bounds.py",
    "KH312": "tests/proxy/release/test_bounds.py",
    "KH313": "tests/proxy/release/test_bounds.py",
    "KH314": "tests/proxy/release/test_diagnosis.py",
    "KH315": "tests/proxy/release/test_diagnosis.py",
    "KH316": "tests/proxy/cli/publish/test_publish.py",
    "KH317": "tests/proxy/release/test_publication.py",
    "KH318": "tests/proxy/pipeline/test_approval.py",
    "KH319": "tests/proxy/pipeline/test_expected_time.py",
    "KH401": "tests/proxy/endpoint/test_login.py",
    "KH405": "tests/proxy/wire/test_startup.py",
    "KH406": "tests/proxy/shadow/test_embedded.py",
    "KH407": "tests/proxy/security/tls/test_logins.py",
    "KH408": "tests/proxy/rest/test_app.py",
    "KH409": "tests/end_to_end/faults/test_cancel.py",
    "KH410": "tests/proxy/endpoint/test_connection_limits.py",
    "KH411": "tests/proxy/process/test_generations.py",
    "KH430": "tests/proxy/rest/test_gate.py",
    "KH431": "tests/proxy/rest/test_idempotency.py",
    "KH432": "tests/proxy/rest/test_idempotency.py",
    "KH501": "tests/proxy/sources/test_sources.py",
    "KH502": "tests/proxy/rest/test_app.py",
    "KH503": "tests/proxy/sources/test_failures.py",
    "KH601": "tests/planner/policy/test_monitors.py",
    "KH602": "tests/planner/monitors/test_refusals.py",
    "KH604": "tests/proxy/monitors/test_clock.py",
    "KH603": "tests/planner/monitors/test_refusals.py",
    "KH605": "tests/proxy/monitors/test_reading.py",
    "KH606": "tests/proxy/monitors/test_looks.py",
    "KH900": "tests/planner/lower/test_scan.py",
}


def _outcome(sql: str) -> str:
    """What becomes of a statement; of one that misses a guard, first where none is added, then where one is."""
    refused = _outcome_with(sql, REFUSING)
    if not refused.startswith("KH206"):
        return refused
    guarded = _outcome_with(sql, {})
    return refused if guarded == refused else f"{refused} else {guarded}"


def _outcome_with(sql: str, settings: dict[str, str]) -> str:
    """The questions of a statement as text, or the refusal's code with the word that it points to. They are planned,
    too, at quick those of every sixth statement."""
    catalog = retail()
    try:
        statement = classify(sql, catalog)
        if not isinstance(statement, Asking):
            return "passed on"
        wanted = read_accuracy(settings, catalog.defaults)
        made = [
            bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
            for part in statement.questions
        ]
    except KeyholeError as error:
        pointed = "" if error.position is None else sql[error.position - 1 :].split()[0]
        return f"{error.code} {pointed}".strip()
    if crc32(sql.encode()) % rounds(1, quick=6) == 0:
        for question in made:
            _check_costs(plan_question(question, dialect=POSTGRES))
    return " & ".join(map(question_text, made))


def _check_costs(made: Plan) -> None:
    """No functional without a literal, no literal without a functional; without either nothing is spent."""
    used = {cut.functional for formula in made.question.formulas for cut in list_literals(formula)}
    assert used | ({0} if made.ranking else set()) >= set(range(len(made.question.functionals)))
    assert used <= set(range(len(made.question.functionals)))
    if made.ranking is None:
        assert (made.worst_case_epsilon > 0) is (bool(used) or made.ranking is not None)


@in_turn(("sql", "outcome"), [pair for name in _FILES for pair in pairs(name)])
def test_statement(sql: str, outcome: str) -> None:
    assert _outcome(sql).strip() == outcome.strip()


def test_one_question_has_one_fingerprint_however_it_is_written() -> None:
    found: dict[str, str] = {}
    for sql, name in pairs("spellings.sql"):
        fingerprint = plan_question(asked(sql), dialect=DUCKDB).fingerprint
        assert found.setdefault(name, fingerprint) == fingerprint, sql
    assert len(set(found.values())) == len(found), "two questions share a fingerprint"


def test_every_spelling_of_a_question_has_a_near_miss() -> None:
    names = [name for _, name in pairs("spellings.sql")]
    assert sum(names.count(name) > 1 for name in set(names)) >= 15
    assert sum(names.count(name) == 1 for name in set(names)) >= 8


def test_the_corpus_is_large() -> None:
    files = (*_FILES, "spellings.sql", "questions.sql", "refused.sql", "passed.sql", "outer.sql")
    statements = [sql for name in files for sql, _ in pairs(name)]
    assert len(statements) >= 500
    assert len({sql for name in (*_FILES, "spellings.sql", "questions.sql") for sql, _ in pairs(name)}) >= 250


def test_every_code_of_a_statement_occurs_or_is_raised_elsewhere() -> None:
    corpus = {outcome.split()[0] for name in (*_FILES, "questions.sql", "refused.sql") for _, outcome in pairs(name)}
    corpus = {code for code in corpus if code.startswith("KH")}
    codes = {code for code in CATALOGUE if not code.startswith("KH0")}  # KH0xx are the policy's
    assert corpus | set(ELSEWHERE) == codes
    assert not corpus & set(ELSEWHERE)
    root = SPEC.parent.parent
    for code, path in ELSEWHERE.items():
        assert code in (root / path).read_text(), (code, path)


def test_the_corpus_has_every_code_that_the_planner_raises() -> None:
    """KH0xx aside, which refuse policies, not statements."""
    raised = set()
    files = list(Path(planner.__path__[0]).rglob("*.py"))
    assert len(files) > 100
    for path in files:
        if path.name != "errors.py":
            raised |= CATALOGUE.keys() & re.findall(r'"(KH\d+)"', path.read_text(encoding="utf-8"))
    corpus = {outcome.split()[0] for name in (*_FILES, "questions.sql", "refused.sql") for _, outcome in pairs(name)}
    assert {code for code in raised if not code.startswith("KH0")} <= corpus | {
        "KH210",
        "KH211",
        "KH213",
        "KH214",
        "KH303",
        "KH601",
        "KH602",
        "KH603",
        "KH604",
        "KH900",
    }


def test_what_can_be_answered_costs_something_or_is_constant() -> None:
    """On the other dialect as well; at quick every eighth statement of the corpus."""
    for sql, outcome in [pair for name in _FILES for pair in pairs(name)][:: rounds(1, quick=8)]:
        if outcome.startswith(("KH", "passed")) or " & " in outcome:
            continue
        made = plan_question(asked(sql), dialect=DUCKDB)
        used = {cut.functional for formula in made.question.formulas for cut in list_literals(formula)}
        assert used == set(range(len(made.question.functionals)))
        assert (made.worst_case_epsilon > 0) is (bool(used) or made.ranking is not None)


@pytest.mark.parametrize(
    ("condition", "fingerprint"),
    [
        ("avg(amount) > (SELECT avg(quantity) FROM sales)", "dc21af02ec942b1e"),
        ("count(*) > 2 * count(DISTINCT customer_id)", "70046471cfd94228"),
    ],
)
def test_stored_answers_are_found_by_later_releases(condition: str, fingerprint: str) -> None:
    """A ledger knows an answered question by its fingerprint. With another one the question would be charged again."""
    sql = f"SELECT month FROM sales GROUP BY month HAVING {condition}"
    statement = classify(sql, retail())
    assert isinstance(statement, Asking)
    accuracy = read_accuracy({}, retail().defaults)
    question = bind_question(statement.questions[0], retail(), accuracy=accuracy, parameters={}, today=TODAY)
    assert plan_question(question, dialect=DUCKDB).fingerprint.startswith(fingerprint)
