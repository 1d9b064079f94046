"""`keyhole init`: the starter parses, exposes nothing, and loads once the owner has filled in the marked blanks."""

import re
import tomllib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import LONGEST_TEXT
from planner.catalog.sql_types import SourceColumn
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.policy_refusals import BLANK
from proxy.cli.init import write_policy_from_source, write_starter_policy
from proxy.cli.presets import GROUPS, Purpose, Unit, compute_posterior
from proxy.cli.simulate import Sizes, simulate
from proxy.open_policy.pins import pin
from proxy.sources.open import open_source

STATEMENTS = (
    "CREATE TABLE visits (visit_id BIGINT PRIMARY KEY, patient_id BIGINT, is_child INTEGER, age SMALLINT, ward TEXT,"
    " cost DECIMAL(8,2), admitted TIMESTAMP, seen TIMESTAMPTZ,"
    ' day DATE, emergency BOOLEAN, ref UUID, tags TEXT[], "odd ""name" TEXT)',
    "CREATE SCHEMA annex",
    'CREATE TABLE annex."Ward.List" (name TEXT)',
    "INSERT INTO visits (visit_id, patient_id, ward) VALUES (1, 7, 'secret ward')",
)


def written(directory: Path, *, unit: Unit | None = None, purpose: Purpose = Purpose.DASHBOARD) -> str:
    with duckdb.connect(str(directory / "clinic.duckdb")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
    return write_policy_from_source("duckdb:///clinic.duckdb", directory=directory, unit=unit, purpose=purpose)


FILLED = {
    "privacy_unit": '"patient_id"',
    "refresh": '"static"',
    "max_groups_per_unit": str(GROUPS),
    "rows_per_unit": "20",
    "bounds": "[0, 100]",
    "per_unit": "[0, 500]",
    "step": "",
}


def filled_in(text: str) -> str:
    """What an owner does: make the list public, choose the visits' unit, uncomment every line that is offered there."""
    head, listed, visits = re.split(r"(?=^\[tables\.(?:ward_list|visits)\]$)", text, flags=re.MULTILINE)
    listed = re.sub(f'^(privacy_unit|refresh|max_groups_per_unit|rows_per_unit) = "{BLANK}"', "#", listed, flags=re.M)
    listed = listed.replace("# public = true", "public = true")
    offered = r"^# (?=(?:max_groups_per_unit|rows_per_unit|bounds|max_length|grid|per_unit|key|expression|\[tables)\b)"
    lines = [
        re.sub(offered, "", line) if "AT TIME ZONE" not in line and f'values = ["{BLANK}"]' not in line else line
        for line in visits.splitlines()
    ]
    return head + listed + "\n".join(map(_fill, lines))


def _fill(line: str) -> str:
    """A line with what an owner would write in its blanks."""
    if "key = { range" in line:
        first, last = ("2026-01-01", "2026-12-01") if "step" in line else ("1", "9")
        quote = '"' if "step" in line else ""
        return line.replace(f'"{BLANK}", "{BLANK}"', f"{quote}{first}{quote}, {quote}{last}{quote}")
    name = line.partition(" =")[0]
    blank = rf'\["{BLANK}", "{BLANK}"\]|"{BLANK}"'
    return re.sub(blank, FILLED[name], line, count=1) if name in FILLED else line


def test_the_starter_parses_exposes_nothing_and_says_all_that_is_to_be_filled_in(tmp_path: Path) -> None:
    text = written(tmp_path)
    raw = tomllib.loads(text)
    assert set(raw["tables"]) == {"visits", "ward_list"}
    assert all("columns" not in table for table in raw["tables"].values())
    with pytest.raises(KeyholeError, match=r"KH002.*privacy_unit = .* still to be filled in") as refused:
        Policy.parse(text, path=tmp_path / "keyhole.toml", environment={})
    assert refused.value.detail is not None
    for place in ("tables.visits.refresh", "tables.visits.privacy_unit", "tables.ward_list.refresh"):
        assert f'{place} = "{BLANK}": is still to be filled in' in refused.value.detail


def test_what_is_offered_of_a_column_follows_from_its_name_and_type(tmp_path: Path) -> None:
    """Ids are units or nothing, flags and small numbers are keys, and only what adds up is a measure."""
    blocks = {
        found[1]: block
        for block in written(tmp_path).split("\n\n")
        if (found := re.match(r"# \[tables\.visits\.columns\.(\w+)\]", block))
    }
    assert "names a row" in blocks["visit_id"]
    assert "names somebody or something" in blocks["patient_id"]
    assert "values = [0, 1]" in blocks["is_child"]
    assert "bounds" not in blocks["visit_id"] + blocks["patient_id"] + blocks["is_child"]
    assert "key = { range" in blocks["age"]
    assert "bounds" in blocks["age"]
    assert "key" not in blocks["cost"]
    assert "bounds" in blocks["cost"]
    assert f'# # bands = ["{BLANK}", ' in blocks["cost"]  # a choice, which uncommenting all leaves open
    assert "bands" not in blocks["is_child"]


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        (Unit.PERSON, 'privacy_unit = "patient_id"   # who is protected: patient_id may name people'),
        (Unit.VISIT, 'privacy_unit = ["patient_id", "admitted_day"]   # a person\'s day'),
        (Unit.ROW, 'privacy_unit = "row"'),
    ],
)
def test_who_is_protected_may_be_said_beforehand(tmp_path: Path, unit: Unit, line: str) -> None:
    text = written(tmp_path, unit=unit)
    assert line in text
    assert ("epsilon_per_unit" in tomllib.loads(text)["budget"]) is (unit is not Unit.ROW)
    # offered for people alone, and off until the owner wants it
    assert ("# delta = 1e-09 " in text) is (unit is Unit.PERSON)
    assert "delta" not in tomllib.loads(text)["budget"]


@pytest.mark.parametrize("unit", Unit)
@pytest.mark.parametrize("purpose", Purpose)
def test_a_preset_admits_thirty_ordinary_questions(tmp_path: Path, unit: Unit, purpose: Purpose) -> None:
    """How many `count(DISTINCT unit) > 500` fit, with a person in four groups, by the product's own arithmetic."""
    text = filled_in(written(tmp_path, unit=unit, purpose=purpose))
    wards = f'[tables.visits.columns.ward]   # text\n# key = {{ values = ["{BLANK}"] }}'
    assert wards in text
    text = text.replace(wards, '[tables.visits.columns.ward]\nkey = { values = ["A", "B", "C", "D", "E"] }')
    if unit is Unit.VISIT:
        text = text.replace(f"max_groups_per_unit = {GROUPS}", "max_groups_per_unit = 1")
    path = tmp_path / "keyhole.toml"
    path.write_text(text, encoding="utf-8")
    counted = "*" if unit is Unit.ROW else "DISTINCT patient_id"
    sql = f"SELECT ward FROM visits GROUP BY ward HAVING count({counted}) > 500"
    if unit is Unit.VISIT:
        sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age > 2) > 500 * 20"
    made = simulate(path, sql, given={}, sizes=Sizes(units=20_000, keys=None, rows=None))
    assert made.fitting_questions is not None
    assert made.fitting_questions >= 30


def test_odds_are_those_of_bayes() -> None:
    """`e^8 / (99 + e^8)` and so on, by hand."""
    assert compute_posterior(0.0) == pytest.approx(0.01)
    assert compute_posterior(3.0) == pytest.approx(0.168665, abs=1e-6)
    assert compute_posterior(8.0) == pytest.approx(0.967857, abs=1e-6)


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
    text = write_policy_from_source("My Sales.parquet", directory=tmp_path, unit=Unit.ROW)
    text = text.replace(f'refresh = "{BLANK}"', 'refresh = "static"')
    text += "\n[tables.my_sales.columns.id]\nkey = { range = [1, 3] }\n"
    path = tmp_path / "keyhole.toml"
    path.write_text(text, encoding="utf-8")
    policy = Policy.load(path, environment={})
    source = open_source(policy.source.url, directory=policy.directory)
    catalog = pin(policy, source, confirm=False, now=datetime.now(UTC)).catalog
    source.close()
    assert catalog.tables[0].get_column("id").domain == (1, 2, 3)


def test_an_id_that_cannot_be_a_unit_is_named_and_not_chosen() -> None:
    """Some files hold ids as double, which no policy takes as its unit. Of two people the other is chosen."""
    ids = [SourceColumn("CustomerID", "double precision", nullable=True)]
    text = write_starter_policy({"sales": ids}, "duckdb://", unit=Unit.PERSON)
    assert f'privacy_unit = "{BLANK}"    # who is protected: CustomerID may name people' in text
    text = write_starter_policy({"sales": [*ids, SourceColumn("e-mail", "text", True)]}, "duckdb://", unit=Unit.PERSON)
    assert 'privacy_unit = "e-mail"   # who is protected: CustomerID, e-mail may name people' in text


def test_several_files_make_one_policy(tmp_path: Path) -> None:
    """Files in any folders and of either form are one source. Two databases are not, nor a database and a file."""
    with duckdb.connect() as connection:
        for file in ("a.csv", "lake/a.csv", "lake/b.parquet"):
            (tmp_path / file).parent.mkdir(exist_ok=True)
            connection.execute(f"COPY (SELECT 1 AS id, 'x' AS place) TO '{tmp_path / file}'")
    text = write_policy_from_source("lake/b.parquet", "a.csv", "lake/a.csv", directory=tmp_path)
    raw = tomllib.loads(text)
    assert raw["source"] == {"url": "duckdb://"}
    assert {name: table["relation"] for name, table in raw["tables"].items()} == {
        "a": "a.csv",
        "a_2": "lake/a.csv",
        "b": "lake/b.parquet",
    }
    assert text.count("columns.place]") == 3
    with closing(open_source("duckdb://", directory=tmp_path)) as source:  # as the policy's folder allows
        assert source.read_schema(f"read_parquet('{tmp_path / 'lake/b.parquet'}')")
    for others in (("a.csv", "duckdb://"), ("duckdb:///a.duckdb", "duckdb:///b.duckdb"), ("sc://a", "sc://b", "a.csv")):
        with pytest.raises(KeyholeError, match=rf"KH002.*--source is given {len(others)} times.*one source") as refused:
            write_policy_from_source(*others, directory=tmp_path)
        assert "keyhole init for each source" in (refused.value.hint or "")


def test_a_password_never_reaches_the_starter() -> None:
    text = write_starter_policy({"t": [SourceColumn("a", "text", True)]}, "postgresql://reader:geheim@db/x")
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
    text = write_starter_policy(columns, "duckdb:///x.duckdb")
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
    lines = write_starter_policy({"visits": columns}, "postgresql://reader@db/clinic").splitlines()
    assert [line.split("  ")[0] for line in lines if "max_length" in line] == [
        "# max_length = 20",
        f"# max_length = {LONGEST_TEXT}",
    ]


def test_a_file_with_names_of_another_language_is_read_as_it_is(tmp_path: Path) -> None:
    """An id that names people is offered, and no number of orders. Where none does, the owner says which."""
    (tmp_path / "Bestellungen.csv").write_text(
        'Bestellnummer,Kundennummer,Bundesland,Bestelldatum,Betrag\nB-1,K-7,Hessen,02.05.2025,"73,99"\n',
        encoding="utf-8",
    )
    text = write_policy_from_source("Bestellungen.csv", directory=tmp_path, unit=Unit.PERSON)
    assert 'privacy_unit = "Kundennummer"   # who is protected: Kundennummer may name people' in text
    assert "keyhole check pins them" in text
    tomllib.loads(text)
    (tmp_path / "Rechnungen.csv").write_text("Bestellnummer,Rechnungsnummer\nB-1,R-1\n", encoding="utf-8")
    text = write_policy_from_source("Rechnungen.csv", directory=tmp_path, unit=Unit.PERSON)
    assert f'privacy_unit = "{BLANK}"    # who is protected: a column that names a person' in text
    with pytest.raises(KeyholeError, match=r"KH008.*Rechnungen\.csv is a file of rows") as refused:
        write_policy_from_source("duckdb:///Rechnungen.csv", directory=tmp_path)
    assert "keyhole init --source Rechnungen.csv" in (refused.value.hint or "")


def test_files_are_joined_by_names_and_nothing_is_taken_for_proved(tmp_path: Path) -> None:
    """Paths, what has to be vouched for, what may be public, and when rows change, which is said once."""
    (tmp_path / "customer.csv").write_text("c_custkey,c_nationkey\n1,2\n", encoding="utf-8")
    (tmp_path / "orders.csv").write_text("o_orderkey,o_custkey\n1,1\n", encoding="utf-8")
    (tmp_path / "lineitem.csv").write_text("l_orderkey,l_quantity\n1,7\n", encoding="utf-8")
    (tmp_path / "nation.csv").write_text("n_nationkey,n_name\n2,FRANCE\n", encoding="utf-8")
    files = ("customer.csv", "lineitem.csv", "nation.csv", "orders.csv")
    text = write_policy_from_source(*files, directory=tmp_path, unit=Unit.PERSON, refresh="daily 02:00")
    tables = tomllib.loads(text)["tables"]
    assert tables["lineitem"]["privacy_unit"] == {"through": "orders.o_orderkey", "by": "l_orderkey"}
    assert "by names alone: nothing proves that its keys are those of orders" in text
    assert '# unique = ["o_orderkey"]   # nothing proves it: uncomment it if you vouch' in text
    assert "paths of lineitem lead here by it" in text
    assert (tables["orders"]["privacy_unit"], tables["orders"]["same_unit_as"]) == ("o_custkey", "customer")
    assert (tables["customer"]["rows_per_unit"], tables["nation"]["public"]) == (1, BLANK)
    assert '# key = { values_from = "nation.n_nationkey" }   # if nation is public' in text
    assert all(table.get("refresh", "daily 02:00") == "daily 02:00" for table in tables.values())
    with pytest.raises(KeyholeError, match=r'KH002.*--refresh "often" is not a refresh'):
        write_policy_from_source(*files, directory=tmp_path, refresh="often")
    asked = write_policy_from_source(*files, directory=tmp_path)
    assert '# privacy_unit = { through = "orders.o_orderkey", by = "l_orderkey" }   # or who is there' in asked
