"""A session after its login: everything passes through to the shadow, except questions.

A question in a simple query or at the first Execute of a portal is prepared against the shadow's empty tables, planned,
released, and then the shadow runs the rewritten statement, with the released keys as parameters, under the client's own
portal. Describe, Close, row limits, transactions and their status are the shadow's own.
"""

import asyncio
import codecs
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import structlog

from planner.errors import KeyholeError
from planner.statement import Executing
from proxy.asker import Asker, Part
from proxy.reports import notice, refusal
from proxy.shadow.answers import DESCRIPTION, ROWS, Ending, Expected
from proxy.shadow.exchange import OWN_NAMES, Described, Exchange, ShadowFailed, described
from proxy.shadow.relay import Relay
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

log = structlog.get_logger("keyhole.session")
T = TypeVar("T")

UNNAMED = b""
_SYNC = Sync().encode()
_ENDINGS: dict[type[FrontendMessage], Ending] = {
    Parse: Ending.PARSE,
    Bind: Ending.BIND,
    Close: Ending.CLOSE,
    Describe: Ending.DESCRIBE,
    Execute: Ending.EXECUTE,
    Sync: Ending.SYNC,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """A prepared statement of the client that Keyhole must answer, as the shadow described it.

    `in_sql`: by PREPARE, so that positions in its text mean nothing to who binds it.
    """

    part: Part
    described: Described
    stand_in: bytes
    in_sql: bool = False


@dataclass(frozen=True, slots=True)
class Portal:
    """A bound statement that Keyhole must answer and has not answered yet.

    `executed`: by EXECUTE, so that positions in its text mean nothing to the client.
    """

    statement: Statement
    bound: Bind
    executed: bool = False


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
    ) -> None:
        self._connection = connection
        self._relay = relay
        self._client = client
        self._asker = asker
        self._analyst = analyst
        self._workers = workers
        self._exchange = Exchange(relay, setting_names=tuple(asker.settings))
        self._statements: dict[bytes, Statement] = {}
        self._portals: dict[bytes, Portal] = {}
        self._errors_seen = 0
        self._prepares = False

    async def handle(self, received: Received) -> None:
        """One message of the client. Raises ConnectionError when the shadow is gone."""
        self._forget_after_errors()
        try:
            await self._dispatch(received)
        except ShadowFailed:
            self._connection.failed()
        except KeyholeError as error:
            await self._refuse(error)

    async def _dispatch(self, received: Received) -> None:
        match received.message:
            case Query() as message:
                await self._query(message, received)
            case Parse() as message:
                await self._parse(message, received)
            case Bind() as message:
                await self._bind(message, received)
            case Execute(portal=name) as message if name in self._portals:
                await self._execute(message)
            case Close(what=what, name=name):
                (self._statements if what == b"S" else self._portals).pop(name, None)
                self._pass(received)
            case FunctionCall():
                await self._refuse(KeyholeError("KH404", "function calls by protocol message are not served"))
                if self._connection.state is not State.SKIPPING:
                    self._relay.send(_SYNC, Expected(Ending.SYNC))
            case Copy():
                pass
            case Flush():
                self._relay.send(Flush().encode())
            case _:
                self._pass(received)

    # --- simple query

    async def _query(self, message: Query, received: Received) -> None:
        self._statements.pop(UNNAMED, None)
        self._portals.pop(UNNAMED, None)
        failed_before = False
        try:
            parts = self._read(message.sql)
            split = len(parts) > 1 and any(part.alone for part in parts)
            if not split and not any(part.intercepted or part.executing for part in parts):
                self._relay.send(_raw(received), Expected(Ending.QUERY))
                return
            await self._exchange.settle()
            for part in parts:
                if await self._answers(part):
                    await self._ask_at_once(part)
                else:
                    self._run_part(part)
        except ShadowFailed:
            failed_before = self._connection.state is State.EXTENDED
        except KeyholeError as error:
            await self._refuse(error)
            failed_before = self._connection.state is State.SKIPPING
        if not failed_before:
            self._relay.send(_SYNC, Expected(Ending.SYNC))

    def _run_part(self, part: Part) -> None:
        """Run one statement of several that the shadow can answer, as a simple query would."""
        self._exchange.parse(UNNAMED, self._encode(part.text), offset=part.offset)
        self._exchange.bind(Bind(UNNAMED, UNNAMED, (), (), ()))
        self._relay.send(Describe(b"P", UNNAMED).encode(), Expected(Ending.DESCRIBE, shown=DESCRIPTION))
        self._relay.send(Execute(UNNAMED, 0).encode(), Expected(Ending.EXECUTE, shown=ROWS))

    async def _ask_at_once(self, part: Part) -> None:
        self._exchange.parse(UNNAMED, self._encode(part.text), offset=part.offset)
        expected = self._exchange.describe(b"S", UNNAMED)
        await self._exchange.settle()
        bound = Bind(UNNAMED, UNNAMED, (), (), ())
        portal = Portal(Statement(part, described(expected), UNNAMED), bound)
        await self._answer(portal, Execute(UNNAMED, 0), shows_rows_description=True)

    # --- extended query

    async def _parse(self, message: Parse, received: Received) -> None:
        if message.statement.startswith(OWN_NAMES):
            raise KeyholeError("KH404", 'names of statements that start with "keyhole." are Keyhole\'s own')
        parts = self._read(message.sql)
        if not any([await self._answers(part) for part in parts]):
            if message.statement in self._statements and message.statement != UNNAMED:
                # succeeds only if the shadow has lost the old one, by DEALLOCATE or DISCARD
                self._pass(received)
                await self._exchange.settle()
            else:
                self._pass(received)
            self._statements.pop(message.statement, None)
            return
        if len(parts) > 1:
            raise KeyholeError("KH108", "cannot insert multiple commands into a prepared statement")
        self._pass(received)
        expected = self._exchange.describe(b"S", message.statement)
        await self._exchange.settle()
        like = described(expected)
        stand_in = await self._exchange.stand_in(message.statement, like)
        self._statements[message.statement] = Statement(parts[0], like, stand_in)

    async def _bind(self, message: Bind, received: Received) -> None:
        statement = self._statements.get(message.statement) or await self._prepared_in_sql(message.statement)
        if statement is None:
            self._portals.pop(message.portal, None)
            self._pass(received)
            return
        self._exchange.describe(b"S", message.statement)  # insists that the statement still exists
        bound = replace(message, statement=statement.stand_in)
        self._relay.send(bound.encode(), Expected(Ending.BIND))
        await self._exchange.settle()
        self._forget_after_errors()
        self._portals[message.portal] = Portal(statement, message, executed=statement.in_sql)

    async def _prepared_in_sql(self, name: bytes) -> Statement | None:
        """What the client binds by a name that PREPARE gave to a question; None for everything else."""
        if not self._prepares or not name:
            return None
        await self._exchange.settle()
        found = await self._exchange.held(name)
        question = None if found is None else self._asker.held(self._codec().decode(found[1])[0])
        if found is None or found[0] != name or question is None:
            return None
        expected = self._exchange.describe(b"S", name)
        await self._exchange.settle()
        like = described(expected)
        stand_in = await self._exchange.stand_in(name, like)
        return Statement(Part(question, offset=0, intercepted=True), like, stand_in, in_sql=True)

    def _forget_after_errors(self) -> None:
        """An error ends the transaction's portals. Fails closed: the shadow denies running what is forgotten here."""
        if self._relay.answers.errors != self._errors_seen:
            self._errors_seen = self._relay.answers.errors
            self._portals.clear()

    async def _execute(self, message: Execute) -> None:
        await self._exchange.settle()
        await self._answer(self._portals[message.portal], message, shows_rows_description=False)
        del self._portals[message.portal]

    # --- questions

    async def _answer(self, portal: Portal, execute: Execute, *, shows_rows_description: bool) -> None:
        """The way of a question: read the session, plan, prepare, release, run. Nothing is spent before `release`."""
        if portal.statement.part.executing is not None:
            portal = await self._given(portal, portal.statement.part.executing)
        part, like = portal.statement.part, portal.statement.described
        text = self._codec()
        if not shows_rows_description:
            self._exchange.describe(b"P", execute.portal)  # insists that the portal still exists
        state_answer = self._exchange.read_state()
        value_answer = self._exchange.read_values(portal.bound, like.types) if like.types else None
        await self._exchange.settle()
        state = self._exchange.state(state_answer, text)
        parameters = {} if value_answer is None else self._exchange.values(value_answer, like.types, text)
        try:
            prepared = await self._work(
                partial(
                    self._asker.prepare,
                    part.text,
                    settings=state.settings,
                    parameters=parameters,
                    analyst=self._analyst,
                    utc=state.utc,
                )
            )
            await self._exchange.prepare(self._encode(prepared.sql), like.types, arrays=prepared.arrays, like=like)
            rehearsal = [self._encode(sql) for sql in prepared.rehearsal]
            await self._exchange.rehearse(portal.bound, rehearsal, arrays=prepared.arrays, codec=text)
            released = await self._work(partial(self._asker.release, prepared))
        except KeyholeError as error:
            if portal.executed:
                raise error.unplaced() from None
            raise error.moved(offset=part.offset) from None
        if state.wants_notices:
            self._client.write(b"".join(notice(sentence, codec=text) for sentence in released.notices))
        if shows_rows_description and like.rows is not None:
            self._client.write(like.rows.encode())
        self._exchange.bind_outer(execute.portal, portal.bound, released.arrays, codec=text)
        tag = None if prepared.tag is None else prepared.tag.encode()
        self._relay.send(execute.encode(), Expected(Ending.EXECUTE, shown=ROWS | {ord("s")}, tag=tag, offset=None))

    # --- EXECUTE

    async def _answers(self, part: Part) -> bool:
        """Whether Keyhole answers the statement; for EXECUTE, what the shadow holds under the name tells."""
        if part.executing is None:
            return part.intercepted
        return await self._held(part.executing) is not None

    async def _held(self, executing: Executing) -> tuple[bytes, str] | None:
        """The name and the question of what EXECUTE names; None where there is none, or no question in it."""
        await self._exchange.settle()
        found = await self._exchange.held(self._encode(executing.name))
        if found is None:
            return None
        name, text = found
        question = self._asker.held(self._codec().decode(text)[0])
        return None if question is None else (name, question)

    async def _given(self, portal: Portal, executing: Executing) -> Portal:
        """An EXECUTE as the question that it names, bound to its arguments."""
        found = await self._held(executing)
        if found is None:
            raise KeyholeError(
                "KH106",
                f'the prepared statement "{executing.name}" is no longer what it was when this was parsed',
                hint="Send the EXECUTE again.",
            )
        name, question = found
        expected = self._exchange.describe(b"S", name)
        await self._exchange.settle()
        types = described(expected).types
        if types and executing.count != len(types):
            raise KeyholeError(
                "KH109",
                f'wrong number of parameters for prepared statement "{executing.name}"',
                detail=f"Expected {len(types)} but got {executing.count}.",
                hint="Give EXECUTE one value per parameter.",
            )
        values = await self._exchange.arguments(self._encode(executing.given), types) if types else ()
        part = Part(text=f"{executing.explain}{question}", offset=0, intercepted=True)
        like = replace(portal.statement.described, types=types)
        bound = replace(portal.bound, formats=(1,) if types else (), values=values)
        return Portal(replace(portal.statement, part=part, described=like), bound, executed=True)

    async def _work(self, call: Callable[[], T]) -> T:
        """Run blocking work beside the loop. A bug in it is the client's KH900 and one line in the log."""
        running: Awaitable[T] = asyncio.get_running_loop().run_in_executor(self._workers, call)
        try:
            return await running
        except KeyholeError:
            raise
        except Exception as error:
            log.exception("internal error", kind=type(error).__name__, exc_info=False)
            raise KeyholeError("KH900", "internal error") from None

    async def _refuse(self, error: KeyholeError) -> None:
        """Tell the client, and fail the shadow's transaction by an error of its own."""
        await self._relay.settle()
        if self._relay.answers.skipping:
            return  # an earlier error of the batch was first, and has been told
        self._exchange.fail()
        self._client.write(refusal(error, codec=codec(self._encoding()) or codecs.lookup("utf-8")))
        self._connection.failed()

    # --- text

    def _read(self, sql: bytes) -> tuple[Part, ...]:
        try:
            parts = self._asker.read(self._codec().decode(sql)[0])
        except UnicodeDecodeError:
            raise KeyholeError("KH100", f"the statement is not valid {self._encoding()}") from None
        self._prepares |= any(part.alone for part in parts)
        return parts

    def _encode(self, text: str) -> bytes:
        return self._codec().encode(text)[0]

    def _codec(self) -> codecs.CodecInfo:
        found = codec(self._encoding())
        if found is None:
            raise KeyholeError(
                "KH404",
                f"the client encoding {self._encoding()} is not supported",
                hint="SET client_encoding = 'UTF8';",
            )
        return found

    def _encoding(self) -> str:
        return self._relay.parameters.get(b"client_encoding", b"UTF8").decode("ascii")

    def _pass(self, received: Received) -> None:
        ending = _ENDINGS.get(type(received.message))
        self._relay.send(_raw(received), None if ending is None else Expected(ending))


def _raw(received: Received) -> bytes:
    if received.frame is None:
        raise RuntimeError("a message before the login cannot be passed on")
    return received.frame.raw
