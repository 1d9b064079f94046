"""The values of keys, read as BI tools read them to fill a filter: public, free, and without the data being there."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.worlds import gallery
from tests.worlds.house import new_database, notices
from tests.worlds.served import Served, served, unchanged

NOTICE = "NOTICE: listed are public values of ward, with rows or without: no data is read, and nothing is spent"


@pytest.fixture(scope="module")
def bereft(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Keyhole over the gallery, from which its private table is gone since it was checked."""
    with (
        new_database(postgres_url) as url,
        served(gallery.installed(tmp_path_factory.mktemp("bereft"), url)) as keyhole,
    ):
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("DROP TABLE visits")
        yield keyhole


def test_keys_are_listed_without_their_table(bereft: Served) -> None:
    with bereft.connect() as connection, unchanged(bereft):
        heard = notices(connection)
        for sql in (
            "SELECT DISTINCT ward FROM visits ORDER BY ward",
            "SELECT ward FROM visits GROUP BY ward ORDER BY 1",
            "SELECT ward FROM visits ORDER BY ward LIMIT 10",
            'SELECT "w" FROM (SELECT "t"."ward" AS "w" FROM "public"."visits" "t") "rows" GROUP BY "w" ORDER BY 1',
        ):
            heard.clear()
            assert connection.execute(sql.encode()).fetchall() == [("A",), ("B",), ("C",), ("D",)]
            assert heard == [NOTICE]
        typed = connection.execute(
            "SELECT DISTINCT day FROM visits WHERE day > %s ORDER BY 1", ["2026-01-02"], binary=True
        )
        assert [day.isoformat() for (day,) in typed] == ["2026-01-03", "2026-01-04"]
        pairs = connection.execute("SELECT ward, urgent FROM visits WHERE ward <> 'D' GROUP BY 1, 2 ORDER BY 1, 2")
        assert pairs.fetchall() == [(ward, urgent) for ward in "ABC" for urgent in (False, True)]
        with pytest.raises(psycopg.Error, match="KH103"):
            connection.execute("SELECT DISTINCT ward FROM visits WHERE age > 5")


def test_all_keys_are_a_relation(bereft: Served) -> None:
    with bereft.connect() as connection, unchanged(bereft):
        of_ward = "FROM keyhole.domains WHERE table_name = 'visits' AND key_name = 'ward'"
        rows = connection.execute(f"SELECT data_type, size, place, value {of_ward}".encode()).fetchall()
        assert rows == [("text", 4, place, ward) for place, ward in enumerate("ABCD", start=1)]
        keys = connection.execute("SELECT key_name, count(value) FROM keyhole.domains GROUP BY 1 ORDER BY 1").fetchall()
        assert keys == [("day", 4), ("floor", 4), ("hour", 4), ("urgent", 2), ("ward", 4)]


def test_a_hint_stands_in_the_message_for_who_wants_it(bereft: Served) -> None:
    told = f"{gallery.REFUSED_MESSAGE}. Hint: {gallery.REFUSED_HINT}"
    with bereft.connect() as connection:
        for prepare in (False, True):
            for value, message in (("on", told), ("off", gallery.REFUSED_MESSAGE), ("ON", told)):
                connection.execute(f"SET keyhole.hint_in_message = {value}".encode())
                with pytest.raises(psycopg.Error) as refused:
                    connection.execute(gallery.REFUSED.encode(), prepare=prepare)
                assert refused.value.diag.message_primary == message
                assert refused.value.diag.message_hint == gallery.REFUSED_HINT
        with pytest.raises(psycopg.Error, match="KH402"):
            connection.execute("SET keyhole.hint_in_message = maybe")
    with psycopg.connect(bereft.conninfo, options="-c keyhole.hint_in_message=on") as connection:
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(gallery.AGGREGATE.encode())
        assert refused.value.diag.message_primary is not None
        assert refused.value.diag.message_primary.endswith(
            ". Hint: Instead you can ask: SELECT ward, count(*) > 1000 FROM visits GROUP BY ward;"
        )
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(gallery.AGGREGATE.encode())
