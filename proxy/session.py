"""A session after its login: everything passes through to the shadow, except questions.

A question in a simple query or at the first Execute of a portal is prepared against the shadow's empty tables, planned,
released, and then the shadow runs the rewritten statement, with the released keys as parameters, under the client's own
portal. Describe, Close, row limits, transactions and their status are the shadow's own.
"""

import asyncio
import codecs
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial

import structlog

from planner.errors import KeyholeError
from proxy.asker import Asker, Part
from proxy.client_text import ClientText
from proxy.counted import Counted
from proxy.held import Held, Portal, Statement
from proxy.logs import fault
from proxy.questions import How, Questions
from proxy.reports import refusal
from proxy.script import UNNAMED, Script, first_word
from proxy.shadow.answers import NOTHING, Ending, Expected
from proxy.shadow.exchange import OWN_NAMES, Exchange, ShadowFailed, described
from proxy.shadow.relay import Relay, is_failed_transaction, is_syntax_error
from proxy.telemetry import Face, Telemetry
from proxy.wire.encodings import codec
from proxy.wire.frontend import (
    Bind,
    Close,
    Copy,
    Describe,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    Parse,
    Query,
    Sync,
)
from proxy.wire.server import Received, ServerConnection, State
from proxy.withdrawal import Work

log = structlog.get_logger("keyhole.session")

_LONG_BYTES = 2 * 1024
_OWN_NAME = KeyholeError("KH404", 'names of statements that start with "keyhole." are Keyhole\'s own')
_SYNC = Sync().encode()
_ENDINGS: dict[type[FrontendMessage], Ending] = {
    Parse: Ending.PARSE,
    Bind: Ending.BIND,
    Close: Ending.CLOSE,
    Describe: Ending.DESCRIBE,
    Execute: Ending.EXECUTE,
    Sync: Ending.SYNC,
}


class Session:
    """One client's statements, in order. `analyst` asks; blocking work runs in `workers`."""

    def __init__(
        self,
        connection: ServerConnection,
        *,
        relay: Relay,
        client: asyncio.StreamWriter,
        asker: Asker,
        analyst: str,
        workers: Executor,
        statements: int,
        portals: int,
        telemetry: Telemetry,
    ) -> None:
        self._connection = connection
        self._relay = relay
        self._client = client
        self._asker = asker
        self._analyst = analyst
        self._work = Work(workers)
        self._telemetry = telemetry
        self._exchange = Exchange(relay, setting_names=tuple(asker.settings))
        self._held = Held(self._exchange)
        self._text = ClientText(relay)
        self._questions = Questions(
            relay,
            client=client,
            exchange=self._exchange,
            held=self._held,
            text=self._text,
            asker=asker,
            analyst=analyst,
            work=self._work,
        )
        self._script = Script(
            relay,
            client=client,
            exchange=self._exchange,
            held=self._held,
            text=self._text,
            questions=self._questions,
        )
        self._counted = Counted(self._exchange, statements=statements, portals=portals)
        self._readies = 0
        self._begun = False
        self._handling = False
        self._handled_at = asyncio.get_running_loop().time()

    async def handle(self, received: Received) -> None:
        """One message of the client. Raises ConnectionError when the shadow is gone."""
        self._handling = True
        try:
            await self._dispatch(received)
        except ShadowFailed:
            self._connection.failed()
        except KeyholeError as error:
            await self._refuse(error)
            self._connection.failed()
        finally:
            self._handling = False
            self._handled_at = asyncio.get_running_loop().time()

    async def cancel(self) -> None:
        """The client wants no more of the statement that runs: stop waiting for a question, or tell the shadow."""
        if not self._work.withdraw():
            await self._relay.cancel()

    @property
    def busy(self) -> bool:
        """Whether a statement runs."""
        return self._handling or not self._relay.answers.settled

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction, or a batch that was not ended by Sync, is open."""
        return self._relay.answers.status != b"I" or self._connection.state is not State.IDLE

    def idle_for(self, now: float) -> float:
        """Seconds since the last statement ended, in the loop's time."""
        return 0.0 if self.busy else now - max(self._handled_at, self._relay.settled_at)

    async def _dispatch(self, received: Received) -> None:
        await self._note(received.message)
        match received.message:
            case Query() as message:
                await self._query(message, received)
            case Parse() as message:
                await self._parse(message, received)
            case Bind() as message:
                await self._bind(message, received)
            case Execute(portal=name) as message if name in self._held.portals:
                await self._execute(message, received)
            case Close(what=b"S", name=name) if name in self._held.statements:
                await self._exchange.settle()  # what is skipped after an error closes nothing
                self._pass(received)
                self._held.forget(name)
            case Close(what=b"P", name=name):
                self._counted.close(name)
                self._pass(received)
            case FunctionCall():
                await self._exchange.settle()
                await self._refuse(KeyholeError("KH404", "function calls by protocol message are not served"))
                self._relay.send(_SYNC, Expected(Ending.SYNC))
            case Copy():
                pass
            case Flush():
                self._relay.send(Flush().encode())
            case _:
                self._pass(received)

    async def _note(self, message: FrontendMessage) -> None:
        """Follow batches of the extended protocol.

        PostgreSQL treats the first statement of a batch as it would one alone, and what follows as in a transaction. So
        Keyhole's own questions to the shadow come between batches where they can.
        """
        if isinstance(message, Query | Sync):
            self._begun = False
            return
        answers = self._relay.answers
        if not self._begun and answers.settled and answers.status != b"E" and self._held.outdated(answers.forgotten):
            await self._held.check(answers.forgotten)
            self._relay.send(_SYNC, Expected(Ending.SYNC, shown=NOTHING))
        self._begun = True

    # --- simple query

    async def _query(self, message: Query, received: Received) -> None:
        """Errors in it end it and nothing else: ReadyForQuery follows at once, even inside a batch."""
        parts: tuple[Part, ...] = ()
        refusal: KeyholeError | None = None
        try:
            parts = await self._read(message.sql)
        except KeyholeError as error:
            refusal = error
        in_batch = self._connection.state is State.EXTENDED
        concerned = refusal is not None or self._script.may_concern(parts)
        if concerned or UNNAMED in self._held.statements:
            await self._exchange.settle()  # a query that is skipped after an error forgets nothing and says nothing
            self._held.statements.pop(UNNAMED, None)
        try:
            if refusal is None and _prepares(parts):
                await self._insist_on_room()
                if not in_batch:
                    self._relay.send(_SYNC, Expected(Ending.SYNC, shown=NOTHING))
            if refusal is not None:
                await self._refuse(refusal, message.sql)
            elif not (concerned and await self._script.concerns(parts, in_batch=in_batch)):
                self._relay.send(_raw(received), Expected(Ending.QUERY))
                return
            else:
                await self._script.run(parts, message.sql)
        except ShadowFailed:
            pass
        except KeyholeError as error:
            await self._refuse(error)
        self._relay.send(_SYNC, Expected(Ending.SYNC))

    async def _insist_on_room(self) -> None:
        """Before a statement gets a name. Raises KH410."""
        if self._counted.has_room():
            return
        await self._exchange.settle()
        if self._relay.answers.status != b"E":  # where nothing can be looked up, nothing can be prepared
            await self._counted.look()

    def _transactions(self) -> int:
        """Changes whenever no portal of before can be left."""
        answers = self._relay.answers
        return answers.readies if answers.status == b"I" else self._counted.transactions

    # --- extended query

    async def _parse(self, message: Parse, received: Received) -> None:
        if message.statement.startswith(OWN_NAMES):
            raise _OWN_NAME
        if message.statement in self._held.statements:
            await self._exchange.settle()  # what is skipped after an error replaces nothing
        try:
            parts = await self._read(message.sql)
            for part in parts:
                executing = None if part.executing is None else part.executing.name
                self._held.check_parse(message.statement, first_word(part), executing)
            if message.statement or _prepares(parts):
                await self._insist_on_room()
        except KeyholeError as error:
            await self._exchange.settle()
            if message.statement == UNNAMED:
                self._held.forget(UNNAMED)
                self._exchange.close(b"S", UNNAMED)
            await self._refuse(error, message.sql)
            raise ShadowFailed from None
        if len(parts) > 1 or not any([await self._questions.meant(part) for part in parts]):
            self._pass(received)
            if message.statement == UNNAMED:
                self._held.forget(UNNAMED)
            elif message.statement in self._held.statements or self._held.may_be_prepared(message.statement):
                # succeeds only if the shadow has lost the old one, by DEALLOCATE or DISCARD
                await self._exchange.settle()
                self._held.replaced(message.statement)
            return
        self._pass(received)
        expected = self._exchange.describe(b"S", message.statement)
        await self._exchange.settle()
        like = described(expected)
        stand_in = await self._exchange.stand_in(message.statement, message.sql, like)
        self._held.statements[message.statement] = Statement(parts[0], message.sql, like, *stand_in)

    async def _bind(self, message: Bind, received: Received) -> None:
        if message.statement.startswith(OWN_NAMES):
            raise _OWN_NAME
        if message.statement in self._held.statements:
            self._exchange.describe(b"S", message.statement)  # insists that there is one, whatever it is by now
            await self._exchange.settle()
            await self._held.check(self._relay.answers.forgotten)
        if message.portal:
            self._counted.bind(message.portal, transactions=self._transactions())
        statement = self._held.statements.get(message.statement) or await self._prepared_in_sql(message.statement)
        if statement is None or len(message.values) != len(statement.described.types):
            if message.portal in self._held.portals:
                await self._exchange.settle()  # what is skipped after an error replaces nothing
                del self._held.portals[message.portal]
            self._pass(received)  # a wrong number of values is an error that names the client's own statement
            return
        bound = replace(message, statement=statement.stand_in)
        self._relay.send(bound.encode(), Expected(Ending.BIND))
        await self._exchange.settle()
        self._forget_portals()
        self._held.portals[message.portal] = Portal(statement, message, executed=statement.in_sql)

    def _forget_portals(self) -> None:
        """Forget those whose transaction is over."""
        answers = self._relay.answers
        if answers.readies != self._readies and answers.status == b"I":
            self._held.portals.clear()
        self._readies = answers.readies

    async def _prepared_in_sql(self, name: bytes) -> Statement | None:
        """What the client binds by a name that PREPARE gave to a question; None for everything else."""
        if not name or not self._held.may_be_prepared(name):
            return None
        await self._exchange.settle()
        found = await self._exchange.held(name)
        question = None if found is None else self._questions.inside(found)
        if found is None or found.name != name or question is None:
            return None
        expected = self._exchange.describe(b"S", name)
        await self._exchange.settle()
        like = described(expected)
        stand_in = await self._exchange.stand_in(name, found.text, like)
        return Statement(Part(question, offset=0, intercepted=True), found.text, like, *stand_in, in_sql=True)

    async def _execute(self, message: Execute, received: Received) -> None:
        await self._exchange.settle()
        self._forget_portals()
        portal = self._held.portals.pop(message.portal, None)
        how = How.PORTAL_AFTER if self._relay.answers.ran else How.PORTAL_FIRST
        if portal is None or not await self._questions.answer(portal, message, how=how):
            self._pass(received)

    async def _refuse(self, error: KeyholeError, text: bytes | None = None) -> None:
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
                    self._client.write(frame.raw)
                    return
        self._exchange.fail()
        self._telemetry.refused(error.code, face=Face.POSTGRESQL, analyst=self._analyst)
        self._client.write(refusal(error, codec=codec(self._text.encoding) or codecs.lookup("utf-8")))

    # --- text

    async def _read(self, sql: bytes) -> tuple[Part, ...]:
        text = await self._text.read(sql)
        if len(sql) > _LONG_BYTES:
            parts = await self._work.run(partial(self._asker.read, text))
        else:
            try:
                parts = self._asker.read(text)
            except KeyholeError:
                raise
            except Exception as error:
                log.error("internal error", **fault(error))
                raise KeyholeError("KH900", "internal error") from None
        for part in parts:
            if part.prepares is not None:
                self._held.prepared(part.prepares)
            if part.executing is not None:
                self._held.check_execute(part.executing.name, position=part.offset + 1)
        return parts

    def _pass(self, received: Received) -> None:
        ending = _ENDINGS.get(type(received.message))
        self._relay.send(_raw(received), None if ending is None else Expected(ending))


def _raw(received: Received) -> bytes:
    if received.frame is None:
        raise RuntimeError("a message before the login cannot be passed on")
    return received.frame.raw


def _prepares(parts: tuple[Part, ...]) -> bool:
    """Whether a text may make a prepared statement."""
    return any(first_word(part) == "prepare" for part in parts)
