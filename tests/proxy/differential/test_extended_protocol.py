"""Fixed conversations of the extended protocol: byte for byte as with PostgreSQL."""

import pytest

from proxy.wire.backend import CommandComplete, DataRow, ParameterDescription
from proxy.wire.frontend import Bind, Close, Copy, Describe, Execute, Flush, FrontendMessage, Parse, Query, Sync
from tests.proxy.differential.pair import Pair, sqlstates
from tests.worlds.countries import QUESTION


def bind(portal: bytes = b"", statement: bytes = b"", *values: bytes | None, results: tuple[int, ...] = ()) -> Bind:
    return Bind(portal, statement, (), values, results)


def run(sql: bytes, rows: int = 0) -> tuple[FrontendMessage, ...]:
    return Parse(b"", sql), bind(), Describe(b"P", b""), Execute(b"", rows)


ROWS = b"SELECT g, g::text, g::numeric(5,2), NULL FROM generate_series(1, 5) g"
CONVERSATIONS: dict[str, tuple[FrontendMessage, ...]] = {
    "binary": (
        Parse(b"q", b"SELECT $1::int, $2::text, $3::date, $4::numeric, $5::bytea, $6::bool, $7::float8[]"),
        Describe(b"S", b"q"),
        Bind(
            b"", b"q", (1, 0, 0, 0, 0, 0, 0), (b"\0\0\0\7", b"x", b"2025-12-24", b"1.50", b"\\x00", None, b"{1}"), (1,)
        ),
        Describe(b"P", b""),
        Execute(b"", 0),
        Bind(b"", b"q", (), (b"1", None, None, b"NaN", None, b"t", None), (0, 1, 1, 1, 1, 1, 1)),
        Execute(b"", 0),
    ),
    "row limits": (
        Parse(b"q", ROWS),
        bind(b"p", b"q"),
        Execute(b"p", 2),
        Execute(b"p", 2),
        Describe(b"P", b"p"),
        Execute(b"p", 2),
        Execute(b"p", 2),
        Sync(),
        Execute(b"p", 1),
    ),
    "negative row limit": (Parse(b"", ROWS), bind(), Execute(b"", -1)),
    "portals in a transaction": (
        *run(b"BEGIN"),
        Parse(b"q", ROWS),
        bind(b"p", b"q"),
        bind(b"r", b"q"),
        Sync(),
        Execute(b"p", 1),
        Sync(),
        Execute(b"r", 1),
        Execute(b"p", 0),
        Close(b"P", b"p"),
        Execute(b"p", 0),
        Sync(),
        Execute(b"r", 0),
        Sync(),
        *run(b"ROLLBACK"),
    ),
    "names": (
        Parse(b"q", b"SELECT 1"),
        Parse(b"q", b"SELECT 2"),
        Sync(),
        Close(b"S", b"q"),
        Close(b"S", b"q"),
        Close(b"P", b"nothing"),
        Parse(b"q", b"SELECT 2"),
        bind(b"p", b"q"),
        bind(b"p", b"q"),
        Sync(),
        bind(b"", b"unknown"),
        Sync(),
        Describe(b"S", b"unknown"),
        Sync(),
        Describe(b"P", b"unknown"),
        Sync(),
        Execute(b"unknown", 0),
    ),
    "unnamed": (
        Parse(b"", b"SELECT 1"),
        Sync(),
        bind(),
        Execute(b"", 0),
        Sync(),
        Query(b"SELECT 2"),
        bind(),
        Sync(),
        Parse(b"", b"SELECT 3"),
        Sync(),
        Parse(b"", b"SELEC"),
        Sync(),
        bind(),
        Execute(b"", 0),
    ),
    "skip": (
        Parse(b"a", b"SELECT nope"),
        Parse(b"b", b"SELECT 1"),
        Flush(),
        Query(b"SELECT 'skipped'"),
        Copy("d", b"x"),
        Sync(),
        bind(b"", b"b"),
    ),
    "wrong counts": (
        Parse(b"q", b"SELECT $1::int"),
        bind(b"", b"q"),
        Sync(),
        bind(b"", b"q", b"1", b"2"),
        Sync(),
        Bind(b"", b"q", (0, 0), (b"1",), ()),
        Sync(),
        Bind(b"", b"q", (), (b"1",), (0, 0)),
        Sync(),
        Bind(b"", b"q", (1,), (b"1",), ()),
        Sync(),
        Bind(b"", b"q", (7,), (b"1",), ()),
        Sync(),
        Bind(b"", b"q", (), (b"x",), ()),
    ),
    "types": (
        Parse(b"a", b"SELECT $1, $2 || 'x', $3 + 1", (23, 0, 20)),
        Describe(b"S", b"a"),
        Parse(b"b", b"SELECT $1"),
        Describe(b"S", b"b"),
        Parse(b"c", b"SELECT $2"),
        Sync(),
        Parse(b"d", b"SELECT $1", (99999999,)),
    ),
    "empty": (*run(b""), *run(b" -- nothing"), Sync(), *run(b";")),
    "no data": (*run(b"SET datestyle = 'ISO'"), *run(b"UNLISTEN *"), *run(b"SHOW datestyle"), Describe(b"S", b"")),
    "several statements": (*run(b"SELECT 1; SELECT 2"), Sync(), *run(b"SELECT 1;"), Sync(), *run(b"SELECT 1; SELEC")),
    "several with a question": (*run(b"SELECT 1; " + QUESTION.encode()), Sync(), *run(b"SELECT 8")),
    "errors in a transaction": (
        *run(b"BEGIN"),
        Sync(),
        Parse(b"q", b"SELECT nope"),
        Sync(),
        Parse(b"r", b"SELECT 1"),
        Sync(),
        Parse(b"r", b"SELEC"),
        Sync(),
        *run(b"ROLLBACK"),
        Sync(),
        *run(b"SELECT 1"),
    ),
    "failing while it runs": (*run(b"SELECT 1 / (3 - g) FROM generate_series(1, 5) g"), Sync(), *run(b"SELECT 1")),
    "implicit transaction": (*run(b"SELECT 1"), *run(b"DECLARE c CURSOR FOR " + ROWS), *run(b"FETCH 2 FROM c"), Sync()),
    "declare alone": (*run(b"DECLARE c CURSOR FOR SELECT 1"), Sync()),
    "cursor as portal": (
        *run(b"BEGIN"),
        *run(b"DECLARE c CURSOR FOR " + ROWS),
        Describe(b"P", b"c"),
        Execute(b"c", 2),
        *run(b"FETCH c"),
        Execute(b"c", 0),
        *run(b"COMMIT"),
    ),
    "copy messages": (Copy("d", b"x"), Copy("c", b""), Copy("f", b"why\0"), *run(b"SELECT 1"), Copy("d", b"y")),
    "query in a batch": (
        *run(b"SELECT 1"),
        Query(b"SELECT 2"),
        *run(b"SELECT 3"),
        Query(b"SELECT 1/0"),
        *run(b"SELECT 4"),
    ),
    "discard": (Parse(b"q", b"SELECT 1"), Sync(), *run(b"DISCARD ALL"), Sync(), bind(b"", b"q")),
    "notices": (*run(b"ROLLBACK"), Sync(), *run(b"SET LOCAL datestyle = 'SQL'")),
    "execute": (Query(b"PREPARE p (int) AS SELECT $1"), bind(b"", b"p", b"5"), Execute(b"", 0), *run(b"EXECUTE p(6)")),
    "changed result": (
        Parse(b"q", b"SELECT * FROM regions ORDER BY 1"),
        Sync(),
        *run(b"SET search_path = pg_catalog"),
        Sync(),
        bind(b"", b"q"),
    ),
}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_is_the_same(pair: Pair, name: str, apart: bool) -> None:
    pair.same(*CONVERSATIONS[name], apart=apart)


@pytest.mark.parametrize("encoding", ["LATIN1", "WIN1252", "SQL_ASCII", "EUC_JP"])
def test_encodings(pair: Pair, encoding: str) -> None:
    said = pair.same(
        Query(f"SET client_encoding = '{encoding}'".encode()),
        Query(b"SELECT 'C\xf4te', length('\xe9'), nope"),
        Query(b"SELECT 'C\xf4te', length('\xe9')"),
        *run(b"SELECT '\xc3\xa9'"),
        Sync(),
        Query(b"SELECT * FROM regions ORDER BY 1"),
        Query(b"SELECT U&'\\20AC', chr(12354)"),
    )
    assert len(said) > 10


def test_text_that_is_not_in_the_encoding_is_refused_as_by_postgresql(pair: Pair) -> None:
    assert sqlstates(pair.same(Query(b"SELECT '\xff'"), *run(b"SELECT '\xc3'"))) == [b"22021", b"22021"]


def test_large_values_and_long_statements(pair: Pair) -> None:
    long = b"x" * 15_000_000
    said = pair.same(
        Query(b"SELECT repeat('y', 20000000)"),
        Query(b"SELECT length('" + long + b"')"),
        Parse(b"", b"SELECT length($1), $1"),
        bind(b"", b"", long),
        Execute(b"", 0),
        Sync(),
        Query(b"SELECT " + b",".join([b"1"] * 1664)),
        Query(b"SELECT " + b",".join([b"1"] * 1665)),
        Query(b"SELECT " + b"(" * 2000 + b"1" + b")" * 2000),
    )
    assert DataRow((b"15000000",)) in said
    assert sqlstates(said)[0] == b"54011"


def test_as_many_parameters_as_there_can_be(pair: Pair) -> None:
    most = 65_535
    sql = b"SELECT array_length(ARRAY[" + b",".join(b"$%d::text" % number for number in range(1, most + 1)) + b"], 1)"
    values: tuple[bytes | None, ...] = (b"1",) * most
    said = pair.same(Parse(b"", sql), Describe(b"S", b""), Bind(b"", b"", (), values, ()), Execute(b"", 0), Sync())
    assert ParameterDescription((25,) * most) in said
    assert DataRow((b"65535",)) in said
    assert CommandComplete(b"SELECT 1") in said
