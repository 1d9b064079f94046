"""The client's side of a connection: log in, then return the server's frames as they arrive."""

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
    """The state of a client's connection to a server."""

    LOGIN = auto()
    OPEN = auto()
    CLOSED = auto()


class ClientProtocol:
    """The client's side of a session without a password. It cuts the server's bytes into frames.

    Keyhole logs in to the shadow with it; the socket's permissions decide who may connect. `parameters` are the
    settings that the server has reported. `key` is the secret that cancels a statement of this session. `refusal` is
    the server's error if it refused the login. Methods raise ProtocolViolation.
    """

    def __init__(self) -> None:
        self.state = ClientState.LOGIN
        self.parameters: dict[bytes, bytes] = {}
        self.key: BackendKeyData | None = None
        self.refusal: Report | None = None
        self._reader = FrameReader(limit_bytes=ANSWER_LIMIT_BYTES, merges_rows=True)

    @property
    def buffered(self) -> int:
        """The number of received bytes that `next_frame` has not returned yet."""
        return self._reader.buffered

    def encode_startup(self, parameters: dict[str, str]) -> bytes:
        """Return the bytes of the startup packet."""
        pairs = tuple((name.encode(), value.encode()) for name, value in parameters.items())
        return Startup(version=(PROTOCOL_3_0 >> 16, 0), parameters=pairs).encode()

    def receive(self, data: bytes) -> None:
        """Add bytes that the server sent."""
        self._reader.feed(data)

    def log_in(self) -> bool:
        """Read the server's replies to the login.

        Return True once the login is accepted (`OPEN`) or refused (`CLOSED`).
        """
        while self.state is ClientState.LOGIN and (received := self._reader.read_typed_frame(_LOGIN)) is not None:
            self._read_login_message(backend.decode(received))
        return self.state is not ClientState.LOGIN

    def next_frame(self) -> Frame | None:
        """Return the next complete frame, or None. Adjacent rows are returned as one frame."""
        return self._reader.read_typed_frame()

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
