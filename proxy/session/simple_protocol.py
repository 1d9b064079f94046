"""Simple queries in a session: a text goes to the shadow unchanged, unless one of its statements is a question.

An error ends only this text. ReadyForQuery follows at once, even inside a batch of the extended protocol.
"""

from planner.errors import KeyholeError
from proxy.pipeline.messages import StatementPart
from proxy.session.client_statements import UNNAMED
from proxy.session.core import SYNC, SessionCore
from proxy.session.multi_statement import ScriptRunner
from proxy.shadow.answers import NOTHING, AnswerEnd, ExpectedAnswer, keep_if_short
from proxy.shadow.findings import ShadowFailed
from proxy.wire.frontend import Query
from proxy.wire.server_side import ConnectionState, ReceivedMessage


class SimpleProtocol:
    """The handler of one session's simple queries."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._relay = core.parts.relay
        self._exchange = core.parts.exchange
        self._held = core.parts.client_statements
        self._script = ScriptRunner(core.parts, core.questions)

    async def run_query(self, message: Query, received: ReceivedMessage) -> None:
        """Handle a Query message: run all statements of its text."""
        parts: tuple[StatementPart, ...] = ()
        refusal: KeyholeError | None = None
        try:
            parts = await self._core.reader.read_statements(message.sql)
            self._core.reporter.note_settings(parts)
        except KeyholeError as error:
            refusal = error
        in_batch = self._core.parts.connection.state is ConnectionState.EXTENDED
        concerned = refusal is not None or self._script.may_need_splitting(parts)
        fetched = self._held.find_fetched_portal(parts)
        if concerned or fetched is not None or UNNAMED in self._held.statements:
            await self._exchange.settle()  # a query that is skipped after an error forgets nothing and says nothing
            self._held.forget_statement(UNNAMED)
        try:
            if refusal is None and await self._core.quotas.make_room(parts) and not in_batch:
                self._relay.send(SYNC, ExpectedAnswer(AnswerEnd.SYNC, shown_frames=NOTHING))
            if fetched is not None:
                await self._open_portal(fetched)
            if refusal is not None:
                await self._core.reporter.report_error(refusal, message.sql)
            elif not (concerned and await self._script.needs_splitting(parts, in_batch=in_batch)):
                self._relay.send(received.raw, ExpectedAnswer(AnswerEnd.QUERY, text=keep_if_short(message.sql)))
                return
            else:
                await self._script.run(parts, message.sql)
        except ShadowFailed:
            pass
        except KeyholeError as error:
            await self._core.reporter.report_error(error)
        self._relay.send(SYNC, ExpectedAnswer(AnswerEnd.SYNC))

    async def _open_portal(self, name: bytes) -> None:
        """Answer the question of a portal that FETCH or MOVE is about to read. Some drivers read cursors this way."""
        self._held.forget_ended_portals()
        portal = self._held.portals.pop(name, None)
        if portal is not None:
            await self._core.questions.answer_for_fetch(
                portal, self._core.parts.text.encode(name.decode("utf-8", "replace"))
            )
