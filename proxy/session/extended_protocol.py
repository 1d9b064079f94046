"""Parse, Bind, Execute and Close in a session: Keyhole handles questions, and all else goes to the shadow.

Keyhole handles a question from its Parse on, or from its Bind on if SQL's PREPARE made it. The question's portal is
bound to a stand-in statement. The first Execute or FETCH of the portal answers the question. `ClientStatements` has the
state of every such statement and portal. All others are the shadow's alone.
"""

from dataclasses import replace

from planner.errors import KeyholeError
from planner.statements.statement_refusals import refuse_own_name
from proxy.pipeline.messages import StatementPart
from proxy.session.client_statements import UNNAMED, Portal, Statement
from proxy.session.core import SessionCore
from proxy.session.session_questions import AskingMode
from proxy.shadow.answers import AnswerEnd, ExpectedAnswer
from proxy.shadow.exchange import OWN_NAMES, STAND_IN
from proxy.shadow.findings import READING_SETTINGS, ShadowFailed, parse_description
from proxy.shadow.parameter import are_independent_of_settings
from proxy.wire.frontend import Bind, Close, Describe, Execute, FrontendMessage, Parse, Query, Sync
from proxy.wire.server_side import ReceivedMessage


class ExtendedProtocol:
    """The handler of one session's messages of the extended protocol."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._relay = core.parts.relay
        self._exchange = core.parts.exchange
        self._text = core.parts.text
        self._held = core.parts.client_statements
        self._has_begun = False

    async def track_batch(self, message: FrontendMessage) -> None:
        """Note where a batch of messages begins and ends. Call it before any message is handled.

        PostgreSQL runs the first statement of a batch like a single statement, and all later ones as in a transaction.
        Keyhole therefore sends its own statements to the shadow between batches if possible.
        """
        if isinstance(message, Query | Sync):
            self._has_begun = False
            return
        answers = self._relay.answers
        if not self._has_begun and answers.is_settled and answers.status != b"E":
            outdated, full = self._held.is_outdated, self._core.quotas.is_nearly_full
            if outdated:
                await self._held.forget_lost_statements()
            if full:
                await self._core.quotas.recount()
            if outdated or full:
                await self._exchange.undo_own_statement()
        self._has_begun = True

    async def parse(self, message: Parse, received: ReceivedMessage) -> None:
        """Handle Parse: prepare a statement.

        For a question, also prepare a stand-in, to which its portals are bound.
        """
        if message.statement.startswith(OWN_NAMES):
            raise refuse_own_name()
        name = await self._text.convert_name(message.statement)
        if name in self._held.statements:
            await self._exchange.settle()  # a message that is skipped after an error replaces nothing
        try:
            parts = await self._core.reader.read_statements(message.sql)
            self._core.reporter.note_settings(parts)
            await self._core.quotas.make_room(parts, name)
            for part in parts:
                executing = None if part.execute_statement is None else part.execute_statement.name
                self._held.check_parse(name, part.first_word, executing)
        except KeyholeError as error:
            await self._exchange.settle()
            if message.statement == UNNAMED:
                self._held.forget_statement(UNNAMED)
                self._exchange.close(b"S", UNNAMED)
            await self._core.reporter.report_error(error, message.sql)
            raise ShadowFailed from None
        only = parts[0] if len(parts) == 1 else None
        is_question = only is not None and await self._core.questions.is_for_keyhole(only)
        if (
            only is not None
            and only.execute_statement is not None
            and self._held.may_be_question(only.execute_statement.name)
        ):
            await self._exchange.undo_own_statement()
        if only is None or not is_question:
            self._core.forward_to_shadow(received)
            if name != UNNAMED and (name in self._held.statements or self._held.may_be_from_prepare(name)):
                # succeeds only if the shadow has lost the old one, by DEALLOCATE or DISCARD
                await self._exchange.settle()
            self._held.note_other_statement(name, parts)
            return
        self._core.forward_question(message, received, spelled=only.rewritten_text)
        expected = self._exchange.describe(b"S", message.statement)
        await self._exchange.settle()
        like = parse_description(expected)
        text = await self._text.decode_statement(message.sql)
        # DECLARE gives no rows, and can be bound itself: PostgreSQL checks its privileges when it runs
        stand_in, stand_in_text = message.statement, text
        if like.rows is not None:
            stand_in = self._exchange.make_stand_in_name()
            stand_in_text = self._text.decode(await self._exchange.prepare_stand_in(stand_in, like))
        self._held.keep_question(name, Statement(only, text, like, stand_in, stand_in_text))

    async def bind(self, message: Bind, received: ReceivedMessage) -> None:
        """Handle Bind: make a portal. A question's portal is bound to its stand-in."""
        if message.statement.startswith(OWN_NAMES) or message.portal.startswith(OWN_NAMES):
            raise refuse_own_name()
        name, portal = await self._text.convert_name(message.statement), await self._text.convert_name(message.portal)
        if name in self._held.statements:
            self._exchange.describe(b"S", message.statement)  # fails unless there is one, whatever it has become
            await self._exchange.settle()
            if self._held.is_outdated:
                await self._held.forget_lost_statements()
                await self._exchange.undo_own_statement()
        if portal:
            self._core.quotas.count_portal(portal)
        statement = self._held.statements.get(name) or await self._find_sql_prepared(message.statement, name)
        self._held.described.pop(portal, None)
        if statement is None or len(message.values) != len(statement.description.types):
            if portal in self._held.portals:
                await self._exchange.settle()  # a message that is skipped after an error replaces nothing
                del self._held.portals[portal]
            self._core.forward_to_shadow(
                received
            )  # a wrong number of values is an error that names the client's own statement
            return
        bound = replace(message, statement=statement.stand_in)
        self._relay.send(bound.encode(), ExpectedAnswer(AnswerEnd.BIND))
        await self._exchange.settle()
        self._held.forget_ended_portals()
        read_by = await self._find_reading_settings(message, statement.description.types)
        self._held.portals[portal] = Portal(statement, message, read_by, is_from_execute=statement.is_from_prepare)
        if statement.description.rows is not None:
            self._held.described[portal] = statement.description.rows

    async def _find_reading_settings(self, message: Bind, types: tuple[int, ...]) -> tuple[bytes, ...] | None:
        """Return the settings that affect how a portal's parameters are parsed, or None if no setting does."""
        if are_independent_of_settings(message, types):
            return None
        answers = self._relay.answers
        if answers.executed != answers.told:
            return await self._exchange.read_settings()
        return tuple(self._relay.parameters.get(name.encode(), b"") for name in READING_SETTINGS)

    async def _find_sql_prepared(self, sent: bytes, name: bytes) -> Statement | None:
        """Return the question with this name that SQL's PREPARE made.

        Return None if the name belongs to any other statement.
        """
        if not name or not self._held.may_be_from_prepare(name):
            return None
        await self._exchange.settle()
        if self._relay.answers.has_failed:
            return None  # nothing can be looked up, and the shadow says what is wrong
        found = await self._exchange.find_prepared_statement(sent)
        await self._exchange.undo_own_statement()
        question = None if found is None else self._core.questions.find_question_in(found)
        if found is None or found.name != name or question is None:
            return None
        expected = self._exchange.describe(b"S", sent)
        await self._exchange.settle()
        like = parse_description(expected)
        # its portal keeps what it needs of the stand-in, so the next may have the same name
        stand_in = self._text.decode(await self._exchange.prepare_stand_in(STAND_IN, like))
        part = StatementPart(question, offset=0, is_intercepted=True)
        return Statement(part, question, like, STAND_IN, stand_in, is_from_prepare=True)

    async def describe(self, message: Describe, received: ReceivedMessage) -> None:
        """Handle Describe: send the parameters and columns of a statement, or the columns of a portal.

        For a question's portal, also send the source tables of its columns, which neither the stand-in nor the answer
        has.
        """
        places = (
            self._held.described.get(await self._text.convert_name(message.name)) if message.target == b"P" else None
        )
        self._relay.send(received.raw, ExpectedAnswer(AnswerEnd.DESCRIBE, described_columns=places))

    async def execute(self, message: Execute, received: ReceivedMessage) -> None:
        """Handle Execute: run a portal. The first run of a question's portal answers the question."""
        if await self._text.convert_name(message.portal) not in self._held.portals:
            self._core.forward_to_shadow(received)
            return
        await self._exchange.settle()
        self._held.forget_ended_portals()
        portal = self._held.portals.pop(await self._text.convert_name(message.portal), None)
        how = AskingMode.PORTAL_AFTER if self._relay.answers.ran else AskingMode.PORTAL_FIRST
        if portal is None or not await self._core.questions.answer(portal, message, how=how):
            self._core.forward_to_shadow(received)

    async def close(self, message: Close, received: ReceivedMessage) -> None:
        """Handle Close: remove a statement or a portal."""
        if message.target == b"P":
            name = await self._text.convert_name(message.name)
            self._core.quotas.forget_portal(name)
            self._held.described.pop(name, None)
        elif message.target == b"S" and await self._text.convert_name(message.name) in self._held.statements:
            await self._exchange.settle()  # a message that is skipped after an error closes nothing
            self._core.forward_to_shadow(received)
            self._held.forget_statement(await self._text.convert_name(message.name))
            return
        self._core.forward_to_shadow(received)
