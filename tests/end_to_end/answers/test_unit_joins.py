"""Private tables joined on their unit, through the endpoint: answers, names, data versions, and the ledger."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from proxy.cli.check import check, refresh
from tests.worlds.house import VERIFIER, House, new_database, opened, unchanged

STATEMENTS = (
    "CREATE TABLE stays (patient_id integer, ward text, cost integer)",
    "INSERT INTO stays SELECT g, CASE WHEN g % 4 = 0 THEN 'B' ELSE 'A' END, 10 FROM generate_series(1, 4000) AS s(g)",
    "INSERT INTO stays SELECT NULL, 'C', 10 FROM generate_series(1, 4000) AS s(g)",
    "CREATE TABLE patients (person integer, sex text, ward text)",
    "INSERT INTO patients SELECT g, CASE WHEN g % 4 = 0 THEN 'f' ELSE 'm' END, 'C'"
    " FROM generate_series(1, 6000) AS s(g)",
    "INSERT INTO patients SELECT NULL, 'f', 'C' FROM generate_series(1, 4000) AS s(g)",
)
POLICY = """\
[source]
url = "{source}"

[budget]
epsilon_per_predicate = {per_predicate}
epsilon_per_unit = 900
epsilon_per_query = 100

[server]
database = "shop"

[tables.stays]
privacy_unit = "patient_id"
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 1

[tables.stays.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[tables.stays.columns.cost]
bounds = [0, 20]
per_unit = [0, 20]

[tables.patients]
privacy_unit = "person"
max_groups_per_unit = 1
rows_per_unit = 1
same_unit_as = "stays"
refresh = "explicit"

[tables.patients.columns.sex]
key = {{ values = ["f", "m"] }}

[tables.patients.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[analysts.ada]
password = "{verifier}"
"""
FEMALE = (
    "SELECT s.ward FROM stays s JOIN patients p ON p.person = s.patient_id"
    " WHERE p.sex = '{}' GROUP BY s.ward HAVING count(*) > 400"
)


def _policy(directory: Path, source: str, *, per_predicate: float = 900) -> Path:
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(source=source, verifier=VERIFIER, per_predicate=per_predicate), encoding="utf-8")
    check(path, confirm=False)
    return path


def _refusal(connection: psycopg.Connection[Any], sql: str) -> str | None:
    try:
        connection.execute(sql.encode())
    except psycopg.Error as error:
        return str(error)
    return None


def _in_duckdb(directory: Path) -> str:
    with duckdb.connect(str(directory / "clinic.duckdb")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
    return "duckdb:///clinic.duckdb"


@pytest.fixture(params=["duckdb", "postgres"])
def clinic(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    if request.param == "duckdb":
        with opened(_policy(tmp_path, _in_duckdb(tmp_path))) as house:
            yield house
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in STATEMENTS:
                connection.execute(statement.encode())
        with opened(_policy(tmp_path, url)) as house:
            yield house


@contextmanager
def spending_nothing(house: House) -> Iterator[None]:
    before = house.most_spent("stays")
    yield
    assert house.most_spent("stays") == before


ASKED = [
    (FEMALE.format("f"), ["ward"], [("B",)]),
    (FEMALE.format("m") + " ORDER BY s.ward", ["ward"], [("A",)]),
    (
        "SELECT sex, stays.ward AS place FROM patients, stays WHERE person = patient_id GROUP BY 1, stays.ward"
        " HAVING count(DISTINCT person) > 400 ORDER BY 1",
        ["sex", "place"],
        [("f", "B"), ("m", "A")],
    ),
    (
        "SELECT q.ward, count(*) FROM (SELECT p.ward FROM stays s JOIN patients p ON s.patient_id = p.person"
        " GROUP BY p.ward HAVING sum(cost) > 9000) q GROUP BY q.ward",
        ["ward", "count"],
        [("C", 1)],
    ),
    (
        "SELECT sex FROM patients LEFT JOIN stays ON person = patient_id GROUP BY sex HAVING count(cost) > 500"
        " ORDER BY sex",
        ["sex"],
        [("f",), ("m",)],
    ),
    (
        "SELECT sex FROM patients RIGHT JOIN stays ON person = patient_id GROUP BY 1 HAVING count(*) > 2000",
        ["sex"],
        [("m",)],
    ),
]


@pytest.mark.parametrize("clinic", ["duckdb", "postgres"], indirect=True)
def test_the_true_keys_are_returned(clinic: House) -> None:
    """All counts are 500 away from their thresholds or more, hundreds of times the noise's scale."""
    with clinic.connect() as connection:
        for sql, names, rows in ASKED:
            cursor = connection.execute(sql.encode())
            assert cursor.description is not None
            assert [column.name for column in cursor.description] == names
            assert cursor.fetchall() == rows


def test_a_stored_answer_lasts_until_either_table_is_refreshed(tmp_path: Path) -> None:
    policy = _policy(tmp_path, _in_duckdb(tmp_path))
    with opened(policy) as house, house.connect() as connection:
        first = connection.execute(FEMALE.format("f").encode()).fetchall()
        with spending_nothing(house):
            assert connection.execute(FEMALE.format("f").encode()).fetchall() == first
        refresh(policy, "patients")
        before = house.most_spent("stays")
        assert connection.execute(FEMALE.format("f").encode()).fetchall() == first
        assert house.most_spent("stays") > before


def test_a_join_spends_what_is_left_of_the_tables_cells(tmp_path: Path) -> None:
    """A group that single tables have used up has nothing left for a join with another one, and no row is counted."""
    policy = _policy(tmp_path, _in_duckdb(tmp_path), per_predicate=0.5)
    with opened(policy) as house, house.connect() as connection:
        connection.execute("SET keyhole.reuse = off")
        asked = (f"SELECT ward FROM stays GROUP BY ward HAVING count(*) > {n}" for n in range(400, 430))
        assert _refusal(connection, next(asked)) is None
        assert "KH301" in next(told for sql in asked if (told := _refusal(connection, sql)) is not None)
        with unchanged(house), pytest.raises(psycopg.Error, match="KH301"):
            connection.execute(FEMALE.format("f").encode())
        assert house.most_spent("patients") == 0


REFUSED = (
    "SELECT s.ward FROM stays s, patients p GROUP BY s.ward HAVING count(*) > 400",
    "SELECT s.ward FROM stays s LEFT JOIN patients p ON person = patient_id GROUP BY s.ward HAVING count(*) > 400",
    "SELECT s.ward FROM stays s JOIN patients p USING (ward) GROUP BY s.ward HAVING count(*) > 400",
    "SELECT p.person FROM stays s JOIN patients p ON person = patient_id",
    "SELECT count(*) FROM stays s JOIN patients p ON person = patient_id",
    "SELECT ward FROM (SELECT s.ward FROM stays s JOIN patients p ON person = patient_id LIMIT 9) q GROUP BY 1"
    " HAVING count(*) > 3",
    "SELECT s.ward FROM stays s JOIN patients p ON person = patient_id AND EXISTS (SELECT FROM patients)"
    " GROUP BY s.ward HAVING count(*) > 400",
    "SELECT q.ward FROM (SELECT s.ward FROM stays s JOIN patients p ON person = patient_id GROUP BY s.ward"
    " HAVING count(*) > 400) q JOIN patients USING (ward)",
)


def test_everything_else_is_refused_for_nothing(tmp_path: Path) -> None:
    with opened(_policy(tmp_path, _in_duckdb(tmp_path))) as house, house.connect() as connection, unchanged(house):
        for sql in REFUSED:
            assert "KH1" in (_refusal(connection, sql) or ""), sql
