import codecs
import json
from datetime import date, datetime
from decimal import Decimal

import psycopg
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from planner.catalog.model import Value
from proxy.shadow.address import ShadowAddress
from proxy.shadow.array import array_literal, text_array
from proxy.shadow.parameter import value, values_sql
from tests.effort import examples

UTF8 = codecs.lookup("utf-8")


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
        ("'2011-12-24 10:30+00'", "timestamptz", datetime(2011, 12, 24, 11, 30)),
        ("'Côte d''Ivoire'", "text", "Côte d'Ivoire"),
        ("'x'", "varchar(3)", "x"),
        ("NULL", "text", None),
    ],
)
def test_a_parameter_means_the_same_whatever_the_session_has_set(
    shadow: ShadowAddress, literal: str, declared: str, expected: Value | None
) -> None:
    with psycopg.connect(shadow.conninfo(user="ada", database="retail"), autocommit=True) as ada:
        ada.execute("SET datestyle = 'German, DMY'")
        ada.execute("SET timezone = 'Europe/Berlin'")
        ada.execute("SET extra_float_digits = 0")
        text_sql = values_sql(1).replace("$1", f"{literal}::{declared}")
        row = ada.execute(text_sql.encode()).fetchone()
        oid = ada.execute(f"SELECT {literal}::{declared}".encode()).description
    assert row is not None
    assert oid is not None
    (canonical,) = json.loads(row[0])
    found = value(canonical, oid[0].type_code)
    assert found == expected
    assert type(found) is type(expected)


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)))
@example(["'", None, "NULL", "\u00e4"] * 20_000)  # more than are written at once
def test_an_array_arrives_as_it_was(shadow: ShadowAddress, values: list[str | None]) -> None:
    with psycopg.connect(shadow.conninfo(user="ada", database="retail"), autocommit=True) as ada:
        answer = ada.pgconn.exec_params(b"SELECT unnest($1::text[])", [text_array(values, UTF8)], [1009], [1])
        found = [answer.get_value(row, 0) for row in range(answer.ntuples)]
    assert [None if one is None else one.decode() for one in found] == values


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)))
@example(["'", '"', "\\", None, "NULL", "", "{,}"] * 10_000)  # more than are written at once
def test_an_array_arrives_as_it_was_where_no_parameter_may_stand(
    shadow: ShadowAddress, values: list[str | None]
) -> None:
    with psycopg.connect(shadow.conninfo(user="ada", database="retail"), autocommit=True) as ada:
        found = ada.execute(f"SELECT unnest({array_literal(values)}::text[])".encode()).fetchall()
    assert [one for (one,) in found] == values
