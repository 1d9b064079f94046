"""The conversion of text between the client, the shadow and Keyhole, in the session's current encoding."""

import codecs
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from planner.errors import KeyholeError
from proxy.session.session_refusals import refuse_client_encoding, refuse_invalid_text, refuse_unwritable_text
from proxy.shadow.exchange import ShadowExchange
from proxy.shadow.relay import ShadowRelay
from proxy.wire.encodings import find_codec

_NAME_BYTES = 63  # PostgreSQL's NAMEDATALEN - 1


class ClientText:
    """A converter between bytes and text. ASCII text is the same in all encodings of PostgreSQL.

    A statement that the shadow has not answered yet may still change the encoding. The shadow reports a change only
    with the next ReadyForQuery. Call `refresh_encoding` before converting text that is not ASCII.
    """

    def __init__(self, relay: ShadowRelay, exchange: ShadowExchange) -> None:
        self._relay = relay
        self._exchange = exchange
        self._learned = ""
        self._learned_at = (-1, -1)

    @property
    def encoding(self) -> str:
        """The encoding's name, as PostgreSQL writes it."""
        if self._learned_at[0] == self._relay.answers.readies:
            return self._learned
        return self._relay.parameters.get(b"client_encoding", b"UTF8").decode("ascii")

    def use_reported_encoding(self, encoding: str) -> None:
        """Use an encoding that the shadow has just reported, until the next ReadyForQuery reports settings again."""
        answers = self._relay.answers
        self._learned, self._learned_at = encoding, (answers.readies, answers.executed)

    async def refresh_encoding(self) -> None:
        """Ask the shadow for the encoding, if a statement may have changed it since the last report of settings."""
        await self._relay.settle()
        answers = self._relay.answers
        known = answers.told if self._learned_at[0] != answers.readies else self._learned_at[1]
        if answers.executed != known and not answers.skipping:
            self.use_reported_encoding(await self._exchange.read_encoding())
            await self._exchange.undo_own_statement()

    @property
    def codec(self) -> codecs.CodecInfo:
        """Return the Python codec of the client's encoding. Raise KH404 if SQL cannot be read safely in it."""
        found = find_codec(self.encoding)
        if found is None:
            raise refuse_client_encoding(self.encoding)
        return found

    async def decode_statement(self, sql: bytes) -> str:
        """Decode a statement that the client sent. Raise KH100 and KH404."""
        return (await self.make_decoder(sql))()

    async def make_decoder(self, sql: bytes) -> Callable[[], str]:
        """Return a function that decodes the client's statement `sql` in the current encoding.

        Raise KH404 if Keyhole does not know the encoding.

        The function may be called in any thread, and raises KH100.
        """
        if sql.isascii():
            return partial(sql.decode, "ascii")
        await self.refresh_encoding()
        return partial(_decode_text, sql, codec=self.codec, encoding=self.encoding)

    def decode(self, raw: bytes) -> str:
        """Decode a text that the shadow has just sent. Raise KH404 if Keyhole does not know the encoding."""
        return raw.decode("ascii") if raw.isascii() else self.codec.decode(raw, "replace")[0]

    async def convert_name(self, raw: bytes) -> bytes:
        """Return a name as PostgreSQL stores it: in PostgreSQL's encoding, cut to the maximal length."""
        if not raw.isascii():
            await self.refresh_encoding()
            with suppress(KeyholeError, UnicodeDecodeError):  # the shadow refuses it, or nobody can tell
                raw = self.codec.decode(raw)[0].encode()
        return raw[:_NAME_BYTES]

    def encode(self, text: str) -> bytes:
        """Encode a text for the shadow. Raise KH100, KH404."""
        if text.isascii():
            return text.encode("ascii")
        try:
            return self.codec.encode(text)[0]
        except UnicodeEncodeError:
            raise refuse_unwritable_text(self.encoding) from None


def _decode_text(sql: bytes, *, codec: codecs.CodecInfo, encoding: str) -> str:
    try:
        return codec.decode(sql)[0]
    except UnicodeDecodeError:
        raise refuse_invalid_text(encoding) from None
