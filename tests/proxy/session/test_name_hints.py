"""PostgreSQL's errors about names come with the nearest name that the analyst may read, or with the quotes to write."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from planner.catalog.catalog import Catalog, Column, SqlType
from tests.proxy.conftest import Running
from tests.worlds.countries import endpoint_catalog

ASKED, GROUPED = "SELECT country FROM visits", "GROUP BY country HAVING"
JOIN = "sex lies in stays: add JOIN stays USING (patient_id) after visits."
ROWS = "A condition on rows stands in WHERE."
CASES = (
    ("ada", "SELECT * FROM region", "42P01", "Perhaps you meant regions."),
    ("ada", 'SELECT * FROM public."Regions"', "42P01", "Perhaps you meant regions."),
    ("ada", "SELECT country FROM sale GROUP BY country HAVING count(*) > 20", "42P01", "Perhaps you meant sales."),
    ("ada", "SELECT * FROM bussy", "42P01", "Perhaps you meant busy."),
    ("ada", "SELECT * FROM patient_files", "42P01", 'Perhaps you meant "Patient Files".'),
    ("ada", "SELECT * FROM budgets", "42P01", "Perhaps you meant keyhole.budget."),
    ("ada", "SELECT * FROM crowdet", "42P01", "Perhaps you meant crowded."),
    ("bob", "SELECT * FROM crowdet", "42P01", None),
    ("ada", "SELECT * FROM zzzzz", "42P01", None),
    ("ada", "SELECT contry_name FROM regions", "42703", "Perhaps you meant country."),
    ("ada", "SELECT contry FROM regions", "42703", 'Perhaps you meant to reference the column "regions.country".'),
    ("ada", "SELECT * FROM regions WHERE country = zzzzz", "42703", None),
    ("ada", 'SELECT * FROM regions WHERE country = "nörth"', "42703", "A text is written in single quotes: 'nörth'."),
    (
        "ada",
        'SELECT country FROM sales WHERE country = "It\'s" GROUP BY country HAVING count(*) > 20',
        "42703",
        "A text is written in single quotes: 'It''s'.",
    ),
    (
        "ada",
        'SELECT 1; SELECT country FROM sales WHERE country = "x" GROUP BY country HAVING count(*) > 20',
        "42703",
        "A text is written in single quotes: 'x'.",
    ),
    (
        "ada",
        'SELECT 1 FROM "Patient Files" WHERE risk score > 5',
        "42601",
        'Write the name in double quotes: "Risk Score".',
    ),
    ("ada", "SELECT 1 FROM patient files f", "42601", 'Write the name in double quotes: "Patient Files".'),
    ("ada", f"{ASKED} WHERE sex = 'f' {GROUPED} count(*) > 20", "42703", JOIN),
    ("ada", f"{ASKED} AS v {GROUPED} count(sex) > 20", "42703", JOIN.replace("visits.", "v.")),
    (
        "ada",
        f'{ASKED} WHERE country = "amounts" {GROUPED} count(*) > 20',
        "42703",
        "A text is written in single quotes: 'amounts'.",
    ),
    (
        "ada",
        f'{ASKED} WHERE "amounts2" = 5 {GROUPED} count(*) > 20',
        "42703",
        'Perhaps you meant to reference the column "visits.amount".',
    ),
    ("ada", f"{ASKED} {GROUPED} amount > 5", "42803", f"HAVING compares aggregates, such as sum(amount). {ROWS}"),
    (
        "ada",
        f"{ASKED} {GROUPED} count(*) > 5 AND patient_id > 5",
        "42803",
        f"HAVING compares aggregates, such as count(*). {ROWS}",
    ),
    ("ada", "SELECT country, region FROM regions GROUP BY country", "42803", None),
    ("ada", f"{ASKED} WHERE count(*) > 5 GROUP BY country", "42803", "A condition on an aggregate stands in HAVING."),
    (
        "ada",
        f"{ASKED} {GROUPED} count(*) > 2 * avg(count(*)) OVER () AND count(*) > 20 ORDER BY country",
        "42P20",
        "Instead you can ask: SELECT country FROM (SELECT country, count(*) AS n, avg(count(*)) OVER () AS w "
        "FROM visits GROUP BY country) AS q WHERE n > 2 * w AND n > 20 ORDER BY country;",
    ),
    (
        "ada",
        "SELECT country FROM regions WHERE rank() OVER (ORDER BY country) < 3",
        "42P20",
        "Name the window in a subquery, and compare it in the WHERE of the query around.",
    ),
    (
        "ada",
        f"SELECT country, count(*) AS n FROM visits {GROUPED} n > 20 AND sum(amount) > 5",
        "42703",
        f"{ASKED} {GROUPED} count(*) > 20 AND sum(amount) > 5;",
    ),
    ("ada", 'SELECT "Risk Score" score score FROM "Patient Files"', "42601", None),
    ("ada", f'SELECT * FROM regions WHERE country = {"/**/" * 600} "north"', "42703", None),  # too long to be held
)


@pytest.fixture
def catalog() -> Catalog:
    """With names that have blanks, of which the shadow knows nothing: what is told of them is Keyhole's alone."""
    usual = endpoint_catalog()
    files = replace(
        usual.tables[0],
        name="Patient Files",
        columns=(replace(usual.tables[0].columns[1], name="Risk Score"),),
    )
    sales, visits = usual.tables
    country = visits.columns[1]
    country = replace(country, domain=(*(country.domain or ()), "amounts"))
    visits = replace(visits, columns=(visits.columns[0], country, *visits.columns[2:]))
    sex = Column("sex", SqlType.TEXT, "text")
    stays = replace(visits, name="stays", relation="stays", columns=(visits.columns[0], sex), root=visits.ledger_root)
    return replace(usual, tables=(sales, visits, stays, files))


def test_an_error_about_a_name_has_a_hint_of_what_may_be_meant(running: Running) -> None:
    """In both protocols, in UTF-8 and in LATIN1."""
    for user in ("ada", "bob"):
        with psycopg.connect(running.conninfo(user=user), autocommit=True) as connection:
            for encoding in ("UTF8", "LATIN1"):
                connection.execute(f"SET client_encoding = '{encoding}'".encode())
                for _, sql, sqlstate, hint in [case for case in CASES if case[0] == user]:
                    for prepare in (False, True):
                        if prepare and sql.startswith("SELECT 1;"):
                            continue
                        with pytest.raises(psycopg.Error) as caught:
                            connection.execute(sql.encode(connection.info.encoding), prepare=prepare)
                        told = caught.value.diag
                        assert (told.sqlstate, told.message_hint) == (sqlstate, hint), sql
            connection.execute("SET search_path = keyhole")
            with pytest.raises(psycopg.errors.UndefinedTable) as caught:
                connection.execute("SELECT * FROM regions")
            assert caught.value.diag.message_hint == "Perhaps you meant public.regions."


def test_the_hint_stands_in_the_message_for_who_wants_it(running: Running) -> None:
    asked, told, hint = "SELECT * FROM region", 'relation "region" does not exist', "Perhaps you meant regions."

    def message(connection: psycopg.Connection[Any]) -> str | None:
        with pytest.raises(psycopg.errors.UndefinedTable) as caught:
            connection.execute(asked)
        assert caught.value.diag.message_hint == hint
        return caught.value.diag.message_primary

    with psycopg.connect(running.conninfo(), autocommit=True) as connection:
        for prepare in (False, True):
            for value, ending in (
                ("= on", f". Hint: {hint}"),
                ("TO 'off'", ""),
                ("=ON", f". Hint: {hint}"),
                ("TO DEFAULT", ""),
            ):
                connection.execute(f"SET keyhole.hint_in_message {value}".encode(), prepare=prepare)
                assert message(connection) == told + ending
    at_start = running.conninfo(extra="options='-c keyhole.hint_in_message=on'")
    with psycopg.connect(at_start, autocommit=True) as connection:
        assert message(connection) == f"{told}. Hint: {hint}"
        connection.execute("SET keyhole.hint_in_message = off")
        assert message(connection) == told
        connection.execute("RESET keyhole.hint_in_message")
        assert message(connection) == f"{told}. Hint: {hint}"
