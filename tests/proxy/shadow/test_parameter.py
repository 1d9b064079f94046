import codecs
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import psycopg
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from planner.values.constant import ArrayValue, ForeignValue, Interval, ParameterValue
from proxy.shadow.address import ShadowAddress
from proxy.shadow.array import encode_text_array, write_array_literal
from proxy.shadow.parameter import read_value, write_values_query
from tests.effort import examples

UTF8 = codecs.lookup("utf-8")


@pytest.mark.parametrize(
    "settings",
    [
        ("extra_float_digits = 3", "datestyle = 'ISO, DMY'", "timezone = 'UTC'"),
        ("extra_float_digits = 0", "datestyle = 'German, DMY'", "timezone = 'Europe/Berlin'"),
        ("extra_float_digits = -15", "datestyle = 'SQL, DMY'", "intervalstyle = 'sql_standard'"),
        ("bytea_output = 'escape'", "datestyle = 'Postgres, DMY'", "intervalstyle = 'iso_8601'"),
        ("standard_conforming_strings = off", "datestyle = 'German'", "intervalstyle = 'postgres_verbose'"),
    ],
)
@pytest.mark.parametrize(
    ("literal", "declared", "expected"),
    [
        ("' 7 '", "integer", 7),
        ("'-9223372036854775808'", "bigint", -(2**63)),
        ("'1e3'", "numeric", Decimal(1000)),
        ("'2.50'", "numeric", Decimal("2.50")),
        ("'NaN'", "numeric", "NaN"),
        ("'0.1'", "double precision", Decimal("0.1")),
        ("'-inf'", "double precision", "-Infinity"),
        ("'on'", "boolean", True),
        ("'no'", "boolean", False),
        ("'24.12.2011'", "date", date(2011, 12, 24)),
        ("'infinity'", "date", "infinity"),
        ("'24.12.2011 10:30'", "timestamp", datetime(2011, 12, 24, 10, 30)),
        ("'2011-12-24 10:30+00'", "timestamptz", datetime(2011, 12, 24, 10, 30, tzinfo=UTC)),
        ("'0.1'", "real", Decimal("0.100000001490116119384765625")),
        ("0.1::float8 + 0.2::float8", "float8", Decimal("0.30000000000000004")),
        ("'1 mon -2 days 03:04:05.6'", "interval", Interval(months=1, days=-2, microseconds=11_045_600_000)),
        ("'t  '", "char(3)", ForeignValue("character", "t")),
        ("'t  '", "name", ForeignValue("name", "t  ")),
        ("'t'", '"char"', ForeignValue('"char"', "t")),
        ("'null'", "jsonb", ForeignValue("jsonb", "null")),
        ("'127.0.0.1'", "inet", ForeignValue("inet", "127.0.0.1/32")),
        ("'4000000000'", "oid", ForeignValue("oid", "4000000000")),
        ("'{1, NULL}'", "int[]", ArrayValue((1, None))),
        ("'{}'", "float8[]", ArrayValue(())),
        ("'{0.1,NULL,NaN}'", "float8[]", ArrayValue((Decimal("0.1"), None, "NaN"))),
        ("'{1.50}'", "numeric[]", ArrayValue((Decimal("1.50"),))),
        ("'{\"t  \"}'", "char(3)[]", ArrayValue((ForeignValue("character", "t"),))),
        ("'{t,f}'", "bool[]", ArrayValue((True, False))),
        ("'{2 days}'", "interval[]", ArrayValue((Interval(months=0, days=2, microseconds=0),))),
        ("'Côte d''Ivoire'", "text", "Côte d'Ivoire"),
        ("'x'", "varchar(3)", "x"),
        ("NULL", "text", None),
    ],
)
def test_a_parameter_means_the_same_whatever_the_session_has_set(
    shadow: ShadowAddress, literal: str, declared: str, expected: ParameterValue | None, settings: tuple[str, ...]
) -> None:
    with psycopg.connect(shadow.make_conninfo(user="ada", database="retail"), autocommit=True) as ada:
        for setting in settings:
            ada.execute(f"SET {setting}".encode())
        described = ada.execute(f"SELECT {literal}::{declared}".encode()).description
        assert described is not None
        oid = described[0].type_code
        row = ada.execute(write_values_query([(f"{literal}::{declared}", oid)]).encode()).fetchone()
    assert row is not None
    (written,) = json.loads(row[0])
    found = read_value(written, oid)
    assert found == expected
    assert type(found) is type(expected)


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)))
@example(["'", None, "NULL", "\u00e4"] * 20_000)  # more than are written at once
def test_an_array_arrives_as_it_was(shadow: ShadowAddress, values: list[str | None]) -> None:
    with psycopg.connect(shadow.make_conninfo(user="ada", database="retail"), autocommit=True) as ada:
        answer = ada.pgconn.exec_params(b"SELECT unnest($1::text[])", [encode_text_array(values, UTF8)], [1009], [1])
        found = [answer.get_value(row, 0) for row in range(answer.ntuples)]
    assert [None if one is None else one.decode() for one in found] == values


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)))
@example(["'", '"', "\\", None, "NULL", "", "{,}"] * 10_000)  # more than are written at once
def test_an_array_arrives_as_it_was_where_no_parameter_may_stand(
    shadow: ShadowAddress, values: list[str | None]
) -> None:
    with psycopg.connect(shadow.make_conninfo(user="ada", database="retail"), autocommit=True) as ada:
        found = ada.execute(f"SELECT unnest({write_array_literal(values)}::text[])".encode()).fetchall()
    assert [one for (one,) in found] == values
