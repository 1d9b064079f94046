"""The one exception of the protocol core: the peer broke the protocol, and the connection must end."""


class ProtocolViolation(Exception):
    """A violation of the protocol by the peer. It never has the peer's bytes.

    `sqlstate` is for the FATAL report before the connection is closed.
    """

    def __init__(self, message: str, *, sqlstate: str = "08P01") -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
