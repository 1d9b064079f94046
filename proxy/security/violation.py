"""The one exception of the protocol core: the peer broke the protocol, and the connection must end."""


class ProtocolViolation(Exception):
    """The peer's violation, never the bytes that it sent. `sqlstate` is for the FATAL report before the close."""

    def __init__(self, message: str, *, sqlstate: str = "08P01") -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
