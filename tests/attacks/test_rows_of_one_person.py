"""Whether a question is answered does not depend on how many rows one person has in the tables that it joins."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest

from proxy.cli.check import check
from tests.worlds.house import VERIFIER, House, new_database, opened

TABLES = ("vitals", "labs", "notes")
PERSONS = 1_000
OF_ONE = 1_500  # rows of one person in each table, more than three billion joined ones
NOTE = "a" * 500  # a text in which the pattern is looked for as long as any may be
PATTERN = "%" + "a_" * 99 + "b%"
_TABLE = """
[tables.{name}]
privacy_unit = "patient_id"
refresh = "static"
max_groups_per_unit = 2
rows_per_unit = 5
{same}
[tables.{name}.columns.ward]
key = {{ values = ["A", "B"] }}

[tables.{name}.columns.note]
"""
POLICY = """\
[source]
url = "{source}"

[budget]
epsilon_per_predicate = 900
epsilon_per_unit = 900
epsilon_per_query = 100

[limits]
statement_timeout_ms = 20000

[analysts.ada]
password = "{verifier}"
"""
ASKED = (
    "SELECT v.ward FROM vitals v JOIN labs l USING (patient_id) JOIN notes n USING (patient_id)"
    " GROUP BY v.ward HAVING count(*) > 450 ORDER BY 1"
)


def _statements() -> Iterator[str]:
    """Each of 1,000 persons has a row in each table, 900 of them in ward A; one of these has many."""
    for name in TABLES:
        yield f"CREATE TABLE {name} (patient_id integer, ward text, minute integer, note text)"
        yield (
            f"INSERT INTO {name} SELECT g, CASE WHEN g % 10 = 0 THEN 'B' ELSE 'A' END, g, ''"
            f" FROM generate_series(1, {PERSONS}) AS s(g)"
        )
        yield f"INSERT INTO {name} SELECT 1, 'A', g, '{NOTE}' FROM generate_series(1, {OF_ONE}) AS s(g)"


@pytest.fixture(params=["duckdb", "postgres"])
def clinic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """A running house with three tables of the same persons."""
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
            for statement in _statements():
                connection.execute(statement)
        with opened(_policy(tmp_path, "duckdb:///clinic.duckdb")) as house:
            yield house
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url, autocommit=True) as writer:
            for statement in _statements():
                writer.execute(statement.encode())
        with opened(_policy(tmp_path, url)) as house:
            yield house


def _policy(directory: Path, source: str) -> Path:
    path = directory / "keyhole.toml"
    tables = (
        _TABLE.format(name=name, same="" if name == TABLES[0] else f'same_unit_as = "{TABLES[0]}"') for name in TABLES
    )
    path.write_text(POLICY.format(source=source, verifier=VERIFIER) + "".join(tables), encoding="utf-8")
    check(path, confirm=False)
    return path


@pytest.mark.parametrize("clinic", ["duckdb", "postgres"], indirect=True)
def test_a_person_with_many_rows_in_each_table_does_not_end_the_question(clinic: House) -> None:
    """Ward A has 899 rows and one person's, clipped to 125, ward B 100: all beyond the tolerance of 180 about 450.

    At these rates a ward is wrong once in 10^12 runs at most. At the default ones it may be wrong far more often.
    """
    with closing(clinic.connect()) as connection:
        connection.execute(b"SET keyhole.tolerance = '40%'; SET keyhole.fnr = 1e-12; SET keyhole.fpr = 1e-12")
        assert connection.execute(ASKED.encode()).fetchall() == [("A",)]


@pytest.mark.parametrize("clinic", ["duckdb", "postgres"], indirect=True)
def test_nor_does_a_pattern_that_is_dear_on_the_texts_of_one_person(clinic: House) -> None:
    """The pattern takes some .1 ms on each text of the person: read once for each of 1,000,000 joined rows they took
    longer than the timeout. No text has it, so that all rows count."""
    asked = ASKED.replace(" GROUP BY", f" WHERE v.note NOT LIKE '{PATTERN}' GROUP BY")
    with closing(clinic.connect()) as connection:
        connection.execute(b"SET keyhole.tolerance = '40%'; SET keyhole.fnr = 1e-12; SET keyhole.fpr = 1e-12")
        assert connection.execute(asked.encode()).fetchall() == [("A",)]
