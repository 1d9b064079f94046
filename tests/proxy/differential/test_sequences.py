"""Random conversations, with questions and without: Keyhole and PostgreSQL say the same, message by message.

The plain PostgreSQL has rows that give a question the same keys as the test's asker gives it.
"""

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from proxy.wire.frontend import Bind, Close, Copy, Describe, Execute, Flush, FrontendMessage, Parse, Query, Sync
from tests.effort import examples
from tests.proxy.differential.pair import Pair
from tests.worlds.countries import QUESTION

OVER = "SELECT country FROM sales GROUP BY country HAVING count(*) > $1"
IN_A_QUERY = f"SELECT region, count(*) FROM ({QUESTION}) q JOIN regions USING (country) GROUP BY 1 ORDER BY 1"
LONG = "n" * 62
PLAIN = (
    "",
    "SELECT 1",
    "SELECT * FROM regions ORDER BY 1",
    "SELECT $1::int + 1, $2::text",
    "SELECT 10 / $1::int",
    "SELECT g FROM generate_series(1, 5) g",
    "SELECT 1/0",
    "SELECT nope",
    "SELEC",
    "SELECT 'open",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
    "DECLARE c CURSOR FOR SELECT country FROM regions ORDER BY 1",
    "DECLARE c CURSOR WITH HOLD FOR SELECT country FROM regions ORDER BY 1",
    "FETCH 2 FROM c",
    "CLOSE c",
    "PREPARE a AS SELECT 7",
    "EXECUTE a",
    "EXECUTE a(1)",
    "DEALLOCATE a",
    "DEALLOCATE ALL",
    "SET datestyle = 'German'",
    "SET LOCAL datestyle = 'SQL'",
    "SHOW datestyle",
    "UNLISTEN *",
    "CLOSE ALL",
    "DISCARD ALL",
    "SET client_encoding = 'LATIN1'",
    "SET LOCAL client_encoding = 'LATIN1'",
    "RESET client_encoding",
    "SELECT 'é' AS \"é\"",
    'PREPARE "é" AS SELECT 8',
    'EXECUTE "é"',
    f"EXECUTE {LONG}",
    f"DEALLOCATE {LONG}",
)
ASKING = (
    QUESTION,
    OVER,
    IN_A_QUERY,
    "SELECT * FROM busy",
    f"DECLARE c CURSOR FOR {QUESTION}",
    f"DECLARE c SCROLL CURSOR WITH HOLD FOR {QUESTION}",
    f"PREPARE a AS {QUESTION}",
    f"PREPARE b (int) AS {OVER}",
    "EXECUTE b(20)",
    f"SELECT country AS \"é\" FROM ({QUESTION}) q WHERE country <> 'é'",
    "FETCH 2 FROM c",
    "MOVE 1 FROM c",
)

texts = st.sampled_from((*PLAIN, *ASKING))
batches = texts | st.lists(texts, min_size=2, max_size=4).map("; ".join)
names = ("é".encode(), *(LONG.encode() + end for end in (b"", b"n", b"nx", b"ny")))  # the last two are one name
statements = st.sampled_from((b"", b"a", b"b", b"t")) | st.sampled_from(names)
portals = st.sampled_from((b"", b"p", b"c")) | st.sampled_from(names)
values = st.lists(st.sampled_from((b"20", b"0", b"x")), max_size=2).map(tuple)
formats = st.sampled_from(((), (0,), (1,), (0, 0)))
messages: st.SearchStrategy[FrontendMessage] = st.one_of(
    st.builds(Parse, statements, texts.map(str.encode)),
    st.builds(Parse, statements, texts.map(str.encode)),
    st.builds(Bind, portals, statements, st.sampled_from(((), (0,))), values, formats),
    st.builds(Bind, portals, statements, st.just(()), st.just(()), st.just(())),
    st.builds(Describe, st.just(b"S"), statements),
    st.builds(Describe, st.just(b"P"), portals),
    st.builds(Execute, portals, st.sampled_from((0, 0, 1, 2))),
    st.builds(Execute, portals, st.sampled_from((0, 0, 1, 2))),
    st.builds(Close, st.just(b"S"), statements),
    st.builds(Close, st.just(b"P"), portals),
    st.just(Flush()),
    st.just(Sync()),
    st.just(Sync()),
    st.just(Copy("d", b"stray")),
    st.builds(Query, batches.map(str.encode)),
)


def ended(sequence: list[FrontendMessage]) -> list[FrontendMessage]:
    """Without two things that are pinned elsewhere.

    A Sync stands before each simple query: how one inside a batch ends an implicit transaction is a quirk apart. And
    statements about savepoints have no name by which EXECUTE could find them: Keyhole refuses that.
    """
    found: list[FrontendMessage] = []
    for message in sequence:
        match message:
            case Query():
                found += (Sync(), message)
            case Parse(sql=sql) if sql.startswith((b"SAVEPOINT", b"RELEASE", b"ROLLBACK")):
                found.append(Parse(b"", sql))
            case _:
                found.append(message)
    return found


@st.composite
def sensible(draw: st.DrawFn) -> list[FrontendMessage]:
    """Parse, Bind and Execute in order, more often than chance has it."""
    found: list[FrontendMessage] = []
    for _ in range(draw(st.integers(1, 4))):
        statement, portal = draw(statements), draw(portals)
        found += [
            Parse(statement, draw(texts).encode()),
            Bind(portal, statement, (), draw(st.just(()) | values), ()),
            Execute(portal, draw(st.sampled_from((0, 1, 2)))),
            *draw(st.lists(messages, max_size=2)),
        ]
    return found


@examples(300, suppress_health_check=list(HealthCheck), print_blob=False, report_multiple_bugs=False)
@given(sequence=(st.lists(messages, max_size=14) | sensible()).map(ended), apart=st.booleans())
def test_a_conversation_is_the_same(pair: Pair, sequence: list[FrontendMessage], apart: bool) -> None:
    pair.same(*sequence, apart=apart)
