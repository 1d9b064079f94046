"""A reader that splits a client's text into statements and finds the questions, without delaying other sessions."""

from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial

import structlog

from planner.errors import KeyholeError
from proxy.concurrency.cancellable_work import QuestionWork, make_internal_error
from proxy.concurrency.fair_queue import VERY_LONG_BYTES, read_very_long_alone
from proxy.observe.logs import describe_exception
from proxy.pipeline.messages import StatementPart
from proxy.session.parts import SessionParts
from proxy.session.statement_timeout import find_longest_timeout_ms

log = structlog.get_logger("keyhole.session")

_LONG_BYTES = 2 * 1024  # shorter texts are read on the event loop, which saves two hops between threads


class StatementReader:
    """A reader of one session's texts.

    Short texts are parsed at once, and long ones in a worker thread. Very long ones are parsed in `readers`, one at a
    time in the process.

    `longest_ms` is the highest `statement_timeout` that any text may have set.
    """

    def __init__(self, session: SessionParts, *, readers: Executor) -> None:
        self._asker = session.asker
        self._analyst = session.analyst
        self._text = session.text
        self._held = session.client_statements
        self._listening = session.notifications
        self._work = session.work
        self._readers = QuestionWork(readers)
        self.longest_ms = 0.0

    async def read_statements(self, sql: bytes) -> tuple[StatementPart, ...]:
        """Return the statements of a text, and note the names that PREPARE or EXECUTE use. Raise KeyholeError."""
        decode = await self._text.make_decoder(sql)
        if len(sql) > _LONG_BYTES:
            beside = self._readers if len(sql) > VERY_LONG_BYTES else self._work
            parts, longest = await beside.run(partial(self._read_alone, sql, decode))
        else:
            parts, longest = self._read_in_thread(decode)
        self.longest_ms = max(self.longest_ms, longest)
        for part in parts:
            if part.prepared_name is not None:
                self._held.note_prepare(part.prepared_name)
            if part.execute_statement is not None:
                self._held.check_execute(part.execute_statement.name, position=part.offset + 1)
            if part.listened_channel is not None:
                await self._listening.admit_channel(part.listened_channel)
        return parts

    def _read_alone(self, sql: bytes, decode: Callable[[], str]) -> tuple[tuple[StatementPart, ...], float]:
        with read_very_long_alone(sql, analyst=self._analyst):  # so that no session holds a text while it waits
            return self._read(decode())

    def _read(self, text: str) -> tuple[tuple[StatementPart, ...], float]:
        return self._asker.read_statements(text), find_longest_timeout_ms(text)

    def _read_in_thread(self, decode: Callable[[], str]) -> tuple[tuple[StatementPart, ...], float]:
        try:
            return self._read(decode())
        except KeyholeError:
            raise
        except Exception as error:
            log.error("internal error", **describe_exception(error))
            raise make_internal_error() from None
