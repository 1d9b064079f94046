"""The reporting of a refused statement to the client.

PostgreSQL's own error about the statement is sent instead, if any.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from planner.errors import KeyholeError
from planner.parser.lexer import NestedTooDeep
from planner.statements.settings import HINT_IN_MESSAGE
from proxy.observe.telemetry import Interface
from proxy.pipeline.messages import StatementPart
from proxy.session.error_fields import add_hint, encode_refusal
from proxy.session.parts import SessionParts
from proxy.shadow.findings import ShadowFailed
from proxy.shadow.relay import is_failed_transaction, is_syntax_error, read_analysis_error
from proxy.wire.backend import Report
from proxy.wire.encodings import find_codec

_SETS = re.compile(
    rf"\s*(?:re)?set\s+(?:(?:session|local)\s+)?{re.escape(HINT_IN_MESSAGE)}\b(?:\s*(?:=|to\b)\s*'?(on|off))?",
    re.IGNORECASE,
)
_OF_GROUP_BY = frozenset({"KH202", "KH215"})
_SYNTAX = b"42601"


class ErrorReporter:
    """The sender of one session's refusals."""

    def __init__(self, session: SessionParts) -> None:
        self._session = session
        self._relay = session.relay
        self._exchange = session.exchange
        self._at_start = session.relay.settings.get(HINT_IN_MESSAGE)
        self.hint_in_message = _is_on(self._at_start)
        """As it was when it was last set or asked for, since a failed transaction tells nothing."""
        self._known = False

    @contextmanager
    def use_known_settings(self, settings: Mapping[str, str | None]) -> Iterator[None]:
        """Report an error of the block without asking the shadow, by these already known settings.

        After a timeout, a request to the shadow would itself fail with a timeout error.
        """
        self.hint_in_message, self._known = _is_on(settings.get(HINT_IN_MESSAGE)), True
        yield
        self._known = False

    def note_settings(self, parts: tuple[StatementPart, ...]) -> None:
        """Note that a statement changes the setting that decides how hints are shown.

        If a ROLLBACK undoes the change, this is found at the next question or refusal.
        """
        for part in parts:
            if (found := _SETS.match(part.text)) is not None:
                self.hint_in_message = _is_on(found[1] or self._at_start)

    async def report_error(self, error: KeyholeError, text: bytes | None = None) -> None:
        """Send the error to the client, and make the shadow's transaction fail with an error of its own.

        PostgreSQL's own error is sent instead if the text has a syntax error, or if the transaction has already failed.
        To find that error, the shadow parses the text and never runs it. If Keyhole refuses the grouping of a question,
        PostgreSQL's errors about names, functions and positions are sent instead, too.
        """
        await self._relay.settle()
        if self._relay.answers.skipping:
            return  # an earlier error of the batch was sent already
        if error.hint and not self._known and self._relay.answers.status != b"E":
            with suppress(ShadowFailed):
                asked = await self._exchange.read_setting(HINT_IN_MESSAGE)
                self.hint_in_message = _is_on((asked or b"").decode("ascii", "replace"))
            if self._relay.answers.skipping:
                return
        self._known = False
        if text is not None and not isinstance(error, NestedTooDeep):
            expected = self._exchange.fail_transaction(text)
            await self._relay.settle()
            for frame in expected.kept_frames:
                if is_syntax_error(frame) or is_failed_transaction(frame):
                    self._session.client.write(frame.raw)
                    return
                report = read_analysis_error(frame)
                if report is not None and (error.code in _OF_GROUP_BY or report.find_field(b"C") == _SYNTAX):
                    self._session.client.write(self._encode_with_hint(report, error.hint))
                    return
        self._exchange.fail_transaction()
        self._session.telemetry.count_refusal(error.code, face=Interface.POSTGRESQL, analyst=self._session.analyst)
        self._session.client.write(encode_refusal(error, codec=self._codec, hint_in_message=self.hint_in_message))

    def _encode_with_hint(self, report: Report, hint: str | None) -> bytes:
        """Return PostgreSQL's error as bytes, with Keyhole's hint if PostgreSQL gave no hint."""
        if hint is not None:
            report = add_hint(report, hint, codec=self._codec, hint_in_message=self.hint_in_message)
        return report.encode()

    @property
    def _codec(self) -> codecs.CodecInfo:
        return find_codec(self._session.text.encoding) or codecs.lookup("utf-8")


def _is_on(value: str | None) -> bool:
    return (value or "").strip().lower() == "on"
