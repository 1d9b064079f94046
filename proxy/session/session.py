"""A session after its login: everything passes through to the shadow, except questions.

A question in a simple query or at the first Execute of a portal is prepared against the shadow's empty tables, planned,
released, and then the shadow runs the rewritten statement, with the released keys as parameters, under the client's own
portal. Describe, Close, row limits, transactions and their status are the shadow's own.
"""

import asyncio
from concurrent.futures import Executor
from dataclasses import replace

from planner.errors import KeyholeError
from planner.statements.allow_list import own_name_refused
from proxy.concurrency.cancellable_work import Work
from proxy.observe.telemetry import Telemetry
from proxy.pipeline.messages import StatementPart
from proxy.session.client_statements import Held, Portal, Statement
from proxy.session.client_text import ClientText
from proxy.session.error_reporter import Refusing
from proxy.session.multi_statement import UNNAMED, Script
from proxy.session.port import Asker
from proxy.session.questions import How, Questions
from proxy.session.quotas import Counted
from proxy.session.statement_reader import StatementReader
from proxy.session.statement_timeout import given_ms
from proxy.shadow.answers import NOTHING, Ending, Expected
from proxy.shadow.exchange import OWN_NAMES, STAND_IN, Exchange
from proxy.shadow.findings import READ_BY, ShadowFailed, described
from proxy.shadow.parameter import all_mean_the_same
from proxy.shadow.relay import Relay
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
from proxy.wire.server import ConnectionState, Received, ServerConnection

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
    """One client's statements, in order. `analyst` asks; blocking work runs in `workers`, reading long texts in
    `readers`."""

    def __init__(
        self,
        connection: ServerConnection,
        *,
        relay: Relay,
        client: asyncio.StreamWriter,
        asker: Asker,
        analyst: str,
        workers: Executor,
        readers: Executor,
        statements: int,
        portals: int,
        telemetry: Telemetry,
    ) -> None:
        self._connection = connection
        self._relay = relay
        self._work = Work(workers)
        self._exchange = Exchange(relay, setting_names=tuple(asker.settings))
        self._text = ClientText(relay, self._exchange)
        self._held = Held(self._exchange, self._text)
        self._reading = StatementReader(
            asker, analyst=analyst, text=self._text, held=self._held, work=self._work, readers=readers
        )
        self._refusing = Refusing(
            relay,
            client=client,
            exchange=self._exchange,
            text=self._text,
            telemetry=telemetry,
            analyst=analyst,
        )
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
        self._counted = Counted(relay, self._exchange, self._held, statements=statements, portals=portals)
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
            await self._refusing.tell(error)
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
        return self._relay.answers.status != b"I" or self._connection.state is not ConnectionState.IDLE

    @property
    def longest_ms(self) -> float:
        """The longest that PostgreSQL's own limit lets a statement of this session run; infinite without a limit."""
        return max(given_ms(self._relay.settings), self._reading.longest_ms)

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
            case Execute() as message if await self._text.name(message.portal) in self._held.portals:
                await self._execute(message, received)
            case Close(what=b"S") as message if await self._text.name(message.name) in self._held.statements:
                await self._exchange.settle()  # what is skipped after an error closes nothing
                self._pass(received)
                self._held.forget(await self._text.name(message.name))
            case Close(what=b"P", name=name):
                self._counted.close(await self._text.name(name))
                self._pass(received)
            case FunctionCall():
                await self._exchange.settle()
                await self._refusing.tell(KeyholeError("KH404", "function calls by protocol message are not served"))
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
        if not self._begun and answers.settled and answers.status != b"E":
            outdated, full = self._held.outdated(answers.forgotten), self._counted.nearly_full
            if outdated:
                await self._held.check(answers.forgotten)
            if full:
                await self._counted.look()
            if outdated or full:
                await self._exchange.step_back()
        self._begun = True

    # --- simple query

    async def _query(self, message: Query, received: Received) -> None:
        """Errors in it end it and nothing else: ReadyForQuery follows at once, even inside a batch."""
        parts: tuple[StatementPart, ...] = ()
        refusal: KeyholeError | None = None
        try:
            parts = await self._reading.parts(message.sql)
        except KeyholeError as error:
            refusal = error
        in_batch = self._connection.state is ConnectionState.EXTENDED
        concerned = refusal is not None or self._script.may_concern(parts)
        fetched = self._held.fetched_by(parts)
        if concerned or fetched is not None or UNNAMED in self._held.statements:
            await self._exchange.settle()  # a query that is skipped after an error forgets nothing and says nothing
            self._held.forget(UNNAMED)
        try:
            if refusal is None and await self._counted.make_room(parts) and not in_batch:
                self._relay.send(_SYNC, Expected(Ending.SYNC, shown=NOTHING))
            if fetched is not None:
                await self._open(fetched)
            if refusal is not None:
                await self._refusing.tell(refusal, message.sql)
            elif not (concerned and await self._script.concerns(parts, in_batch=in_batch)):
                self._relay.send(_raw(received), Expected(Ending.QUERY))
                return
            else:
                await self._script.run(parts, message.sql)
        except ShadowFailed:
            pass
        except KeyholeError as error:
            await self._refusing.tell(error)
        self._relay.send(_SYNC, Expected(Ending.SYNC))

    async def _open(self, name: bytes) -> None:
        """Answer the question of a portal that FETCH or MOVE is about to read, as drivers do with their cursors."""
        self._forget_portals()
        portal = self._held.portals.pop(name, None)
        if portal is not None:
            await self._questions.open(portal, self._text.encode(name.decode("utf-8", "replace")))

    # --- extended query

    async def _parse(self, message: Parse, received: Received) -> None:
        if message.statement.startswith(OWN_NAMES):
            raise own_name_refused()
        name = await self._text.name(message.statement)
        if name in self._held.statements:
            await self._exchange.settle()  # what is skipped after an error replaces nothing
        try:
            parts = await self._reading.parts(message.sql)
            await self._counted.make_room(parts, name)
            for part in parts:
                executing = None if part.executing is None else part.executing.name
                self._held.check_parse(name, part.first_word, executing)
        except KeyholeError as error:
            await self._exchange.settle()
            if message.statement == UNNAMED:
                self._held.forget(UNNAMED)
                self._exchange.close(b"S", UNNAMED)
            await self._refusing.tell(error, message.sql)
            raise ShadowFailed from None
        meant = len(parts) == 1 and await self._questions.meant(parts[0])
        if len(parts) == 1 and parts[0].executing is not None and self._held.may_be_question(parts[0].executing.name):
            await self._exchange.step_back()
        if not meant:
            self._pass(received)
            if name != UNNAMED and (name in self._held.statements or self._held.may_be_prepared(name)):
                # succeeds only if the shadow has lost the old one, by DEALLOCATE or DISCARD
                await self._exchange.settle()
            self._held.replaced(name, parts)
            return
        self._pass(received)
        expected = self._exchange.describe(b"S", message.statement)
        await self._exchange.settle()
        like = described(expected)
        text = await self._text.read(message.sql)
        # DECLARE gives no rows, and can be bound itself: PostgreSQL checks its privileges when it runs
        stand_in, stand_in_text = message.statement, text
        if like.rows is not None:
            stand_in = self._exchange.new_stand_in()
            stand_in_text = self._text.decode(await self._exchange.stand_in(stand_in, like))
        self._held.keep(name, Statement(parts[0], text, like, stand_in, stand_in_text))

    async def _bind(self, message: Bind, received: Received) -> None:
        if message.statement.startswith(OWN_NAMES) or message.portal.startswith(OWN_NAMES):
            raise own_name_refused()
        name, portal = await self._text.name(message.statement), await self._text.name(message.portal)
        if name in self._held.statements:
            self._exchange.describe(b"S", message.statement)  # insists that there is one, whatever it is by now
            await self._exchange.settle()
            if self._held.outdated(self._relay.answers.forgotten):
                await self._held.check(self._relay.answers.forgotten)
                await self._exchange.step_back()
        if portal:
            self._counted.bind(portal)
        statement = self._held.statements.get(name) or await self._prepared_in_sql(message.statement, name)
        if statement is None or len(message.values) != len(statement.described.types):
            if portal in self._held.portals:
                await self._exchange.settle()  # what is skipped after an error replaces nothing
                del self._held.portals[portal]
            self._pass(received)  # a wrong number of values is an error that names the client's own statement
            return
        bound = replace(message, statement=statement.stand_in)
        self._relay.send(bound.encode(), Expected(Ending.BIND))
        await self._exchange.settle()
        self._forget_portals()
        read_by = await self._read_by(message, statement.described.types)
        self._held.portals[portal] = Portal(statement, message, read_by, executed=statement.in_sql)

    async def _read_by(self, message: Bind, types: tuple[int, ...]) -> tuple[bytes, ...] | None:
        """The settings by which the parameters of a portal were read; None if they mean the same by all."""
        if all_mean_the_same(message, types):
            return None
        answers = self._relay.answers
        if answers.executed != answers.told:
            return await self._exchange.reading()
        return tuple(self._relay.parameters.get(name.encode(), b"") for name in READ_BY)

    def _forget_portals(self) -> None:
        """Forget those whose transaction is over."""
        answers = self._relay.answers
        if answers.readies != self._readies and answers.status == b"I":
            self._held.portals.clear()
        self._readies = answers.readies

    async def _prepared_in_sql(self, sent: bytes, name: bytes) -> Statement | None:
        """What the client binds by a name that PREPARE gave to a question; None for everything else."""
        if not name or not self._held.may_be_prepared(name):
            return None
        await self._exchange.settle()
        if self._relay.answers.failed:
            return None  # nothing can be looked up, and the shadow says what is wrong
        found = await self._exchange.held(sent)
        await self._exchange.step_back()
        question = None if found is None else self._questions.inside(found)
        if found is None or found.name != name or question is None:
            return None
        expected = self._exchange.describe(b"S", sent)
        await self._exchange.settle()
        like = described(expected)
        # its portal keeps what it needs of the stand-in, so the next may have the same name
        stand_in = self._text.decode(await self._exchange.stand_in(STAND_IN, like))
        part = StatementPart(question, offset=0, intercepted=True)
        return Statement(part, question, like, STAND_IN, stand_in, in_sql=True)

    async def _execute(self, message: Execute, received: Received) -> None:
        await self._exchange.settle()
        self._forget_portals()
        portal = self._held.portals.pop(await self._text.name(message.portal), None)
        how = How.PORTAL_AFTER if self._relay.answers.ran else How.PORTAL_FIRST
        if portal is None or not await self._questions.answer(portal, message, how=how):
            self._pass(received)

    def _pass(self, received: Received) -> None:
        ending = _ENDINGS.get(type(received.message))
        self._relay.send(_raw(received), None if ending is None else Expected(ending))


def _raw(received: Received) -> bytes:
    if received.frame is None:
        raise RuntimeError("a message before the login cannot be passed on")
    return received.frame.raw
