"""Every hint of the refusals in the corpus that shows what to type: that is typed, and planned."""

import re
from dataclasses import replace
from functools import cache
from math import inf

import pytest

from mechanisms.formula import AllOf
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.functionals.cell_readings import reads_cells
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.question import Question
from planner.statements.classify import KeyholeSetting, PassThrough, Statement, classify
from planner.statements.settings import read_accuracy
from tests.effort import rounds
from tests.planner.asked import TODAY, all_hold, asking
from tests.planner.hints import CORPUS, REFUSING, shown_atoms, shown_condition, shown_statements
from tests.planner.spec import pairs
from tests.worlds.retail import retail
from tests.worlds.stays import stays

_IN_PREDICATE = "Add to this predicate: AND "


def _refused(sql: str, settings: dict[str, str]) -> KeyholeError | None:
    """The refusal of a statement, of a question in it or of its plan."""
    catalog = retail()
    try:
        statement: Statement = classify(sql, catalog)
        for part in statement.questions if isinstance(statement, Asking) else ():
            wanted = read_accuracy({**REFUSING, **settings}, catalog.defaults)
            question = bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY)
            plan_question(question, dialect=POSTGRES)
    except KeyholeError as error:
        return error
    return None


@cache
def _refusals() -> list[tuple[str, KeyholeError]]:
    """Every refused statement with its refusal; found by the first test that asks, as not every process runs these."""
    statements = dict.fromkeys(
        sql
        for name, called in CORPUS.items()
        if called == "retail"
        for sql, outcome in pairs(name)
        if outcome.startswith("KH")
    )
    return [(sql, error) for sql in statements if (error := _refused(sql, {})) is not None]


def _around(sql: str) -> str:
    """The refused question's table and key, for an atom that a hint shows."""
    found = re.search(r"FROM\s+(\w+)", sql)
    table = found.group(1) if found else "visits"
    key = {"visits": "ward"}.get(table, "month")
    return f"SELECT {key} FROM {table} GROUP BY {key} HAVING "


def _with_setting(shown: str, catalog: Catalog) -> dict[str, str]:
    statement = classify(shown.rstrip(";"), catalog)
    if isinstance(statement, PassThrough):
        assert shown.startswith("RESET")
        return {}
    assert isinstance(statement, KeyholeSetting)
    assert statement.value_text is not None
    return {statement.name: statement.value_text}


def test_a_shown_statement_is_accepted_and_a_shown_setting_is_the_way_out() -> None:
    """At quick of every sixth refusal."""
    shown = [(sql, error) for sql, error in _refusals() if shown_statements(error.hint or "")]
    all_hold(_is_a_way_out, shown[:: rounds(1, quick=6)])


def _is_a_way_out(sql: str, error: KeyholeError) -> None:
    """Settings leave no refusal of the refused statement but one that shows what to add, which is then accepted; those
    that are joined by "and" are set together. A SET that was itself refused is valid."""
    for way in re.split(r"(?:^|  )or  ", error.hint or ""):
        shown = shown_statements(way)
        for statement in shown:
            if statement.startswith("SELECT"):
                assert _refused(statement.rstrip(";"), {}) is None, statement
        settings: dict[str, str] = {}
        for statement in shown:
            if not statement.startswith("SELECT"):
                settings |= _with_setting(statement, retail())
        read_accuracy(settings, retail().defaults)
        if settings and not sql.upper().startswith(("SET ", "RESET ")):
            again = _refused(_with_guards(sql, settings), settings)
            assert again is None, (way, again)


def _with_guards(sql: str, settings: dict[str, str]) -> str:
    """The statement with the counts that refusals KH206 ask for, one after the other; they name no further setting."""
    for _ in range(4):
        error = _refused(sql, settings)
        if error is None or error.code != "KH206":
            break
        if _IN_PREDICATE in (error.hint or ""):
            shown, source, rest = sql.partition(" FROM ")  # the predicate is the last item
            guard = (error.hint or "").partition(_IN_PREDICATE)[2].partition("  Or ")[0]
            sql = f"{shown} AND {guard}{source}{rest}"
            continue
        setting, _, guard = (error.hint or "").partition("Add: AND ")
        assert not setting, error.hint
        before, having, formula = sql.rpartition(" HAVING ")
        sql = f"{before}{having}{guard} AND ({formula})"
    return sql


def _added() -> list[tuple[str, KeyholeError]]:
    return [(sql, error) for sql, error in _refusals() if "Add: " in (error.hint or "")]


def test_what_a_hint_says_to_add_guards_the_question_at_a_price_that_can_be_paid() -> None:
    """At quick of every sixth refusal."""
    all_hold(_guards_at_a_price, _added()[:: rounds(1, quick=6)])


def _guards_at_a_price(sql: str, refusal: KeyholeError) -> None:
    """One hint after the other, until the question is accepted; it then fits one question's budget with some tolerance,
    unless it takes half of that without what was added.
    """
    settings: dict[str, str] = {}
    added, error = 0, refusal
    while True:
        assert error.code == "KH206"
        assert added < 4, sql
        setting, _, guard = (error.hint or "").partition("Add: AND ")
        before, having, formula = sql.rpartition(" HAVING ")
        if having:
            sql = f"{before}{having}{guard} AND ({formula})"
        else:  # the WHERE around a subquery is refused, whose groups the count chooses
            grouped, closing, around = sql.partition(") q WHERE ")
            sql = f"{grouped} HAVING {guard}{closing}{around}"
        if setting:
            settings |= _with_setting(setting.removeprefix("First ").strip(), retail())
        added += 1
        again = _refused(sql, settings)
        if again is None:
            break
        error = again
    budget = retail().budget.per_query
    fits = _costs(sql, settings) <= budget
    assert fits or _costs(sql, settings, without=added) > budget / 2, (sql, settings)


def _costs(sql: str, settings: dict[str, str], *, without: int = 0) -> float:
    """The least that a question costs with a tolerance up to 100 %, `without` its first conjuncts."""
    catalog, least = retail(), inf
    _, _, named = settings.get("keyhole.tolerance", "10%").partition(", ")
    for percent in (10, 20, 50, 100):
        wanted = read_accuracy(
            settings | {"keyhole.tolerance": f"{percent}%{', ' if named else ''}{named}"}, catalog.defaults
        )
        statement = classify(sql, catalog)
        assert isinstance(statement, Asking)
        question = bind_question(statement.questions[0], catalog, accuracy=wanted, parameters={}, today=TODAY)
        formula = question.formula
        for _ in range(without):
            assert isinstance(formula, AllOf)
            formula = AllOf(formula.children[1:])
        try:
            least = min(least, plan_question(replace(question, formula=formula), dialect=POSTGRES).worst_case_epsilon)
        except KeyholeError:
            continue
    return least


def _with_atoms() -> list[tuple[str, KeyholeError]]:
    return [(sql, error) for sql, error in _refusals() if shown_atoms(error.hint or "")]


def test_a_shown_atom_is_accepted_on_the_same_table() -> None:
    all_hold(_is_accepted, _with_atoms())


def _is_accepted(sql: str, error: KeyholeError) -> None:
    for atom in shown_atoms(error.hint or ""):
        again = _refused(_around(sql) + atom, {})
        assert again is None, (atom, again)


def test_a_shown_condition_is_accepted_and_in_the_words_of_the_refused_one() -> None:
    shown = [(sql, found) for sql, error in _refusals() if (found := shown_condition(error.hint or "")) is not None]
    assert len(shown) >= 5
    all_hold(_keeps_the_words, shown)


def _keeps_the_words(sql: str, condition: str) -> None:
    before, _, _ = _around(sql).partition(" GROUP BY ")
    assert _refused(f"{before} WHERE {condition} GROUP BY {before.split()[1]} HAVING count(*) > 40", {}) is None
    column = re.findall(r"\w+", condition)[0]
    assert column in sql


def test_a_private_table_outside_a_question_is_asked_about_by_a_key_that_the_text_names() -> None:
    error = _refused("SELECT 1 WHERE EXISTS (SELECT amount, month FROM sales)", {})
    assert error is not None
    assert error.hint == "Instead you can ask: SELECT month FROM sales GROUP BY month HAVING count(*) > 1000;"
    other = _refused("SELECT 1 WHERE EXISTS (TABLE sales)", {})
    assert other is not None
    assert other.hint == "Instead you can ask: SELECT country FROM sales GROUP BY country HAVING count(*) > 1000;"


def test_few_refusals_say_nothing_to_do() -> None:
    """Where the message alone says it: a constant of the wrong type, text that cannot be parsed."""
    silent = {error.code for _, error in _refusals() if error.hint is None}
    assert silent <= {"KH100", "KH103", "KH201", "KH202", "KH204", "KH208", "KH212"}, silent


def test_the_corpus_shows_hints_of_every_kind() -> None:
    assert len(_added()) >= 12
    assert len(_with_atoms()) >= 12
    assert sum(bool(shown_statements(error.hint or "")) for _, error in _refusals()) >= 25


def test_a_total_of_units_counts_each_once_for_up_to_twelve_groups() -> None:
    """A unit of more groups cannot be divided over them. The hint asks for the sum over groups, which is another."""
    catalog, units = stays(), "count(DISTINCT patient_id)"
    crowded = replace(catalog, tables=tuple(replace(one, groups_per_unit=13) for one in catalog.tables))
    question = f"SELECT ward, day FROM stays GROUP BY ward, day HAVING {units} > 0.2 * "

    def bind(sql: str, among: Catalog) -> Question:
        accuracy = read_accuracy({}, catalog.defaults)
        return bind_question(asking(sql, among).questions[0], among, accuracy=accuracy, parameters={}, today=TODAY)

    assert reads_cells(bind(f"{question}(SELECT {units} FROM stays)", catalog))
    with pytest.raises(KeyholeError, match="KH204") as refused:
        bind(f"{question}(SELECT {units} FROM stays)", crowded)
    (instead,) = re.findall(r"sum\(.*\) OVER \(\)", refused.value.hint or "")
    assert reads_cells(bind(question + instead, crowded))


def test_a_number_in_the_place_of_a_median_lies_where_medians_do() -> None:
    """It is within the bounds of the column."""
    median = "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)"
    for compared, number in (
        (f"{median} > (SELECT {median} FROM sales)", "250"),
        (f"max(amount) < (SELECT {median} FROM sales)", "250"),
        ("max(amount) > (SELECT max(amount) FROM sales)", "250"),
    ):
        error = _refused(f"SELECT month FROM sales GROUP BY month HAVING {compared}", {})
        assert error is not None, compared
        assert (error.hint or "").endswith(f" {number};"), error.hint


def test_who_sorts_by_other_groups_is_told_that_they_are_compared_alone() -> None:
    sizes = "SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month"
    for sql, is_told in (
        (f"SELECT month FROM ({sizes}) q ORDER BY n - b", True),
        ("SELECT count(*) FROM sales", False),
    ):
        error = _refused(sql, {})
        assert error is not None
        assert ("other groups" in (error.detail or "")) is is_told, error
