"""The messages that a client sends: frozen values, encoders and decoders. Text stays bytes in the client's encoding."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from proxy.security.violation import ProtocolViolation
from proxy.wire.cursor import PayloadReader
from proxy.wire.frames import INT16, INT32, UINT32, Frame, make_frame

PROTOCOL_3_0 = 3 << 16  # the major number above the minor one
NEWEST_MINOR = 2
"""3.2 has secrets of any length for cancelling; there is no 3.1."""
CANCEL_CODE = 1234 << 16 | 5678  # where other packets have a version, as the next two
TLS_CODE = 1234 << 16 | 5679  # SSLRequest
GSS_CODE = 1234 << 16 | 5680  # GSSENCRequest


@dataclass(frozen=True, slots=True)
class Startup:
    """The first message of a connection: protocol version as (major, minor), and parameters in the order sent."""

    version: tuple[int, int]
    parameters: tuple[tuple[bytes, bytes], ...]

    def encode(self) -> bytes:
        """Return the message as a packet without a type byte: length and content."""
        version = UINT32.pack(self.version[0] << 16 | self.version[1])
        body = b"".join(name + b"\0" + value + b"\0" for name, value in self.parameters)
        return INT32.pack(len(body) + 9) + version + body + b"\0"


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    """A request to encrypt the connection: GSSENCRequest if `is_gss`, otherwise SSLRequest.

    The server answers with one byte.
    """

    is_gss: bool

    def encode(self) -> bytes:
        """Return the message as a packet without a type byte: length and content."""
        return INT32.pack(8) + INT32.pack(GSS_CODE if self.is_gss else TLS_CODE)


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request to cancel the running statement of another connection, with that connection's number and secret."""

    process: int
    secret: bytes

    def encode(self) -> bytes:
        """Return the message as a packet without a type byte: length and content."""
        return INT32.pack(12 + len(self.secret)) + INT32.pack(CANCEL_CODE) + UINT32.pack(self.process) + self.secret


@dataclass(frozen=True, slots=True)
class Credential:
    """Message `p`: the reply to a request for authentication.

    It is a SASL initial response, a SASL response or a password.
    """

    data: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("p", self.data)


@dataclass(frozen=True, slots=True)
class Query:
    """A simple query: a text of one or more statements, whose results are sent as text."""

    sql: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("Q", self.sql, b"\0")


@dataclass(frozen=True, slots=True)
class Parse:
    """A request to prepare a statement. For a parameter of type 0, the server chooses the type."""

    statement: bytes
    sql: bytes
    types: tuple[int, ...] = ()

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        types = b"".join(UINT32.pack(oid) for oid in self.types)
        return make_frame("P", self.statement, b"\0", self.sql, b"\0", _encode_count(len(self.types)), types)


@dataclass(frozen=True, slots=True)
class Bind:
    """A request to make a portal from a statement and parameter values.

    `formats` has the parameters' format codes: none (all are text), one for all, or one for each. The database decides
    whether formats and values fit the statement.
    """

    portal: bytes
    statement: bytes
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        values = b"".join(b"\xff\xff\xff\xff" if v is None else INT32.pack(len(v)) + v for v in self.values)
        return make_frame(
            "B",
            self.portal + b"\0" + self.statement + b"\0",
            _encode_count(len(self.formats)) + b"".join(INT16.pack(f) for f in self.formats),
            _encode_count(len(self.values)) + values,
            _encode_count(len(self.result_formats)) + b"".join(INT16.pack(f) for f in self.result_formats),
        )

    def get_format(self, index: int) -> int:
        """Return the format code of the parameter at `index`."""
        if not self.formats:
            return 0
        return self.formats[0] if len(self.formats) == 1 else self.formats[index]


@dataclass(frozen=True, slots=True)
class Describe:
    """A request for the parameters and columns of a statement (`S`), or the columns of a portal (`P`)."""

    target: bytes
    name: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("D", self.target, self.name, b"\0")


@dataclass(frozen=True, slots=True)
class Execute:
    """A request to run a portal, and to return at most `rows` rows. 0 means no limit."""

    portal: bytes
    rows: int

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("E", self.portal, b"\0", INT32.pack(self.rows))


@dataclass(frozen=True, slots=True)
class Close:
    """A request to close a prepared statement (`S`) or a portal (`P`)."""

    target: bytes
    name: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("C", self.target, self.name, b"\0")


@dataclass(frozen=True, slots=True)
class Sync:
    """The end of a batch of messages. It ends an error state and an implicit transaction."""

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("S")


@dataclass(frozen=True, slots=True)
class Flush:
    """A request to send every reply that is ready."""

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("H")


@dataclass(frozen=True, slots=True)
class Terminate:
    """The message with which a client ends its session."""

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("X")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function call by the obsolete fast path. Its content is not decoded."""

    data: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("F", self.data)


@dataclass(frozen=True, slots=True)
class Copy:
    """CopyData, CopyDone or CopyFail (`d`, `c`, `f`). Outside of COPY they are ignored."""

    kind: str
    data: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame(self.kind, self.data)


FrontendMessage: TypeAlias = (
    Startup
    | EncryptionRequest
    | Cancel
    | Credential
    | Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | Terminate
    | FunctionCall
    | Copy
)


def decode_untyped(payload: bytes) -> Startup | EncryptionRequest | Cancel:
    """Decode the message in a packet without a type byte. Raise ProtocolViolation if the message is malformed."""
    cursor = PayloadReader(payload)
    code = cursor.read_uint32()
    if code in (TLS_CODE, GSS_CODE):
        cursor.check_end()
        return EncryptionRequest(is_gss=code == GSS_CODE)
    if code == CANCEL_CODE:
        process, secret = cursor.read_uint32(), cursor.read_rest()
        if not 4 <= len(secret) <= 256:
            raise ProtocolViolation("invalid length of cancel request")
        return Cancel(process=process, secret=secret)
    major, minor = code >> 16, code & 0xFFFF
    if major != 3:
        raise ProtocolViolation(
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{NEWEST_MINOR}", sqlstate="0A000"
        )
    parameters: list[tuple[bytes, bytes]] = []
    while name := cursor.read_string():
        parameters.append((name, cursor.read_string()))
    cursor.check_end()
    return Startup(version=(major, minor), parameters=tuple(parameters))


def decode(received: Frame) -> FrontendMessage:
    """Decode the message in a frame. Raise ProtocolViolation if the message is malformed."""
    raw = received.raw
    if len(raw) <= _SHORT_BYTES and received.kind in _ALIKE:
        return _decode_again(raw)
    return _decode(raw)


def _decode(raw: bytes) -> FrontendMessage:
    reader = _READERS.get(raw[0])
    if reader is None:
        raise ProtocolViolation(f"invalid frontend message type {raw[0]}")
    cursor = PayloadReader(raw, 5)
    message = reader(cursor)
    cursor.check_end()
    return message


_ALIKE = frozenset(map(ord, "DESH"))  # a batch ends in the same few of them each time, and they hold names at most
_SHORT_BYTES = 24  # longer ones name what the client made up, and would not come again
_decode_again = lru_cache(maxsize=256)(_decode)
"""One for each of a few sessions' statements; an entry takes some hundred bytes."""


def _encode_count(number: int) -> bytes:
    return number.to_bytes(2, "big")


def _decode_formats(cursor: PayloadReader) -> tuple[int, ...]:
    return tuple([cursor.read_int16() for _ in range(cursor.read_count())])


def _decode_parse(cursor: PayloadReader) -> Parse:
    statement, sql = cursor.read_string(), cursor.read_string()
    return Parse(statement=statement, sql=sql, types=tuple([cursor.read_uint32() for _ in range(cursor.read_count())]))


def _decode_bind(cursor: PayloadReader) -> Bind:
    portal, statement, formats = cursor.read_string(), cursor.read_string(), _decode_formats(cursor)
    values = tuple([cursor.read_value() for _ in range(cursor.read_count())])
    return Bind(
        portal=portal, statement=statement, formats=formats, values=values, result_formats=_decode_formats(cursor)
    )


def _decode_target(cursor: PayloadReader) -> tuple[bytes, bytes]:
    what, name = cursor.read_bytes(1), cursor.read_string()
    if what not in (b"S", b"P"):
        raise ProtocolViolation("invalid message subtype")
    return what, name


_READERS: dict[int, Callable[[PayloadReader], FrontendMessage]] = {
    ord("p"): lambda cursor: Credential(cursor.read_rest()),
    ord("Q"): lambda cursor: Query(cursor.read_string()),
    ord("P"): _decode_parse,
    ord("B"): _decode_bind,
    ord("D"): lambda cursor: Describe(*_decode_target(cursor)),
    ord("E"): lambda cursor: Execute(cursor.read_string(), cursor.read_int32()),
    ord("C"): lambda cursor: Close(*_decode_target(cursor)),
    ord("S"): lambda _: Sync(),
    ord("H"): lambda _: Flush(),
    ord("X"): lambda _: Terminate(),
    ord("F"): lambda cursor: FunctionCall(cursor.read_rest()),
    ord("d"): lambda cursor: Copy("d", cursor.read_rest()),
    ord("c"): lambda cursor: Copy("c", cursor.read_rest()),
    ord("f"): lambda cursor: Copy("f", cursor.read_rest()),
}
