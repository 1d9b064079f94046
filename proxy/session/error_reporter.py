"""How a session is told that Keyhole refuses a statement: after what PostgreSQL itself has against it."""

import codecs

from planner.errors import KeyholeError
from proxy.observe.telemetry import Face
from proxy.session.error_fields import refusal
from proxy.session.parts import SessionParts
from proxy.shadow.relay import is_failed_transaction, is_syntax_error
from proxy.wire.encodings import codec


class ErrorReporter:
    """Refuses one session's statements."""

    def __init__(self, session: SessionParts) -> None:
        self._session = session
        self._relay = session.relay
        self._exchange = session.exchange

    async def tell(self, error: KeyholeError, text: bytes | None = None) -> None:
        """Tell the client, and fail the shadow's transaction by an error of its own.

        What PostgreSQL's grammar has against the refused text, and that a transaction has failed before, comes first:
        the shadow parses the text to tell, and never runs it.
        """
        await self._relay.settle()
        if self._relay.answers.skipping:
            return  # an earlier error of the batch was first, and has been told
        if text is not None:
            expected = self._exchange.fail(text)
            await self._relay.settle()
            for frame in expected.kept:
                if is_syntax_error(frame) or is_failed_transaction(frame):
                    self._session.client.write(frame.raw)
                    return
        self._exchange.fail()
        self._session.telemetry.count_refusal(error.code, face=Face.POSTGRESQL, analyst=self._session.analyst)
        self._session.client.write(refusal(error, codec=codec(self._session.text.encoding) or codecs.lookup("utf-8")))
