"""The error of the protocol core: the peer broke the protocol, and the connection must be closed."""


class ProtocolViolation(Exception):
    """The error for a peer that breaks the protocol. Its text never contains the peer's bytes.

    `sqlstate` is the code of the FATAL error that is sent before the connection is closed.
    """

    def __init__(self, message: str, *, sqlstate: str = "08P01") -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
