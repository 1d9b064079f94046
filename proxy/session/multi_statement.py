"""The execution of a simple query that cannot go to the shadow unchanged. Its statements run one after the other.

Each statement runs through the extended protocol. The client sees the same messages as for PostgreSQL's simple query.
All statements are one transaction, unless the text has its own BEGIN or COMMIT. A syntax error anywhere stops the whole
text, and nothing runs after an error.
"""

from planner.parser.lexer import read_tokens
from proxy.pipeline.messages import StatementPart
from proxy.session.client_statements import UNNAMED, Portal, Statement
from proxy.session.parts import SessionParts
from proxy.session.session_questions import AskingMode, SessionQuestions
from proxy.shadow.answers import DESCRIPTION, ERROR, NOTHING, ROWS, AnswerEnd, ExpectedAnswer
from proxy.shadow.exchange import PART
from proxy.shadow.findings import ShadowFailed, parse_description
from proxy.wire.frontend import Bind, Describe, Execute, Query, Sync

_SYNC = Sync().encode()
_ENDS_TRANSACTION = frozenset({"abort", "commit", "end", "rollback"})
_SHOWN_WHOLE = frozenset({"execute", "explain", "fetch", "show"})  # described once their result is there


class ScriptRunner:
    """A runner of texts with several statements, some of them questions.

    Raise ShadowFailed after an error that the client has seen.
    """

    def __init__(self, session: SessionParts, questions: SessionQuestions) -> None:
        self._client = session.client
        self._relay = session.relay
        self._exchange = session.exchange
        self._text = session.text
        self._held = session.client_statements
        self._questions = questions

    def may_need_splitting(self, parts: tuple[StatementPart, ...]) -> bool:
        """Return True if a text possibly cannot go to the shadow unchanged. Ask nothing of the shadow."""
        return any(part.is_intercepted or (part.prepared_name is not None and len(parts) > 1) for part in parts) or any(
            part.execute_statement is not None and self._held.may_be_question(part.execute_statement.name)
            for part in parts
        )

    async def needs_splitting(self, parts: tuple[StatementPart, ...], *, in_batch: bool) -> bool:
        """Return True if a text cannot go to the shadow unchanged.

        Ask the shadow which statements EXECUTE would run.
        """
        if any(part.is_intercepted or part.prepared_name is not None for part in parts):
            return True
        if self._relay.answers.status == b"E":
            return True  # nothing can be looked up before the ROLLBACK that the text may begin with
        if any([await self._questions.is_for_keyhole(part) for part in parts]):
            return True
        if not in_batch:
            self._relay.send(_SYNC, ExpectedAnswer(AnswerEnd.SYNC, shown_frames=NOTHING))
        return False

    async def run(self, parts: tuple[StatementPart, ...], text: bytes) -> None:
        """Run a text's statements one by one, with the same effects as PostgreSQL's simple query."""
        several = len(parts) > 1
        if several and (error := await self._relay.find_syntax_error(text)) is not None:
            self._exchange.fail_transaction()
            self._client.write(error)
            return
        for what in (b"S", b"P"):
            self._exchange.close(what, UNNAMED)
        ended = self._relay.answers.status == b"I"
        for part in parts:
            if several and ended:
                self._exchange.enter_transaction_block()
            if not part.text.isascii():
                await self._exchange.settle()
                await self._text.refresh_encoding()  # an earlier statement may have changed the encoding
            if _has_parameters(part):
                await self._run_failing(part)
            if await self._questions.is_for_keyhole(part):
                await self._ask_question(part, AskingMode.TOGETHER if several else AskingMode.ALONE)
            else:
                self._run_part(part)
            ended = part.first_word in _ENDS_TRANSACTION

    def _run_part(self, part: StatementPart) -> None:
        """Run one statement that the shadow can answer, as a simple query would."""
        at = part.offset
        self._exchange.parse(PART, self._text.encode(part.text), offset=at)
        self._exchange.close(b"P", PART)
        self._exchange.bind(Bind(PART, PART, (), (), ()), offset=at)
        late = part.first_word in _SHOWN_WHOLE
        description = ExpectedAnswer(AnswerEnd.DESCRIBE, shown_frames=DESCRIPTION, offset=at, waits_for_rows=late)
        self._relay.send(Describe(b"P", PART).encode(), description)
        self._relay.send(Execute(PART, 0).encode(), ExpectedAnswer(AnswerEnd.EXECUTE, shown_frames=ROWS, offset=at))
        self._exchange.close(b"P", PART)

    async def _run_failing(self, part: StatementPart) -> None:
        """Send a statement with parameters to the shadow as a simple query, which must fail.

        A simple query cannot have parameters. The shadow reports this error, or any earlier error in the statement.
        """
        await self._exchange.settle()
        failing = ExpectedAnswer(AnswerEnd.QUERY, shown_frames=ERROR, offset=part.offset)
        self._relay.send(Query(self._text.encode(part.text)).encode(), failing)
        await self._relay.settle()
        raise ShadowFailed

    async def _ask_question(self, part: StatementPart, how: AskingMode) -> None:
        self._exchange.parse(PART, self._text.encode(part.shadow_text), offset=part.offset)
        expected = self._exchange.describe(b"S", PART)
        state_answer = self._questions.ask_state_early(part, PART)
        await self._exchange.settle()
        bound = Bind(PART, PART, (), (), ())
        portal = Portal(Statement(part, part.text, parse_description(expected), PART, part.text), bound)
        await self._questions.answer(portal, Execute(PART, 0), how=how, state_answer=state_answer)
        self._exchange.close(b"P", PART)


def _has_parameters(part: StatementPart) -> bool:
    return (
        "$" in part.text
        and part.first_word != "prepare"
        and any(token.kind == "parameter" for token in read_tokens(part.text))
    )
