"""`same_unit_as` in a policy: which tables it makes one group in the ledger, and what it refuses."""

from pathlib import Path

import pytest

from planner.catalog.catalog import SqlType, Table
from planner.catalog.pins import Pins
from planner.errors import KeyholeError
from planner.policy.compile import SourceColumn, compile_catalog, list_key_domains
from planner.policy.file import Policy
from planner.policy.rules.document import describe_warnings
from planner.policy.simulated_catalog import simulate_catalog
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.worlds.policies import VERIFIER, changed, parsed

TEXT = f"""\
[source]
url = "postgresql://reader@db/hospital"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 2

[tables.stays]
privacy_unit = "patient_id"
refresh = "static"
max_groups_per_unit = 3
rows_per_unit = 20

[tables.stays.columns.ward]
key = {{ values = ["A", "B"] }}

[tables.patients]
privacy_unit = "person"
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 1
same_unit_as = "stays"

[tables.patients.columns.sex]
key = {{ values = ["f", "m"] }}

[tables.patients.columns.year]
expression = "extract(year from born)"
key = {{ range = [1900, 2030] }}

[tables.labs]
privacy_unit = "person"
refresh = "static"
max_groups_per_unit = 2
rows_per_unit = 5
same_unit_as = "patients"

[tables.labs.columns.kind]
key = {{ values = ["blood"] }}

[tables.lines]
privacy_unit = "row"
refresh = "static"

[tables.wards]
public = true

[analysts.ada]
password = "{VERIFIER}"
"""
SCHEMA = {
    "stays": (SourceColumn("patient_id", "bigint", True), SourceColumn("ward", "text", True)),
    "patients": (
        SourceColumn("person", "integer", True),
        SourceColumn("sex", "text", True),
        SourceColumn("born", "date", True),
        SourceColumn("odd.name", "text", True),
    ),
    "labs": (SourceColumn("person", "bigint", True), SourceColumn("kind", "text", True)),
    "lines": (SourceColumn("id", "bigint", True),),
}


def _compiled(text: str = TEXT, schema: dict[str, tuple[SourceColumn, ...]] | None = None) -> dict[str, Table]:
    schema = schema or SCHEMA
    policy = Policy.parse(text.replace("[tables.wards]\npublic = true\n", ""), path=Path("keyhole.toml"))
    domains = tuple(pinned for pinned, _ in list_key_domains(policy, schema=schema, pins=Pins()))
    made = compile_catalog(policy, schema=schema, pins=Pins(domains=domains), directory=Path())
    return {table.name: table for table in made.tables}


def test_all_tables_with_the_same_units_are_one_in_the_ledger() -> None:
    tables = _compiled()
    for name in ("stays", "patients", "labs"):
        assert (tables[name].ledger_root.table, tables[name].ledger_root.unit) == ("stays", ("patient_id",))
    assert tables["lines"].ledger_root.table == "lines"


def test_columns_of_other_tables_than_the_first_are_qualified_there_and_the_units_are_its_own() -> None:
    tables = _compiled()
    assert [column.label for column in tables["stays"].columns] == ["patient_id", "ward"]
    labels = {column.name: column.label for column in tables["patients"].columns}
    assert labels == {
        "person": "patient_id",
        "sex": "patients.sex",
        "born": "patients.born",
        "year": "patients.year=extract(year born)",
    }
    assert tables["labs"].get_column("kind").label == "labs.kind"


@in_turn(
    ("old", "new", "problem"),
    [
        ('same_unit_as = "stays"', 'same_unit_as = "nobody"', "is not a private table"),
        ('same_unit_as = "stays"', 'same_unit_as = "wards"', "is not a private table"),
        ('same_unit_as = "stays"', 'same_unit_as = "patients"', "leads back to the table itself"),
        ('same_unit_as = "stays"', 'same_unit_as = "labs"', "leads back to the table itself"),
        ('same_unit_as = "stays"', 'same_unit_as = "lines"', 'has no meaning when privacy_unit = "row"'),
        ('privacy_unit = "row"', 'privacy_unit = "row"\nsame_unit_as = "stays"', "has no meaning when"),
        ('privacy_unit = "patient_id"', 'privacy_unit = ["patient_id", "ward"]', "of 2 columns, this table of 1"),
    ],
)
def test_what_cannot_be_the_same_people_is_refused(old: str, new: str, problem: str) -> None:
    assert old in TEXT
    with pytest.raises(KeyholeError, match=problem) as refused:
        Policy.parse(TEXT.replace(old, new, 1), path=Path("keyhole.toml"))
    assert refused.value.code == "KH005"
    assert "same_unit_as" in refused.value.message
    assert refused.value.hint


def test_a_public_table_has_no_units() -> None:
    with pytest.raises(KeyholeError, match=r"same_unit_as.*public table"):
        Policy.parse(TEXT.replace("public = true", 'public = true\nsame_unit_as = "stays"'), path=Path("keyhole.toml"))


def test_units_of_another_type_are_refused() -> None:
    text = (SourceColumn("person", "text", True), *SCHEMA["patients"][1:])
    with pytest.raises(KeyholeError, match=r"KH005.*person is of type text, stays.patient_id of type integer"):
        _compiled(schema={**SCHEMA, "patients": text})


def test_a_unit_that_only_the_first_table_derives_is_refused() -> None:
    """What the other table derives from its stored unit column would have no column in the join."""
    text = TEXT.replace('privacy_unit = "patient_id"', 'privacy_unit = "born_year"').replace(
        "[tables.stays.columns.ward]",
        '[tables.stays.columns.born_year]\nexpression = "extract(year from born)"\n\n[tables.stays.columns.ward]',
    )
    schema = {**SCHEMA, "stays": (*SCHEMA["stays"], SourceColumn("born", "date", True))}
    with pytest.raises(KeyholeError, match=r"KH005.*person is stored in patients, stays.born_year is derived"):
        _compiled(text, schema)


def test_a_name_that_could_be_another_tables_column_is_refused() -> None:
    sex = "[tables.patients.columns.sex]"
    odd = TEXT.replace(sex, f'[tables.patients.columns."odd.name"]\n\n{sex}')
    with pytest.raises(KeyholeError, match=r"KH005.*odd.name"):
        _compiled(odd)


def test_without_a_source_the_units_are_taken_to_be_of_one_type() -> None:
    text = TEXT.replace("[tables.wards]\npublic = true\n", "")
    policy = Policy.parse(text, path=Path("keyhole.toml"))
    sql = (
        "SELECT ward FROM stays s JOIN patients p ON p.person = s.patient_id JOIN labs l ON l.person = p.person "
        "WHERE l.person > 3 GROUP BY ward HAVING count(*) > 100"
    )
    catalog = simulate_catalog(policy, sql, pins=Pins(), keys=None).catalog
    kinds = {table.get_column(unit).sql_type for table in catalog.tables for unit in table.unit}
    assert kinds == {SqlType.INTEGER}
    asked(sql, catalog=catalog)


def _said(*changes: tuple[str, str]) -> list[str]:
    return [one for one in describe_warnings(parsed(changed(*changes, text=TEXT))) if "join" in one]


def test_joins_of_many_rows_of_one_unit_are_doubted() -> None:
    """Declared numbers may make more than a million joined rows; of a table more rows may count than are joined."""
    assert _said() == []
    many = ("rows_per_unit = 20", "rows_per_unit = 20\njoined_rows_per_unit = 20000")
    (said,) = _said(many)
    assert said.startswith("joins of tables.labs, tables.patients, tables.stays may make 2,000,000 rows of one unit")
    (said,) = _said(("rows_per_unit = 20", "rows_per_unit = 20\njoined_rows_per_unit = 59"))
    assert said.startswith("tables.stays counts 60 rows of a unit")
    assert "reads 59 of them" in said
    with pytest.raises(KeyholeError, match="no meaning"):
        _said(('privacy_unit = "row"', 'privacy_unit = "row"\njoined_rows_per_unit = 5'))
