"""tests/spec/followed.sql: every hint in words is followed, and leads to an answer or to what it announced."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from zlib import crc32

import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, Derivation, SqlType, Table
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.classify import ExplainStatement, classify
from planner.statements.kinds import CopyStatement
from planner.statements.settings import read_accuracy
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.aggregates.test_key_thresholds import CATALOG as ROOMS
from tests.planner.asked import TODAY
from tests.planner.hints import CORPUS, INSTEAD, REFUSING, SETTING, is_in_words, shown_atoms
from tests.planner.spec import Followed, followed_hints, pairs
from tests.worlds.retail import SALES, VISITS, retail
from tests.worlds.stays import STAYS, people, stays

_MOST_ELSEWHERE = 4  # hints that nothing typed here can follow: each is a place where Keyhole says no and no more


def _with(catalog: Catalog, table: Table) -> Catalog:
    """The catalog with a table in the place of the one of its name."""
    return replace(catalog, tables=tuple(table if one.name == table.name else one for one in catalog.tables))


def _column(table: Table, changed: Column) -> Table:
    """The table with a column in the place of the one of its name, or added."""
    others = tuple(one for one in table.columns if one.name != changed.name)
    return replace(table, columns=(*others, changed))


def _country_in_regions() -> Catalog:
    catalog = retail()
    (regions,) = catalog.public_tables
    country = Column("country", SqlType.TEXT, "text")
    widened = replace(regions, columns=(*regions.columns, country), rows=tuple((*row, row[0]) for row in regions.rows))
    return replace(catalog, public_tables=(widened,))


def _columns_of_a_view() -> Catalog:
    half = Column("half_age", SqlType.INTEGER, "integer", bounds=(Decimal(0), Decimal(55)), grid=Decimal(1))
    catalog = _with(retail(), _column(VISITS, half))
    return _with(catalog, _column(SALES, Column("customer_name", SqlType.TEXT, "text")))


def _more_keys() -> Catalog:
    weeks = tuple(date(2010, 11, 29) + timedelta(weeks=i) for i in range(54))
    week = Derivation("date_trunc", "week", "invoice_date")
    sales = _column(SALES, Column("week", SqlType.DATE, "date", domain=weeks, derivation=week))
    sales = _column(sales, replace(SALES.get_column("quantity"), domain=tuple(range(1, 6))))
    disease = replace(VISITS.get_column("disease"), domain=("flu", "cold"))
    return _with(_with(retail(), sales), _column(VISITS, disease))


def _coarser_grids() -> Catalog:
    cost = replace(VISITS.get_column("cost"), bounds=(Decimal(0), Decimal(500)), grid=Decimal(5))
    return _with(retail(), _column(VISITS, cost))


def _heights_per_unit() -> Catalog:
    height = replace(STAYS.get_column("height"), per_unit=(Decimal(0), Decimal(60)))
    return _with(stays(), _column(STAYS, height))


CATALOGS = {
    "retail": retail,
    "rooms": lambda: ROOMS,
    "stays": stays,
    "people": people,
    "retail with country in regions": _country_in_regions,
    "retail with columns of a view": _columns_of_a_view,
    "retail with more keys": _more_keys,
    "retail with coarser grids": _coarser_grids,
    "stays with heights per unit": _heights_per_unit,
}


def _outcome(
    sql: str, catalog: Catalog, settings: Mapping[str, str] | None = None, *, is_planned: bool = True
) -> str | KeyholeError:
    try:
        statement = classify(sql, catalog)
        if isinstance(statement, CopyStatement):
            statement = classify(statement.copied_query.query, catalog)
        if not isinstance(statement, Asking | ExplainStatement):
            return "passed on"
        for part in statement.questions:
            assert isinstance(part, EmbeddedQuestion)
            wanted = read_accuracy({**REFUSING, **(settings or {})}, catalog.defaults)
            question = bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
            if is_planned:
                plan_question(question, dialect=POSTGRES)
    except KeyholeError as error:
        return error
    return "answered"


@cache
def _hints() -> dict[tuple[str, str], str]:
    """Every hint of the corpus, by the catalog and the statement that was refused."""
    found: dict[tuple[str, str], str] = {}
    for name, called in CORPUS.items():
        for sql, outcome in pairs(name):
            error = _outcome(sql, CATALOGS[called]()) if outcome.startswith("KH") else None
            if isinstance(error, KeyholeError) and error.hint:
                found[called, sql] = error.hint
    return found


@in_turn("one", followed_hints())
def test_who_follows_a_hint_gets_an_answer_or_what_it_announced(one: Followed) -> None:
    """At quick every third of the questions that are answered is planned."""
    base = one.catalog.partition(" with ")[0]
    assert _hints()[base, one.refused] == one.hint
    if one.outcome == "elsewhere":
        assert not one.written
        return
    is_planned = one.outcome != "answered" or crc32(one.written.encode()) % rounds(1, quick=3) == 0
    found = _outcome(one.written, CATALOGS[one.catalog](), is_planned=is_planned)
    if isinstance(found, KeyholeError):
        assert one.outcome == found.code, found
        assert found.code in one.hint, "a refusal that the hint does not announce"
        return
    assert found == one.outcome


def test_what_is_said_in_words_was_followed() -> None:
    """A new hint in words fails here until tests/spec/followed.sql says where it leads."""
    known = {one.hint for one in followed_hints()}
    missing = {hint: sql for (_, sql), hint in _hints().items() if is_in_words(hint) and hint not in known}
    assert not missing, missing
    assert sum(one.outcome == "elsewhere" for one in followed_hints()) <= _MOST_ELSEWHERE


def test_what_a_hint_shows_as_a_statement_is_accepted_as_it_stands() -> None:
    """Over every catalog: `SELECT ...;` and `EXPLAIN ...;`, or several of them with "or" between."""
    hints = ((called, hint.removeprefix(INSTEAD)) for (called, _), hint in _hints().items())
    shown = [(called, hint) for called, hint in hints if hint.startswith(("SELECT ", "WITH ", "EXPLAIN "))]
    failed = [
        (way, found)
        for called, hint in dict.fromkeys(shown)
        for way in hint.split("  or  ")
        if isinstance(found := _outcome(way.rstrip(";"), CATALOGS[called]()), KeyholeError)
    ]
    assert not failed, failed
    assert len(shown) >= 40


_STATION = Column("Station", SqlType.TEXT, "text", domain=("A", "B"))
_SIZE = Column("Größe", SqlType.INTEGER, "integer", bounds=(Decimal(0), Decimal(250)), grid=Decimal(1))
_CAPITALS = replace(retail(), tables=(replace(VISITS, columns=(*VISITS.columns, _STATION, _SIZE)),))


@pytest.mark.parametrize(
    ("having", "hint"),
    [
        (
            'max("Größe") - min("Größe") > 5',
            'GROUP BY "Station" HAVING max("Größe") > 122 + 5 AND min("Größe") <= 122;',
        ),
        (
            'sum(DISTINCT "Größe") > 5',
            'Instead you can ask: count("Größe") > 40, or sum(x) or avg(x) of a column x that has bounds.',
        ),
        (
            'corr("Größe", person) > 0.5',
            '> avg("Größe") FILTER (WHERE person <= 10), with a middle value of person in the place of 10.',
        ),
        ('stddev_pop(DISTINCT "Größe") > 2', 'Compare it alone: stddev_pop("Größe") > 10.'),
        ('stddev_pop("Größe") > 0', 'Ask count(DISTINCT "Größe") > 1.'),
        ('avg("Größe") <= 2', 'Add: AND count("Größe") >= 50'),
        ("count(*) FILTER (WHERE größe > 3) > 40", 'Perhaps you meant "Größe".'),
        ("max(\"Station\") > 'b'", 'Use =, <>, IN or LIKE on "Station".'),
    ],
)
def test_names_in_hints_are_quoted_where_they_must_be(having: str, hint: str) -> None:
    asked = f'SELECT "Station" FROM visits GROUP BY "Station" HAVING {having}'
    found = _outcome(asked, _CAPITALS)
    assert isinstance(found, KeyholeError)
    assert found.hint is not None
    assert found.hint.endswith(hint)
    for atom in shown_atoms(hint):
        assert _outcome(f'SELECT "Station" FROM visits GROUP BY "Station" HAVING {atom}', _CAPITALS) == "answered"


def test_a_hint_about_an_open_range_quotes_its_column() -> None:
    column = Column("Aufnahme", SqlType.TIMESTAMP, "timestamp without time zone")
    catalog = replace(retail(), tables=(replace(VISITS, columns=(*VISITS.columns, column)),))
    found = _outcome("""SELECT date_trunc('week', "Aufnahme") FROM visits GROUP BY 1 HAVING count(*) > 50""", catalog)
    assert isinstance(found, KeyholeError)
    assert found.hint == """Restrict it: WHERE "Aufnahme" >= '2026-01-01' AND "Aufnahme" < '2027-01-01'."""


def test_what_a_hint_says_to_set_answers_what_was_refused() -> None:
    """Over the catalogs beside retail, whose hints test_hints.py follows."""
    ways = {key: SETTING.findall(hint) for key, hint in _hints().items() if key[0] != "retail"}
    ways = {key: shown for key, shown in ways.items() if shown}
    assert ways
    for (called, sql), shown in ways.items():
        given = dict(statement.rstrip(";").removeprefix("SET ").split(" = ", 1) for statement in shown)
        settings = {name: value.strip("'").replace("''", "'") for name, value in given.items()}
        assert _outcome(sql, CATALOGS[called](), settings) == "answered", (sql, settings)
