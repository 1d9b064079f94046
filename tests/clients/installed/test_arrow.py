"""ADBC, connectorx and polars: they read by COPY (query) TO STDOUT (FORMAT binary) and make Arrow's columns of it."""

from typing import Any

import pytest

from tests.worlds import gallery
from tests.worlds.served import Served, unchanged

_KINDS = "SELECT id, flag, small, big, ratio, part, word, code, day, at FROM kinds ORDER BY id"
_PLAIN = ("id", "flag", "small", "big", "ratio", "part", "word", "code", "day", "at")

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
connectorx = pytest.importorskip("connectorx")
polars = pytest.importorskip("polars")
pytest.importorskip("pyarrow")


def test_adbc(clinic: Served) -> None:
    with dbapi.connect(clinic.uri) as connection, connection.cursor() as cursor:
        cursor.execute(_KINDS)
        first, *_, last = cursor.fetchall()
        assert dict(zip(_PLAIN, first, strict=True)) == {name: gallery.FULL_ROW[name] for name in _PLAIN}
        assert set(last) == {3, None}
        for key, values in gallery.TYPED.items():
            cursor.execute(gallery.about(key))
            assert [value for (value,) in cursor.fetchall()] == list(values)
        cursor.execute(gallery.QUESTION)
        assert cursor.fetch_arrow_table().to_pydict() == {"ward": gallery.WARDS}


def test_adbc_is_told_what_is_refused(clinic: Served) -> None:
    with dbapi.connect(clinic.uri) as connection, connection.cursor() as cursor:
        with unchanged(clinic), pytest.raises(dbapi.NotSupportedError, match="KH101"):
            cursor.execute(gallery.AGGREGATE)
        connection.rollback()
        cursor.execute(gallery.QUESTION)
        assert cursor.fetchall() == [("A",), ("B",)]


def test_adbc_metadata(clinic: Served) -> None:
    with dbapi.connect(clinic.uri) as connection, unchanged(clinic):
        (catalog,) = (
            connection.adbc_get_objects(catalog_filter="clinic", db_schema_filter="public").read_all().to_pylist()
        )
        (schema,) = catalog["catalog_db_schemas"]
        tables: dict[str, Any] = {table["table_name"]: table for table in schema["db_schema_tables"]}
        assert set(tables) == {*gallery.TABLES, *gallery.VIEWS}
        assert [column["column_name"] for column in tables["visits"]["table_columns"]] == list(gallery.PRIVATE_COLUMNS)


@pytest.mark.parametrize("protocol", ["binary", "csv", "cursor", "simple"])
def test_connectorx(clinic: Served, protocol: str) -> None:
    frame = connectorx.read_sql(clinic.uri, gallery.QUESTION, protocol=protocol, return_type="arrow")
    assert frame.to_pydict() == {"ward": gallery.WARDS}
    floors = connectorx.read_sql(clinic.uri, gallery.about("floor"), protocol=protocol, return_type="arrow")
    assert floors.to_pydict() == {"floor": [1, 2]}


@pytest.mark.parametrize("engine", ["adbc", "connectorx"])
def test_polars(clinic: Served, engine: str) -> None:
    for key, values in gallery.TYPED.items():
        frame = polars.read_database_uri(gallery.about(key), clinic.uri, engine=engine)
        assert frame.to_dict(as_series=False) == {key: list(values)}
    kinds = polars.read_database_uri(_KINDS, clinic.uri, engine=engine)
    assert kinds.row(0) == tuple(gallery.FULL_ROW[name] for name in _PLAIN)
