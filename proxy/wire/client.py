"""The client's side of a connection: log in, then hand out the server's frames as they come."""

from enum import Enum, auto

from proxy.security.violation import ProtocolViolation
from proxy.wire import backend
from proxy.wire.backend import AUTH_OK, Authentication, BackendKeyData, BackendMessage, ParameterStatus, Report
from proxy.wire.frames import Frame, FrameReader
from proxy.wire.frontend import PROTOCOL_3_0, Startup

ANSWER_LIMIT_BYTES = 1 << 26
"""The longest message taken from the shadow, thus the longest row: it is held several times over on its way."""

_LOGIN = frozenset(map(ord, "RSKZENv"))


class ClientState(Enum):
    """The state of a client's connection."""

    LOGIN = auto()
    OPEN = auto()
    CLOSED = auto()


class ClientProtocol:
    """The client's side of a session without a password, which cuts the server's bytes into frames.

    The shadow's socket decides who may connect. `parameters` are the server's ParameterStatus values so far. `key` is
    what cancels this session. `refusal` is the server's error if it refused the login. Raises ProtocolViolation.
    """

    def __init__(self) -> None:
        self.state = ClientState.LOGIN
        self.parameters: dict[bytes, bytes] = {}
        self.key: BackendKeyData | None = None
        self.refusal: Report | None = None
        self._reader = FrameReader(limit_bytes=ANSWER_LIMIT_BYTES, merges_rows=True)

    @property
    def buffered(self) -> int:
        """The number of bytes that were received and not yet handed out as frames."""
        return self._reader.buffered

    def encode_startup(self, parameters: dict[str, str]) -> bytes:
        """Return the first packet."""
        pairs = tuple((name.encode(), value.encode()) for name, value in parameters.items())
        return Startup(version=(PROTOCOL_3_0 >> 16, 0), parameters=pairs).encode()

    def receive(self, data: bytes) -> None:
        """Add bytes that came from the server."""
        self._reader.feed(data)

    def log_in(self) -> bool:
        """Read the replies to the login so far. Return True once it is accepted (`OPEN`) or refused (`CLOSED`)."""
        while self.state is ClientState.LOGIN and (received := self._reader.read_typed(_LOGIN)) is not None:
            self._read_login_message(backend.decode(received))
        return self.state is not ClientState.LOGIN

    def next_frame(self) -> Frame | None:
        """Return the next frame. Adjacent rows come as one frame."""
        return self._reader.read_typed()

    def _read_login_message(self, message: BackendMessage) -> None:
        match message:
            case ParameterStatus(name=name, value=value):
                self.parameters[name] = value
            case BackendKeyData():
                self.key = message
            case Report(kind="E"):
                self.refusal = message
                self.state = ClientState.CLOSED
            case backend.ReadyForQuery():
                self.state = ClientState.OPEN
            case Authentication(step=step) if step != AUTH_OK:
                raise ProtocolViolation("the server asks for a password")
            case _:
                pass
