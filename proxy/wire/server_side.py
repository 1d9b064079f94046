"""The server's side of a connection as a state machine. One table lists the messages that each state allows."""

from enum import Enum, auto
from typing import NamedTuple

from proxy.security.violation import ProtocolViolation
from proxy.wire import frontend
from proxy.wire.frames import LOGIN_LIMIT_BYTES, MESSAGE_LIMIT_BYTES, Frame, FrameReader
from proxy.wire.frontend import Cancel, EncryptionRequest, FrontendMessage


class ConnectionState(Enum):
    """The state of a connection from a client, from its first packet to its end."""

    STARTUP = auto()  # nothing but a packet without a type byte may come
    AUTHENTICATING = auto()  # credentials alone
    OPENING = auto()  # authenticated, not ready: nothing is read
    IDLE = auto()  # between batches
    EXTENDED = auto()  # inside a batch of the extended protocol, before its Sync
    SKIPPING = auto()  # an error in the batch: everything up to Sync is dropped
    CLOSED = auto()


_EXTENDED = dict.fromkeys(map(ord, "PBDECH"), ConnectionState.EXTENDED)
_COPY = "dcf"

TRANSITIONS: dict[ConnectionState, dict[int, ConnectionState]] = {
    ConnectionState.STARTUP: {},
    ConnectionState.AUTHENTICATING: {ord("p"): ConnectionState.AUTHENTICATING},
    ConnectionState.OPENING: {},
    ConnectionState.IDLE: {
        **_EXTENDED,
        **dict.fromkeys(map(ord, "QSF" + _COPY), ConnectionState.IDLE),
        ord("X"): ConnectionState.CLOSED,
    },
    ConnectionState.EXTENDED: {
        **_EXTENDED,
        **dict.fromkeys(map(ord, "QF" + _COPY), ConnectionState.EXTENDED),
        ord("S"): ConnectionState.IDLE,
        ord("X"): ConnectionState.CLOSED,
    },
    ConnectionState.SKIPPING: {
        **dict.fromkeys(map(ord, "PBDECHQF" + _COPY), ConnectionState.SKIPPING),
        ord("S"): ConnectionState.IDLE,
        ord("X"): ConnectionState.CLOSED,
    },
    ConnectionState.CLOSED: {},
}
_PASSES_SKIPPING = frozenset(map(ord, "SX"))
_KEPT_BYTES = 64 * 1024  # of a longer message the frame is made again where it is relayed, rather than held beside it


class ReceivedMessage(NamedTuple):
    """A received message. A short one after the login also has its frame, so that it can be relayed unchanged.

    `size` is the frame's length in bytes. `is_ascii` is True if the whole frame is ASCII.
    """

    message: FrontendMessage
    frame: Frame | None
    size: int = 0
    is_ascii: bool = True

    @property
    def raw(self) -> bytes:
        """The message's bytes: the received frame, or the message encoded again if its frame was not kept."""
        return self.message.encode() if self.frame is None else self.frame.raw


class ServerProtocol:
    """The server's side of a connection. It takes received bytes, and returns messages one at a time.

    After an error, the following messages must be skipped, so only one message is decoded at a time. Methods raise
    ProtocolViolation; the connection is then closed and accepts nothing more.
    """

    def __init__(self) -> None:
        self.state = ConnectionState.STARTUP
        self._reader = FrameReader(limit_bytes=LOGIN_LIMIT_BYTES, merges_rows=False)
        self._encryption_asked: set[bool] = set()

    @property
    def buffered(self) -> int:
        """The number of received bytes that are not yet decoded."""
        return self._reader.buffered

    def receive(self, data: bytes) -> None:
        """Add bytes that the client sent."""
        self._reader.feed(data)
        if self.state in (ConnectionState.STARTUP, ConnectionState.AUTHENTICATING, ConnectionState.OPENING):
            self._limit_unauthenticated()

    @property
    def has_more(self) -> bool:
        """Return True if another complete message has arrived. Call it only while the session is open."""
        return self._reader.has_frame

    def next_message(self) -> ReceivedMessage | None:
        """Return the next message to handle. Return None until more bytes arrive."""
        try:
            if self.state is ConnectionState.STARTUP:
                return self._read_first_message()
            while (state := self.state) is not ConnectionState.OPENING and state is not ConnectionState.CLOSED:
                following = TRANSITIONS[state]
                received = self._reader.read_typed_frame(following)
                if received is None:
                    return None
                self.state = following[received.kind]
                if state is not ConnectionState.SKIPPING or received.kind in _PASSES_SKIPPING:
                    return _decode(received)
        except ProtocolViolation:
            self.state = ConnectionState.CLOSED
            raise
        return None

    def start_encryption(self) -> None:
        """Expect only TLS from now on. Raise ProtocolViolation if the client has already sent unencrypted bytes."""
        if self.state is not ConnectionState.STARTUP:
            raise RuntimeError(f"cannot begin TLS in {self.state.name}")
        if self._reader.buffered:
            self.state = ConnectionState.CLOSED
            raise ProtocolViolation("received unencrypted data after an encryption request")
        self._encryption_asked = {True, False}

    def accept_login(self) -> None:
        """Note that the credentials are correct. No message is read until `open_session`."""
        self._change_state(ConnectionState.AUTHENTICATING, ConnectionState.OPENING)

    def open_session(self) -> None:
        """Note that the session is open. Statements are read from now on."""
        self._change_state(ConnectionState.OPENING, ConnectionState.IDLE)
        self._reader.limit_bytes = MESSAGE_LIMIT_BYTES

    def fail_batch(self) -> None:
        """Note that an error was sent. In a batch of the extended protocol, skip all messages up to the next Sync."""
        if self.state is ConnectionState.EXTENDED:
            self.state = ConnectionState.SKIPPING

    def close(self) -> None:
        """Note that the connection is closed. No message is read or sent any more."""
        self.state = ConnectionState.CLOSED

    def _read_first_message(self) -> ReceivedMessage | None:
        payload = self._reader.read_untyped_packet()
        if payload is None:
            return None
        message = frontend.decode_untyped(payload)
        if isinstance(message, EncryptionRequest):
            if message.is_gss in self._encryption_asked:
                raise ProtocolViolation("encryption was asked for twice")
            self._encryption_asked.add(message.is_gss)
            if self._reader.buffered:
                raise ProtocolViolation("received unencrypted data after an encryption request")
        else:
            self.state = ConnectionState.CLOSED if isinstance(message, Cancel) else ConnectionState.AUTHENTICATING
        return ReceivedMessage(message=message, frame=None)

    def _limit_unauthenticated(self) -> None:
        if self._reader.buffered > 2 * LOGIN_LIMIT_BYTES:
            self.state = ConnectionState.CLOSED
            raise ProtocolViolation("too much data before authentication")

    def _change_state(self, expected: ConnectionState, following: ConnectionState) -> None:
        if self.state is not expected:
            raise RuntimeError(f"cannot go from {self.state.name} to {following.name}")
        self.state = following


def _decode(frame: Frame) -> ReceivedMessage:
    message, size = frontend.decode(frame), len(frame.raw)
    if size <= _KEPT_BYTES:
        return ReceivedMessage(message, frame, size)
    return ReceivedMessage(message, None, size, is_ascii=frame.raw.isascii())
