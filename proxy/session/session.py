"""A client's session after its login. Everything passes through to the shadow, except questions.

A question arrives in a simple query, or at the first Execute of a portal. It is prepared on the shadow's empty tables,
planned, and its answer released. Then the shadow runs the rewritten statement, with the released keys as parameters,
under the client's own portal. The shadow itself handles Describe, Close, row limits, and transactions with their
status.
"""

import asyncio
from concurrent.futures import Executor

from planner.errors import KeyholeError
from proxy.session.core import SYNC, SessionCore
from proxy.session.error_reporter import ErrorReporter
from proxy.session.extended_protocol import ExtendedProtocol
from proxy.session.parts import SessionParts
from proxy.session.quotas import StatementQuotas
from proxy.session.session_questions import SessionQuestions
from proxy.session.session_refusals import refuse_function_call
from proxy.session.simple_protocol import SimpleProtocol
from proxy.session.statement_reader import StatementReader
from proxy.session.statement_timeout import read_login_timeout_ms
from proxy.shadow.answers import AnswerEnd, ExpectedAnswer
from proxy.shadow.findings import ShadowFailed
from proxy.wire.frontend import Bind, Close, Copy, Describe, Execute, Flush, FunctionCall, Parse, Query
from proxy.wire.server_side import ConnectionState, ReceivedMessage


class Session:
    """One client's session, which handles its messages in order.

    Very long texts are parsed in the threads of `readers`. `statements` and `portals` are the largest numbers that the
    session may hold.
    """

    def __init__(self, parts: SessionParts, *, readers: Executor, statements: int, portals: int) -> None:
        self._parts = parts
        self._relay = parts.relay
        reporter = ErrorReporter(parts)
        self._core = SessionCore(
            parts,
            reader=StatementReader(parts, readers=readers),
            reporter=reporter,
            questions=SessionQuestions(parts, reporter=reporter),
            quotas=StatementQuotas(parts, statements=statements, portals=portals),
        )
        self._simple = SimpleProtocol(self._core)
        self._extended = ExtendedProtocol(self._core)
        self._handling = False
        self._handled_at = asyncio.get_running_loop().time()
        parts.notifications.begin(lambda: not self.is_busy and not self.is_in_transaction)

    async def handle(self, received: ReceivedMessage) -> None:
        """Handle one message of the client. Raise ConnectionError if the connection to the shadow is lost."""
        self._handling = True
        try:
            await self._dispatch(received)
        except ShadowFailed:
            self._parts.connection.fail_batch()
        except KeyholeError as error:
            await self._core.reporter.report_error(error)
            self._parts.connection.fail_batch()
        finally:
            self._handling = False
            self._handled_at = asyncio.get_running_loop().time()
            self._parts.notifications.update()

    async def cancel(self) -> None:
        """Cancel the running statement, at the client's request.

        Stop waiting for a question, or ask the shadow to cancel.
        """
        if not self._parts.work.withdraw():
            await self._relay.cancel()

    @property
    def hint_in_message(self) -> bool:
        """Return True if error messages end with their hints, by the settings last reported by the shadow."""
        return self._core.reporter.hint_in_message

    @property
    def is_busy(self) -> bool:
        """Return True if a statement is running."""
        return self._handling or not self._relay.answers.is_settled

    @property
    def is_in_transaction(self) -> bool:
        """Return True if a transaction is open, or a batch that no Sync has ended."""
        return self._relay.answers.status != b"I" or self._parts.connection.state is not ConnectionState.IDLE

    @property
    def longest_timeout_ms(self) -> float:
        """The longest time that `statement_timeout` allows a statement of this session; infinite without a limit."""
        return max(read_login_timeout_ms(self._relay.settings), self._core.reader.longest_ms)

    @property
    def held_bytes(self) -> int:
        """Return the memory of bytes in transit and of stored texts and statements, without the current message."""
        return self._relay.held_bytes + self._parts.client_statements.held_bytes

    def get_idle_seconds(self, now: float) -> float:
        """Return the seconds since the last statement ended. `now` is the event loop's time."""
        return 0.0 if self.is_busy else now - max(self._handled_at, self._relay.settled_at)

    async def _dispatch(self, received: ReceivedMessage) -> None:
        await self._extended.track_batch(received.message)
        match received.message:
            case Query() as message:
                await self._simple.run_query(message, received)
            case Parse() as message:
                await self._extended.parse(message, received)
            case Bind() as message:
                await self._extended.bind(message, received)
            case Describe() as message:
                await self._extended.describe(message, received)
            case Execute() as message:
                await self._extended.execute(message, received)
            case Close() as message:
                await self._extended.close(message, received)
            case FunctionCall():
                await self._refuse_call()
            case Copy():
                pass
            case Flush():
                self._relay.send(Flush().encode())
            case _:
                self._core.forward_to_shadow(received)

    async def _refuse_call(self) -> None:
        await self._parts.exchange.settle()
        await self._core.reporter.report_error(refuse_function_call())
        self._relay.send(SYNC, ExpectedAnswer(AnswerEnd.SYNC))
