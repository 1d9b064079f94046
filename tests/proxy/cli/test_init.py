"""`keyhole init`: the starter parses, exposes nothing, and loads once the owner has filled in the marked blanks."""

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.model import LONGEST_TEXT
from planner.catalog.sql_types import SourceColumn
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.init import BLANK, from_source, starter_policy
from proxy.service.pins import pin
from proxy.sources.open import open_source

STATEMENTS = (
    "CREATE TABLE visits (patient_id BIGINT, ward TEXT, cost DECIMAL(8,2), admitted TIMESTAMP, seen TIMESTAMPTZ,"
    ' day DATE, emergency BOOLEAN, ref UUID, tags TEXT[], "odd ""name" TEXT)',
    "CREATE SCHEMA annex",
    'CREATE TABLE annex."Ward.List" (name TEXT)',
    "INSERT INTO visits (patient_id, ward) VALUES (7, 'secret ward')",
)


def written(directory: Path) -> str:
    with duckdb.connect(str(directory / "clinic.duckdb")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
    return from_source("duckdb:///clinic.duckdb", directory=directory)


def filled_in(text: str) -> str:
    """What an owner does: make the list public, choose the visits' unit, uncomment every line that is offered there."""
    head, listed, visits = re.split(r"(?=^\[tables\.(?:ward_list|visits)\]$)", text, flags=re.MULTILINE)
    listed = listed.replace("# public = true", "public = true").replace('privacy_unit = ""', "#")
    listed = listed.replace('refresh = ""', "#")
    visits = visits.replace('privacy_unit = ""', 'privacy_unit = "patient_id"')
    visits = visits.replace('refresh = ""', 'refresh = "static"')
    offered = r"^# (?=(?:max_groups_per_unit|rows_per_unit|bounds|max_length|grid|per_unit|key|expression|\[tables)\b)"
    lines = [
        re.sub(offered, "", line) if "AT TIME ZONE" not in line and '["..."]' not in line else line
        for line in visits.splitlines()
    ]
    return head + listed + "\n".join(lines)


def test_the_starter_parses_and_exposes_nothing(tmp_path: Path) -> None:
    text = written(tmp_path)
    raw = tomllib.loads(text)
    assert set(raw["tables"]) == {"visits", "ward_list"}
    assert all("columns" not in table for table in raw["tables"].values())
    with pytest.raises(KeyholeError, match=r"KH005.*privacy_unit"):
        Policy.parse(text, path=tmp_path / "keyhole.toml", environment={})


def test_the_starter_lists_every_column_and_no_data(tmp_path: Path) -> None:
    text = written(tmp_path)
    for name in ("patient_id", "ward", "cost", "admitted", "seen", "day", "emergency", "ref", "tags", "odd"):
        assert name in text
    assert "secret" not in text
    assert text.count(BLANK) >= 6


def test_the_starter_loads_and_compiles_once_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "keyhole.toml"
    path.write_text(filled_in(written(tmp_path)), encoding="utf-8")
    policy = Policy.load(path, environment={})
    source = open_source(policy.source.url, directory=policy.directory)
    catalog = pin(policy, source, confirm=False, now=datetime.now(UTC)).catalog
    source.close()
    (visits,) = catalog.tables
    names = {column.name for column in visits.columns}
    assert {"patient_id", "cost", "admitted", "admitted_month", "day", "emergency", 'odd "name'} <= names
    assert "seen" not in names
    assert len(catalog.public_tables) == 1


def test_one_file_makes_a_policy(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS id, 'x' AS place) TO '{tmp_path / 'My Sales.parquet'}'")
    text = from_source("My Sales.parquet", directory=tmp_path).replace('privacy_unit = ""', 'privacy_unit = "row"')
    text = text.replace('refresh = ""', 'refresh = "static"')
    text += "\n[tables.my_sales.columns.id]\nkey = { range = [1, 3] }\n"
    path = tmp_path / "keyhole.toml"
    path.write_text(text, encoding="utf-8")
    policy = Policy.load(path, environment={})
    source = open_source(policy.source.url, directory=policy.directory)
    catalog = pin(policy, source, confirm=False, now=datetime.now(UTC)).catalog
    source.close()
    assert catalog.tables[0].column("id").domain == (1, 2, 3)


def test_a_password_never_reaches_the_starter() -> None:
    text = starter_policy({"t": [SourceColumn("a", "text", True)]}, "postgresql://reader:geheim@db/x")
    assert "geheim" not in text
    assert "${KEYHOLE_SOURCE_PASSWORD}@db" in text


names = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(st.dictionaries(names, st.lists(names, min_size=1, max_size=3), min_size=1, max_size=4))
def test_a_starter_is_toml_whatever_the_names(schema: dict[str, list[str]]) -> None:
    """Names as a source writes them: quoted where they are odd."""
    quoted = {'"' + name.replace('"', '""') + '"': columns for name, columns in schema.items()}
    types = ("text", "bigint", "timestamp without time zone", "timestamp with time zone")
    columns = {
        name: [SourceColumn(column, types[index % 4], True) for index, column in enumerate(listed)]
        for name, listed in quoted.items()
    }
    text = starter_policy(columns, "duckdb:///x.duckdb")
    assert len(tomllib.loads(text)["tables"]) == len(schema)
    uncommented = re.sub(r"^# (?=\[tables|key|bounds|grid|per_unit|expression)", "", text, flags=re.MULTILINE)
    uncommented = re.sub(r"(?m)^\[tables.*AT TIME ZONE.*$", "", uncommented)
    for block in uncommented.split("\n\n"):
        if block.startswith("[tables."):
            tomllib.loads(block)


def test_the_length_of_a_text_is_proposed_from_its_type() -> None:
    columns = [
        SourceColumn("ward", "character varying(20)", nullable=True),
        SourceColumn("note", "text", nullable=True),
    ]
    lines = starter_policy({"visits": columns}, "postgresql://reader@db/clinic").splitlines()
    assert [line.split("  ")[0] for line in lines if "max_length" in line] == [
        "# max_length = 20",
        f"# max_length = {LONGEST_TEXT}",
    ]
