"""COPY (query) TO STDOUT: every byte as from PostgreSQL, in both protocols, and spent once or never."""

import pytest

from proxy.wire.backend import CommandComplete
from proxy.wire.frames import Frame
from proxy.wire.frontend import Bind, Describe, Execute, FrontendMessage, Parse, Query, Sync
from tests.effort import rounds
from tests.proxy.conftest import Running
from tests.proxy.differential.pair import Pair, sqlstates
from tests.proxy.in_test_asker import COUNTRIES
from tests.worlds.countries import QUESTION

OPTIONS = (
    "",
    " WITH (FORMAT text)",
    " (FORMAT csv)",
    " (FORMAT csv, HEADER, DELIMITER ';', QUOTE '''', ESCAPE '\\', NULL '-', FORCE_QUOTE *)",
    " WITH CSV HEADER",
    " CSV DELIMITER '|' FORCE QUOTE country",
    " (FORMAT binary)",
    " BINARY",
    " (HEADER true)",
    " (ENCODING 'LATIN1')",
    " WITH NULL AS 'nothing' -- as the old form has it",
)
QUERIES = (
    QUESTION,
    f"SELECT country, length(country) AS n, NULL AS gap, upper(country) = country AS t FROM ({QUESTION}) q",
    f"WITH q AS ({QUESTION}) SELECT * FROM q JOIN regions r ON r.country = q.country ORDER BY 1",
    f"({QUESTION}) ORDER BY 1 DESC LIMIT 2",
    "SELECT * FROM busy",
    "TABLE busy",
    f"{QUESTION} -- told\n",
    "SELECT * FROM regions",
    "VALUES (1, E'a\\tb', ''), (2, NULL, '\\')",
)
MISTAKES = (
    (f"COPY ({QUESTION}) TO STDOUT (FORMAT fancy)", b"22023"),
    (f"COPY ({QUESTION}) TO STDOUT (nothing)", b"42601"),
    (f"COPY ({QUESTION}) TO STDOUT (FORMAT csv, DELIMITER ';;')", b"0A000"),
    (f"COPY ({QUESTION}) TO STDOUT (FORMAT csv, FORCE_QUOTE (city))", b"42703"),
    (f"COPY ({QUESTION}) TO STDOUT (ENCODING 'nothing')", b"22023"),
    (f"COPY ({QUESTION}) TO STDOUT CSV CSV", b"42601"),
    (f"COPY ({QUESTION} TO STDOUT", b"42601"),
    (f"COPY (SELECT city FROM ({QUESTION}) q) TO STDOUT", b"42703"),
    (f"SELECT 1; COPY (SELECT nothing() FROM ({QUESTION}) q) TO STDOUT", b"42883"),
)


def copied(answers: list[object]) -> bytes:
    """The rows of all COPY in a conversation, as they came."""
    return b"".join(one.payload for one in answers if isinstance(one, Frame) and one.kind == ord("d"))


def extended(sql: str, *, rows: int = 0) -> tuple[FrontendMessage, ...]:
    return (
        Parse(b"c", sql.encode()),
        Describe(b"S", b"c"),
        Bind(b"p", b"c", (), (), (1,)),
        Describe(b"P", b"p"),
        Execute(b"p", rows),
        Execute(b"p", rows),
        Sync(),
    )


@pytest.mark.parametrize("query", QUERIES)
def test_copies_are_postgresqls_in_both_protocols(running: Running, pair: Pair, query: str) -> None:
    share = rounds(1, quick=4)  # of the options, other ones for each query
    some = OPTIONS[QUERIES.index(query) % share :: share]
    for options in some:
        sql = f"COPY ({query}) TO STDOUT{options}"
        pair.same_sql(sql)
        pair.same_sql(f"  SELECT 1;{sql} ; SELECT 2")
        pair.same(*extended(sql))
        pair.same(Query(b"BEGIN"), *extended(sql, rows=1), Query(b"COMMIT"))
    asked = "sales" in query or "busy" in query
    assert running.asker.released == (4 * len(some) if asked else 0)


def test_a_copy_has_the_keys_that_a_select_has(running: Running, pair: Pair) -> None:
    said = pair.same_sql(f"copy ({QUESTION}) to stdout")
    assert copied(list(said)).decode() == "".join(key.replace("\\", "\\\\") + "\n" for key in COUNTRIES)
    assert CommandComplete(f"COPY {len(COUNTRIES)}".encode()) in said


@pytest.mark.parametrize(("sql", "code"), MISTAKES)
def test_a_mistake_is_postgresqls_error_and_spends_nothing(running: Running, pair: Pair, sql: str, code: bytes) -> None:
    assert sqlstates(pair.same_sql(sql)) == [code]
    assert sqlstates(pair.same_sql("BEGIN", sql, "SELECT 1")) == [code, b"25P02"]
    assert running.asker.released == 0


@pytest.mark.parametrize("sql", [sql for sql, _ in MISTAKES if not sql.startswith("SELECT")])
def test_so_it_is_in_the_extended_protocol(running: Running, pair: Pair, sql: str) -> None:
    pair.same(*extended(sql))
    assert running.asker.released == 0


def test_copies_take_no_parameters(running: Running, pair: Pair) -> None:
    sql = f"COPY ({QUESTION.replace('20', '$1')}) TO STDOUT"
    assert "$1" in sql
    pair.same_sql(sql)
    pair.same(Parse(b"", sql.encode(), (20,)), Bind(b"", b"", (), (b"20",), ()), Execute(b"", 0), Sync())
    assert running.asker.released == 0


def test_nothing_is_fetched_from_a_copy(running: Running, pair: Pair) -> None:
    pair.keyhole.send(
        Query(b"BEGIN"),
        Parse(b"c", f"COPY ({QUESTION}) TO STDOUT".encode()),
        Bind(b"p", b"c", (), (), ()),
        Sync(),
        Query(b"FETCH ALL FROM p"),
        Query(b"EXECUTE c"),
        Query(b"ROLLBACK"),
    )
    said = [one for _ in range(5) for one in pair.keyhole.until_ready()]
    assert len(sqlstates(said)) == 2
    assert copied(list(said)) == b""
    assert running.asker.released == 0


def test_keys_that_the_clients_encoding_lacks_are_not_copied(running: Running, pair: Pair) -> None:
    running.asker.keys = ("Côte d'Ivoire", "Łódź")
    pair.keyhole.send(Query(b"SET client_encoding = 'LATIN1'"), Query(f"COPY ({QUESTION}) TO STDOUT".encode()))
    pair.keyhole.until_ready()
    assert sqlstates(pair.keyhole.until_ready()) == [b"0A000"]
    pair.forget()
    running.asker.keys = COUNTRIES
    said = pair.same_sql("SET client_encoding = 'LATIN1'", f"COPY ({QUESTION}) TO STDOUT CSV")
    assert "Côte d'Ivoire\n".encode("latin-1") in copied(list(said))
