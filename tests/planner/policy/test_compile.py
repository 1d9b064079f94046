"""Compiling a policy: columns, domains and types come out as the policy, the schema and the pins say."""

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import LONGEST_TEXT, Derivation, RowCap, SqlType
from planner.catalog.derived_columns import DATE_PARTS, is_possible
from planner.catalog.domains import digest_domain, expand_range, list_values
from planner.catalog.fault import Fault
from planner.catalog.pins import Pins
from planner.catalog.source_names import SourceName
from planner.catalog.sql_types import read_sql_type
from planner.errors import KeyholeError
from planner.policy.compile import SourceColumn, compile_catalog
from planner.policy.relation_names import list_known_names, write_relation
from planner.policy.sections import PolicyDocument, SourceSection, TableSection
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.worlds.policies import BASE, SCHEMA, VERIFIER, changed, compiled, parsed, pins_for


def test_the_base_policy_compiles_as_written() -> None:
    catalog = compiled()
    (visits,) = catalog.tables
    assert visits.relation == '"visits"'
    assert visits.unit == ("patient_id",)
    assert (visits.groups_per_unit, visits.rows_per_unit, visits.row_cap) == (3, 20, None)
    assert visits.refresh == "daily 02:00"
    assert visits.get_column("ward").domain == ("A", "B", "C")
    assert visits.get_column("ward").immutable
    assert visits.get_column("ward").declared == "character varying(10)"
    assert visits.get_column("disease").domain == ("flu", "gout", "measles")
    assert visits.get_column("month").domain == (date(2025, 12, 1), date(2026, 1, 1), date(2026, 2, 1))
    assert visits.get_column("month").sql_type is SqlType.DATE
    assert visits.get_column("month").derivation == Derivation("date_trunc", "month", "admitted")
    assert visits.get_column("age").grid == 1
    assert visits.get_column("cost").per_unit == (Decimal(0), Decimal(8000))
    assert visits.get_column("note").domain is None
    assert [analyst.verifier for analyst in catalog.analysts] == [VERIFIER]
    assert catalog.budget.per_unit == 8.0


COUNTED = "rows_per_unit = 20\nbands = { units = [20], rows = [100] }"


def test_bands_are_columns_to_tools_beside_those_of_the_table() -> None:
    named = "grid = 0.01\nbands = { avg = [50], sum = [5000, 10000] }"
    (visits,) = compiled(changed(("grid = 0.01", named), ("rows_per_unit = 20", COUNTED))).tables
    assert [(one.name, one.measure, one.bands.aggregate, one.bands.thresholds) for one in visits.band_columns] == [
        ("cost_sum_band", "cost", "sum", (Decimal(5000), Decimal(10000))),
        ("cost_avg_band", "cost", "avg", (Decimal(50),)),
        ("rows_band", None, "rows", (Decimal(100),)),
        ("units_band", None, "units", (Decimal(20),)),
    ]
    assert compiled().tables[0].band_columns == ()


def test_a_band_has_a_name_of_its_own_that_postgresql_does_not_cut() -> None:
    banded = ("grid = 0.01", "grid = 0.01\nbands = [5]")
    named = changed(("columns.note]", "columns.cost_sum_band]\nexpression = 'admitted::date'"), banded)
    with pytest.raises(KeyholeError, match=r"KH004.*visits\.columns\.cost\.bands.*two columns cost_sum_band"):
        compiled(named)
    long = "cost" * 14
    renamed = tuple(replace(one, name=long) if one.name == "cost" else one for one in SCHEMA["visits"])
    with pytest.raises(KeyholeError, match=r"KH004.*too long"):
        compiled(changed(("columns.cost]", f"columns.{long}]"), banded), {**SCHEMA, "visits": renamed})


def test_only_listed_and_needed_columns_are_exposed() -> None:
    (visits,) = compiled().tables
    names = [column.name for column in visits.columns]
    assert names == ["patient_id", "ward", "disease", "age", "cost", "admitted", "note", "month"]


def test_conditions_see_as_much_of_a_text_as_the_owner_or_its_type_says() -> None:
    (visits,) = compiled().tables
    assert visits.get_column("ward").longest_text == 10  # character varying(10)
    assert visits.get_column("note").longest_text == LONGEST_TEXT
    assert visits.get_column("age").max_length is None
    (visits,) = compiled(changed(("columns.note]", "columns.note]\nmax_length = 4000"))).tables
    assert visits.get_column("note").longest_text == 4000
    (visits,) = compiled(changed(("columns.ward]", "columns.ward]\nmax_length = 4000"))).tables
    assert visits.get_column("ward").longest_text == 10


def test_a_row_cap_replaces_clipped_totals() -> None:
    text = changed(
        ("rows_per_unit = 20", 'max_rows_per_group = { rows = 5, unique = "id" }'),
        ("per_unit = [0, 2200]\n", ""),
        ("per_unit = [0, 8000]\n", ""),
    )
    (visits,) = compiled(text).tables
    assert visits.row_cap == RowCap(rows=5, unique="id")
    assert visits.rows_per_unit is None
    assert visits.get_column("id").declared == "bigint"
    with pytest.raises(KeyholeError, match="KH004"):
        compiled(text.replace("grid = 1\n", "grid = 1\nper_unit = [0, 1]\n"))


def test_a_public_table_is_copied_with_its_rows() -> None:
    (diseases,) = compiled().public_tables
    assert set(diseases.rows) == {("measles", 1), ("flu", 2), ("gout", None)}
    assert [column.declared for column in diseases.columns] == ["text", "integer"]


REFUSED: list[tuple[str, str, str, str, str]] = [
    ("[tables.visits.columns.note]", "[tables.visits.columns.notes]", "KH006", "columns.notes", "note?"),
    ("[tables.visits.columns.note]", "[tables.visits.columns.discharged]", "KH006", "discharged", "AT TIME ZONE"),
    ("date_trunc('month', admitted)", "date_trunc('month', discharged)", "KH006", "month.expression", "AT TIME ZONE"),
    ("date_trunc('month', admitted)", "date_trunc('month', admited)", "KH006", "month.expression", "admitted?"),
    ("date_trunc('month', admitted)", "date_trunc('month', age)", "KH010", "month.expression", "date"),
    ('"2025-12-01"', '"2025-12-02"', "KH003", "month.key", "never"),
    ('"2025-12-01"', '"2026-12-01"', "KH003", "month.key", "empty"),
    ("1 month", "1 moon", "KH003", "month.key", "month"),
    ('["A", "B", "C"]', '["A", "B", "A"]', "KH003", "ward.key", "twice"),
    ('["A", "B", "C"]', "[]", "KH003", "ward.key", "empty"),
    ('["A", "B", "C"]', "[1, 2]", "KH003", "ward.key", "text"),
    ('"diseases.name"', '"diseases.nam"', "KH003", "disease.key", "name"),
    ('"diseases.name"', '"diseases.chapter"', "KH003", "disease.key", "same type"),
    ('privacy_unit = "patient_id"', 'privacy_unit = "patient"', "KH006", "visits.privacy_unit", "patient_id?"),
    ('privacy_unit = "patient_id"', 'privacy_unit = "cost"', "KH005", "visits.privacy_unit", "integer"),
    ('immutable = ["ward"]', 'immutable = ["wrad"]', "KH006", "visits.immutable", "ward?"),
    ("grid = 0.01", "", "KH004", "cost.grid", "0.01"),
    (
        "columns.cost]",
        "columns.disease2]\nexpression = 'age'\n[tables.visits.columns.cost]",
        "KH010",
        "disease2",
        "date",
    ),
    ("columns.note]", "columns.note]\nbounds=[0,1]\ngrid=1\nper_unit=[0,1]", "KH004", "note.bounds", "integer"),
    ("columns.note]", "columns.scan]\nkey = { values = ['x'] }", "KH003", "scan.key", "other"),
    ("columns.note]", "columns.note]\ntype = 'integer'", "KH006", "note.type", "text"),
    ("columns.age]", "columns.age]\nmax_length = 5", "KH002", "age.max_length", "Remove"),
    ("columns.disease]", "columns.disease]\nmax_length = 4", "KH002", "disease.max_length", "max_length = 7"),
    ("[tables.diseases]", "[tables.diseases]\ncolumns.nam.comment = 'x'", "KH006", "diseases.columns.nam", "name?"),
]


@in_turn(("old", "new", "code", "key", "word"), REFUSED)
def test_a_refusal_names_code_key_and_fix(old: str, new: str, code: str, key: str, word: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        compiled(changed((old, new)))
    error = refused.value
    assert error.code == code
    assert key in error.message
    assert error.message.startswith("keyhole.toml, line ")
    assert word in f"{error.message} {error.hint}"


def test_a_domain_larger_than_the_limit_is_refused() -> None:
    with pytest.raises(KeyholeError, match=r"KH003.*ward.key"):
        compiled(BASE + "[limits]\nmax_keys = 2\n")


def test_what_is_not_pinned_or_differs_is_refused() -> None:
    policy = parsed()
    pins = pins_for(policy)
    later = parsed(changed(('["A", "B", "C"]', '["A", "B", "C", "D"]')))
    for asked, given_pins in ((policy, Pins()), (policy, Pins(tables=pins.tables)), (later, pins)):
        with pytest.raises(KeyholeError, match="KH007"):
            compile_catalog(asked, schema=SCHEMA, pins=given_pins, directory=Path("/data"))
    widened = {**SCHEMA, "diseases": (*SCHEMA["diseases"], SourceColumn("extra", "text", True))}
    with pytest.raises(KeyholeError, match="KH007"):
        compile_catalog(policy, schema=widened, pins=pins, directory=Path("/data"))
    with pytest.raises(KeyholeError, match="KH006"):
        compile_catalog(policy, schema={"diseases": SCHEMA["diseases"]}, pins=pins, directory=Path("/data"))


def test_the_digest_follows_what_answers_depend_on() -> None:
    base = compiled().digest
    assert compiled(changed(("epsilon_per_query = 2.0", "epsilon_per_query = 1.0"))).digest == base
    assert compiled(changed(("reader@db", "reader:secret@db"))).digest == base
    grouped = changed(("rows_per_unit = 20", "rows_per_unit = 20\ngroupable = false"))
    assert compiled(grouped).digest == base
    assert (
        compiled(changed(("grid = 0.01", "grid = 0.01\nbands = [5]"), ("rows_per_unit = 20", COUNTED))).digest == base
    )
    assert compiled(changed(("reader@db/hospital", "reader@db/hospital?password=secret"))).digest == base
    assert compiled(changed(("reader@db/hospital", "reader@db/hospital?options=-crole"))).digest != base
    assert compiled(changed(("reader@db", "other@db"))).digest != base
    for old, new in (
        ("rows_per_unit = 20", "rows_per_unit = 21"),
        ("max_groups_per_unit = 3", "max_groups_per_unit = 4"),
        ('privacy_unit = "patient_id"', 'privacy_unit = ["patient_id", "admitted"]'),
        ("[tables.visits]\n", '[tables.visits]\nrelation = "other.visits"\n'),
        ("[tables.visits]\n", '[tables.visits]\nseed = "another"\n'),
        ("bounds = [0, 110]", "bounds = [0, 111]"),
        ("grid = 1\n", "grid = 2\n"),
        ("per_unit = [0, 2200]", "per_unit = [0, 2202]"),
        ("daily 02:00", "daily 03:00"),
        ('immutable = ["ward"]\n', ""),
        ('["2025-12-01", "2026-02-01"]', '["2025-12-01", "2026-03-01"]'),
        ("@db/", "@other/"),
        ("/hospital", "/clinic"),
        ('"C"]', '"D"]'),
    ):
        assert compiled(changed((old, new))).digest != base, new


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("visits", None, '"visits"'),
        ("visits", "clinic.Visits", '"clinic"."Visits"'),
        ("visits", '"a.b"."o""d"', '"a.b"."o""d"'),
        (
            "sales",
            "sales.parquet",
            "read_parquet('/data/sales.parquet', utf8_validation = 'replace', union_by_name = true)",
        ),
        ("sales", "it's.CSV", "read_csv('/data/it''s.CSV')"),
        ("sales", "/abs/sales.csv", "read_csv('/abs/sales.csv')"),
    ],
)
def test_a_relation_is_quoted_or_a_file_beside_the_policy(name: str, written: str | None, expected: str) -> None:
    assert write_relation(name, TableSection(relation=written), directory=Path("/data"), kind="duckdb") == expected


KNOWN: tuple[tuple[str, str, tuple[str, str] | None], ...] = (
    ("postgresql", "clinic.visits", ("clinic", "visits")),
    ("postgresql", 'Clinic."Day Visits"', ("Clinic", "Day Visits")),
    ("postgresql", '"a""b"."c""d"', ('a"b', 'c"d')),
    ("duckdb", "Clinic.Visits", ("clinic", "visits")),
    ("duckdb", 'lake.main."Visits"', ("main", "Visits")),
    ("spark", "lake.Clinic.`Day Visits`", ("clinic", "Day Visits")),
    ("postgresql", "visits", None),
    ("postgresql", "public.visits", None),
    ("postgresql", "pg_catalog.pg_class", None),
    ("postgresql", "information_schema.tables", None),
    ("postgresql", "keyhole.budget", None),
    ("postgresql", '"Pg_temp".visits', None),
    ("postgresql", f"clinic.{'v' * 64}", None),
    ("duckdb", "lake/visits.parquet", None),
    ("spark", "parquet.`/data/visits`.parquet", None),
)


@in_turn(("kind", "written", "expected"), KNOWN)
def test_clients_may_write_a_table_as_its_source_does(
    kind: str, written: str, expected: tuple[str, str] | None
) -> None:
    url = {"postgresql": "postgresql://h/d", "duckdb": "duckdb:///x.duckdb", "spark": "sc://h"}[kind]
    source = SourceSection(url=url)
    tables = {"visits": TableSection(relation=written)}
    document = PolicyDocument.model_construct(source=source, tables=tables)
    assert list_known_names(document) == (() if expected is None else (SourceName(*expected, "visits"),))


def test_a_name_that_is_two_tables_is_neithers() -> None:
    tables = {"a": TableSection(relation="x.claims"), "b": TableSection(relation='y."claims"')}
    document = PolicyDocument.model_construct(source=SourceSection(url="postgresql://h/d"), tables=tables)
    assert [one.table for one in list_known_names(document)] == ["a", "b"]
    tables["c"] = TableSection(relation='"x".claims')
    assert [one.table for one in list_known_names(document)] == ["b"]
    tables["c"] = TableSection(relation="x.claims", known_as="X.Other")
    assert [(one.schema, one.name) for one in list_known_names(document)] == [
        ("x", "claims"),
        ("y", "claims"),
        ("x", "other"),
    ]


@in_turn(
    ("declared", "kind"),
    [
        ("character varying(10)", SqlType.TEXT),
        ("numeric(12, 2)", SqlType.NUMERIC),
        ("timestamp(3) without time zone", SqlType.TIMESTAMP),
        ("timestamp with time zone", SqlType.OTHER),
        ("character(3)", SqlType.OTHER),
        ("integer[]", SqlType.OTHER),
        ("BIGINT", SqlType.INTEGER),
        ("real", SqlType.DOUBLE),
    ],
)
def test_declared_types_map_to_the_few_that_are_computed(declared: str, kind: SqlType) -> None:
    assert read_sql_type(declared) is kind


@given(
    start=st.dates(min_value=date(1990, 1, 1), max_value=date(2030, 12, 31)).map(lambda day: day.replace(day=1)),
    months=st.integers(min_value=0, max_value=60),
    step=st.integers(min_value=1, max_value=7),
)
def test_a_range_of_months_counts_every_step_month_once(start: date, months: int, step: int) -> None:
    index = start.year * 12 + start.month - 1 + months
    stop = date(index // 12, index % 12 + 1, 1)
    domain = expand_range(start, stop, f"{step} months", SqlType.DATE)
    assert len(domain) == months // step + 1
    assert domain[0] == start
    assert len(set(domain)) == len(domain)
    assert all(isinstance(value, date) and value.day == 1 and start <= value <= stop for value in domain)


@given(st.datetimes(), st.sampled_from([*DATE_PARTS, "hour"]))
def test_what_truncation_gives_is_possible_and_nothing_else(moment: datetime, part: str) -> None:
    """Against truncation written out: a moment is possible exactly when truncating it changes nothing."""
    hour = moment.replace(minute=0, second=0, microsecond=0)
    day = hour.replace(hour=0)
    truncated = {
        "hour": hour,
        "day": day,
        "week": None,
        "month": day.replace(day=1),
        "quarter": day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1),
        "year": day.replace(day=1, month=1),
    }[part]
    derivation = Derivation("date_trunc", part, "x")
    if truncated is None:
        assert is_possible(derivation, moment) == (moment == day and moment.isoweekday() == 1)
    else:
        assert is_possible(derivation, truncated)
        assert is_possible(derivation, moment) == (moment == truncated)


def test_integer_and_time_ranges_include_both_ends() -> None:
    assert expand_range(1, 10, 3, SqlType.INTEGER) == (1, 4, 7, 10)
    assert expand_range("2026-01-01", "2026-01-01 02:00", "1 hour", SqlType.TIMESTAMP) == tuple(
        datetime(2026, 1, 1, hour) for hour in range(3)
    )
    assert expand_range("2026-01-05", "2026-01-20", "1 week", SqlType.DATE) == (
        date(2026, 1, 5),
        date(2026, 1, 12),
        date(2026, 1, 19),
    )


@pytest.mark.parametrize(
    ("first", "last", "step", "kind"),
    [
        (1, 1_500_000, 1, SqlType.INTEGER),
        (-749_999, 750_000, None, SqlType.INTEGER),
        ("0001-01-01", "4107-11-11", "1 day", SqlType.DATE),
        ("1900-01-01", "2071-02-12 23:00", None, SqlType.TIMESTAMP),
    ][:: rounds(1, quick=2)],
)
def test_a_range_may_have_as_many_values_as_the_owner_allows(
    first: object, last: object, step: object, kind: SqlType
) -> None:
    assert len(expand_range(first, last, step, kind, most=1_500_000)) == 1_500_000
    for most in (1_499_999, 1_000_000):
        with pytest.raises(Fault) as refused:
            expand_range(first, last, step, kind, most=most)
        assert refused.value.problem == f"the range has 1,500,000 values, more than {most:,}"
        assert str(refused.value.hint).endswith(f"or raise limits.max_keys = {most}.")
    with pytest.raises(Fault):
        expand_range(first, last, step, kind)


def test_the_limit_of_the_policy_holds_for_ranges() -> None:
    measure = "bounds = [0, 110]\ngrid = 1\nper_unit = [0, 2200]"
    wide = changed((measure, "key = { range = [1, 1_200_000] }"))
    catalog = compiled(f"{wide}\n[limits]\nmax_keys = 1_200_000\n")
    assert max(len(column.domain or ()) for table in catalog.tables for column in table.columns) == 1_200_000
    with pytest.raises(KeyholeError, match=r"KH003.*1,200,000 values, more than 1,000,000"):
        compiled(wide)


@in_turn(
    ("first", "last", "step", "kind"),
    [
        (1, 10, 0, SqlType.INTEGER),
        (1, 10, "1 day", SqlType.INTEGER),
        (1, 10**9, 1, SqlType.INTEGER),
        ("2026-01-01", "2026-12-31", "1 hour", SqlType.DATE),
        ("2026-01-31", "2026-12-31", "1 month", SqlType.DATE),
        ("2026-01-01T00:00:00+02:00", "2026-12-31", "1 day", SqlType.TIMESTAMP),
        ("a", "b", None, SqlType.TEXT),
    ],
)
def test_impossible_ranges_are_refused(first: object, last: object, step: object, kind: SqlType) -> None:
    with pytest.raises(Fault):
        expand_range(first, last, step, kind)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=4),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_a_domain_digest_tells_lists_apart(values: list[str]) -> None:
    digest = digest_domain(list_values(values, SqlType.TEXT), SqlType.TEXT)
    assert digest == digest_domain(tuple(values), SqlType.TEXT)
    assert digest != digest_domain((*values, ""), SqlType.TEXT)
    if len(values) > 1:
        assert digest != digest_domain(("".join(values),), SqlType.TEXT)
        assert digest != digest_domain(tuple(reversed(values)), SqlType.TEXT)
