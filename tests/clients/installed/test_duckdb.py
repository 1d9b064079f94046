"""DuckDB's postgres extension, where it can be had: DuckDB fetches it from its own site."""

from typing import Any

import duckdb
import pytest

from tests.worlds import gallery
from tests.worlds.served import Served


@pytest.fixture
def attached(clinic: Served) -> Any:
    connection = duckdb.connect()
    try:
        connection.execute("INSTALL postgres; LOAD postgres")
    except duckdb.Error as error:
        pytest.skip(f"DuckDB's postgres extension cannot be had: {str(error).splitlines()[0]}")
    connection.execute(f"ATTACH '{clinic.uri}' AS clinic (TYPE postgres, READ_ONLY)")
    return connection


def test_it_passes_questions_on(attached: Any) -> None:
    question = gallery.QUESTION.replace("'", "''")
    assert attached.execute(f"SELECT * FROM postgres_query('clinic', '{question}')").fetchall() == [("A",), ("B",)]


def test_scans_of_private_tables_are_refused(attached: Any) -> None:
    with pytest.raises(duckdb.Error, match="KH10"):
        attached.execute("SELECT ward FROM clinic.visits").fetchall()
