"""The messages that a server sends: frozen values, encoders, and decoders for those that a relay reads."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from proxy.security.violation import ProtocolViolation
from proxy.wire.cursor import PayloadReader
from proxy.wire.frames import INT16, INT32, UINT32, Frame, make_frame

AUTH_OK, AUTH_SASL, AUTH_SASL_CONTINUE, AUTH_SASL_FINAL = 0, 10, 11, 12  # the protocol's numbers


@dataclass(frozen=True, slots=True)
class Authentication:
    """A request of the server in the authentication exchange. `step` is the code of the request, `data` its content."""

    step: int
    data: bytes = b""

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("R", INT32.pack(self.step), self.data)


@dataclass(frozen=True, slots=True)
class NegotiateProtocolVersion:
    """The reply to a client that asks for a newer protocol or for unknown `_pq_.` options.

    `version` is the newest supported protocol version as one number. `options` are the options that the server does not
    know.
    """

    version: int
    options: tuple[bytes, ...]

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        options = b"".join(option + b"\0" for option in self.options)
        return make_frame("v", INT32.pack(self.version), INT32.pack(len(self.options)), options)


@dataclass(frozen=True, slots=True)
class ParameterStatus:
    """A setting's name and current value, which the server reports to the client."""

    name: bytes
    value: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("S", self.name, b"\0", self.value, b"\0")


@dataclass(frozen=True, slots=True)
class BackendKeyData:
    """The process number and the secret that a client needs to cancel a statement."""

    process: int
    secret: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("K", UINT32.pack(self.process), self.secret)


@dataclass(frozen=True, slots=True)
class ReadyForQuery:
    """The sign that the server waits for the next statement.

    `status` is `I` idle, `T` in a transaction, `E` in a failed one.
    """

    status: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("Z", self.status)


@dataclass(frozen=True, slots=True)
class Report:
    """An ErrorResponse (`kind` is `E`) or NoticeResponse (`N`).

    `fields` are pairs of a one-letter name and a value, in order.
    """

    kind: str
    fields: tuple[tuple[bytes, bytes], ...]

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame(self.kind, *(name + value + b"\0" for name, value in self.fields), b"\0")

    def find_field(self, name: bytes) -> bytes | None:
        """Return the value of the field with this one-letter name. Return None if it is missing."""
        return next((value for letter, value in self.fields if letter == name), None)


@dataclass(frozen=True, slots=True)
class NotificationResponse:
    """A notification on a channel. `process` identifies the session that sent it, or is 0 for the server."""

    process: int
    channel: bytes
    payload: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("A", INT32.pack(self.process), self.channel, b"\0", self.payload, b"\0")


@dataclass(frozen=True, slots=True)
class ColumnField:
    """One column of a row description. `modifier` is the type's typmod, `format` 0 for text and 1 for binary."""

    name: bytes
    table: int
    column: int
    type: int
    size: int
    modifier: int
    format: int


@dataclass(frozen=True, slots=True)
class RowDescription:
    """The description of the columns of the rows that follow."""

    fields: tuple[ColumnField, ...]

    @property
    def signature(self) -> tuple[tuple[bytes, int], ...]:
        """The name and type OID of each column."""
        return tuple((field.name, field.type) for field in self.fields)

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("T", len(self.fields).to_bytes(2, "big"), *(_encode_field(field) for field in self.fields))


@dataclass(frozen=True, slots=True)
class DataRow:
    """A message with one row of a result. None is NULL."""

    values: tuple[bytes | None, ...]

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        values = (b"\xff\xff\xff\xff" if v is None else INT32.pack(len(v)) + v for v in self.values)
        return make_frame("D", len(self.values).to_bytes(2, "big"), *values)


@dataclass(frozen=True, slots=True)
class CommandComplete:
    """The end of a successful statement. `tag` is its command tag, such as `SELECT 3`."""

    tag: bytes

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("C", self.tag, b"\0")


@dataclass(frozen=True, slots=True)
class ParameterDescription:
    """The types of a prepared statement's parameters, as OIDs."""

    types: tuple[int, ...]

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame("t", len(self.types).to_bytes(2, "big"), *(UINT32.pack(oid) for oid in self.types))


@dataclass(frozen=True, slots=True)
class EmptyMessage:
    """A message without content: `1` parsed, `2` bound, `3` closed, `n` no data, `s` suspended, `I` empty query."""

    kind: str

    def encode(self) -> bytes:
        """Return the message as a frame: type, length and content."""
        return make_frame(self.kind)


BackendMessage: TypeAlias = (
    Authentication
    | NegotiateProtocolVersion
    | ParameterStatus
    | BackendKeyData
    | ReadyForQuery
    | Report
    | NotificationResponse
    | RowDescription
    | DataRow
    | CommandComplete
    | ParameterDescription
    | EmptyMessage
)


def decode(received: Frame) -> BackendMessage:
    """Decode the message in a frame. Raise ProtocolViolation if the message is malformed."""
    reader = _READERS.get(received.kind)
    if reader is None:
        raise ProtocolViolation(f"invalid backend message type {received.kind}")
    cursor = PayloadReader(received.payload)
    message = reader(cursor)
    cursor.check_end()
    return message


def _encode_field(field: ColumnField) -> bytes:
    place = UINT32.pack(field.table) + INT16.pack(field.column)
    kind = UINT32.pack(field.type) + INT16.pack(field.size) + INT32.pack(field.modifier) + INT16.pack(field.format)
    return field.name + b"\0" + place + kind


def _decode_field(cursor: PayloadReader) -> ColumnField:
    return ColumnField(
        name=cursor.read_string(),
        table=cursor.read_uint32(),
        column=cursor.read_int16(),
        type=cursor.read_uint32(),
        size=cursor.read_int16(),
        modifier=cursor.read_int32(),
        format=cursor.read_int16(),
    )


def _make_report_decoder(kind: str) -> Callable[[PayloadReader], Report]:
    def read_report(cursor: PayloadReader) -> Report:
        fields: list[tuple[bytes, bytes]] = []
        while (letter := cursor.read_bytes(1)) != b"\0":
            fields.append((letter, cursor.read_string()))
        return Report(kind=kind, fields=tuple(fields))

    return read_report


def _make_signal_decoder(kind: str) -> Callable[[PayloadReader], EmptyMessage]:
    return lambda _: EmptyMessage(kind)


def _decode_negotiation(cursor: PayloadReader) -> NegotiateProtocolVersion:
    version, count = cursor.read_int32(), cursor.read_int32()
    return NegotiateProtocolVersion(version=version, options=tuple(cursor.read_string() for _ in range(count)))


_READERS: dict[int, Callable[[PayloadReader], BackendMessage]] = {
    ord("R"): lambda cursor: Authentication(cursor.read_int32(), cursor.read_rest()),
    ord("v"): _decode_negotiation,
    ord("S"): lambda cursor: ParameterStatus(cursor.read_string(), cursor.read_string()),
    ord("K"): lambda cursor: BackendKeyData(cursor.read_uint32(), cursor.read_rest()),
    ord("Z"): lambda cursor: ReadyForQuery(cursor.read_bytes(1)),
    ord("E"): _make_report_decoder("E"),
    ord("N"): _make_report_decoder("N"),
    ord("A"): lambda cursor: NotificationResponse(cursor.read_int32(), cursor.read_string(), cursor.read_string()),
    ord("T"): lambda cursor: RowDescription(tuple(_decode_field(cursor) for _ in range(cursor.read_count()))),
    ord("D"): lambda cursor: DataRow(tuple(cursor.read_value() for _ in range(cursor.read_count()))),
    ord("C"): lambda cursor: CommandComplete(cursor.read_string()),
    ord("t"): lambda cursor: ParameterDescription(tuple(cursor.read_uint32() for _ in range(cursor.read_count()))),
    **{ord(kind): _make_signal_decoder(kind) for kind in "123nsI"},
}
