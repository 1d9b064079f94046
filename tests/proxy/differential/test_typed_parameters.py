"""Parameters of every type: the same PREPARE gives the groups that a plain PostgreSQL gives, or is refused.

Each group has 600 equal rows and the threshold is 300, at a tolerance of 20 rows: a false alarm has a probability below
1e-9 a statement.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import pack

import psycopg
import pytest
from psycopg import pq

from proxy.cli.check import check
from tests.effort import rounds
from tests.worlds.house import VERIFIER, House, new_database, opened

_ROWS = """
SELECT g, t, t::varchar AS v, k::integer AS k, k::bigint AS n, d::date AS d, d::timestamp AS s, x::float8 AS x,
  x::float4 AS r, x::numeric AS m, u::uuid AS u, b::boolean AS b
FROM (VALUES
  ('A', 't  ', 1, '2026-01-01', '0.1', '00000000-0000-0000-0000-00000000000a', true),
  ('B', 't', 2, '2026-01-02', '0.3', '00000000-0000-0000-0000-00000000000b', false),
  ('C', '"t"', 5, '2026-01-03', '1', '00000000-0000-0000-0000-00000000000c', NULL),
  ('D', '{1, 2}', 1010, '2026-01-04', '2', '00000000-0000-0000-0000-00000000000d', NULL),
  ('E', '127.0.0.1/32', 49, '2026-02-01', '3', '00000000-0000-0000-0000-00000000000e', NULL),
  ('F', '127.0.0.1', 10, '2026-01-31', '2.5', NULL, NULL),
  ('H', '1010', -1, '2026-03-01', '0.30000000000000004', NULL, NULL),
  ('I', '{1,2}', 1900, NULL, NULL, NULL, NULL),
  ('J', '1 mon', 16777217, NULL, '16777216', NULL, NULL),
  ('L', 'é', 7, NULL, NULL, NULL, NULL),
  ('K', '00:00:00+00', NULL, NULL, '-1', NULL, NULL)
) AS v(g, t, k, d, x, u, b), generate_series(1, 600)
"""
_POLICY = """
[source]
url = "{url}"
[ledger]
url = "sqlite:///keyhole.db"
[accuracy]
fnr = 0.01
fpr = 0.01
tolerance = "20"
mechanism = "keyhole"
[budget]
epsilon_per_predicate = 900.0
epsilon_per_unit = 900.0
epsilon_per_query = 100.0
[server]
database = "lab"
[tables.lab]
privacy_unit = "row"
refresh = "explicit"
[tables.lab.columns.g]
key = {{ values = ["A", "B", "C", "D", "E", "F", "H", "I", "J", "K", "L"] }}
{columns}
[analysts.ada]
password = "{verifier}"
"""


@dataclass(frozen=True)
class Lab:
    """One table behind Keyhole, and the same in a plain PostgreSQL."""

    house: House
    url: str

    def plain(self) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=True)


@pytest.fixture(scope="module")
def lab(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    directory = tmp_path_factory.mktemp("lab")
    with new_database(postgres_url) as url:
        with psycopg.connect(url) as owner:
            owner.execute(f"CREATE TABLE lab AS {_ROWS}".encode())
        columns = "\n".join(f"[tables.lab.columns.{name}]" for name in "tvkndsxrmub")
        policy = directory / "keyhole.toml"
        policy.write_text(_POLICY.format(url=url, verifier=VERIFIER, columns=columns), encoding="utf-8")
        check(policy, confirm=False)
        with opened(policy) as house:
            yield Lab(house, url)


def run(connection: psycopg.Connection, *statements: str) -> list[str] | str:
    """The groups in order, or the SQLSTATE of the error."""
    try:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return sorted(key for (key,) in cursor.fetchall())
    except psycopg.Error as error:
        return f"{error.sqlstate} {str(error)[:5]}" if str(error).startswith("KH") else str(error.sqlstate)


def asked(where: str) -> str:
    return f"SELECT g FROM lab WHERE {where} GROUP BY g HAVING count(*) > 300"


CASES = [
    # by what PostgreSQL compares implicitly
    ("bpchar", "t = $1", "'t  '"),
    ("bpchar", "t <> $1", "'t  '"),
    ("bpchar", "t IN ($1, 'x')", "'t  '"),
    ("bpchar[]", "t = ANY ($1)", """'{"t  "}'"""),
    ("bpchar[]", "t <> ALL ($1)", """'{"t  "}'"""),
    ("char(5)", "t = $1", "'t'"),
    ('"char"', "t = $1", "'t'"),
    ('"char"[]', "t = ANY ($1)", "'{t}'"),
    ("name", "t = $1", "'t  '"),
    ("name[]", "t = ANY ($1)", "'{t,1010}'"),
    ("name", "v = $1", "'t  '"),
    ("varchar", "t = $1", "'t  '"),
    ("varchar(1)", "v = $1", "'t'"),
    ("text", "v = $1", "'t  '"),
    ("text[]", "v = ANY ($1)", "'{t,NULL}'"),
    ("text", "t LIKE $1", "'t%'"),
    ("int2", "k = $1", "2"),
    ("int8", "k = $1", "4294967297"),
    ("int8", "n > $1", "4294967297"),
    ("int8[]", "k = ANY ($1)", "'{1,4294967297}'"),
    ("numeric", "k >= $1", "1010.5"),
    ("numeric", "x = $1", "0.3"),
    ("numeric", "m = $1", "0.30000000000000004"),
    ("float8", "x = $1", "'0.30000000000000004'"),
    ("float8", "k < $1", "1.5"),
    ("float8", "r = $1", "0.1"),
    ("float4", "r = $1", "0.1"),
    ("float4", "x = $1", "0.1"),
    ("float8[]", "x = ANY ($1)", "'{0.1,0.30000000000000004}'"),
    ("date", "d = $1", "'2026-01-02'"),
    ("date", "s > $1", "'2026-01-31'"),
    ("date[]", "d = ANY ($1)", "'{2026-01-02}'"),
    ("timestamp", "d < $1", "'2026-01-02 12:00'"),
    ("timestamptz", "s >= $1", "'2026-02-01 01:00+01'"),
    ("timestamptz[]", "s = ANY ($1)", "'{2026-02-01 01:00+01}'"),
    ("interval", "d < date '2026-01-31' + $1", "'1 day'"),
    ("interval", "s = timestamp '2026-01-01' + $1", "'1 mon'"),
    ("uuid", "u = $1", "'00000000-0000-0000-0000-00000000000A'"),
    ("uuid[]", "u = ANY ($1)", "'{00000000-0000-0000-0000-00000000000A}'"),
    ("bool", "b = $1", "'no'"),
    # by casts that are written
    ("bpchar", "t = $1::text", "'t  '"),
    ("bpchar", "v = $1::varchar", "'t  '"),
    ("text", "t = $1::bpchar", "'t  '"),
    ("bpchar[]", "v = ANY ($1::varchar[])", """'{"t  "}'"""),
    ("bpchar", "t LIKE $1::text", "'t  '"),
    ("bpchar", "k = $1::int", "'5 '"),
    ("name", "t LIKE $1::text", "'t  '"),
    ("json", "t = $1::text", """'"t"'"""),
    ("jsonb", "t = $1::text", """'"t"'"""),
    ("jsonb", "k = $1::int", "'5'"),
    ("jsonb", "k = $1::int", "'null'"),
    ("jsonb", "k = $1::int", "'\"5\"'"),
    ("jsonb", "b = $1::bool", "'true'"),
    ("jsonb", "$1 IS NULL", "'null'"),
    ("bit(4)", "k = $1::int", "'1010'"),
    ("bit(4)", "t = $1::text", "'1010'"),
    ("varbit", "t = CAST($1 AS text)", "'1010'"),
    ("int[]", "t = $1::text", "'{1, 2}'"),
    ("int[]", "k = ANY ($1::int8[])", "'{1, 2}'"),
    ("text[]", "k = ANY ($1::int[])", "'{1,2}'"),
    ("text", "k = ANY ($1::int[])", "'{1,2}'"),
    ("text", "t = ANY ($1::text[])", "'[\"t\"]'"),
    ("int8", "k = $1::int", "4294967297"),
    ("int8", "k = $1::int2", "65537"),
    ("int8", "k = $1::int", "2"),
    ("numeric", "k = $1::int", "1.5"),
    ("float8", "k = $1::int", "2.5"),
    ("float8", "m = $1::numeric", "'0.30000000000000004'"),
    ("float8", "r = $1::real", "0.1"),
    ("int4", "b = $1::bool", "1"),
    ("bool", "k = $1::int", "true"),
    ("bool", "t = $1::text", "true"),
    ("float8", "t = $1::text", "1010"),
    ("oid", "k = $1::int", "4294967295"),
    ("oid", "n = $1::int8", "10"),
    ("money", "m = $1::numeric", "'2.50'"),
    ("inet", "t = $1::text", "'127.0.0.1'"),
    ("inet", "t = $1::text", "'127.0.0.1/32'"),
    ("cidr", "t = $1::text", "'127.0.0.1'"),
    ('"char"', "k = $1::int", "'1'"),
    ("text", "t = $1::inet::text", "'127.0.0.1'"),
    ("text", "t = $1::jsonb::text", "'\"t\"'"),
    ("interval", "t = $1::text", "'30 days 1 mon -30 days'"),
    ("timetz", "t = $1::text", "'00:00+00'"),
    ("time", "t = $1::text", "'00:00'"),
    ("date", "t = $1::text", "'2026-01-01'"),
    ("timestamptz", "d = $1::date", "'2026-01-01 12:00Z'"),
    ("text", "d = $1::date", "'2026-01-01'"),
    ("int4range", "t = $1::text", "'[1,2]'"),
    ("xml", "t = $1::text", "'t'"),
    ("uuid", "t = $1::text", "'00000000-0000-0000-0000-00000000000A'"),
    ("text", "u = $1::uuid", "'00000000-0000-0000-0000-00000000000A'"),
    ("bytea", "t = $1::text", "'t'"),
    ("point", "t = $1::text", "'1,2'"),
    ("tsvector", "t = $1::text", "'t'"),
    ("regclass", "t = $1::text", "'pg_class'"),
    ("pg_lsn", "t = $1::text", "'1/0'"),
    ("macaddr", "t = $1::text", "'08:00:2b:01:02:03'"),
    # what PostgreSQL itself refuses
    ("json", "t = $1", """'"t"'"""),
    ("inet", "t = $1", "'127.0.0.1'"),
    ("date", "t = $1", "'2026-01-01'"),
    ("text", "k = $1", "'1'"),
    ("text", "k = $1::int", "'x'"),
    ("bit(4)", "k = $1", "'1010'"),
]
REFUSED = [
    # the column becomes `character`, whose blanks at the end do not count
    ("bpchar", "v = $1", "'t  '"),
    ("char(1)", "v IN ($1)", "'t'"),
    # the column becomes `oid`, in which -1 is the largest number
    ("oid", "k = $1", "10"),
    ("oid", "k < $1", "10"),
    ("oid[]", "k = ANY ($1)", "'{10}'"),
    # constants that are compared with one another
    ("interval", "$1 = interval '30 days'", "'1 mon'"),
    ("bpchar", "$1 = 't'", "'t  '"),
    ("int4", "t = $1::char(4)", "1010"),
    ("text", 'k = $1::"char"::int', "'1'"),
]
SETTINGS = [
    "extra_float_digits = 0",
    "extra_float_digits = -15",
    "IntervalStyle = 'sql_standard'",
    "IntervalStyle = 'iso_8601'",
    "DateStyle = 'SQL, DMY'",
    "DateStyle = 'German'",
    "bytea_output = 'escape'",
    "TimeZone = 'UTC'",
    "TimeZone = 'America/New_York'",
    "lc_monetary = 'C'",
    "lc_numeric = 'C'",
    "lc_time = 'C'",
    "client_encoding = 'LATIN1'",
    "standard_conforming_strings = on",
    "escape_string_warning = off",
    "backslash_quote = on",
]
SET_CASES = [
    ("float8", "x = $1", "'0.30000000000000004'"),
    ("float8[]", "x = ANY ($1)", "'{0.30000000000000004}'"),
    ("float4", "r = $1", "0.1"),
    ("float8", "t = $1::text", "1010.0000000000001"),
    ("interval", "s = timestamp '2026-01-01' + $1", "'1 mon -1 days +24:00'"),
    ("interval", "t = $1::text", "'1 mon'"),
    ("interval", "d < date '2026-01-31' + $1", "'-1 -2:00:00'"),
    ("date", "d = $1", "'02.01.2026'"),
    ("date", "d = $1", "'01/02/2026'"),
    ("date[]", "d = ANY ($1)", "'{02.01.2026}'"),
    ("timestamp", "s = $1", "'01/02/2026 00:00'"),
    ("timestamptz", "d = $1::date", "'2026-01-02 02:00Z'"),
    ("bytea", "t = $1::text", "'t'"),
    ("money", "m = $1::numeric", "'2.50'"),
    ("text", "t = $1", "'é'"),
    ("text", "t LIKE $1", "'{1,%'"),
]


LITERALS = (
    "t = U&'\\0074'",
    "t = u&'!0074' UESCAPE '!'",
    "t IN (U&'d!0074' UESCAPE 'd', 'x')",
    "t LIKE U&'\\0074%'",
    "t <> U&'\\0074  '",
    "d = U&'2026-01-0\\0032'",
    "k = U&'\\0035'",
    "t = U&'\\00'",
    "t = U&'\\0074' UESCAPE '+'",
    "t = 'x' UESCAPE '!'",
    "t = N't'",
    "t = n't  '",
    "t <> N't  '",
    "t IN (N't  ', 'x')",
    "t = ANY (ARRAY[N't  '])",
    "g = N'A  '",
    "d = N'2026-01-02'",
    "k = N'5'",
    "u = N'00000000-0000-0000-0000-00000000000a'",
)
REFUSED_LITERALS = (
    "v = N't  '",  # as with a parameter: the column becomes `character`
    "v IN (N't')",
    "t LIKE N't%'",
    "N't ' = 't'",
    "coalesce(N't  ', t) = 't'",
)


def test_a_literal_is_what_postgresql_makes_of_it(lab: Lab) -> None:
    with lab.plain() as plain, lab.house.connect() as ada:
        for where in LITERALS:
            assert run(ada, asked(where)) == run(plain, asked(where)), where
        for where in REFUSED_LITERALS:
            assert isinstance(run(plain, asked(where)), list)
            assert run(ada, asked(where)) in ("42804 KH212", "0A000 KH205"), where
        shown = "SELECT g, N'x ', U&'\\0061' FROM lab GROUP BY g HAVING count(*) > 300"
        assert sorted(ada.execute(shown.encode()).fetchall()) == sorted(plain.execute(shown.encode()).fetchall())


SET_LITERALS = (
    "x = 0.30000000000000004",
    "x = '0.30000000000000004'",
    "r = '0.1'::real",
    "m = 2.50",
    "d = '2026-01-02'",
    "d = date '2026-01-02'",
    "d IN ('2026-01-02', '2026-01-03')",
    "s = '2026-02-01 00:00'",
    "s = timestamp '2026-01-01' + interval '1 mon'",
    "s = timestamp '2026-01-01' + interval '1 mon -1 days +24:00'",
    "t = 'é'",
    "t = E'\\x74'",
    "t = U&'\\0074'",
    "t = 't\\'",
    "t LIKE '{1,%'",
    "u = '00000000-0000-0000-0000-00000000000A'",
    "b = 'no'",
)
# What PostgreSQL reads by the session's settings: the same there, or refused.
READ_BY_SETTINGS = (
    "d = '02.01.2026'",
    "d = '01/02/2026'",
    "s = '01/02/2026 00:00'",
    "d < date '2026-01-31' + interval '-1 2:00:00'",
    "s < timestamp '2026-01-04' + interval '-1 -2:00:00'",
    "s = timestamp '2026-01-03' + interval '-1 24:00:00'",
    "s >= timestamptz '2026-02-01 01:00+01'",
    "d = '2026-01-02 02:00Z'::timestamptz::date",
    "t = '0.30000000000000004'::float8::text",
    "t = interval '1 mon'::text",
)


def _choose(setting: str) -> slice:
    """Which cases a setting is tried with: at quick one in four, others than the next three settings are."""
    share = rounds(1, quick=4)
    return slice(SETTINGS.index(setting) % share, None, share)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_of_a_session_changes_what_a_literal_is(lab: Lab, setting: str) -> None:
    with lab.plain() as plain, lab.house.connect() as ada:
        for connection in (plain, ada):
            connection.execute(f"SET {setting}".encode())
        some = _choose(setting)
        for where in SET_LITERALS[some]:
            assert run(ada, asked(where)) == run(plain, asked(where)), (setting, where)
        for where in READ_BY_SETTINGS[some]:
            told = run(ada, asked(where))
            assert told in (run(plain, asked(where)), "42804 KH212", "0A000 KH205"), (setting, where)


def test_a_parameter_is_what_postgresql_makes_of_it(lab: Lab) -> None:
    with lab.plain() as plain, lab.house.connect() as ada:
        for connection in (plain, ada):
            connection.execute("SET timezone = 'UTC'")
        for number, (declared, where, value) in enumerate(CASES[:: rounds(1, quick=2)]):
            statements = (f"PREPARE a{number}({declared}) AS {asked(where)}", f"EXECUTE a{number}({value})")
            assert run(ada, *statements) == run(plain, *statements), (declared, where, value)


def test_a_parameter_of_a_type_that_changes_the_column_is_refused(lab: Lab) -> None:
    with lab.plain() as plain, lab.house.connect() as ada:
        for number, (declared, where, value) in enumerate(REFUSED):
            statements = (f"PREPARE a{number}({declared}) AS {asked(where)}", f"EXECUTE a{number}({value})")
            assert isinstance(run(plain, *statements), list), (declared, where, value)
            assert run(ada, *statements) == "42804 KH212", (declared, where, value)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_of_a_session_changes_what_a_parameter_is(lab: Lab, setting: str) -> None:
    """Each is read by the settings by which PostgreSQL reads values, and by none by which it writes them."""
    with lab.plain() as plain, lab.house.connect() as ada:
        for connection in (plain, ada):
            connection.execute(f"SET {setting}".encode())
        for number, (declared, where, value) in enumerate(SET_CASES[_choose(setting)]):
            statements = (f"PREPARE a{number}({declared}) AS {asked(where)}", f"EXECUTE a{number}({value})")
            assert run(ada, *statements) == run(plain, *statements), (setting, where, value)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_setting_changes_what_a_bound_parameter_is(lab: Lab, setting: str) -> None:
    """The same by messages of the protocol, with the types' numbers, in text and in binary."""
    bound = [
        ("x = $1", 701, b"0.30000000000000004", 0),
        ("x = $1", 701, pack("!d", 0.1 + 0.2), 1),
        ("r = $1", 700, pack("!f", 0.1), 1),
        ("t = $1", 1042, b"t  ", 0),
        ("t = $1", 1042, b"t  ", 1),
        ("t = $1", 18, b"t", 1),
        ("t = $1::text", 3802, b'\x01"t"', 1),
        ("t = $1::text", 114, b'"t"', 0),
        ("k = $1::int", 1560, b"1010", 0),
        ("k = $1::int", 20, pack("!q", 4294967297), 1),
        ("k = $1::int", 20, b"4294967297", 0),
        ("t = $1::text", 869, b"127.0.0.1", 0),
        ("t = $1::text", 1007, b"{1, 2}", 0),
        ("t = ANY ($1)", 1014, b'{"t  "}', 0),
        ("s = timestamp '2026-01-01' + $1", 1186, pack("!qii", 0, 0, 1), 1),
        ("d = $1", 1082, pack("!i", 9498), 1),
    ]
    with lab.plain() as plain, lab.house.connect() as ada:
        for connection in (plain, ada):
            connection.execute(f"SET {setting}".encode())
        for where, oid, value, form in bound[_choose(setting)]:
            found = [exchange(connection, asked(where), oid=oid, value=value, form=form) for connection in (ada, plain)]
            assert found[0] == found[1], (setting, where, oid)


def exchange(connection: psycopg.Connection, sql: str, *, oid: int, value: bytes, form: int) -> list[str] | str:
    """The groups in order, or the SQLSTATE of the error."""
    answer = connection.pgconn.exec_params(sql.encode(), [value], [oid], [form])
    if answer.status != pq.ExecStatus.TUPLES_OK:
        return str((answer.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode())
    return sorted((answer.get_value(row, 0) or b"").decode() for row in range(answer.ntuples))
