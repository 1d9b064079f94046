"""Coverage-guided fuzzing of what reads a client's bytes: the server's state machine and the reading of statements.

    python -m benchmarks.fuzz_wire wire CORPUS -max_total_time=600
    python -m benchmarks.fuzz_wire text CORPUS -max_total_time=600

CORPUS is a directory, which is made and filled with frames and statements to begin with; what follows it are options
of libFuzzer. A finding is any exception but the one that the reader promises, and a message that comes out differently
when the same bytes come one by one. Needs the extra `fuzz`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["planner", "proxy.wire"]):
    from planner.errors import KeyholeError
    from planner.parser.escape_strings import replace_escapes
    from planner.parser.lexer import read_tokens, split_statements
    from planner.statements.classify import classify
    from planner.values.array_literals import read_members
    from proxy.security.scram import AuthenticationFailed, ScramServer, Verifier, make_verifier
    from proxy.security.violation import ProtocolViolation
    from proxy.wire import frontend
    from proxy.wire.frontend import Bind, Cancel, Credential, Describe, EncryptionRequest, Execute, Parse, Query, Sync
    from proxy.wire.server_side import ConnectionState, ServerProtocol
    from proxy.wire.startup import read_login
from tests.worlds.countries import QUESTION, endpoint_catalog

CATALOG = endpoint_catalog()
VERIFIER = Verifier.parse(make_verifier("x", salt=b"sixteen bytes, .", iterations=1))
STARTUP = frontend.Startup((3, 2), ((b"user", b"ada"), (b"options", b"-c search_path=public"), (b"_pq_.x", b"1")))
_LONGEST_TEXT = 2000
_DEPENDS_ON_CUTS = (
    "received unencrypted data after an encryption request",
    "too much data before authentication",
)

FRAMES: tuple[bytes, ...] = (
    EncryptionRequest(is_gss=False).encode(),
    Cancel(7, b"abcd").encode(),
    STARTUP.encode() + Credential(b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=abc1").encode() + Query(b"SELECT 1").encode(),
    STARTUP.encode()
    + Credential(b"").encode()
    + Parse(b"s", QUESTION.encode(), (25,)).encode()
    + Bind(b"p", b"s", (0, 1), (b"1", None), (1,)).encode()
    + Describe(b"P", b"p").encode()
    + Execute(b"p", 5).encode()
    + Sync().encode(),
    STARTUP.encode() + Credential(b"").encode() + frontend.Copy("d", b"x").encode() + frontend.Terminate().encode(),
)
TEXTS: tuple[str, ...] = (
    QUESTION,
    f"WITH q AS ({QUESTION}) SELECT * FROM q; SELECT 1",
    f"SELECT * FROM regions WHERE country IN ({QUESTION} UNION {QUESTION}) ORDER BY 1",
    "SET keyhole.fnr = '0.01'; RESET ALL; SHOW search_path; BEGIN; ROLLBACK",
    f"PREPARE p(int) AS {QUESTION}; EXECUTE p(5); DEALLOCATE p",
    f"DECLARE c CURSOR FOR {QUESTION}; FETCH 5 FROM c; EXPLAIN (FORMAT JSON) {QUESTION}",
    "SELECT E'a\\'\\x41' 'b', U&'\\0041', $$x$$, $t$y$t$, \"a\"\"b\", 1.5e-3, $1 /* a /* b */ */ -- c\n",
    "SELECT set_config('keyhole.fnr', '0.1', false), '{a, \"b\\\"c\", NULL}'",
)


def fuzz_wire(data: bytes) -> None:
    """The same messages, or the same violation, in one piece and byte by byte; none of them before the login."""
    whole, bytewise = _read_conversation([data]), _read_conversation([data[at : at + 1] for at in range(len(data))])
    assert whole == bytewise or whole[-1] in _DEPENDS_ON_CUTS, (whole, bytewise)


def _read_conversation(pieces: list[bytes]) -> list[object]:
    """What came out, the violation included. The first credential is taken for the proof."""
    connection = ServerProtocol()
    told: list[object] = []
    try:
        for piece in pieces:
            connection.receive(piece)
            while (received := connection.next_message()) is not None:
                _read(connection, received.message)
                told.append(received.message)
    except ProtocolViolation as violation:
        assert connection.state is ConnectionState.CLOSED
        told.append(violation.message)
    return told


def _read(connection: ServerProtocol, message: frontend.FrontendMessage) -> None:
    if isinstance(message, frontend.Startup):
        try:
            read_login(message)
        except KeyholeError:
            return
    elif isinstance(message, Credential):
        exchange = ScramServer(VERIFIER, mocked=False)
        try:
            exchange.answer_client_first(message.data)
            exchange.answer_client_final(message.data)
        except (ProtocolViolation, AuthenticationFailed):
            pass
        connection.accept_login()
        connection.open_session()
    elif not isinstance(message, EncryptionRequest | Cancel):
        assert connection.state not in (
            ConnectionState.STARTUP,
            ConnectionState.AUTHENTICATING,
            ConnectionState.OPENING,
        )


def fuzz_text(data: bytes) -> None:
    """Tokens lie in order inside the text; every reader gives a value or a catalogued refusal."""
    sql = data.decode("utf-8", "ignore").replace("\0", "")[:_LONGEST_TEXT]
    read_members(sql)
    try:
        at = 0
        for token in read_tokens(sql):
            assert at <= token.start < token.end <= len(sql)
            at = token.end
        assert len(replace_escapes(sql, read_tokens(sql))) == len(sql)
        for part in split_statements(sql):
            assert sql[part.offset :].startswith(part.text)
            try:
                classify(part.text, CATALOG)
            except KeyholeError:
                continue
    except KeyholeError:
        return


TARGETS: dict[str, tuple[Callable[[bytes], None], tuple[bytes, ...]]] = {
    "wire": (fuzz_wire, FRAMES),
    "text": (fuzz_text, tuple(one.encode() for one in TEXTS)),
}


def main() -> None:
    """Fill the corpus, then fuzz until an option of libFuzzer ends it or a finding does."""
    name, corpus = sys.argv[1], Path(sys.argv[2])
    target, seeds = TARGETS[name]
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed{number}").write_bytes(seed)
    atheris.Setup([sys.argv[0], str(corpus), *sys.argv[3:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
