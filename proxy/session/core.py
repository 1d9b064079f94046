"""The functions that the simple and the extended protocol of a session share."""

from dataclasses import dataclass, replace

from proxy.session.error_reporter import ErrorReporter
from proxy.session.parts import SessionParts
from proxy.session.quotas import StatementQuotas
from proxy.session.session_questions import SessionQuestions
from proxy.session.statement_reader import StatementReader
from proxy.shadow.answers import AnswerEnd, ExpectedAnswer, keep_if_short
from proxy.wire.frontend import Bind, Close, Execute, FrontendMessage, Parse, Sync
from proxy.wire.server_side import ReceivedMessage

SYNC = Sync().encode()
_ENDINGS: dict[type[FrontendMessage], AnswerEnd] = {
    Parse: AnswerEnd.PARSE,
    Bind: AnswerEnd.BIND,
    Close: AnswerEnd.CLOSE,
    Execute: AnswerEnd.EXECUTE,
    Sync: AnswerEnd.SYNC,
}


@dataclass(frozen=True, slots=True)
class SessionCore:
    """The parts of one session and their helpers. The simple and the extended protocol share them."""

    parts: SessionParts
    reader: StatementReader
    reporter: ErrorReporter
    questions: SessionQuestions
    quotas: StatementQuotas

    def forward_to_shadow(self, received: ReceivedMessage) -> None:
        """Send a client's message unchanged to the shadow. The shadow's answer goes to the client."""
        message = received.message
        ending, text = _ENDINGS.get(type(message)), message.sql if isinstance(message, Parse) else b""
        self.parts.relay.send(
            received.raw, None if ending is None else ExpectedAnswer(ending, text=keep_if_short(text))
        )

    def forward_question(self, message: Parse, received: ReceivedMessage, *, spelled: str) -> None:
        """Send a question's Parse to the shadow.

        Replace its text by `spelled` if PostgreSQL could not parse the client's text.
        """
        if not spelled:
            self.forward_to_shadow(received)
            return
        sent = replace(message, sql=self.parts.text.encode(spelled))
        self.parts.relay.send(sent.encode(), ExpectedAnswer(AnswerEnd.PARSE, text=keep_if_short(message.sql)))
