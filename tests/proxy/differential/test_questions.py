"""Questions in every form that a query has: byte for byte as with PostgreSQL, and spent once or never."""

import pytest
from psycopg import pq

from proxy.wire.backend import CommandComplete, DataRow, ReadyForQuery
from proxy.wire.frontend import Bind, Close, Describe, Execute, Flush, Parse, Query, Sync
from tests.proxy.conftest import Running
from tests.proxy.differential.pair import Pair, sqlstates
from tests.proxy.in_test_asker import COUNTRIES
from tests.worlds.countries import QUESTION

OVER = "SELECT country FROM sales GROUP BY country HAVING count(*) > $1"
CURSOR = f"DECLARE c CURSOR FOR {QUESTION}"


@pytest.mark.parametrize(
    ("texts", "released"),
    [
        # several in one text
        ((f"{QUESTION}; SELECT 1; {QUESTION}; SELECT * FROM busy",), 3),
        ((f"SELECT 1; {QUESTION}; SELECT 1/0; {QUESTION}",), 1),
        ((f"{QUESTION}; SELEC 1; SELECT 2",), 0),
        ((f"{QUESTION}; SELECT 'open",), 0),
        ((f"SELECT 1/0; {QUESTION}",), 0),
        ((OVER, "SELECT 1"), 0),
        ((f"SELECT 1; {OVER}", f"SELECT $1; {QUESTION}"), 0),
        ((f"SHOW nothing; {QUESTION}", f"{QUESTION}; EXECUTE nothing", f"{QUESTION}; FETCH nothing"), 2),
        ((f"EXPLAIN SELECT 1; SHOW datestyle; {QUESTION}; SET datestyle = 'SQL'; SHOW datestyle",), 1),
        # transactions
        ((f"BEGIN; {QUESTION}; COMMIT; {QUESTION}",), 2),
        ((f"{QUESTION}; COMMIT; SELECT 1", f"{QUESTION}; ROLLBACK; SELECT 1"), 2),
        ((f"SELECT 1; BEGIN; {QUESTION}", "COMMIT"), 1),
        (("BEGIN", "SELECT 1/0", QUESTION, "ROLLBACK", QUESTION), 1),
        (("BEGIN", "SAVEPOINT s", QUESTION, "SELECT 1/0", QUESTION, "ROLLBACK TO s", QUESTION, "COMMIT"), 2),
        (("BEGIN", f"ROLLBACK; {QUESTION}", f"SAVEPOINT s; {QUESTION}"), 1),
        ((f"BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; {QUESTION}; SHOW transaction_isolation",), 1),
        (("BEGIN READ ONLY", QUESTION, "SET TRANSACTION READ WRITE"), 1),
        ((f"DISCARD ALL; {QUESTION}", f"{QUESTION}; DISCARD ALL", f"SET LOCAL datestyle = 'SQL'; {QUESTION}"), 2),
        # cursors
        ((CURSOR,), 0),
        ((CURSOR, "FETCH c"), 0),
        ((f"{CURSOR}; FETCH 2 FROM c; MOVE 1 IN c; FETCH ALL c; CLOSE c; FETCH c",), 1),
        (("BEGIN", CURSOR, "FETCH 1 FROM c", "FETCH 1 FROM c", "MOVE 1 FROM c", "FETCH ALL c", "CLOSE c", "COMMIT"), 1),
        (("BEGIN", CURSOR, CURSOR, "ROLLBACK"), 1),
        (("BEGIN", "DECLARE c CURSOR FOR SELECT 1", CURSOR), 0),
        ((f"DECLARE c CURSOR WITH HOLD FOR {QUESTION}", "FETCH 2 FROM c", "FETCH c", "CLOSE c"), 1),
        (("BEGIN", f"DECLARE c CURSOR WITH HOLD FOR {QUESTION}", "COMMIT", "FETCH ALL c"), 1),
        (("BEGIN", f"DECLARE c CURSOR WITH HOLD FOR {QUESTION}", "ROLLBACK", "FETCH ALL c"), 1),
        (
            (
                "BEGIN",
                f"DECLARE c SCROLL CURSOR FOR {QUESTION}",
                "FETCH LAST c",
                "FETCH -2 c",
                "MOVE ABSOLUTE 0 c",
                "FETCH c",
            ),
            1,
        ),
        (("BEGIN", f"DECLARE c BINARY CURSOR FOR {QUESTION}", "FETCH ALL c"), 1),
        (("BEGIN", f"DECLARE c NO SCROLL CURSOR FOR {QUESTION}", "FETCH c", "FETCH PRIOR c"), 1),
        (("BEGIN", "SAVEPOINT s", CURSOR, "ROLLBACK TO s", "FETCH c"), 1),
        (("BEGIN", CURSOR, "SAVEPOINT s", "FETCH c", "ROLLBACK TO s", "FETCH c"), 1),
        # PREPARE
        ((f"PREPARE p AS {QUESTION}; EXECUTE p; DEALLOCATE p; EXECUTE p",), 1),
        (
            (
                f"PREPARE p (int) AS {OVER}",
                "EXECUTE p(20)",
                "EXECUTE p('x')",
                "EXECUTE p",
                "EXECUTE p(20); EXECUTE p(20)",
            ),
            3,
        ),
        ((f"PREPARE p AS {QUESTION}", "BEGIN", "SELECT 1/0", "EXECUTE p", "ROLLBACK; EXECUTE p"), 1),
    ],
)
def test_simple_queries(running: Running, pair: Pair, texts: tuple[str, ...], released: int) -> None:
    pair.same_sql(*texts)
    assert running.asker.released == released


def bind(portal: bytes, statement: bytes, *values: bytes) -> Bind:
    return Bind(portal, statement, (), values, ())


def test_portals_outlive_a_savepoint_and_are_answered_once(running: Running, pair: Pair) -> None:
    said = pair.same(
        Query(b"BEGIN"),
        Parse(b"q", QUESTION.encode()),
        bind(b"p", b"q"),
        Describe(b"P", b"p"),
        Sync(),
        Query(b"SAVEPOINT s"),
        Parse(b"", b"SELECT 1/0"),
        bind(b"", b""),
        Sync(),
        Query(b"ROLLBACK TO s"),
        Execute(b"p", 1),
        Sync(),
        Execute(b"p", 2),
        Execute(b"p", 2),
        Close(b"P", b"p"),
        Execute(b"p", 0),
    )
    assert [one for one in said if isinstance(one, DataRow)][:4] == [DataRow((key.encode(),)) for key in COUNTRIES]
    assert running.asker.released == 1


def test_a_name_means_what_it_was_given_last(running: Running, pair: Pair) -> None:
    question = QUESTION.encode()
    pair.same(
        Parse(b"a", question),
        Sync(),
        Query(b"DEALLOCATE a"),
        Query(b"PREPARE a AS SELECT 5"),
        bind(b"", b"a"),
        Execute(b"", 0),
        Sync(),
        Query(b"DEALLOCATE ALL"),
        Parse(b"a", b"SELECT 6"),
        bind(b"p", b"a"),
        Execute(b"p", 0),
        Sync(),
        Query(b"DISCARD ALL"),
        bind(b"", b"a"),
        Sync(),
        Query(b"BEGIN"),
        Parse(b"a", question),
        bind(b"p", b"a"),
        Sync(),
        Query(b"COMMIT; BEGIN; DECLARE p CURSOR FOR SELECT 7"),
        Execute(b"p", 0),
        Sync(),
    )
    assert running.asker.released == 0


def run(statement: bytes, portal: bytes = b"") -> tuple[Bind, Execute]:
    return bind(portal, statement), Execute(portal, 0)


def test_a_question_without_a_name_survives_what_forgets_names(running: Running, pair: Pair) -> None:
    question, other = Parse(b"", QUESTION.encode()), Parse(b"", OVER.encode())
    all_ = Parse(b"all", b"DEALLOCATE ALL")
    pair.same(all_, Sync(), question, *run(b"all"), *run(b""), Sync(), *run(b""), Sync())
    pair.same(all_, Sync(), other, Sync(), *run(b"all"), Sync(), bind(b"", b"", b"20"), Execute(b"", 0), Sync())
    pair.same(Parse(b"all", b"DISCARD ALL"), Sync(), question, Sync(), *run(b"all"), Sync(), *run(b""), Sync())
    assert running.asker.released == 4


def test_a_statement_is_the_first_of_its_batch_after_a_question_was_prepared(running: Running, pair: Pair) -> None:
    pair.same(Query(f"PREPARE p AS {QUESTION}".encode()))
    for sql in (b"DISCARD ALL", b"SET LOCAL datestyle = 'SQL'", b"DECLARE c CURSOR FOR SELECT 1", b"DEALLOCATE ALL"):
        pair.same(Parse(b"a", QUESTION.encode()), Parse(b"x", sql), *run(b"x"), *run(b"a"), Sync(), *run(b"a"), Sync())
        pair.same(Query(f"PREPARE p AS {QUESTION}".encode()), Parse(b"x", sql), Parse(b"y", b"EXECUTE p"), *run(b"x"))
    assert running.asker.released == 3


def test_what_was_run_in_part_makes_what_follows_a_part_of_its_transaction(running: Running, pair: Pair) -> None:
    pair.same(
        Parse(b"a", QUESTION.encode()),
        bind(b"p", b"a"),
        Execute(b"p", 1),
        Parse(b"b", CURSOR.encode()),
        *run(b"b"),
        Execute(b"p", 0),
        *(Parse(b"", b"FETCH ALL c"), *run(b"")),
    )
    assert running.asker.released == 2


def test_sql_can_fetch_from_a_portal_that_was_not_run_yet(running: Running, pair: Pair) -> None:
    """As drivers skip rows of a cursor that is a portal."""
    opened = (Query(b"BEGIN"), Parse(b"a", QUESTION.encode()), bind(b"p", b"a"), Sync())
    pair.same(*opened, Query(b"MOVE FORWARD 1 p"), Execute(b"p", 2), Sync(), Query(b"FETCH ALL p"), Query(b"COMMIT"))
    pair.same(
        *opened, Query(b'FETCH 2 FROM "p"; -- two'), Query(b"MOVE p"), Close(b"P", b"p"), Sync(), Query(b"MOVE p")
    )
    pair.same(*opened, Query(b"ROLLBACK"), Query(b"FETCH p"), Query(b"BEGIN"), Query(b"MOVE p"), Query(b"ROLLBACK"))
    assert running.asker.released == 2


LONG = b"n" * 52


def test_long_names_are_told_apart_as_far_as_postgresql_does(running: Running, pair: Pair) -> None:
    longest = b"m" * 63
    pair.same(
        Parse(LONG + b"a", QUESTION.encode()),
        Parse(LONG + b"b", OVER.encode()),
        Describe(b"S", LONG + b"a"),
        bind(LONG + b"p", LONG + b"a"),
        bind(LONG + b"q", LONG + b"b", b"20"),
        Execute(LONG + b"p", 0),
        Execute(LONG + b"q", 0),
        Sync(),
        Parse(longest + b"x", QUESTION.encode()),
        bind(longest + b"1", longest + b"y"),
        Execute(longest + b"2", 0),
        Close(b"S", longest + b"z"),
        Sync(),
        *run(longest + b"x"),
        Sync(),
    )
    assert running.asker.released == 3


def test_names_mean_the_same_in_every_encoding(running: Running, pair: Pair) -> None:
    """Two bytes are one letter in UTF8, and two in LATIN1: another name."""
    utf8, latin1 = "é".encode(), "é".encode("latin-1")
    other = OVER.replace("$1", "$1 + 1").encode()
    pair.same(
        Parse(utf8, QUESTION.encode()),
        Sync(),
        Query(b"SET client_encoding = 'LATIN1'"),
        *run(latin1),
        Sync(),
        Parse(utf8, other),
        Sync(),
        Query(b"SET client_encoding = 'UTF8'"),
        *run(utf8),
        Sync(),
        Query(b"SET client_encoding = 'LATIN1'"),
        bind(b"", utf8, b"20"),
        Execute(b"", 0),
        Sync(),
        Query(b"DEALLOCATE nothing"),
        Query(b"PREPARE nothing AS SELECT '" + latin1 + b"'; DEALLOCATE nothing"),
        *run(latin1),
        Sync(),
    )
    assert running.asker.released == 4


def test_any_name_can_be_given_by_prepare(running: Running, pair: Pair) -> None:
    longest = "n" * 62
    pair.same_sql(*(f'PREPARE "{name}" AS {QUESTION}' for name in ("é", longest, longest + "éé")), 'EXECUTE "é"')
    pair.same(
        Query(f'PREPARE "é" AS {QUESTION}; PREPARE {longest} AS {QUESTION}'.encode()),
        *run("é".encode()),
        *run(longest.encode()),
        Sync(),
        Query(f"EXECUTE {longest}".encode()),
    )
    assert running.asker.released == 4


def test_an_encoding_holds_from_the_moment_it_is_set(running: Running, pair: Pair) -> None:
    """The shadow tells of it only at the end of a batch."""
    latin1, accent = "SET client_encoding = 'LATIN1'", "SELECT 'é', length('é')"
    filtered = f"SELECT country, length('é') FROM ({QUESTION}) q WHERE country <> 'é'"
    pair.same_sql(f"{latin1}; {accent}; {QUESTION}; {accent}", QUESTION)
    pair.same_sql("RESET client_encoding", f"{latin1}; COMMIT; {filtered}; {accent}", "RESET client_encoding")
    pair.same(Parse(b"", latin1.encode()), *run(b""), Parse(b"", filtered.encode()), *run(b""))
    pair.same_sql(f"BEGIN; SET LOCAL client_encoding = 'LATIN1'; {QUESTION}; ROLLBACK; {QUESTION}; {accent}")
    for encoding in ("utf-8", "latin-1"):
        pair.same(
            *(Parse(b"", latin1.encode()), *run(b"")),
            *(Parse(b"", QUESTION.encode()), *run(b"")),
            *(Parse(b"", accent.encode(encoding)), *run(b"")),
            *(Parse(b"", filtered.encode(encoding)), *run(b"")),
            Sync(),
            *(Parse(b"", filtered.encode("latin-1")), *run(b"")),
        )
    assert running.asker.released == 12


def test_a_question_prepared_later_than_it_was_parsed_is_still_one(running: Running, pair: Pair) -> None:
    later = Parse(b"later", f"PREPARE z AS {QUESTION}".encode())
    pair.same(Query(b"PREPARE o AS SELECT 1"), later, Sync(), Query(b"DEALLOCATE o"), *run(b"later"), Sync())
    pair.same(later, Sync(), Query(b"PREPARE o AS SELECT 1"), Query(b"DEALLOCATE o"), *run(b"later"), *run(b"z"))
    pair.same(later, *run(b"later"), Sync(), Query(b"EXECUTE z"))
    for messages in (
        (later, Sync()),
        (Query(b"PREPARE o AS SELECT 1; DEALLOCATE o"),),
        (*run(b"later"), Sync()),
        (*run(b"z"), Sync()),
        (Query(b"EXECUTE z"),),
    ):
        pair.keyhole.send(*messages)
        assert sqlstates(pair.keyhole.until_ready()) == []
    assert running.asker.released == 4


def test_what_is_skipped_after_an_error_closes_and_replaces_nothing(running: Running, pair: Pair) -> None:
    pair.same(
        Parse(b"a", QUESTION.encode()),
        Parse(b"", QUESTION.encode()),
        Sync(),
        Parse(b"x", b"SELECT nope"),
        Close(b"S", b"a"),
        Parse(b"", b"SELECT 1"),
        Query(b"SELECT 2"),
        Sync(),
        bind(b"", b"a"),
        Execute(b"", 0),
        bind(b"", b""),
        Execute(b"", 0),
        Sync(),
    )
    assert running.asker.released == 2


def test_describing_spends_nothing(running: Running, pair: Pair) -> None:
    pair.same(Parse(b"a", OVER.encode()), Describe(b"S", b"a"), bind(b"p", b"a", b"3"), Describe(b"P", b"p"), Flush())
    assert running.asker.asked == []


def test_a_question_takes_more_parameters_than_a_row_has_columns(running: Running, pair: Pair) -> None:
    count = 3000
    names = ", ".join(f"${number}" for number in range(1, count + 1))
    sql = f"SELECT country FROM sales WHERE quantity IN ({names}) GROUP BY country HAVING count(*) > 20"
    values = (b"1",) * count
    client = pair.keyhole
    client.send(Parse(b"", sql.encode()), Bind(b"", b"", (), values, ()), Execute(b"", 0), Sync())
    answers = client.until_ready()
    assert CommandComplete(b"SELECT 4") in answers
    assert dict(running.asker.asked[0][1]) == dict.fromkeys(range(1, count + 1), 1)


def test_keyhole_settings_follow_transactions_and_discard(running: Running, pair: Pair) -> None:
    pair.same_sql(
        "BEGIN; SET LOCAL keyhole.fnr = 0.01; SAVEPOINT s; SET LOCAL keyhole.fnr = 0.02",
        QUESTION,
        "ROLLBACK TO s",
        QUESTION,
        "COMMIT",
        QUESTION,
        "SET keyhole.fnr = 0.03",
        QUESTION,
        "DISCARD ALL",
        QUESTION,
        f"SET keyhole.fnr = 0.04; {QUESTION}; RESET ALL; SHOW keyhole.fnr",
    )
    assert [seen["keyhole.fnr"] for seen, _ in running.asker.asked] == ["0.02", "0.01", "0.05", "0.03", "0.05", "0.04"]


def test_an_answer_that_the_clients_encoding_lacks_is_an_error_and_the_session_goes_on(
    running: Running, pair: Pair
) -> None:
    running.asker.keys = ("Łódź",)
    client = pair.keyhole
    client.send(Query(b"SET client_encoding = 'LATIN1'"), Query(QUESTION.encode()), Query(b"SELECT 1"))
    client.until_ready()
    assert sqlstates(client.until_ready()) == [b"0A000"]
    assert client.until_ready()[-1] == ReadyForQuery(b"I")


def test_libpq_sees_a_cursor_over_a_question(running: Running) -> None:
    with running.connect() as connection:
        with connection.cursor("named") as cursor:
            cursor.execute(QUESTION)
            assert [key for (key,) in cursor] == list(COUNTRIES)
        assert connection.pgconn.transaction_status == pq.TransactionStatus.INTRANS
    assert running.asker.released == 1
