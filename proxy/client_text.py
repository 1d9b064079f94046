"""A client's text and the shadow's, in the encoding that the session has now."""

import codecs

from planner.errors import KeyholeError
from proxy.shadow.relay import Relay
from proxy.wire.encodings import codec


class ClientText:
    """From bytes to text and back. Text that is ASCII is the same in all encodings of PostgreSQL.

    What the shadow has not answered yet may still change the encoding: settle before text that is not ASCII.
    """

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    @property
    def encoding(self) -> str:
        """Its name, as PostgreSQL writes it."""
        return self._relay.parameters.get(b"client_encoding", b"UTF8").decode("ascii")

    @property
    def codec(self) -> codecs.CodecInfo:
        """How to read and write it. Raises KH404 where that would not be safe."""
        found = codec(self.encoding)
        if found is None:
            raise KeyholeError(
                "KH404",
                f"the client encoding {self.encoding} is not supported",
                hint="SET client_encoding = 'UTF8';",
            )
        return found

    async def read(self, sql: bytes) -> str:
        """A statement of the client. Raises KH100, KH404."""
        if sql.isascii():
            return sql.decode("ascii")
        await self._relay.settle()
        try:
            return self.codec.decode(sql)[0]
        except UnicodeDecodeError:
            raise KeyholeError("KH100", f"the statement is not valid {self.encoding}") from None

    def encode(self, text: str) -> bytes:
        """A text for the shadow. Raises KH100, KH404."""
        if text.isascii():
            return text.encode("ascii")
        try:
            return self.codec.encode(text)[0]
        except UnicodeEncodeError:
            raise KeyholeError("KH100", f"the statement cannot be written in {self.encoding}") from None
