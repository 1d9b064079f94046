"""A real Spark's catalog: databases, views, collations, fixed lengths, what errors quote, and what it misreads."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.cli.init import write_policy_from_source
from proxy.sources.open import Source, SparkLogin, open_source
from tests.proxy.sources.spark_sql.thin import connect

if TYPE_CHECKING:
    from tests.proxy.sources.spark.engines import Spark

pytestmark = pytest.mark.installed
_SECRET = "topsecret"
_TABLES = (
    "CREATE DATABASE IF NOT EXISTS clinic",
    "CREATE OR REPLACE TABLE_ clinic.visits (ward STRING, WARD2 STRING COLLATE UTF8_LCASE, code CHAR(5), "
    "name VARCHAR(9), paid DECIMAL(10, 2), seen TIMESTAMP_NTZ, zoned TIMESTAMP_LTZ, tags ARRAY<STRING>) USING parquet",
    f"INSERT INTO clinic.visits (ward, code, paid) VALUES ('a', 'x', 1), ('{_SECRET}', 'y', 2)",
    "CREATE OR REPLACE VIEW clinic.named AS SELECT ward, code FROM clinic.visits",
    "CREATE OR REPLACE TABLE_ clinic.flags (flag BOOLEAN) USING parquet",
    "INSERT INTO clinic.flags VALUES (TRUE), (FALSE)",
)


@pytest.fixture(scope="module")
def owner(spark: "Spark") -> Any:
    """A session that writes, as an owner of the data has one."""
    from planner.lower.dialects.spark import SPARK

    session = connect(spark.url, SPARK)
    for statement in _TABLES:
        if "TABLE_" in statement:
            name = statement.split()[4]
            session.execute(f"DROP TABLE IF EXISTS {name}")
        session.execute(statement.replace("OR REPLACE TABLE_", "TABLE"))
    return session


@pytest.fixture
def source(owner: Any, spark: "Spark", tmp_path: Path) -> Iterator[Source]:
    del owner
    opened = open_source(spark.url, directory=tmp_path, spark=SparkLogin(engine="spark", database="clinic"))
    yield opened
    opened.close()


def test_tables_of_a_database_and_their_types(source: Source) -> None:
    assert {"flags", "named", "visits"} <= set(source.list_relations())
    known = {
        column.name: (column.declared, column.has_nondeterministic_collation) for column in source.read_schema("visits")
    }
    assert known == {
        "ward": ("text", False),
        "WARD2": ("text", True),
        "code": ("character(5)", False),
        "name": ("text", False),
        "paid": ("numeric(10,2)", False),
        "seen": ("timestamp without time zone", False),
        "zoned": ("timestamp with time zone", False),
        "tags": ("array<string>", False),
    }


def test_a_view_reads_what_its_table_reads(source: Source) -> None:
    view, table = source.identify("named"), source.identify("clinic.visits")
    assert view.is_view
    assert not table.is_view
    assert view.bases & table.bases


def test_a_starter_policy_exposes_nothing(source: Source, spark: "Spark", tmp_path: Path) -> None:
    del source
    text = write_policy_from_source(spark.url, directory=tmp_path, tables=("clinic.visits",))
    assert 'engine = "spark"' in text
    assert _SECRET not in text


@pytest.mark.parametrize(
    ("column", "code", "told"),
    [("WARD2", "KH006", "collation"), ("code", "KH003", "type other"), ("zoned", "KH006", "time zone")],
)
def test_what_spark_compares_otherwise_cannot_be_a_key(
    source: Source, spark: "Spark", tmp_path: Path, column: str, code: str, told: str
) -> None:
    del source
    policy = tmp_path / "keyhole.toml"
    policy.write_text(
        f'[source]\nurl = "{spark.url}"\nengine = "spark"\ndatabase = "clinic"\n'
        "[budget]\nepsilon_per_predicate = 4.0\nepsilon_per_query = 2.0\n"
        '[tables.visits]\nprivacy_unit = "row"\nrefresh = "static"\n'
        f'[tables.visits.columns.{column}]\nkey = {{ values = ["a"] }}\n',
        encoding="utf-8",
    )
    with pytest.raises(KeyholeError, match=code) as refused:
        check(policy, confirm=False)
    assert told in f"{refused.value} {refused.value.detail} {refused.value.hint}"
    assert refused.value.hint


def test_what_an_error_quotes_reaches_neither_the_caller_nor_the_log(
    source: Source, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """The client writes what the server says of an error to standard error, values and all, unless told not to."""
    with pytest.raises(KeyholeError, match="KH006") as caught:
        source.read_for_owner("clinic.visits", "SELECT CAST(ward AS int) AS a FROM clinic.visits")
    told = f"{caught.value} {caught.value.detail} {caught.value.hint} {caplog.text} {''.join(capfd.readouterr())}"
    assert _SECRET not in told
    assert "CAST_INVALID_INPUT" not in told


def test_a_condition_that_no_row_meets_keeps_none_of_a_table_with_one_column(owner: Any) -> None:
    """Spark takes `flags WHERE (FALSE)` for a relation of the name WHERE whose column is called FALSE."""
    from planner.lower.layout import write_where

    for condition, rows in (("FALSE", 0), ("TRUE", 2), ("`flag`", 1)):
        (clause,) = write_where([condition])
        assert owner.value("count(*)", f"clinic.flags {clause}") == rows


def test_no_such_catalog_or_database(source: Source, spark: "Spark", tmp_path: Path) -> None:
    del source
    for login in (SparkLogin(engine="spark", catalog="nowhere"), SparkLogin(engine="spark", database="nowhere")):
        with pytest.raises(KeyholeError, match=r"KH008.*nowhere"):
            open_source(spark.url, directory=tmp_path, spark=login).list_relations()


def test_a_server_that_is_no_sail(spark: "Spark", tmp_path: Path) -> None:
    with pytest.raises(KeyholeError, match="the engine is sail in the policy, and the source is spark"):
        open_source(spark.url, directory=tmp_path, spark=SparkLogin(engine="sail")).list_relations()
