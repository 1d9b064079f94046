"""The answering of one question in a session: read settings, plan, prepare in the shadow, release, run there.

Everything that may fail by the analyst's own mistake is tried in the shadow before anything is charged.
"""

import codecs
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from threading import Event

from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.statements.classify import CopiedQuery, ExecuteStatement
from proxy.pipeline.messages import PreparedRequest, Request, StatementPart
from proxy.session.client_statements import Portal
from proxy.session.error_fields import encode_notice
from proxy.session.error_reporter import ErrorReporter
from proxy.session.parts import SessionParts
from proxy.session.session_refusals import (
    refuse_parameter_count,
    refuse_replaced_statement,
    refuse_reread_parameters,
    refuse_unwritable_answer,
)
from proxy.shadow.answers import NOTHING, ROWS, AnswerEnd, ExpectedAnswer
from proxy.shadow.array import encode_text_array, write_array_literal
from proxy.shadow.exchange import GivenValues
from proxy.shadow.findings import PreparedStatement, SessionState, parse_description
from proxy.wire.frontend import Execute, Sync

_SYNC = Sync().encode()
_TOO_LARGE = (
    b"The answer is kept: asked over REST it comes line by line, for nothing. Here it takes a larger session_memory_mb."
)


class AskingMode(Enum):
    """How a question arrives: in a simple query or a portal, as the first statement or a later one.

    In a simple query the question's columns are described with its rows. Earlier statements of the same batch decide
    what PostgreSQL takes for a transaction.
    """

    ALONE = auto()
    TOGETHER = auto()
    PORTAL_FIRST = auto()
    PORTAL_AFTER = auto()


@dataclass(frozen=True, slots=True)
class _WrittenAnswer:
    """A released answer in the client's encoding.

    `keys` are array parameters, or text written into a COPY, which takes no parameters. `keys` is None if the encoding
    lacks a character of a key.
    """

    keys: tuple[bytes, ...] | bytes | None
    notices: tuple[str, ...]


class SessionQuestions:
    """The part of a session that answers questions, in the simple and in the extended protocol."""

    def __init__(self, session: SessionParts, *, reporter: ErrorReporter) -> None:
        self._reporter = reporter
        self._client = session.client
        self._relay = session.relay
        self._exchange = session.exchange
        self._text = session.text
        self._held = session.client_statements
        self._asker = session.asker
        self._analyst = session.analyst
        self._work = session.work

    def ask_state_early(self, part: StatementPart, name: bytes) -> ExpectedAnswer | None:
        """Request the session's state together with the description of a statement, to be given to `answer`.

        Return None if something of the statement must run in the shadow first.
        """
        if part.statements_before or part.execute_statement is not None or part.copied_query is not None:
            return None
        return self._exchange.ask_state(name)

    async def answer(
        self, portal: Portal, execute: Execute, *, how: AskingMode, state_answer: ExpectedAnswer | None = None
    ) -> bool:
        """Answer a question: read settings, plan, prepare in the shadow, release, run.

        Nothing is charged before `release`. `state_answer` is the result of `ask_state_early`, if it was called.

        Return False and release nothing if the shadow has another portal under that name by now.
        """
        with self._work.register_question() as withdrawn:
            prepared = await self._bind_answer(
                portal, execute.portal, how=how, withdrawn=withdrawn, state_answer=state_answer
            )
        if prepared is None:
            return False
        tag = None if prepared.tag is None else prepared.tag.encode()
        shown = ROWS | {ord("s")}
        expected = ExpectedAnswer(
            AnswerEnd.EXECUTE, shown_frames=shown, tag=tag, offset=None, when_too_large=_TOO_LARGE
        )
        self._relay.send(execute.encode(), expected)
        return True

    async def answer_for_fetch(self, portal: Portal, name: bytes) -> None:
        """Answer the question of a portal from which SQL's FETCH is about to read."""
        with self._work.register_question() as withdrawn:
            await self._bind_answer(portal, name, how=AskingMode.PORTAL_AFTER, withdrawn=withdrawn)

    async def _bind_answer(
        self,
        portal: Portal,
        name: bytes,
        *,
        how: AskingMode,
        withdrawn: Event,
        state_answer: ExpectedAnswer | None = None,
    ) -> PreparedRequest | None:
        """Release the answer and bind it to the portal `name`. Return None if the shadow has another portal there."""
        in_query = how in (AskingMode.ALONE, AskingMode.TOGETHER)
        first_of_batch = how in (AskingMode.ALONE, AskingMode.PORTAL_FIRST) and self._relay.answers.status == b"I"
        bound_to = portal.statement.stand_in_text
        first = portal.statement.part
        if portal.statement.part.execute_statement is not None:
            portal = await self._bind_arguments(portal, portal.statement.part.execute_statement)
        if not in_query:
            self._exchange.describe(b"P", name)  # insists that the portal still exists
        if first.copied_query is not None:
            portal = await self._make_copy_portal(portal, first.copied_query)
        like = portal.statement.description
        if first_of_batch and first.statements_before:
            if not _declares_held_cursor(first):
                # a cursor that no transaction keeps: alone between two batches, it is refused by PostgreSQL itself
                self._relay.send(_SYNC, ExpectedAnswer(AnswerEnd.SYNC, shown_frames=NOTHING))
            self._rehearse(first)
        state_answer = self._exchange.ask_state(name) if state_answer is None else state_answer
        values = self._ask_values(portal)
        await self._exchange.settle()
        self._text.use_reported_encoding(self._exchange.decode_encoding(state_answer))
        text = self._text.codec
        state = self._exchange.decode_state(state_answer, text)
        if not in_query and state.portal != bound_to:
            return None
        if not first_of_batch:
            self._rehearse(first)
        _check_settings_unchanged(portal, state)
        with self._reporter.use_known_settings(state.settings):
            prepared, written = await self._plan_and_release(portal, state, values(text), withdrawn=withdrawn)
        if state.wants_notices:
            self._client.write(b"".join(encode_notice(sentence, codec=text) for sentence in written.notices))
        if in_query and like.rows is not None and first.copied_query is None:
            self._client.write(like.rows.encode())
        if written.keys is None:
            raise refuse_unwritable_answer(self._text.encoding)
        if isinstance(written.keys, tuple):
            self._exchange.bind_answer(name, portal.bind_message, written.keys, when_too_large=_TOO_LARGE)
        else:
            self._exchange.bind_copy(name, written.keys, portal.bind_message, when_too_large=_TOO_LARGE)
        return prepared

    def _ask_values(self, portal: Portal) -> Callable[[codecs.CodecInfo], GivenValues]:
        """Request a portal's parameters from the shadow. Return a function that parses the reply after `settle`."""
        types = portal.statement.description.types
        if not types:
            return lambda _: GivenValues()
        casts = self._asker.find_parameter_casts(portal.statement.part.text)
        answer = self._exchange.ask_values(portal.bind_message, types, casts)
        return lambda codec: self._exchange.decode_values(answer, types, casts, codec)

    async def _plan_and_release(
        self, portal: Portal, state: SessionState, found: GivenValues, *, withdrawn: Event
    ) -> tuple[PreparedRequest, _WrittenAnswer]:
        """Plan a question and prepare it in the shadow. Release its answer only if both succeed."""
        part, like = portal.statement.part, portal.statement.description
        try:
            request = Request(
                part.text,
                state.settings,
                found.parameters,
                analyst=self._analyst,
                is_utc=state.is_utc,
                skipped_midnights=state.skipped_midnights,
                casts=found.casts,
            )
            prepared = await self._work.run(partial(self._asker.prepare, request))
            rehearsal = [self._text.encode(sql) for sql in prepared.rehearsal]
            described = self._exchange.prepare_answer(
                self._text.encode(prepared.sql), like.types, arrays=prepared.arrays
            )
            await self._exchange.rehearse_answer(
                portal.bind_message,
                rehearsal,
                arrays=prepared.arrays,
                codec=self._text.codec,
                described=described,
                like=like,
            )
            if part.copied_query is not None:
                behind = self._text.encode(part.copied_query.suffix)
                await self._exchange.rehearse_copy(like, behind, behind_at=part.offset + part.copied_query.suffix_at)
            await self._work.wait_for_earlier()
            return prepared, await self._work.run(
                partial(self._release_written, prepared, part.copied_query, withdrawn)
            )
        except KeyholeError as error:
            if portal.is_from_execute:
                raise error.drop_position() from None
            raise error.shift_position(offset=part.offset) from None

    def _release_written(
        self, prepared: PreparedRequest, copied: CopiedQuery | None, withdrawn: Event
    ) -> _WrittenAnswer:
        """Release the answer, and encode its keys for the shadow.

        This runs in a thread, as millions of keys take seconds.
        """
        released, text = self._asker.release(prepared, withdrawn=withdrawn), self._text.codec
        keys: tuple[bytes, ...] | bytes | None
        try:
            if copied is None:
                keys = tuple(encode_text_array(array, text) for array in released.arrays)
            else:
                sql = inline_arrays(prepared.sql, released.arrays)
                keys = text.encode(f"COPY ({sql}{copied.suffix}")[0]
        except UnicodeEncodeError:
            keys = None
        return _WrittenAnswer(keys, released.notices)

    async def _make_copy_portal(self, portal: Portal, copied: CopiedQuery) -> Portal:
        """Return a portal for the query inside a COPY, which takes no parameters."""
        part = portal.statement.part
        query = self._text.encode(copied.shadow_text or copied.query)
        like = await self._exchange.describe_copied_query(query, offset=part.offset)
        if like.types:
            # as it stands it fails, by the very error that PostgreSQL has for it
            self._exchange.run(self._text.encode(part.text), offset=part.offset)
            await self._exchange.settle()
        alone = replace(portal.statement, part=replace(part, text=copied.query), description=like)
        return replace(portal, statement=alone, bind_message=replace(portal.bind_message, result_formats=()))

    def _rehearse(self, part: StatementPart) -> None:
        for sql in part.statements_before:
            self._exchange.run(self._text.encode(sql), offset=part.offset)

    async def is_for_keyhole(self, part: StatementPart) -> bool:
        """Return True if Keyhole answers a statement.

        For EXECUTE, this depends on the statement that the shadow holds under the name.
        """
        if part.execute_statement is None:
            return part.is_intercepted
        if not self._held.may_be_question(part.execute_statement.name):
            return False
        return await self._find_executed_question(part.execute_statement) is not None

    async def _find_executed_question(self, executing: ExecuteStatement) -> tuple[bytes, str] | None:
        """Return the name and the text of the question that EXECUTE runs, or None if it runs no question."""
        await self._exchange.settle()
        if not executing.name.isascii():
            await self._text.refresh_encoding()
        found = await self._exchange.find_prepared_statement(self._text.encode(executing.name))
        if found is None:
            return None
        question = self.find_question_in(found)
        name = self._text.encode(found.name.decode("utf-8", "replace"))
        return None if question is None else (name, question)

    def find_question_in(self, kept: PreparedStatement) -> str | None:
        """Return the question in a prepared statement of the shadow, or None."""
        return self._asker.find_question(kept.text, in_sql=kept.is_from_prepare)

    async def _bind_arguments(self, portal: Portal, executing: ExecuteStatement) -> Portal:
        """Return a portal of the question that EXECUTE names, bound to EXECUTE's arguments."""
        found = await self._find_executed_question(executing)
        if found is None:
            raise refuse_replaced_statement(executing.name)
        name, question = found
        expected = self._exchange.describe(b"S", name)
        await self._exchange.settle()
        types = parse_description(expected).types
        if types and executing.count != len(types):
            part = portal.statement.part
            # as it stands it fails, by the very error that PostgreSQL has for it
            self._exchange.run(self._text.encode(part.text), offset=part.offset)
            await self._exchange.settle()
            raise refuse_parameter_count(executing.name, expected=len(types), given=executing.count)
        values: tuple[bytes | None, ...] = ()
        if types:
            at = portal.statement.part.offset + executing.arguments_at
            values = await self._exchange.evaluate_arguments(self._text.encode(executing.arguments), types, given_at=at)
        part = StatementPart(text=f"{executing.explain}{question}", offset=0, is_intercepted=True)
        like = replace(portal.statement.description, types=types)
        bound = replace(portal.bind_message, formats=(1,) if types else (), values=values)
        return Portal(replace(portal.statement, part=part, description=like), bound, is_from_execute=True)


def inline_arrays(sql: str, arrays: tuple[tuple[str | None, ...], ...]) -> str:
    """Return a statement's SQL with its array parameters written in as literals. It has no other parameters."""
    parts: list[str] = []
    at = 0
    for token in read_tokens(sql):
        if token.kind == "parameter":
            parts += (sql[at : token.start], write_array_literal(arrays[int(token.value[1:]) - 1]))
            at = token.end
    return "".join((*parts, sql[at:]))


def _check_settings_unchanged(portal: Portal, state: SessionState) -> None:
    """Raise KH106 if settings that affect a portal's parameters changed after Bind."""
    if portal.reading_settings not in (None, state.reading_settings):
        raise refuse_reread_parameters()


def _declares_held_cursor(part: StatementPart) -> bool:
    """Return True if the statement declares a cursor WITH HOLD."""
    return any(token.is_word("hold") for token in read_tokens(part.statements_before[0]))
